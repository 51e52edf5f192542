//! The search for the fewest pieces: one slot after the other, with all states that can follow from each other.
//!
//! A state says which jobs have a part of their time, and how much they still need at least ([`Rests`]). It also says
//! which job runs over the end of the slot. All releases and deadlines are between slots. So the order within a slot is
//! free, apart from the job that runs into it and the one that runs out of it. A job in some slots has one piece for each,
//! less one for each bound between slots that it runs over. Only one job can do so at each bound, and a job that runs over
//! both bounds of a slot is alone in it.

use std::collections::HashMap;

use macrotick_model::Duration;

use super::rests::Rests;
use super::slots::Slots;
use crate::cut::RESUMING;
use crate::options::Clock;

/// A job in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub job: usize,
    /// Whether the job has all its time in this slot.
    pub whole: bool,
}

/// The jobs in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub parts: Vec<Part>,
    /// The job that runs over the end of the slot.
    pub over: Option<usize>,
}

/// The result of the search.
pub(super) enum Fewest {
    /// The content of each slot.
    Found(Vec<Content>),
    /// There is no table with so few pieces.
    Never,
    /// None was found.
    Unknown,
}

/// A state at the end of a slot.
#[derive(Clone)]
struct State {
    /// The released jobs without any time.
    open: Vec<usize>,
    /// The jobs with a part of their time.
    started: Vec<usize>,
    rests: Rests,
    /// The place in `started` of the job that runs over the end of the slot.
    over: Option<usize>,
    /// The number of pieces beyond one for each job. It includes the next piece of each job that has started.
    extra: usize,
    /// The place of the state before.
    before: usize,
    content: Content,
}

/// Looks for a table of one CPU with at most `most` pieces beyond one for each job. It keeps at most `width` states at the
/// end of a slot. With more of them, the search is incomplete.
pub(super) fn fewest(slots: &Slots, most: usize, width: usize, clock: &Clock) -> Fewest {
    let search = Search::new(slots, width);
    // Few pieces leave few states. Most tables need no more. Only the last answer is one for all pieces.
    for fewer in 0..most {
        if let Fewest::Found(contents) = search.run(fewer, clock) {
            return Fewest::Found(contents);
        }
    }
    search.run(most, clock)
}

struct Search<'a> {
    slots: &'a Slots,
    width: usize,
    /// The jobs that are released at the start of each slot.
    released: Vec<Vec<usize>>,
    /// The time of the jobs that are released at the start of a slot or later, and due at the end of another one.
    demand: Vec<Vec<Duration>>,
}

/// The part of a slot in a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It has no time there.
    Absent,
    /// It ends there.
    Complete,
    /// It has a piece there, and another one later.
    Cut,
    /// It runs over the end of the slot.
    Over,
}

