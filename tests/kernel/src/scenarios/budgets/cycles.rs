//! Groups come and go by the thousand while their threads run: what the kernel admits is what is there, at all times, and
//! nothing is left afterwards.

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

/// Groups at a time.
const SLOTS: usize = 8;
/// What is left is asked for after so many cycles.
const LOOK: u64 = 200;

/// On the debug kernel the end of a turn, which a budget is overdrawn by, takes as many times as long as its units are.
fn scale() -> u64 {
    unit_ns() / 100_000
}

/// The server period: short, as who is killed while throttled may have to wait for its end.
fn period_us() -> u64 {
    5000 * scale()
}

/// How long members work or pause.
fn pause_ns() -> u64 {
    200_000 * scale()
}

/// The budget of the group that stays.
fn steady_us() -> u64 {
    200 * scale()
}

/// What a group gets to end with, if it has less: threads that are killed end on their group's budget.
fn last_us() -> u64 {
    500 * scale()
}

/// A thousand on slow kernels, where ten thousand take an hour, or as many as [`CYCLES`] says.
pub(super) fn many_cycles() -> Check {
    let asked = std::env::var(CYCLES).ok().map(|text| text.parse());
    let count = asked.transpose().map_err(|error| format!("{CYCLES}: {error}"))?;
    cycles(count.unwrap_or(if is_slow() { 1000 } else { 10_000 }))
}

/// So many groups are made, get a random budget and threads, and are ended and removed.
pub(super) fn cycles(count: u64) -> Check {
    let device = Device::open()?;
    // Zombies keep their group, and its budget: whose parent was killed is reaped here.
    process::adopt();
    set_period(period_us() * 1000)?;
    let whole = whole()?;
    // What is allocated once is there from now on.
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
    // At its end a budget is overdrawn by some thousand instructions, ten times as many on the debug kernel.
    let most = if is_slow() { 1.25 } else { 1.1 };
    ensure!((0.97..most).contains(&share), "who stays has had {share} of its budget in {refills} periods");
    let did =
        format!("{} budgets admitted, {} refused, {} threads begun", cycles.admitted, cycles.refused, cycles.begun);
    println!("# {did}");
    // Where nothing is left a group has none.
    ensure!(cycles.admitted >= count * 9 / 10 && cycles.refused >= count / 20, "it did not vary: {did}");
    hog.kill(SECOND)?;
    ensure!(sys::eventually(SECOND, || steady.remove().is_ok()), "the group that stayed cannot be removed");
    fuzz::nothing_is_left(&device, &before, 1)?;
    ensure!(sys::eventually(5 * SECOND, || dying() == Some(0)), "control groups that do not go: {:?}", dying());
    ensure_eq!(self::whole()?, whole, "what a group can have, at most, afterwards");
    Ok(())
}

/// The largest budget that is admitted where there is nobody else, in microseconds.
fn whole() -> Check<u64> {
    let probe = group("probe", 0, 1)?;
    let mut free = 0;
    // Groups that were removed are gone a little later.
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
        // The kernel keeps 5 % for everybody else, in steps of 1/1024.
        (940..=950).contains(&(free * 1000 / period_us()))
    };
    let there = sys::eventually(SECOND, all_free);
    ensure!(there, "{free} us of {} us are to be had", period_us());
    probe.remove()?;
    Ok(free)
}

/// A group with a budget in microseconds.
fn group(name: &str, budget_us: u64, priority: u32) -> Check<Group> {
    let group = Group::new(name)?;
    group.set("cpu.ds.priority", &priority.to_string())?;
    group.set("cpu.ds.budget", &budget_us.to_string())?;
    Ok(group)
}

/// Removed control groups that are not yet gone.
fn dying() -> Option<u64> {
    let text = fs::read_to_string("/sys/fs/cgroup/cgroup.stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("nr_dying_descendants "))?.parse().ok()
}

/// A group that is there.
struct Live {
    group: Group,
    budget_us: u64,
    /// It has been told to end.
    ends: bool,
}

struct Cycles {
    random: Random,
    probe: Group,
    slots: [Option<Live>; SLOTS],
    /// The budgets of all that is there, in microseconds, and what they may be.
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

    /// Until so many have been removed; then whoever is left is, too.
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
        // Members are to run, and to be throttled, before they are killed.
        if !self.is_ended(slot) {
            sys::sleep(5 * pause_ns());
        }
        Ok(())
    }

    /// A new group in a free place, with a random budget and a member or two.
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

    /// Asks for random budgets until one is admitted. Which are is known beforehand.
    fn ask(&mut self, group: &Group) -> Check<u64> {
        let least = 10 * scale();
        loop {
            // Small ones mostly, or there would be no room for so many.
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

    /// What fits is given, once groups that were removed have gone: it has taken more than a second.
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

    /// A process of the group, born there or moved. Who is busy for ever has a small budget: all of it is not there for this
    /// test.
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

    /// Tells a group to end, as runtimes do, and removes it when that is possible. Whether its place is free.
    fn is_ended(&mut self, slot: usize) -> bool {
        let (sum, whole) = (self.sum, self.whole);
        let Some(live) = &mut self.slots[slot] else { return true };
        if !live.ends && sum - live.budget_us + last_us().max(live.budget_us) <= whole {
            // Where others are not gone yet, it goes with what it has.
            let last = last_us().max(live.budget_us);
            if write_fails(&live.group, "cpu.ds.budget", &last.to_string()).is_none() {
                self.sum += last - live.budget_us;
                live.budget_us = last;
            }
        }
        live.ends = true;
        // Again, if somebody has moved into it meanwhile.
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

    /// All that is left can be had, and not a microsecond more.
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

/// Does something again and again under SCHED_DS, once that is possible: a process may begin before it is in its group.
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

/// Some work now and then: 1 % of a CPU.
fn work_a_little() {
    sys::sleep(2 * pause_ns());
    sys::spin(pause_ns() / 50);
}

/// Between two groups' places, whoever is there.
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
