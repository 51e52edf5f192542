//! The time that a server is sure to get while it has work, in the worst case.
//!
//! # Assumptions
//!
//! Other groups are trusted only to keep their budgets. A group of higher priority runs at the worst instants, up to
//! its budget in each server period. Threads of lower priority in the same group do the same with the group's own
//! budget, until the analysed work arrives. Windows use their time, or leave any part of it to ready threads.
//!
//! # The worst case (lockstep refills)
//!
//! Work arrives at `t0` in the server period before the refill `r`. Let `H` be the sum of the higher budgets, `W` the
//! window time of a server period, `T` its length, and `C` the budget. Let `s = min(C, T - W - H)`, at least 0. This is
//! the least that the server gets in a period in which it always has work.
//!
//! * If `t0` is `a` after the last refill, at most `a` of the budget is gone. So between `t0` and `r` the server gets
//!   at least `x = min(C - a, (T - a) - W - H)`, and `(T - a) - x <= T - s`. No server is served faster than time
//!   passes. Take a server that gets `x` in `T - a`, and another one that gets nothing for the *gap* `T - s` before
//!   `r`. If both get the same from `r` on, the first one is never behind the second one.
//! * If `s = C`, that case exists: the group's own threads of lower priority used the budget up in the first `C` of the
//!   period. Windows there may have been empty, and their time falls to the groups; `docs/explanation/feasibility.md`
//!   has the consequences. Otherwise the gap is an upper bound.
//! * In each period after `r`, the higher budgets come first. Therefore the server has had `y` when its windows have
//!   left `H + y` of the period. This is exact for a known position of the refills in the table.
//!
//! # A group with windows of its own
//!
//! Its threads have these in addition, and are not charged for them. In `y` after `r` the group has had the time of its
//! server in `y`, beside all windows, and its own windows of `y`. The time that these give it in the gap does not
//! count. Therefore response times are upper bounds.
//!
//! # Windows at an unknown position, and the general form
//!
//! The same holds with the most window time in an interval of each length. In the general form each server has refills
//! of its own, and a higher server may have its budget twice in a row. This is `ceil((y + T - C_X) / T) C_X` in an
//! interval of length `y` (equation 2; Davis and Burns 2005). Then `s` is the most that is complete within `T`.

use std::borrow::Cow;

use macrotick_model::Duration;

use super::taken::Taken;
use super::{Group, Host, Phase, Refill, Why};

/// The limit of server periods until table and refills meet again in the same way. Beyond it, the analysis does not
/// replay them.
const MOST_ALIGNMENTS: i64 = 1024;

/// A CPU from the view of its groups: its table, and the position of refills in it.
#[derive(Clone, Debug)]
pub(super) struct CpuTime {
    pub cpu: u32,
    period: Duration,
    taken: Taken,
    alignment: Alignment,
    /// The windows of the groups that have some, by their names in the table.
    windows: Vec<(String, Taken)>,
    /// The windows of the group that this time is for.
    own: Option<Taken>,
}

#[derive(Clone, Debug)]
enum Alignment {
    /// The window time of each server period, from the one that begins at `phase`, until the pattern repeats.
    Known { phase: Duration, taken: Vec<Duration> },
    /// The most window time of a server period.
    Unknown { taken: Duration, why: Option<Why> },
    /// Each server has refills of its own.
    Independent,
}

impl CpuTime {
    /// Returns the time of each CPU of a valid host.
    pub fn of_all(host: &Host) -> Vec<CpuTime> {
        host.cpus.iter().map(|&cpu| CpuTime::new(host, cpu)).collect()
    }

    /// Returns the time of a server's CPU, which the host has.
    fn find(times: &[CpuTime], cpu: u32) -> &CpuTime {
        times.iter().find(|time| time.cpu == cpu).expect("servers are on CPUs of the host")
    }