impl<'a> Search<'a> {
    fn new(slots: &'a Slots, width: usize) -> Search<'a> {
        let count = slots.count();
        let (mut released, mut demand) = (vec![Vec::new(); count], vec![vec![Duration::ZERO; count]; count]);
        for (index, job) in slots.jobs.iter().enumerate() {
            released[job.first].push(index);
            for from in demand.iter_mut().take(job.first + 1) {
                from.iter_mut().skip(job.last).for_each(|demand| *demand += job.needed);
            }
        }
        Search { slots, width, released, demand }
    }

    fn run(&self, most: usize, clock: &Clock) -> Fewest {
        let content = Content { parts: Vec::new(), over: None };
        let (open, started) = (Vec::new(), Vec::new());
        let first = State { open, started, rests: Rests::none(), over: None, extra: 0, before: 0, content };
        let mut all: Vec<Vec<State>> = vec![vec![first]];
        let mut is_complete = true;
        for slot in 0..self.slots.count() {
            let mut next = Frontier::default();
            let former = &all[slot];
            for (before, state) in former.iter().enumerate() {
                if clock.is_over() {
                    return Fewest::Unknown;
                }
                Step { search: self, slot, state, before, most }.run(&mut next);
            }
            let mut states = next.states();
            if states.len() > self.width {
                is_complete = false;
                states.sort_by_key(|state| (state.extra, self.left(state)));
                states.truncate(self.width);
            }
            if states.is_empty() {
                return if is_complete { Fewest::Never } else { Fewest::Unknown };
            }
            all.push(states);
        }
        let mut contents = Vec::new();
        let mut place = 0;
        for states in all[1..].iter().rev() {
            contents.push(states[place].content.clone());
            place = states[place].before;
        }
        contents.reverse();
        Fewest::Found(contents)
    }

    /// Returns the time that the jobs of a state still need.
    fn left(&self, state: &State) -> Duration {
        state.rests.all() + state.open.iter().map(|&job| self.slots.jobs[job].needed).sum()
    }

    /// Whether the jobs of a state can be in time, if pieces cost nothing from now on.
    fn is_possible(&self, state: &State, slot: usize) -> bool {
        let jobs = &self.slots.jobs;
        let horizon = state.open.iter().chain(&state.started).map(|&job| jobs[job].last).max().unwrap_or(slot);
        let mut supply = Duration::ZERO;
        (slot + 1..=horizon).all(|end| {
            supply += self.slots.length(end);
            let own = state.open.iter().filter(|&&job| jobs[job].last <= end).map(|&job| jobs[job].needed);
            let due = (0..state.started.len()).filter(|&place| jobs[state.started[place]].last <= end);
            let started = state.rests.of(due.map(|place| 1 << place).sum());
            own.sum::<Duration>() + started + self.demand[slot + 1][end] <= supply
        })
    }
}

/// The jobs without time, those with a part of it, and the one that runs over the end of the slot.
type Key = (Vec<usize>, Vec<usize>, Option<usize>);

/// The states at the end of a slot, without those that are no better than another one.
#[derive(Default)]
struct Frontier {
    states: Vec<Option<State>>,
    of: HashMap<Key, Vec<usize>>,
}

impl Frontier {
    fn add(&mut self, state: State) {
        let key = (state.open.clone(), state.started.clone(), state.over);
        let same = self.of.entry(key).or_default();
        let is_worse = |one: &State, other: &State| other.extra <= one.extra && other.rests.at_most(&one.rests);
        if same.iter().filter_map(|&at| self.states[at].as_ref()).any(|other| is_worse(&state, other)) {
            return;
        }
        let states = &mut self.states;
        same.retain(|&at| {
            let stays = states[at].as_ref().is_some_and(|other| !is_worse(other, &state));
            if !stays {
                states[at] = None;
            }
            stays
        });
        same.push(states.len());
        states.push(Some(state));
    }

    fn states(self) -> Vec<State> {
        self.states.into_iter().flatten().collect()
    }
}

/// The step from a state over one slot.
struct Step<'a> {
    search: &'a Search<'a>,
    slot: usize,
    state: &'a State,
    before: usize,
    most: usize,
}

