//! Entities with windows on several CPUs: their threads move at the boundaries, and run nowhere else.

mod changes;
mod jobs;
mod locks;
mod membership;
mod misses;
mod phases;
mod refused;
mod sleepers;
mod storm;
mod threads;
mod track;

use self::sleepers::{asleep, By};
use super::storm::{files, listings, memory, network, pipes, processes, shared_memory};
use super::suspend::{Depth, LIMIT_MS};
use super::Scenario;
use crate::board::Job;
use crate::check::Check;
use crate::process;
use crate::sys::{self, SchedAttr};
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("migrate_flags", refused::flags),
    Scenario::new("migrate_on_one_cpu", jobs::on_one_cpu),
    Scenario::new("migrate_parallel", refused::parallel).on(2),
    Scenario::new("migrate_parallel_by_the_lead", refused::parallel_by_the_lead).on(2),
    Scenario::new("migrate_read_back", refused::read_back).on(2),
    Scenario::new("migrate_alternates", jobs::alternates).on(2),
    Scenario::new("migrate_three_windows", jobs::three_windows).on(2),
    Scenario::new("migrate_without_work", jobs::without_work).on(2),
    Scenario::new("migrate_by_yield", jobs::by_yield).on(2),
    Scenario::new("migrate_split_abutting", || jobs::split(0)).on(2),
    Scenario::new("migrate_split_with_a_gap", || jobs::split(5)).on(2),
    Scenario::new("migrate_overrun", jobs::overrun).on(2),
    Scenario::new("migrate_bound_later", jobs::bound_later).on(2).within(60_000),
    Scenario::new("migrate_between_members", jobs::between_members).on(2),
    Scenario::new("migrate_lead", jobs::lead).on(2),
    Scenario::new("migrate_lead_around_the_cycle", jobs::lead_around_the_cycle).on(2),
    Scenario::new("migrate_clock", jobs::clock).on(2),
    Scenario::new("migrate_asleep_by_timer", || asleep(By::Timer, 0)).on(2),
    Scenario::new("migrate_asleep_by_futex", || asleep(By::Futex, 0)).on(2),
    Scenario::new("migrate_asleep_by_futex_elsewhere", || asleep(By::Futex, 1)).on(2),
    Scenario::new("migrate_asleep_by_pipe", || asleep(By::Pipe, 1)).on(2),
    Scenario::new("migrate_interrupted", sleepers::interrupted).on(2),
    Scenario::new("migrate_stop_signal", sleepers::stopped).on(2),
    Scenario::new("migrate_system_calls", locks::system_calls).on(2).within(60_000),
    Scenario::new("migrate_kernel_locks_calls", || locks::kernel_locks(&[pipes, listings, memory], 40))
        .on(2)
        .within(200_000),
    Scenario::new("migrate_kernel_locks_files", || locks::kernel_locks(&[files, files], 40)).on(2).within(200_000),
    Scenario::new("migrate_kernel_locks_births", || locks::kernel_locks(&[processes, shared_memory], 40))
        .on(2)
        .within(200_000),
    Scenario::new("full_migrate_kernel_locks", full_kernel_locks).on(2).within(600_000),
    Scenario::new("migrate_inherit_outside_other", || locks::inherit_outside(SchedAttr::other())).on(2),
    Scenario::new("migrate_inherit_outside_fifo", || locks::inherit_outside(SchedAttr::fifo(50))).on(2),
    Scenario::new("migrate_inherit_offered_outside", locks::inherit_offered_outside).on(2),
    Scenario::new("migrate_inherit_many_windows", locks::inherit_many_windows).on(2),
    Scenario::new("migrate_inherit_between_members", locks::inherit_between_members).on(2),
    Scenario::new("migrate_inherit_inside_other", || locks::inherit_inside(SchedAttr::other())).on(2),
    Scenario::new("migrate_inherit_inside_fifo", || locks::inherit_inside(SchedAttr::fifo(50))).on(2),
    Scenario::new("migrate_crowd", threads::crowd).on(2).within(60_000),
    Scenario::new("migrate_fork", threads::fork_in_the_class).on(2),
    Scenario::new("migrate_fork_beyond", threads::fork_beyond).on(2),
    Scenario::new("migrate_threads", threads::threads_of_a_process).on(2),
    Scenario::new("migrate_fork_storm", threads::fork_storm).on(2),
    Scenario::new("migrate_killed", phases::killed).on(2).within(60_000),
    Scenario::new("migrate_unbound", phases::unbound).on(2).within(60_000),
    Scenario::new("migrate_removed", phases::removed).on(2).within(60_000),
    Scenario::new("migrate_exits", phases::exits).on(2),
    Scenario::new("migrate_executes", phases::executes).on(2),
    Scenario::new("migrate_stopped_and_started", phases::stopped_and_started).on(2),
    Scenario::new("migrate_bound_elsewhere", membership::bound_elsewhere).on(2),
    Scenario::new("migrate_affinity_restored", membership::affinity_restored).on(2),
    Scenario::new("migrate_affinity_while_bound", membership::affinity_while_bound).on(2),
    Scenario::new("migrate_affinity_by_itself", membership::affinity_by_itself).on(2),
    Scenario::new("migrate_leaves_and_returns", membership::leaves_and_returns).on(2),
    Scenario::new("migrate_binds_itself_again", membership::binds_itself_again).on(2),
    Scenario::new("migrate_miss_resumes", misses::resumes).on(2),
    Scenario::new("migrate_miss_is_signalled", misses::is_signalled).on(2),
    Scenario::new("migrate_miss_kills", misses::kills).on(2),
    Scenario::new("migrate_misses_stop", misses::stop).on(2),
    Scenario::new("migrate_swap", changes::swap_keeps_threads).on(2),
    Scenario::new("migrate_swap_refused", changes::swap_refused).on(2),
    Scenario::new("migrate_swap_storm", changes::swap_storm).on(2).within(60_000),
    Scenario::new("migrate_hotplug", changes::hotplug).on(2),
    Scenario::new("full_suspend_migrates_processors", || changes::suspended(Depth::Processors)).on(2).within(LIMIT_MS),
    Scenario::new("full_suspend_migrates_core", || changes::suspended(Depth::Core)).on(2).within(LIMIT_MS),
    Scenario::new("migrate_storm", || storm::crossing(200)).on(2).within(120_000),
    Scenario::new("full_migrate_storm", || storm::crossing(5000)).on(2).within(600_000),
];

