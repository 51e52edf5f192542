//! The feedback from the begin to the end of the program.

use std::ffi::OsString;
use std::io;

use macrotick_host::cgroup::ProgramGroup;
use macrotick_host::proc;
use macrotick_host::sys::{self, SchedAttr, Standing, Tid};
use macrotick_measure::{Burst, Watch};
use macrotick_model::Duration;

use super::controller::{Bounds, Controller, Seen, ENOUGH};
use super::find::{follow, grid, Found};
use super::hold::{generous, Hold};
use super::learned::Learned;
use super::watch::Follower;
use crate::error::ReserveError;
use crate::former::AtEnd;
use crate::request::{Request, Target, Times};
use crate::start::{serve, Kept, PRIORITY};
use crate::{attach, name_of_group, refusal, Plan, Prepared};

/// A program and its bounds.
#[derive(Clone, Debug)]
pub struct Adaptive {
    /// The program, the CPUs and the mechanism. Its times do not count.
    pub request: Request,
    /// The period, if it is known.
    pub period: Option<Duration>,
    /// The first runtime after the period is known; `None`: by the jobs before.
    pub runtime: Option<Duration>,
    /// The greatest runtime.
    pub at_most: Option<Duration>,
    /// The time from the begin of a period in which the runtime is there.
    pub deadline: Option<Duration>,
    /// The longest time until a period is found.
    pub find_within: Duration,
}

/// The period of the reservation before the program's period is known.
const BEFORE: Duration = Duration::from_millis(10);
/// The time between two readings of the events, in milliseconds, while the period is searched.
const SEARCH: u16 = 20;
/// The readings between two searches.
const READINGS: u32 = 5;
/// The time after which a found period counts without many jobs.
const SOON: Duration = Duration::from_millis(1800);
/// The jobs that are enough for a period: what a program does while it starts must not count much.
const SURE: usize = 2 * ENOUGH;
/// The difference of two periods that are equal.
const EQUAL: f64 = 0.005;
/// The least and the greatest time between two readings afterwards.
const ROUNDS: (i64, i64) = (2, 50);
/// The periods between two adjustments of the grid.
const ADJUST: usize = 50;
/// The greatest runtime without --at-most, in percent of the deadline.
const MOST: i64 = 80;
/// The first runtime in percent of the greatest time of the jobs before, if these are few.
const FIRST: i64 = 125;
/// The tries to find the greatest runtime that is admitted, after a refusal.
const TRIES: usize = 3;
/// The periods after a refusal in which no more is asked for.
const PAUSE: usize = 50;
/// The shortest runtime.
const LEAST: Duration = Duration::from_micros(20);
/// The priority of this process. It must not wait for ordinary threads.
const OWN: u8 = 1;
/// A change that is worth a line.
const TELL: f64 = 0.05;