impl Step<'_> {
    fn run(&self, next: &mut Frontier) {
        let open: Vec<usize> = self.state.open.iter().chain(&self.search.released[self.slot]).copied().collect();
        let mut ways = vec![Way::Absent; self.state.started.len() + open.len()];
        if let Some(over) = self.state.over {
            // The job that runs over both bounds is alone.
            ways[over] = Way::Over;
            self.finish(&open, &ways, next);
            ways[over] = Way::Absent;
        }
        self.choose(&open, 0, &mut ways, self.search.slots.length(self.slot), self.state.extra, next);
    }

    /// Chooses the way of each job from `place` on: first those that have started, then the others. `left` is the time
    /// beside the whole jobs.
    fn choose(
        &self,
        open: &[usize],
        place: usize,
        ways: &mut Vec<Way>,
        left: Duration,
        extra: usize,
        next: &mut Frontier,
    ) {
        let started = self.state.started.len();
        if place == ways.len() {
            return self.finish(open, ways, next);
        }
        let job = if place < started { self.state.started[place] } else { open[place - started] };
        let job = &self.search.slots.jobs[job];
        let (is_due, runs_in) = (job.last == self.slot, self.state.over == Some(place));
        let needed = if place < started { Duration::ZERO } else { job.needed };
        if needed <= left {
            ways[place] = Way::Complete;
            self.choose(open, place + 1, ways, left - needed, extra, next);
        }
        if !is_due && left > Duration::ZERO {
            if !runs_in && !ways[..place].contains(&Way::Over) {
                ways[place] = Way::Over;
                self.choose(open, place + 1, ways, left, extra, next);
            }
            if extra < self.most {
                ways[place] = Way::Cut;
                self.choose(open, place + 1, ways, left, extra + 1, next);
            }
        }
        ways[place] = Way::Absent;
        if !is_due && !runs_in {
            self.choose(open, place + 1, ways, left, extra, next);
        }
    }

    /// Adds the state with these ways, if it is possible.
    fn finish(&self, open: &[usize], ways: &[Way], next: &mut Frontier) {
        let jobs = &self.search.slots.jobs;
        let (started, fresh) = ways.split_at(self.state.started.len());
        let is_alone = self.state.over.is_some_and(|over| started[over] == Way::Over);
        let absent: Vec<usize> =
            open.iter().zip(fresh).filter(|(_, way)| **way == Way::Absent).map(|(&job, _)| job).collect();
        let whole = || open.iter().zip(fresh).filter(|(_, way)| **way == Way::Complete).map(|(&job, _)| job);
        let left = self.search.slots.length(self.slot) - whole().map(|job| jobs[job].needed).sum();
        let partly = started.iter().any(|way| *way != Way::Absent)
            || fresh.iter().any(|way| matches!(way, Way::Cut | Way::Over));
        if is_alone && open.iter().chain(&self.state.started).any(|&job| jobs[job].last == self.slot) {
            return;
        }
        // Time that stays free is better given to a job.
        if !partly && absent.iter().any(|&job| jobs[job].needed <= left) || partly && left <= Duration::ZERO {
            return;
        }
        let mut rests = self.state.rests.clone();
        let mut members: Vec<(usize, Way)> = self.state.started.iter().copied().zip(started.iter().copied()).collect();
        for (&job, &way) in open.iter().zip(fresh).filter(|(_, way)| matches!(way, Way::Cut | Way::Over)) {
            rests = rests.with(jobs[job].needed);
            members.push((job, way));
        }
        let set = |of: &dyn Fn(Way) -> bool| {
            members.iter().enumerate().filter(|(_, (_, way))| of(*way)).map(|(at, _)| 1 << at).sum::<usize>()
        };
        rests.share(set(&|way| way != Way::Absent), left);
        let Some(mut rests) = rests.without(set(&|way| way == Way::Complete)) else { return };
        let parts = members.iter().filter(|(_, way)| *way != Way::Absent).map(|&(job, _)| Part { job, whole: false });
        let parts = whole().map(|job| Part { job, whole: true }).chain(parts).collect();
        members.retain(|(_, way)| *way != Way::Complete);
        let over = members.iter().position(|(_, way)| *way == Way::Over);
        if over.is_some() && members.len() == 1 && rests.all() == Duration::ZERO {
            return;
        }
        let mut extra = self.state.extra;
        for (place, _) in members.iter().enumerate().filter(|(_, (_, way))| *way == Way::Cut) {
            rests.add(place, RESUMING);
            extra += 1;
        }
        let started: Vec<usize> = members.into_iter().map(|(job, _)| job).collect();
        let content = Content { parts, over: over.map(|place| started[place]) };
        let state = State { open: absent, started, rests, over, extra, before: self.before, content };
        if self.search.is_possible(&state, self.slot) {
            next.add(state);
        }
    }
}