fn full_kernel_locks() -> Check {
    locks::kernel_locks(&[files, pipes, memory, shared_memory, network, processes, listings], 400)
}

const SECOND: u64 = 1_000_000_000;

/// Returns a table: `t` has [2, 6) of 20 units on CPU 0, and [10, 14) on CPU 1, each with a job.
fn alternating(u: u64) -> Table {
    Table::new(20 * u).window("t", 0, 2 * u, 4 * u, 3).migrate().window("t", 1, 10 * u, 4 * u, 3)
}

/// The CPUs and instants at which the jobs of an entity are released.
#[derive(Clone)]
struct Grid {
    epoch: u64,
    cycle: u64,
    /// The CPU and the offset of each release in a cycle.
    releases: Vec<(u32, u64)>,
    /// The longest time until a job starts: the length of its window.
    length: u64,
    /// The number of the first job after the epoch.
    first: u64,
}

impl Grid {
    /// Returns the grid of [`alternating`].
    fn alternating(epoch: u64, u: u64) -> Grid {
        Grid { epoch, cycle: 20 * u, releases: vec![(0, 2 * u), (1, 10 * u)], length: 4 * u, first: 0 }
    }

    /// Returns a job's CPU and nominal instant.
    fn place(&self, number: u64) -> (u32, u64) {
        let (since, count) = (number - self.first, self.releases.len() as u64);
        let (cpu, offset) = self.releases[(since % count) as usize];
        (cpu, self.epoch + since / count * self.cycle + offset)
    }

    /// Checks that each job has the nominal instant of its number, and that jobs that started in their window were on
    /// its CPU.
    fn ensure_on(&self, jobs: &[Job]) -> Check {
        for job in jobs {
            ensure!(job.number >= self.first, "job {} before job {}", job.number, self.first);
            let (cpu, nominal) = self.place(job.number);
            ensure_eq!(job.nominal_ns, nominal, "nominal instant of job {}", job.number);
            ensure!(job.start_ns >= nominal, "job {} began {} ns early", job.number, nominal - job.start_ns);
            if job.start_ns < nominal + self.length {
                ensure_eq!(job.cpu, cpu, "the CPU of job {}", job.number);
            }
        }
        Ok(())
    }

    /// Does the same, and checks that from job `first` on all jobs are there, in their windows, and no activation was
    /// lost.
    fn ensure_all(&self, jobs: &[Job], first: u64) -> Check {
        self.ensure_on(jobs)?;
        for (job, number) in jobs.iter().zip(first..) {
            ensure_eq!(job.number, number, "number of the job behind {}", number - 1);
            ensure_eq!(job.lost, 0, "activations lost before job {number}");
            let late = job.start_ns - job.nominal_ns;
            ensure!(late < self.length, "job {number} began {late} ns late, behind its window");
        }
        Ok(())
    }
}

/// Forks an endlessly busy thread on each of both CPUs. Work of the class outside of its windows would be late.
fn busy_cpus(attr: SchedAttr) -> Check<[process::Child; 2]> {
    let hogs = [process::hog(attr), process::hog(attr)];
    for (cpu, hog) in hogs.iter().enumerate() {
        sys::set_affinity(hog.pid, &[cpu as u32]).map_err(|errno| format!("pin a hog: errno {errno}"))?;
    }
    Ok(hogs)
}