    /// Returns the time of a CPU from the view of one group, with its windows.
    pub fn find_for<'a>(times: &'a [CpuTime], group: &Group, cpu: u32) -> Cow<'a, CpuTime> {
        CpuTime::find(times, cpu).for_group(group)
    }

    /// Returns the time from the view of one group, with its windows.
    pub fn for_group(&self, group: &Group) -> Cow<'_, CpuTime> {
        let own = group.windows.as_ref().and_then(|name| self.windows.iter().find(|(other, _)| other == name));
        match own {
            Some((_, own)) if !own.is_nothing() => Cow::Owned(CpuTime { own: Some(own.clone()), ..self.clone() }),
            _ => Cow::Borrowed(self),
        }
    }

    /// Returns the time of `cpu`, of a valid host.
    pub fn new(host: &Host, cpu: u32) -> CpuTime {
        let table = host.tables.iter().find(|table| table.cpu == cpu);
        let taken = Taken::new(host.cycle, host.lead, table);
        let alignment = alignment(host, &taken);
        let names = host.groups.iter().filter_map(|group| group.windows.as_ref());
        let of = |name: &String| Some((name.clone(), Taken::of_entity(host.cycle, host.lead, table?, name)));
        let windows = names.filter_map(of).collect();
        CpuTime { cpu, period: host.server_period, taken, alignment, windows, own: None }
    }

    /// Returns the time that windows and leads take of one cycle.
    pub fn taken_per_cycle(&self) -> Duration {
        self.taken.per_cycle()
    }

    /// Returns the position of the refill `index` in the table's cycle. `None`: it is unknown or has no meaning.
    pub fn refill(&self, index: usize, cycle: Duration) -> Option<Duration> {
        match &self.alignment {
            Alignment::Known { phase, .. } if cycle > Duration::ZERO => {
                Some((*phase + self.period * index as i64) % cycle)
            }
            _ => None,
        }
    }

    /// Returns the time that a server with this budget is sure to get below servers with the budgets `above`.
    pub fn supply<'a>(&'a self, budget: Duration, above: &'a [Duration]) -> Supply<'a> {
        let higher: Duration = above.iter().copied().sum();
        let least = |taken: Duration| budget.min(self.period - taken - higher).max(Duration::ZERO);
        let full = match &self.alignment {
            Alignment::Known { taken, .. } => taken.iter().map(|&taken| least(taken)).collect(),
            Alignment::Unknown { taken, .. } => vec![least(*taken)],
            Alignment::Independent => vec![self.most_within_period(budget, above)],
        };
        let mut sums = vec![Duration::ZERO];
        sums.extend(full.iter().scan(Duration::ZERO, |sum, &next| {
            *sum += next;
            Some(*sum)
        }));
        Supply { time: self, budget, above, higher, full, sums }
    }

    /// Returns the most of the budget that is complete within a server period, whatever higher servers and windows do.
    fn most_within_period(&self, budget: Duration, above: &[Duration]) -> Duration {
        let (mut done, mut not) = (Duration::ZERO, budget + Duration::from_nanos(1));
        while not - done > Duration::from_nanos(1) {
            let middle = done + Duration::from_nanos((not - done).as_nanos() / 2);
            match self.beside_independent(middle, above) {
                Some(_) => done = middle,
                None => not = middle,
            }
        }
        done
    }

    /// Returns the time after its refill until a server has had `amount`, beside higher servers with refills of their
    /// own. `None`: it may take longer than the server period.
    fn beside_independent(&self, amount: Duration, above: &[Duration]) -> Option<Duration> {
        let period = self.period;
        let mut length = amount;
        while length <= period {
            // A deferrable server may use its budget at the end of one period and at the start of the next.
            let hits = |budget: Duration| budget * ceil_div(length + period - budget, period);
            let higher: Duration = above.iter().map(|&budget| hits(budget)).sum();
            let next = self.taken.until_left_at_worst(amount + higher)?;
            if next == length {
                return Some(length);
            }
            length = next;
        }
        None
    }
}

fn alignment(host: &Host, taken: &Taken) -> Alignment {
    let period = host.server_period;
    let phase = match host.refill {
        Refill::Independent => return Alignment::Independent,
        Refill::Lockstep(_) if taken.is_nothing() => {
            return Alignment::Unknown { taken: Duration::ZERO, why: None };
        }
        Refill::Lockstep(phase) => phase,
    };
    let unknown = |why| Alignment::Unknown { taken: taken.at_most(period), why: Some(why) };
    let Phase::At(phase) = phase else {
        return unknown(Why::AnyPhase);
    };
    let count = period.lcm(host.cycle).map(|hyperperiod| hyperperiod / period);
    let Some(count) = count.filter(|&count| count <= MOST_ALIGNMENTS) else {
        return unknown(Why::ManyAlignments);
    };
    let taken = (0..count).map(|index| taken.within(phase + period * index, period)).collect();
    Alignment::Known { phase, taken }
}

/// The time that a server is sure to get from a refill on, and the gap before it.
#[derive(Clone, Debug)]
pub(super) struct Supply<'a> {
    time: &'a CpuTime,
    budget: Duration,
    above: &'a [Duration],
    higher: Duration,
    /// The least time in each server period, until the pattern repeats.
    full: Vec<Duration>,
    /// Sums of the least times, one more than there are periods.
    sums: Vec<Duration>,
}

