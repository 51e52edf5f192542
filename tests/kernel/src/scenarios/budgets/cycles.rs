//! Thousands of groups come and go while their threads run. The admission counts exactly the existing groups at all
//! times, and nothing is left afterwards.

use std::fs;

use macrotick_uapi::Device;

use super::{ds, run_in, set_period, stat, write_fails, SECOND};
use crate::check::Check;
use crate::group::Group;
use crate::process;
use crate::random::{variation, Random};
use crate::scenarios::{fuzz, is_slow, unit_ns, CYCLES};
use crate::slab::Slabs;
use crate::sys;
use crate::{ensure, ensure_eq};

/// The number of groups at a time.
const SLOTS: usize = 8;
/// The number of cycles between checks of the remaining capacity.
const LOOK: u64 = 200;

/// Returns the factor for slow kernels. On the debug kernel, the end of a turn overdraws a budget by about this factor
/// more.
fn scale() -> u64 {
    unit_ns() / 100_000
}

/// Returns the server period. It is short because a thread that is killed while throttled may have to wait for its end.
fn period_us() -> u64 {
    5000 * scale()
}

/// Returns how long members work or pause.
fn pause_ns() -> u64 {
    200_000 * scale()
}

/// Returns the budget of the group that stays.
fn steady_us() -> u64 {
    200 * scale()
}

/// Returns the least budget of a group that ends: killed threads end on their group's budget.
fn last_us() -> u64 {
    500 * scale()
}

/// Runs as many cycles as [`CYCLES`] says: by default 10,000, or 1000 on slow kernels, where 10,000 take an hour.
pub(super) fn many_cycles() -> Check {
    let asked = std::env::var(CYCLES).ok().map(|text| text.parse());
    let count = asked.transpose().map_err(|error| format!("{CYCLES}: {error}"))?;
    cycles(count.unwrap_or(if is_slow() { 1000 } else { 10_000 }))
}

/// Makes this many groups with random budgets and threads, ends them, and removes them.
pub(super) fn cycles(count: u64) -> Check {
    let device = Device::open()?;
    // A zombie keeps its group and its budget. This process reaps zombies if their parent was killed.
    process::adopt();
    set_period(period_us() * 1000)?;
    let whole = whole()?;
    // The first run makes the allocations that remain.
    Cycles::new(whole).and_then(|mut cycles| cycles.run(SLOTS as u64))?;
    let before = Slabs::now();
    let steady = group("steady", steady_us(), 99)?;
    let hog = run_in(&steady, 50, || sys::hog())?;
    let (used, refills) = (stat(&steady, "usage_usec")?, stat(&steady, "refills")?);
    let mut cycles = Cycles::new(whole)?;
    cycles.sum += steady_us();
    cycles.run(count)?;
    let (used, refills) = (stat(&steady, "usage_usec")? - used, stat(&steady, "refills")? - refills);
    let share = used as f64 / (refills * steady_us()) as f64;
    // At its end, a budget is overdrawn by some thousand instructions, ten times as many on the debug kernel.
    let most = if is_slow() { 1.25 } else { 1.1 };
    ensure!((0.97..most).contains(&share), "who stays has had {share} of its budget in {refills} periods");
    let did =
        format!("{} budgets admitted, {} refused, {} threads started", cycles.admitted, cycles.refused, cycles.begun);
    println!("# {did}");
    // A group gets no budget if no capacity is left.
    ensure!(cycles.admitted >= count * 9 / 10 && cycles.refused >= count / 20, "it did not vary: {did}");
    hog.kill(SECOND)?;
    ensure!(sys::eventually(SECOND, || steady.remove().is_ok()), "the group that stayed cannot be removed");
    fuzz::nothing_is_left(&device, &before, 1)?;
    ensure!(sys::eventually(5 * SECOND, || dying() == Some(0)), "control groups that do not go: {:?}", dying());
    ensure_eq!(self::whole()?, whole, "what a group can have, at most, afterwards");
    Ok(())
}

