//! Sums: what is promised of a CPU, and of a network's cycle.
//!
//! Every share is an exact fraction, or counted as the kernel does ([`Capacity::Kernel`]). That a sum fits says that nobody
//! is promised more than there is in the long run; whether it comes in time is the business of response times.

use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use super::budget::ceil;
use super::supply::CpuTime;
use super::{Bandwidth, Capacity, Cpu, Host, Network, Refusal, Slot};
use crate::kernel;

/// How full a CPU is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuSum {
    /// The CPU.
    pub cpu: u32,
    /// What windows and leads take of each cycle.
    pub windows: Duration,
    /// The budgets of all groups together, of each server period.
    pub budgets: Duration,
    /// What SCHED_DEADLINE has admitted.
    pub deadline: Bandwidth,
    /// All of them as a share of the CPU, 0 to 1; rounded, for the eye.
    pub promised: f64,
    /// What may be promised where windows and SCHED_DEADLINE have what they have; rounded, too. Nobody is held to it where
    /// there are no budgets and the kernel counts.
    pub capacity: f64,
}

/// How full a network's cycle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkSum {
    /// All slots together.
    pub slots: Duration,
    /// The cycle.
    pub cycle: Duration,
}

/// An exact share of a CPU. Times are at most [`LONGEST`](super::LONGEST), so that three of them, the parts of a
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

fn deadline(host: &Host, cpu: u32) -> Bandwidth {
    host.cpus.iter().find(|other| other.cpu == cpu).map_or(Bandwidth(0), |cpu| cpu.deadline)
}

/// What is there for budgets, beside windows and SCHED_DEADLINE.
fn for_groups(host: &Host, time: &CpuTime) -> Share {
    let deadline = deadline(host, time.cpu);
    match host.capacity {
        Capacity::Kernel => {
            let part = kernel::for_budgets(parts_of_windows(host, time), &promised(host, time.cpu));
            Share { part, whole: kernel::PARTS }
        }
        Capacity::AllBut(reserve) => {
            let capacity = Share { part: 1000 - i128::from(reserve.0), whole: 1000 };
            let deadline = Share { part: deadline.0.into(), whole: Bandwidth::WHOLE.0.into() };
            capacity.minus(deadline).minus(windows(host, time))
        }
    }
}

fn parts_of_windows(host: &Host, time: &CpuTime) -> i128 {
    kernel::round_up(time.taken_per_cycle(), host.cycle, kernel::PARTS)
}

/// What the kernel has promised to deadline tasks of a CPU's domain, and what else the others of its CPUs have.
fn promised(host: &Host, cpu: u32) -> kernel::Promised {
    let domain = host.domains.iter().find(|domain| domain.contains(cpu));
    let is_here = |other: &Cpu| other.cpu == cpu || domain.is_some_and(|domain| domain.contains(other.cpu));
    let cpus: Vec<Cpu> = host.cpus.iter().copied().filter(is_here).collect();
    let tasks: i128 = cpus.iter().map(|cpu| i128::from(cpu.deadline.0)).sum();
    let taken = |other: &Cpu| {
        let budgets: Duration = budgets(host, other.cpu).into_iter().map(|(_, budget)| budget).sum();
        let windows = parts_of_windows(host, &CpuTime::new(host, other.cpu));
        windows + kernel::round_up(budgets, host.server_period, kernel::PARTS)
    };
    // Where nothing was promised nobody asks for it.
    let others = cpus.iter().filter(|other| other.cpu != cpu && tasks > 0);
    kernel::Promised { cpus: cpus.len(), tasks, elsewhere: others.map(taken).sum() }
}

/// The most that the budgets on a CPU may sum up to, negative where the rest is already too much.
pub(super) fn most_budgets(host: &Host, time: &CpuTime) -> Duration {
    let share = for_groups(host, time);
    let most = (i128::from(host.server_period.as_nanos()) * share.part).div_euclid(share.whole);
    Duration::from_nanos(i64::try_from(most).unwrap_or(i64::MIN))
}

/// The budgets on a CPU, the highest group first.
pub(super) fn budgets(host: &Host, cpu: u32) -> Vec<(String, Duration)> {
    let groups = host.by_priority();
    groups.iter().filter_map(|group| group.on(cpu).map(|server| (group.name.clone(), server.budget))).collect()
}

/// The sum on one CPU; what is too much is refused.
pub(super) fn cpu(host: &Host, time: &CpuTime, refusals: &mut Vec<Refusal>) -> CpuSum {
    let each = budgets(host, time.cpu);
    let budgets: Duration = each.iter().map(|&(_, budget)| budget).sum();
    // Where there are none the kernel has admitted the rest.
    let counts = !each.is_empty() || host.capacity != Capacity::Kernel;
    if counts && budgets > most_budgets(host, time) {
        refusals.push(full(host, time, each));
    }
    let deadline = deadline(host, time.cpu);
    let others = windows(host, time).as_f64() + f64::from(deadline.0) / f64::from(Bandwidth::WHOLE.0);
    let promised = others + Share::of(budgets, host.server_period).as_f64();
    let capacity = others + for_groups(host, time).as_f64();
    CpuSum { cpu: time.cpu, windows: time.taken_per_cycle(), budgets, deadline, promised, capacity }
}

/// That these budgets are too much for a CPU.
pub(super) fn full(host: &Host, time: &CpuTime, budgets: Vec<(String, Duration)>) -> Refusal {
    let sum: Duration = budgets.iter().map(|&(_, budget)| budget).sum();
    let over = sum - most_budgets(host, time);
    Refusal::CpuFull {
        cpu: time.cpu,
        windows: time.taken_per_cycle(),
        cycle: host.cycle,
        deadline: deadline(host, time.cpu),
        budgets,
        server_period: host.server_period,
        capacity: host.capacity,
        over: host.granule * ceil(over, host.granule),
    }
}

/// The sum of a network's slots (section 3.2 of the paper); what is too much is refused.
pub(super) fn network(network: &Network, refusals: &mut Vec<Refusal>) -> NetworkSum {
    let slots: Duration = network.slots.iter().map(|slot| slot.length).sum();
    if slots > network.cycle {
        let taken = network.slots.iter().map(|Slot { owner, length }| (owner.clone(), *length)).collect();
        refusals.push(Refusal::NetworkFull { cycle: network.cycle, slots: taken, over: slots - network.cycle });
    }
    NetworkSum { slots, cycle: network.cycle }
}