impl Supply<'_> {
    /// Returns the number of refills that work may have to wait for. Their indices are below it.
    pub fn refills(&self) -> usize {
        self.full.len()
    }

    /// Returns the server period.
    pub fn period(&self) -> Duration {
        self.time.period
    }

    /// Returns the time before the refill `index` in which no time is sure: `T_S - C_S` of the papers, or more.
    pub fn gap(&self, index: usize) -> Duration {
        let before = index.checked_sub(1).unwrap_or(self.full.len() - 1);
        self.time.period - self.full[before]
    }

    /// Returns the least time that the server gets in a server period while it has work.
    pub fn least(&self) -> Duration {
        self.full.iter().copied().min().unwrap_or(Duration::ZERO)
    }

    /// Returns the share of the CPU in the long run, for a first guess only.
    pub fn rate(&self) -> f64 {
        let own = self.time.own.as_ref().map_or(0.0, Taken::share);
        own + self.per_round().as_secs_f64() / (self.time.period.as_secs_f64() * self.full.len() as f64)
    }

    /// Returns the reason why response times are upper bounds, as far as it is known here. `None`: they are exact.
    pub fn why(&self) -> Option<Why> {
        let why = match self.time.alignment {
            Alignment::Known { .. } => None,
            Alignment::Unknown { why, .. } => why,
            Alignment::Independent if !self.time.taken.is_nothing() => Some(Why::AnyPhase),
            Alignment::Independent => (!self.above.is_empty()).then_some(Why::OwnRefills),
        };
        let why = why.or((self.least() < self.budget).then_some(Why::ShortPeriod));
        why.or(self.time.own.as_ref().map(|_| Why::OwnWindows))
    }

    /// Returns the longest time from the refill `index` until the group has had `amount`, which is positive. `None`: it
    /// never has it.
    pub fn finish(&self, index: usize, amount: Duration) -> Option<Duration> {
        let Some(own) = &self.time.own else { return self.finish_on_budget(index, amount) };
        let whole = self.finish_on_budget(index, amount).or_else(|| self.long_enough(own, index, amount))?;
        let is_done = |length| {
            let rest = amount - self.least_of(own, index, length);
            rest <= Duration::ZERO || self.finish_on_budget(index, rest).is_some_and(|end| end <= length)
        };
        let (mut not, mut done) = (Duration::ZERO, whole);
        while done - not > Duration::from_nanos(1) {
            let middle = not + Duration::from_nanos((done - not).as_nanos() / 2);
            match is_done(middle) {
                true => done = middle,
                false => not = middle,
            }
        }
        Some(done)
    }

    /// Returns the least time that windows take in this length from the refill `index` on.
    fn least_of(&self, windows: &Taken, index: usize, length: Duration) -> Duration {
        match &self.time.alignment {
            Alignment::Known { phase, .. } => windows.within(*phase + self.time.period * index as i64, length),
            Alignment::Unknown { .. } | Alignment::Independent => windows.at_least(length),
        }
    }

    /// Returns a time from the refill `index` in which windows alone give `amount`.
    fn long_enough(&self, windows: &Taken, index: usize, amount: Duration) -> Option<Duration> {
        let mut length = self.time.period;
        while self.least_of(windows, index, length) < amount {
            length = length.checked_mul(2)?;
        }
        Some(length)
    }

    /// Returns the longest time with the budget alone.
    fn finish_on_budget(&self, index: usize, amount: Duration) -> Option<Duration> {
        let round = self.per_round();
        if round == Duration::ZERO {
            return None;
        }
        let rounds = (amount - Duration::from_nanos(1)) / round;
        let target = self.sums[index] + (amount - round * rounds);
        let (target, wraps) = if target > round { (target - round, 1) } else { (target, 0) };
        // The period in which the target is reached.
        let last = self.sums.partition_point(|&sum| sum < target) - 1;
        let periods = (rounds + wraps).checked_mul(self.full.len() as i64)? + last as i64 - index as i64;
        let whole = self.time.period.checked_mul(periods)?;
        whole.checked_add(self.within_period(last, target - self.sums[last])?)
    }

    fn within_period(&self, index: usize, amount: Duration) -> Option<Duration> {
        let time = self.time;
        match &time.alignment {
            Alignment::Known { phase, .. } => {
                time.taken.until_left(*phase + time.period * index as i64, self.higher + amount)
            }
            Alignment::Unknown { .. } => time.taken.until_left_at_worst(self.higher + amount),
            Alignment::Independent => time.beside_independent(amount, self.above),
        }
    }

    fn per_round(&self) -> Duration {
        self.sums[self.full.len()]
    }
}

/// Returns the number of `unit`s that hold `length`; zero for a negative length.
pub(super) fn ceil_div(length: Duration, unit: Duration) -> i64 {
    (length + unit - Duration::from_nanos(1)).max(Duration::ZERO) / unit
}
