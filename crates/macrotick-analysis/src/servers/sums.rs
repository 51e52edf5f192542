//! Sums: the promises of a CPU.
//!
//! Every share is an exact fraction, or counted like in the kernel ([`Capacity::Kernel`]). If a sum fits, the promises
//! do not exceed the CPU in the long run. Response times show whether the time comes early enough.

use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use super::budget::ceil;
use super::supply::CpuTime;
use super::{Bandwidth, Capacity, Domain, Host, Refusal, Shared, Taken};
use crate::kernel;

/// The load of a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuSum {
    /// The CPU.
    pub cpu: u32,
    /// The time that windows and leads take of each cycle.
    pub windows: Duration,
    /// The budgets of all groups together, per server period.
    pub budgets: Duration,
    /// The bandwidth that SCHED_DEADLINE has admitted. In a domain of several CPUs it is an equal part, rounded up.
    pub deadline: Bandwidth,
    /// Windows, leads and budgets as a share of the CPU, 0 to 1. It is rounded, for display only.
    pub promised: f64,
    /// The limit of `promised` beside SCHED_DEADLINE, if windows and the other CPUs of the domain stay as they are. It
    /// is also rounded, and less than the windows if these are already too long. With the kernel's own account, it does
    /// not apply to a CPU without budgets.
    pub capacity: f64,
}

/// An exact share of a CPU. Times are at most [`LONGEST`](super::LONGEST). Therefore three of them, the parts of a
/// bandwidth and thousandths together stay within 128 bits.
#[derive(Clone, Copy, Debug)]
struct Share {
    part: i128,
    whole: i128,
}

impl Share {
    fn of(part: Duration, whole: Duration) -> Share {
        Share { part: part.as_nanos().into(), whole: whole.as_nanos().into() }
    }

    fn plus(self, other: Share) -> Share {
        Share { part: self.part * other.whole + other.part * self.whole, whole: self.whole * other.whole }
    }

    fn minus(self, other: Share) -> Share {
        self.plus(Share { part: -other.part, ..other })
    }

    fn as_f64(self) -> f64 {
        self.part as f64 / self.whole as f64
    }
}

fn windows(host: &Host, time: &CpuTime) -> Share {
    match time.taken_per_cycle() {
        Duration::ZERO => Share { part: 0, whole: 1 },
        taken => Share::of(taken, host.cycle),
    }
}

/// Returns the domain of a CPU, if bandwidth was promised there.
fn domain(host: &Host, cpu: u32) -> Option<&Domain> {
    host.domains.iter().find(|domain| domain.cpus.contains(cpu) && domain.promised > Bandwidth(0))
}

fn deadline(host: &Host, cpu: u32) -> Bandwidth {
    domain(host, cpu).map_or(Bandwidth(0), Domain::each)
}

/// Returns the share for budgets, beside windows and SCHED_DEADLINE.
fn for_groups(host: &Host, time: &CpuTime) -> Share {
    match host.capacity {
        Capacity::Kernel => {
            let part = kernel::for_budgets(parts_of_windows(host, time.taken_per_cycle()), &promised(host, time.cpu));
            Share { part, whole: kernel::PARTS }
        }
        Capacity::AllBut(reserve) => {
            let capacity = Share { part: 1000 - i128::from(reserve.0), whole: 1000 };
            let deadline = Share { part: deadline(host, time.cpu).0.into(), whole: Bandwidth::WHOLE.0.into() };
            capacity.minus(deadline).minus(windows(host, time))
        }
    }
}

fn parts_of_windows(host: &Host, per_cycle: Duration) -> i128 {
    kernel::round_up(per_cycle, host.cycle, kernel::PARTS)
}

/// Returns the bandwidth that the kernel has promised to deadline tasks of a CPU's domain, and the load of the domain's
/// other CPUs.
fn promised(host: &Host, cpu: u32) -> kernel::Promised {
    let Some(domain) = domain(host, cpu) else { return kernel::Promised { cpus: 1, tasks: 0, elsewhere: 0 } };
    let taken = |&other: &u32| {
        let budgets: Duration = budgets(host, other).into_iter().map(|(_, budget)| budget).sum();
        let table = host.tables.iter().find(|table| table.cpu == other);
        let windows = Taken::new(host.cycle, host.lead, table).per_cycle();
        parts_of_windows(host, windows) + kernel::round_up(budgets, host.server_period, kernel::PARTS)
    };
    let cpus = domain.cpus.as_slice();
    let elsewhere = cpus.iter().filter(|&&other| other != cpu).map(taken).sum();
    kernel::Promised { cpus: cpus.len(), tasks: domain.promised.0.into(), elsewhere }
}

/// Returns the account that a CPU shares with others, with the kernel's own account.
fn shared(host: &Host, cpu: u32) -> Option<Shared> {
    let domain = domain(host, cpu).filter(|domain| domain.cpus.is_several() && host.capacity == Capacity::Kernel)?;
    let elsewhere = i64::try_from(promised(host, cpu).elsewhere).unwrap_or(i64::MAX);
    Some(Shared { cpus: domain.cpus.clone(), promised: domain.promised, elsewhere })
}

/// Returns the most that the budgets on a CPU may sum up to. It is negative if the rest is already too much.
pub(super) fn most_budgets(host: &Host, time: &CpuTime) -> Duration {
    let share = for_groups(host, time);
    let most = (i128::from(host.server_period.as_nanos()) * share.part).div_euclid(share.whole);
    Duration::from_nanos(i64::try_from(most).unwrap_or(i64::MIN))
}

/// Returns the budgets on a CPU, the highest group first.
pub(super) fn budgets(host: &Host, cpu: u32) -> Vec<(String, Duration)> {
    let groups = host.by_priority();
    groups.iter().filter_map(|group| group.on(cpu).map(|server| (group.name.clone(), server.budget))).collect()
}

/// Returns the sum on one CPU. Adds a refusal if it is too much.
pub(super) fn cpu(host: &Host, time: &CpuTime, refusals: &mut Vec<Refusal>) -> CpuSum {
    let each = budgets(host, time.cpu);
    let budgets: Duration = each.iter().map(|&(_, budget)| budget).sum();
    // Without budgets, the kernel has admitted the rest.
    let counts = !each.is_empty() || host.capacity != Capacity::Kernel;
    if counts && budgets > most_budgets(host, time) {
        refusals.push(full(host, time, each));
    }
    let (deadline, windows) = (deadline(host, time.cpu), windows(host, time));
    let promised = windows.plus(Share::of(budgets, host.server_period)).as_f64();
    let capacity = windows.plus(for_groups(host, time)).as_f64();
    CpuSum { cpu: time.cpu, windows: time.taken_per_cycle(), budgets, deadline, promised, capacity }
}

/// Makes the refusal for budgets that are too much for a CPU.
pub(super) fn full(host: &Host, time: &CpuTime, budgets: Vec<(String, Duration)>) -> Refusal {
    let sum: Duration = budgets.iter().map(|&(_, budget)| budget).sum();
    let over = sum - most_budgets(host, time);
    Refusal::CpuFull {
        cpu: time.cpu,
        windows: time.taken_per_cycle(),
        cycle: host.cycle,
        deadline: deadline(host, time.cpu),
        shared: shared(host, time.cpu),
        budgets,
        server_period: host.server_period,
        capacity: host.capacity,
        over: host.granule * ceil(over, host.granule),
    }
}