/// Returns the largest budget that is admitted without other groups, in microseconds.
fn whole() -> Check<u64> {
    let probe = group("probe", 0, 1)?;
    let mut free = 0;
    // Removed groups disappear a little later.
    let all_free = || {
        let (mut admitted, mut refused) = (period_us() / 2, period_us());
        while refused - admitted > 1 {
            let middle = (admitted + refused) / 2;
            match write_fails(&probe, "cpu.ds.budget", &middle.to_string()) {
                None => admitted = middle,
                Some(_) => refused = middle,
            }
        }
        free = admitted;
        // The kernel keeps 5 % for all other threads, in steps of 1/1024.
        (940..=950).contains(&(free * 1000 / period_us()))
    };
    let there = sys::eventually(SECOND, all_free);
    ensure!(there, "{free} us of {} us are to be had", period_us());
    probe.remove()?;
    Ok(free)
}

/// Makes a group with a budget in microseconds.
fn group(name: &str, budget_us: u64, priority: u32) -> Check<Group> {
    let group = Group::new(name)?;
    group.set("cpu.ds.priority", &priority.to_string())?;
    group.set("cpu.ds.budget", &budget_us.to_string())?;
    Ok(group)
}

/// Returns the number of removed control groups that still exist.
fn dying() -> Option<u64> {
    let text = fs::read_to_string("/sys/fs/cgroup/cgroup.stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("nr_dying_descendants "))?.parse().ok()
}

/// An existing group.
struct Live {
    group: Group,
    budget_us: u64,
    /// Whether its end was requested.
    ends: bool,
}

struct Cycles {
    random: Random,
    probe: Group,
    slots: [Option<Live>; SLOTS],
    /// The budgets of all existing groups, and their limit, in microseconds.
    sum: u64,
    whole: u64,
    removed: u64,
    admitted: u64,
    refused: u64,
    begun: u64,
}

impl Cycles {
    fn new(whole: u64) -> Check<Cycles> {
        Ok(Cycles {
            random: Random::new(variation()),
            probe: group("probe", 0, 1)?,
            slots: Default::default(),
            sum: 0,
            whole,
            removed: 0,
            admitted: 0,
            refused: 0,
            begun: 0,
        })
    }

    /// Runs until this many groups are removed, and then removes the rest.
    fn run(&mut self, count: u64) -> Check {
        let mut looked = 0;
        while self.removed < count {
            let slot = self.random.below(SLOTS as u64) as usize;
            self.step(slot)?;
            process::reap();
            if self.removed >= looked + LOOK {
                looked = self.removed;
                macrotick_lab::agent::live(&format!("cycle {looked}"));
                self.look().map_err(|reason| format!("after {looked} cycles: {reason}"))?;
            }
        }
        for slot in 0..SLOTS {
            ensure!(sys::eventually(10 * SECOND, || self.is_ended(slot)), "a group does not end");
        }
        self.look()?;
        self.probe.remove()
    }

    fn step(&mut self, slot: usize) -> Check {
        if self.slots[slot].is_none() {
            return self.begin(slot);
        }
        // Members must run, and must be throttled, before they are killed.
        if !self.is_ended(slot) {
            sys::sleep(5 * pause_ns());
        }
        Ok(())
    }

    /// Makes a group in a free slot, with a random budget and one or two members.
    fn begin(&mut self, slot: usize) -> Check {
        let group = Group::new(&format!("s{slot}"))?;
        group.set("cpu.ds.priority", &(1 + self.random.below(50)).to_string())?;
        let budget_us = self.ask(&group)?;
        for _ in 0..1 + self.random.below(2) {
            self.member(&group, slot, budget_us)?;
        }
        self.slots[slot] = Some(Live { group, budget_us, ends: false });
        Ok(())
    }

    /// Asks for random budgets until one is admitted. The sum of the budgets tells in advance which ones are.
    fn ask(&mut self, group: &Group) -> Check<u64> {
        let least = 10 * scale();
        loop {
            // Most budgets are small: otherwise there would be no room for this many groups.
            let upto = *self.random.pick(&[period_us() / 50, period_us() / 20, period_us() / 4, period_us()]);
            let budget = least + self.random.below(upto - least);
            if self.sum + budget <= self.whole {
                self.give(group, budget)?;
                self.sum += budget;
                self.admitted += 1;
                return Ok(budget);
            }
            ensure_eq!(
                write_fails(group, "cpu.ds.budget", &budget.to_string()),
                Some(libc::EBUSY),
                "{budget} us beside {}",
                self.sum
            );
            self.refused += 1;
            if self.whole - self.sum < 2 * least {
                group.set("cpu.ds.budget", "0")?;
                return Ok(0);
            }
        }
    }

    /// Sets a budget that fits, when removed groups are gone. This has taken more than a second.
    fn give(&self, group: &Group, budget: u64) -> Check {
        let mut errno = None;
        let given = || {
            process::reap();
            errno = write_fails(group, "cpu.ds.budget", &budget.to_string());
            errno.is_none()
        };
        ensure!(sys::eventually(10 * SECOND, given), "{budget} us beside {} of {}: {errno:?}", self.sum, self.whole);
        Ok(())
    }

    /// Makes a process of the group, started there or moved into it. Endlessly busy members only exist in groups with a
    /// small budget: this test needs the rest of the time.
    fn member(&mut self, group: &Group, slot: usize, budget_us: u64) -> Check {
        let kinds = if budget_us * 40 > period_us() { 4 } else { 6 };
        let kind = self.random.below(kinds);
        let (other, priority) = (self.random.below(SLOTS as u64), 1 + self.random.below(99) as u32);
        let body = || match kind {
            0 => served(priority, || move_on([other, slot as u64])),
            1 => served(priority, have_a_child),
            2 => served(priority, have_threads),
            3 => served(priority, work_a_little),
            _ => served(priority, || sys::hog()),
        };
        self.begun += 1;
        if self.random.below(2) == 0 {
            return process::fork_into(group.path(), body).map(drop);
        }
        let child = process::fork(body);
        group.take(child.pid)
    }

    /// Ends a group as container runtimes do, and removes it when possible. Returns whether its slot is free.
    fn is_ended(&mut self, slot: usize) -> bool {
        let (sum, whole) = (self.sum, self.whole);
        let Some(live) = &mut self.slots[slot] else { return true };
        if !live.ends && sum - live.budget_us + last_us().max(live.budget_us) <= whole {
            // If other groups are not gone yet, the group keeps its smaller budget for its end.
            let last = last_us().max(live.budget_us);
            if write_fails(&live.group, "cpu.ds.budget", &last.to_string()).is_none() {
                self.sum += last - live.budget_us;
                live.budget_us = last;
            }
        }
        live.ends = true;
        // The kill repeats, in case a thread has moved into the group meanwhile.
        if live.group.set("cgroup.kill", "1").is_err() {
            return false;
        }
        process::reap();
        if live.group.remove().is_err() {
            return false;
        }
        self.sum -= live.budget_us;
        self.removed += 1;
        self.slots[slot] = None;
        true
    }

    /// Checks that all of the remaining capacity is available, and not a microsecond more.
    fn look(&self) -> Check {
        let left = self.whole - self.sum;
        if left >= 10 {
            self.give(&self.probe, left)?;
        }
        let more = write_fails(&self.probe, "cpu.ds.budget", &(left + 1).max(10).to_string());
        ensure_eq!(more, Some(libc::EBUSY), "more than is left, {left} us");
        self.probe.set("cpu.ds.budget", "0")
    }
}

/// Does some work again and again under SCHED_DS. It waits until SCHED_DS is possible: a process may start before it is
/// in its group.
fn served(priority: u32, mut work: impl FnMut()) -> i32 {
    loop {
        match sys::set_sched(0, ds(priority)) {
            Ok(()) => break,
            Err(libc::ENOTCONN) => sys::sleep(pause_ns()),
            Err(errno) => return errno,
        }
    }
    loop {
        work();
    }
}

/// Works 1 % of the time.
fn work_a_little() {
    sys::sleep(2 * pause_ns());
    sys::spin(pause_ns() / 50);
}

/// Moves between the slots of two groups, whichever groups are there.
fn move_on(slots: [u64; 2]) {
    for slot in slots {
        let _ = fs::write(format!("/sys/fs/cgroup/mt-s{slot}/cgroup.procs"), "0");
        sys::sleep(5 * pause_ns());
        sys::spin(pause_ns() / 50);
    }
}

fn have_a_child() {
    process::fork(|| {
        sys::spin(pause_ns() / 50);
        0
    });
    sys::sleep(20 * pause_ns());
    process::reap();
}

fn have_threads() {
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(|| (0..3).for_each(|_| work_a_little()))).collect();
    threads.into_iter().for_each(|thread| drop(thread.join()));
}