/// Runs a program in a reservation that adapts, or adapts that of a running process. Returns what it learned, when the
/// program has ended, or after SIGINT, SIGTERM or SIGHUP. Then a started program has ended as well, and a running one
/// has its former state back.
///
/// The calling process must have one thread.
///
/// # Errors
///
/// Wrong input, the reason why there is no reservation, or a program without a period.
pub fn adapt(wish: &Adaptive, tell: &dyn Fn(String)) -> Result<Learned, ReserveError> {
    wish.check()?;
    let period = wish.period.unwrap_or(BEFORE);
    let most = if wish.period.is_some() { wish.most(period) } else { period };
    let prepared = generous(&wish.request, period, most)?;
    // Otherwise a program would begin without its reservation. Best effort: an ordinary thread is only slower.
    let _ = sys::set_sched_attr(0, &SchedAttr::new(Standing::Fifo(OWN), true));
    tell(format!("{}", prepared.report()));
    let report = prepared.report();
    tell(match wish.period {
        Some(period) => format!("  until its jobs are known: {} in each {period}", report.runtime),
        None => format!("  until its period is known: {} in each {}", report.runtime, report.period),
    });
    let Prepared { facts, plan, .. } = prepared;
    match (&wish.request.target, plan) {
        (Target::Program(words), Plan::Deadline { attr, pin }) => {
            let watch = Watch::start(&macrotick_measure::Target::Program(words.clone()), || Ok(()))?;
            let (process, affinity) = (watch.process(), pin.as_ref().unwrap_or(&facts.affinity));
            if let Some(cpus) = &pin {
                let failed = |source| ReserveError::Cpus { cpus: cpus.clone(), source };
                sys::pin(process, cpus.as_slice()).map_err(failed)?;
            }
            refusal::reserve(process, &attr, affinity, &facts)?;
            Feedback::new(wish, watch, Hold::Thread(process), tell).run(None)
        }
        (Target::Program(words), Plan::Group(budget)) => {
            let kept = Kept::make(&name_of_group(&facts), &budget)?;
            let watch = start_in(words, &kept.group)?;
            // The group has a process.
            drop(kept.turn);
            let hold = Hold::Group { group: &kept.group, budget };
            Feedback::new(wish, watch, hold, tell).run(None)
        }
        (&Target::Process(thread), Plan::Deadline { attr, pin }) => {
            attach::by_deadline(thread, &attr, pin.as_ref(), &facts, AtEnd::Any, |_| {
                let watch = Watch::start(&macrotick_measure::Target::Process(facts.process), || Ok(()))?;
                Feedback::new(wish, watch, Hold::Thread(thread), tell).run(Some(thread))
            })
        }
        (Target::Process(_), Plan::Group(budget)) => attach::in_group(&facts, &budget, |_, group| {
            let watch = Watch::start(&macrotick_measure::Target::Process(facts.process), || Ok(()))?;
            let hold = Hold::Group { group, budget: budget.clone() };
            Feedback::new(wish, watch, hold, tell).run(None)
        }),
    }
}

/// Starts a program in a group.
fn start_in(words: &[OsString], group: &ProgramGroup) -> Result<Watch, ReserveError> {
    let enter = group.entry();
    let prepare = move || {
        enter()?;
        serve(0, &SchedAttr::new(Standing::Budget(PRIORITY), false)).map_err(io::Error::other)
    };
    Ok(Watch::start(&macrotick_measure::Target::Program(words.to_vec()), prepare)?)
}

impl Adaptive {
    /// Returns the greatest runtime for a period.
    fn most(&self, period: Duration) -> Duration {
        let deadline = self.deadline.unwrap_or(period).min(period);
        self.at_most.map_or(Duration::from_nanos(deadline.as_nanos() / 100 * MOST), |most| most.min(deadline))
    }

    fn times(&self, runtime: Duration, period: Duration) -> Times {
        Times { runtime, period, deadline: self.deadline.unwrap_or(period).min(period) }
    }

    fn check(&self) -> Result<(), ReserveError> {
        let longer = |part, length: Option<Duration>, whole, most: Option<Duration>| match (length, most) {
            (Some(length), Some(most)) if length > most => Err(ReserveError::Longer { part, length, whole, most }),
            _ => Ok(()),
        };
        longer("--runtime", self.runtime, "--at-most", self.at_most)?;
        longer("--deadline", self.deadline, "--period", self.period)?;
        longer("--runtime", self.runtime, "--deadline", self.deadline.or(self.period))?;
        longer("--at-most", self.at_most, "--period", self.period)
    }
}

/// The feedback for a program that runs.
struct Feedback<'a> {
    wish: &'a Adaptive,
    watch: Watch,
    hold: Hold<'a>,
    tell: &'a dyn Fn(String),
    changes: usize,
    refused: usize,
    /// After a refusal: the greatest runtime that was admitted, and the periods in which no more is asked for.
    ceiling: Option<(Duration, usize)>,
    /// The last runtime that was told.
    told: Duration,
}

impl<'a> Feedback<'a> {
    fn new(wish: &'a Adaptive, watch: Watch, hold: Hold<'a>, tell: &'a dyn Fn(String)) -> Feedback<'a> {
        Feedback { wish, watch, hold, tell, changes: 0, refused: 0, ceiling: None, told: Duration::ZERO }
    }

    /// Runs until the end. With a thread, only it is followed.
    fn run(mut self, only: Option<Tid>) -> Result<Learned, ReserveError> {
        let Some(found) = self.find(only)? else { return Err(self.without_period(only)) };
        let (name, thread, period) = (found.name.clone(), found.thread, found.period);
        let mut line = format!("follows thread {name} ({thread}), with a period of {period}");
        if !found.also.is_empty() {
            let also = found.also.iter().map(|(name, period)| format!("{name} ({period})")).collect::<Vec<_>>();
            line += &format!(": the periodic thread with the most CPU time. Also periodic: {}", also.join(", "));
        }
        (self.tell)(line);
        let mut follower = Follower::new(&found.grid, self.bursts(thread), found.from);
        let bounds = Bounds { least: LEAST, most: self.wish.most(period) };
        let first = self.seen(&mut follower, thread);
        // Few jobs before may be enough for a runtime, or not.
        let most = first.iter().map(|seen| seen.used.as_nanos()).max().unwrap_or(0);
        let mut controller = Controller::new(Duration::from_nanos(most / 100 * FIRST), bounds);
        for seen in first {
            controller.next(seen);
        }
        if let Some(runtime) = self.wish.runtime {
            controller.refused(runtime.clamp(bounds.least, bounds.most));
        }
        (follower.periods, follower.late) = (0, 0);
        self.move_to(thread, controller.runtime(), period)?;
        let mut present = controller.runtime();
        self.say(present, period);
        let wait = (period.as_nanos() / 2_000_000).clamp(ROUNDS.0, ROUNDS.1) as u16;
        // Late jobs do not begin at their releases.
        let (mut adjusted, mut late) = (0, 0);
        let mut is_there = true;
        while !self.watch.round(wait)? {
            if is_there && proc::has_ended(thread) && !self.watch.has_gone() {
                is_there = false;
                (self.tell)(format!("thread {name} ({thread}) has ended, and the program goes on: nothing adapts now"));
            }
            for seen in self.seen(&mut follower, thread) {
                let wanted = controller.next(seen);
                if wanted != present {
                    present = self.change(thread, present, wanted, period)?;
                    if present != wanted {
                        controller.refused(present);
                    }
                    self.say_step(present, period, controller.is_settled() && !controller.is_raised());
                }
                self.ceiling = self.ceiling.and_then(|(most, left)| (left > 1).then_some((most, left - 1)));
            }
            if follower.periods >= adjusted + ADJUST {
                if follower.late == late {
                    self.adjust(&mut follower, thread);
                }
                (adjusted, late) = (follower.periods, follower.late);
            }
        }
        let Feedback { watch, changes, refused, .. } = self;
        let (periods, late, is_settled) = (follower.periods, follower.late, controller.is_settled());
        let exit_code = watch.exit_code();
        let measurement = watch.end()?;
        let runtime = present;
        Ok(Learned {
            thread,
            name,
            period,
            runtime,
            is_settled,
            periods,
            late,
            changes,
            refused,
            exit_code,
            measurement,
        })
    }

    /// Looks for a periodic thread. `None`: there is none in time, or the program has ended.
    fn find(&mut self, only: Option<Tid>) -> Result<Option<Found>, ReserveError> {
        let begin = sys::now();
        let mut before: Option<Found> = None;
        for reading in 1u32.. {
            let ends = self.watch.round(SEARCH)?;
            let passed = sys::now() - begin;
            if ends || passed > self.wish.find_within {
                return Ok(None);
            }
            if reading % READINGS != 0 {
                continue;
            }
            let found = follow(self.watch.record(), only, self.wish.period, sys::now().as_nanos());
            if let (Some(found), Some(before)) = (&found, &before) {
                let equal = (found.grid.period / before.grid.period - 1.0).abs() < EQUAL;
                let enough = found.bursts >= SURE || passed > SOON;
                if equal && found.thread == before.thread && enough {
                    return Ok(Some(found.clone()));
                }
            }
            before = found;
        }
        Ok(None)
    }

    /// Returns the reason why no thread is followed.
    fn without_period(&self, only: Option<Tid>) -> ReserveError {
        let within = self.wish.find_within;
        let lasted = Duration::from_millis(self.watch.lasted().as_nanos() / 1_000_000);
        if self.watch.has_ended() {
            return ReserveError::EndedEarly(lasted);
        }
        let Some(period) = self.wish.period else { return ReserveError::NotPeriodic(lasted.min(within)) };
        let found = follow(self.watch.record(), only, None, sys::now().as_nanos());
        let found = found.map_or(String::new(), |found| format!(" (thread {} has {})", found.name, found.period));
        ReserveError::OtherPeriod { period, within: lasted.min(within), found }
    }

    /// Returns the completed bursts of a thread.
    fn bursts(&self, thread: Tid) -> &[Burst] {
        let found = self.watch.record().threads().find(|(id, ..)| *id == thread);
        found.map_or(&[], |(_, _, bursts)| bursts.done())
    }

    /// Returns the periods of the thread that are over.
    fn seen(&self, follower: &mut Follower, thread: Tid) -> Vec<Seen> {
        let record = self.watch.record();
        let Some((_, _, bursts)) = record.threads().find(|(id, ..)| *id == thread) else { return Vec::new() };
        let read = record.read_until;
        // A group has the budget for all its threads.
        let counts = matches!(self.hold, Hold::Group { .. });
        let others = |follower: &Follower, period: i64| {
            let others = record.threads().filter(|(id, ..)| counts && *id != thread);
            let of_period = others.flat_map(|(_, _, bursts)| {
                let newest = bursts.done().iter().rev().take_while(|burst| follower.first_of(burst) >= period);
                newest.filter(|burst| follower.first_of(burst) == period).filter_map(|burst| burst.ran)
            });
            of_period.sum()
        };
        follower.periods(bursts.done(), bursts.present(read), read, others)
    }

    /// Fits the grid again: a small error of the period adds up.
    fn adjust(&self, follower: &mut Follower, thread: Tid) {
        let done = self.bursts(thread);
        let period = Duration::from_nanos(follower.period().round() as i64);
        if let Some((from, grid)) = grid(done, Some(period), sys::now().as_nanos()) {
            follower.fit(&grid, &done[from..]);
        }
    }

    /// Gives the thread its first reservation with its own period.
    fn move_to(&mut self, thread: Tid, runtime: Duration, period: Duration) -> Result<(), ReserveError> {
        if let Hold::Thread(held) = &mut self.hold {
            if *held != thread {
                let ordinary = SchedAttr::new(Standing::Other(0), false);
                let _ = sys::end_reservation(*held, &ordinary);
                *held = thread;
            }
        }
        self.hold.change(&self.wish.request, self.wish.times(runtime, period))
    }

    /// Changes the runtime as far as it is admitted. Returns the new one.
    fn change(
        &mut self,
        thread: Tid,
        present: Duration,
        wanted: Duration,
        period: Duration,
    ) -> Result<Duration, ReserveError> {
        let wanted = self.ceiling.map_or(wanted, |(most, _)| wanted.min(most.max(present)));
        if wanted == present {
            return Ok(present);
        }
        let (mut admitted, mut beyond, mut next) = (present, wanted, wanted);
        for _ in 0..=TRIES {
            match self.hold.change(&self.wish.request, self.wish.times(next, period)) {
                Ok(()) => {
                    self.changes += 1;
                    admitted = next;
                    if next == wanted {
                        return Ok(next);
                    }
                }
                Err(error) if error.is_a_refusal() => {
                    self.refused += 1;
                    beyond = next;
                    if self.ceiling.is_none() {
                        (self.tell)(format!("refused: {next} in each {period}: {error}"));
                        self.ceiling = Some((admitted, PAUSE));
                    }
                }
                Err(_) if proc::has_ended(thread) => return Ok(admitted),
                Err(error) => return Err(error),
            }
            next = Duration::from_micros((admitted.as_nanos() + beyond.as_nanos()) / 2000);
        }
        self.ceiling = Some((admitted, PAUSE));
        Ok(admitted)
    }

    fn say(&mut self, runtime: Duration, period: Duration) {
        let share = runtime.as_secs_f64() * 100.0 / period.as_secs_f64();
        (self.tell)(format!("{runtime} in each {period} ({share:.1} % of a CPU)"));
        self.told = runtime;
    }

    /// Says a runtime that differs from the last one by much, if it lasts.
    fn say_step(&mut self, runtime: Duration, period: Duration, lasts: bool) {
        if lasts && (runtime.as_secs_f64() / self.told.as_secs_f64() - 1.0).abs() > TELL {
            self.say(runtime, period);
        }
    }
}
