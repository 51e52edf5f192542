//! The placement of slots and frames on all interfaces.

use std::collections::{BTreeMap, VecDeque};

use macrotick_model::{Duration, Flow, GateEntry, Gates, Interface, Network, Plan, Slot, SyncClass};

use super::circle::Circle;
use super::frames::{frames, Frame};
use super::joins::Joins;
use super::queues::{through, Assumed, Queues, Span, Stay};
use super::slots::{self, PlacedSlot};
use super::spread::Instants;
use super::thread::Threads;
use super::{GateError, LateFrame};

/// The intervals of all interfaces with planned gates.
pub(super) struct Placement<'a> {
    network: &'a Network,
    instants: Option<&'a Instants>,
    circles: BTreeMap<&'a str, Circle>,
    pub threads: Threads,
    slots: Vec<PlacedSlot<'a>>,
    queues: Queues<'a>,
    /// The intervals of each class on each interface.
    intervals: BTreeMap<(&'a str, &'a str), Vec<Span>>,
    /// The instant at which each frame has left each interface.
    left: BTreeMap<(usize, &'a str), Duration>,
}

/// The most placements, each with the stays of the frames in the last one.
const ROUNDS: usize = 32;

impl Placement<'_> {
    /// Returns the circle of an interface with planned gates.
    pub fn circle(&self, interface: &str) -> &Circle {
        &self.circles[interface]
    }
}

/// Places all slots and frames. A frame with an instant on an interface waits for it there.
pub(super) fn place<'a>(
    plan: &Plan,
    network: &'a Network,
    instants: Option<&'a Instants>,
    joins: &Joins,
) -> Result<Placement<'a>, GateError> {
    let ways = ways(plan, network);
    let each = network.flows.iter().zip(&ways);
    let mut frames: Vec<Sent> = each
        .flat_map(|(flow, way)| frames(plan, flow).into_iter().map(|frame| (frame, way.as_slice())))
        .enumerate()
        .map(|(number, (frame, way))| (Frame { number, ..frame }, way))
        .collect();
    // Frames of an express socket cannot wait for an interval.
    frames.sort_by_key(|(frame, _)| (frame.early == Duration::ZERO, frame.ready));
    let mut assumed = soonest(&frames);
    for round in 0..=ROUNDS {
        let placement = placed(plan, network, instants, &ways, &frames, &assumed)?;
        let wider = |(key, stay): ((usize, &'a str), Stay)| {
            let both = assumed[&key].with(stay);
            (both != assumed[&key]).then_some((key, both))
        };
        let wider: Vec<_> = placement.stays(&frames, joins).into_iter().filter_map(wider).collect();
        if wider.is_empty() {
            return Ok(placement);
        }
        match round + 1 < ROUNDS {
            true => assumed.extend(wider),
            // All frames keep their limits, or the placement fails.
            false => assumed = limits(&frames),
        }
    }
    unreachable!("no frame leaves after its limit, or comes before its sender's job")
}

/// Returns the stay of each frame at each interface, if it is ready as late as possible and nothing is in the way.
fn soonest<'a>(frames: &[Sent<'_, 'a>]) -> Assumed<'a> {
    let mut all = Assumed::new();
    for (frame, way) in frames {
        let (mut from, mut at) = (frame.earliest, frame.ready);
        for interface in *way {
            let left = at + interface.path + interface.sending_time(frame.flow.size);
            all.insert((frame.number, interface.name.as_str()), Stay { from, left });
            at = left + interface.delay;
            from = at;
        }
    }
    all
}

fn limits<'a>(frames: &[Sent<'_, 'a>]) -> Assumed<'a> {
    let each = frames.iter().flat_map(|(frame, way)| way.iter().map(move |interface| (frame, interface)));
    let widest = |frame: &Frame| Stay { from: frame.earliest, left: frame.limit };
    each.map(|(frame, interface)| ((frame.number, interface.name.as_str()), widest(frame))).collect()
}

/// Places all slots and frames, if each frame has left by the assumed instants.
fn placed<'a>(
    plan: &Plan,
    network: &'a Network,
    instants: Option<&'a Instants>,
    ways: &[Vec<&'a Interface>],
    frames: &[Sent<'_, 'a>],
    assumed: &Assumed<'a>,
) -> Result<Placement<'a>, GateError> {
    let planned = || network.interfaces.iter().filter(|interface| interface.is_planned());
    let circle = |one: &'a Interface| (one.name.as_str(), Circle::new(plan.cycle, one.shortest_frame_time()));
    let cpus = planned().map(|interface| (interface, cpu(plan, network, ways, interface).0));
    let mut placement = Placement {
        network,
        instants,
        circles: planned().map(circle).collect(),
        threads: Threads::new(plan, cpus),
        slots: Vec::new(),
        queues: Queues::new(plan.cycle, frames, assumed),
        intervals: BTreeMap::new(),
        left: BTreeMap::new(),
    };
    placement.sync(plan)?;
    let each: Vec<(&Slot, &Interface)> =
        network.slots.iter().filter_map(|slot| Some((slot, network.interface_of(slot)?))).collect();
    let in_slot = |flow: &Flow, interface: &Interface| {
        each.iter().any(|(slot, there)| belongs(slot, flow) && there.name == interface.name)
    };
    let (later, now): (Vec<Sent>, Vec<Sent>) =
        frames.iter().cloned().partition(|(frame, way)| way.iter().any(|interface| in_slot(frame.flow, interface)));
    for (slot, interface) in each.iter().filter(|(slot, _)| slot.offset.is_some()) {
        placement.slot(slot, interface, Duration::ZERO)?;
    }
    by_slack(now).iter().try_for_each(|(frame, way)| placement.frame(frame, way))?;
    let mut free: Vec<&(&Slot, &Interface)> = each.iter().filter(|(slot, _)| slot.offset.is_none()).collect();
    free.sort_by_key(|(slot, _)| (slot.period, std::cmp::Reverse(slot.length)));
    for (slot, interface) in free {
        let first = later.iter().filter(|(frame, _)| belongs(slot, frame.flow)).map(|(frame, _)| frame.ready).min();
        placement.slot(slot, interface, first.unwrap_or(Duration::ZERO) % slot.period)?;
    }
    by_slack(later).iter().try_for_each(|(frame, way)| placement.frame(frame, way))?;
    Ok(placement)
}

/// A frame and the interfaces on its way.
type Sent<'p, 'a> = (Frame<'a>, &'p [&'a Interface]);

/// Orders frames, which are in the order of their ready instants, by slack. The frames of one class keep their order, as
/// in its queue.
fn by_slack<'p, 'a>(frames: Vec<Sent<'p, 'a>>) -> Vec<Sent<'p, 'a>> {
    let mut queues: BTreeMap<&str, VecDeque<Sent>> = BTreeMap::new();
    for (frame, way) in frames {
        queues.entry(&frame.flow.class).or_default().push_back((frame, way));
    }
    let mut ordered = Vec::new();
    let first = |queue: &VecDeque<Sent>| queue.front().map(|(frame, _)| (frame.limit - frame.ready, frame.ready));
    let fronts = |queues: &mut BTreeMap<&'a str, VecDeque<Sent<'p, 'a>>>| {
        queues.values_mut().filter(|queue| !queue.is_empty()).min_by_key(|queue| first(queue))?.pop_front()
    };
    while let Some(next) = fronts(&mut queues) {
        ordered.push(next);
    }
    ordered
}

/// Returns the way of each flow, as interfaces of the network.
pub(super) fn ways<'a>(plan: &Plan, network: &'a Network) -> Vec<Vec<&'a Interface>> {
    network.flows.iter().map(|flow| way(plan, network, flow)).collect()
}

fn way<'a>(plan: &Plan, network: &'a Network, flow: &Flow) -> Vec<&'a Interface> {
    let names = plan.system.way(network, flow).into_iter().map(|interface| interface.name.clone());
    names.filter_map(|name| network.interface(&name)).collect()
}

/// Whether the frames of a flow leave in the slot.
fn belongs(slot: &Slot, flow: &Flow) -> bool {
    (&slot.group, &slot.class) == (&flow.from, &flow.class)
}

/// Returns the CPU of the thread that opens the gates: that of the first sender with windows on the same host. The thread
/// follows this sender, which the second value names.
pub(super) fn cpu(
    plan: &Plan,
    network: &Network,
    ways: &[Vec<&Interface>],
    interface: &Interface,
) -> (u32, Option<String>) {
    if let Some(cpu) = interface.cpu {
        return (cpu, None);
    }
    let crosses = |way: &[&Interface]| way.iter().any(|one| one.name == interface.name);
    let here = plan.system.cpus_on(plan.system.host_of_interface(interface));
    let flows = network.flows.iter().zip(ways).filter(|(_, way)| crosses(way));
    let of = |flow: &Flow| {
        let group = plan.system.groups.iter().find(|group| group.name == flow.from);
        let name = group.and_then(|group| group.pool_name()).unwrap_or_else(|| flow.from.clone());
        let cpu = plan.cpus(&name).first().filter(|cpu| here.contains(*cpu))?;
        Some((cpu, Some(flow.from.clone())))
    };
    let first = || (here.first().expect("a host has a CPU"), None);
    flows.filter_map(|(flow, _)| of(flow)).next().unwrap_or_else(first)
}

impl<'a> Placement<'a> {
    /// Places a slot of the class `sync` in each sync window, on every interface.
    fn sync(&mut self, plan: &Plan) -> Result<(), GateError> {
        let (Some(class), Some(window)) = (self.network.sync, plan.system.sync()) else { return Ok(()) };
        for (name, circle) in &mut self.circles {
            let interface = self.network.interface(name).expect("a circle belongs to an interface");
            let needed = interface.longest_frame_time(class.size) + interface.opening;
            let refused = || GateError::Sync { interface: interface.name.clone(), needed, length: window.length };
            let length = class.slot(interface, window.length);
            for start in window.starts(plan.cycle) {
                let at = circle.earliest(start, length).filter(|at| *at + length <= start + window.length);
                circle.take(at.ok_or_else(refused)?, length, SyncClass::NAME);
            }
        }
        Ok(())
    }

    /// Places a slot at its offset, or else at the first one from `hint` on.
    fn slot(&mut self, slot: &'a Slot, interface: &'a Interface, hint: Duration) -> Result<(), GateError> {
        let refused = || GateError::Slot {
            group: slot.group.clone(),
            interface: interface.name.clone(),
            length: slot.length,
            period: slot.period,
            offset: slot.offset,
        };
        let first = slot.offset.unwrap_or(hint);
        let cycle = self.circles[interface.name.as_str()].cycle;
        let starts = |offset: Duration| (0..cycle / slot.period).map(move |number| offset + slot.period * number);
        let mut offset = first;
        loop {
            let mut steps = starts(offset).map(|start| Some(self.free(interface, start, slot.length)? - start));
            let step = steps.try_fold(Duration::ZERO, |most, step| Some(most.max(step?))).ok_or_else(refused)?;
            if step == Duration::ZERO {
                break;
            }
            offset += step;
            if slot.offset.is_some() || offset - first >= slot.period {
                return Err(refused());
            }
        }
        starts(offset).for_each(|start| self.take(interface, start, slot.length, &slot.class));
        self.slots.push(PlacedSlot { slot, interface: &interface.name, offset: offset % slot.period });
        Ok(())
    }

    /// Returns the earliest instant at which an interval is free on the interface, and on the CPU of its gate thread.
    fn free(&self, interface: &Interface, from: Duration, length: Duration) -> Option<Duration> {
        let circle = &self.circles[interface.name.as_str()];
        let mut start = from;
        while start - from <= circle.cycle {
            let on_link = circle.earliest(start, length)?;
            let on_cpu = self.threads.earliest(&interface.name, on_link)?;
            if on_cpu == on_link {
                return Some(on_cpu);
            }
            start = on_cpu;
        }
        None
    }

    fn take(&mut self, interface: &Interface, start: Duration, length: Duration, class: &str) {
        let circle = self.circles.get_mut(interface.name.as_str()).expect("gates are planned");
        circle.take(start, length, class);
        self.threads.take(&interface.name, start);
    }

    /// Sends a frame over its interfaces.
    fn frame(&mut self, frame: &Frame<'a>, way: &[&'a Interface]) -> Result<(), GateError> {
        let (mut at, mut early) = (frame.ready, frame.early);
        for interface in way {
            at = match std::mem::take(&mut early) {
                Duration::ZERO => self.hop(frame, interface, at + interface.path)?,
                early => self.express(frame, interface, at + interface.path, early)?,
            };
            self.left.insert((frame.number, interface.name.as_str()), at);
            at += interface.delay;
        }
        match way.last() {
            Some(interface) if at > frame.limit => Err(GateError::Late(Box::new(LateFrame {
                flow: frame.flow.name.clone(),
                sender: frame.flow.from.clone(),
                interface: interface.name.clone(),
                ready: frame.ready,
                sent: at,
                soonest: self.soonest(frame, way),
                limit: frame.limit,
                rule: frame.rule.clone(),
            }))),
            _ => Ok(()),
        }
    }

    /// Returns the stays of all frames. At an interface with planned gates, a frame waits at least until one of its class
    /// opens.
    fn stays(&self, frames: &[Sent<'_, 'a>], joins: &Joins) -> Assumed<'a> {
        let mut open: BTreeMap<(&str, &str), Vec<Span>> = BTreeMap::new();
        let joined: Vec<_> = self.circles.iter().map(|(name, circle)| (name, circle.joined(joins.of(name)))).collect();
        for (name, circle) in &joined {
            for interval in circle.intervals() {
                let span = (interval.start, interval.start + interval.length);
                open.entry((name, &interval.class)).or_default().push(span);
            }
        }
        let mut all = Assumed::new();
        for (frame, way) in frames {
            let mut from = frame.earliest;
            for (hop, interface) in way.iter().enumerate() {
                let key = (frame.number, interface.name.as_str());
                all.insert(key, Stay { from, left: self.left[&key] });
                let is_held = hop > 0 || frame.early == Duration::ZERO;
                let opens = open.get(&(interface.name.as_str(), frame.flow.class.as_str()));
                let wait = opens.filter(|_| is_held).and_then(|spans| self.until_open(spans, from + interface.path));
                let wait = wait.unwrap_or(Duration::ZERO);
                from += interface.path + wait + interface.frame_time(frame.flow.size);
            }
        }
        all
    }

    /// Returns the time from an instant until it lies in one of these times, which repeat with the cycle.
    fn until_open(&self, spans: &[Span], at: Duration) -> Option<Duration> {
        let cycle = self.queues.cycle().as_nanos();
        let until = |(start, end): &Span| {
            let since = (at - *start).as_nanos().rem_euclid(cycle);
            Duration::from_nanos(if since < (*end - *start).as_nanos() { 0 } else { cycle - since })
        };
        spans.iter().map(until).min()
    }

    /// Returns the instant at which a frame has crossed its interfaces, and the threads have opened their gates, if
    /// nothing is in the way.
    fn soonest(&self, frame: &Frame<'a>, way: &[&'a Interface]) -> Duration {
        let hop = |at: Duration, interface: &&Interface| {
            let (work, sending) = (self.threads.work(&interface.name), interface.sending_time(frame.flow.size));
            let sent = at + interface.path + work.map_or(sending, |(before, after)| before + after.max(sending));
            sent + interface.delay
        };
        way.iter().fold(frame.ready, hop)
    }

    /// Sends a frame over one interface. Returns the instant at which it is sent, behind all frames that can be before it.
    fn hop(&mut self, frame: &Frame<'a>, interface: &'a Interface, at: Duration) -> Result<Duration, GateError> {
        let flow = frame.flow;
        let horizon = at + self.queues.cycle() * 2;
        let sent = match &interface.gates {
            // Frames of all classes share the link.
            None => self.behind(frame, interface, at, &|_| true, &[(at, horizon)]),
            Some(Gates::Given(entries)) => {
                let beside = together(entries, &flow.class);
                let spans = open(entries, &flow.class, interface.opening, (at, horizon));
                self.behind(frame, interface, at, &|class| beside.contains(&class), &spans)
            }
            Some(Gates::Planned) => {
                let instant = self.instant(frame, interface, at);
                self.planned(frame, interface, instant.unwrap_or(at), instant.is_some())
            }
        };
        sent.ok_or_else(|| GateError::NoInterval {
            flow: flow.name.clone(),
            sender: flow.from.clone(),
            interface: interface.name.clone(),
            length: interface.sending_time(flow.size),
            ready: at,
            cycle: self.used_cycle(interface),
        })
    }

    /// Returns the instant of a frame on an interface from `at` on. A frame that comes too late for it has none.
    fn instant(&self, frame: &Frame, interface: &Interface, at: Duration) -> Option<Duration> {
        let key = (frame.flow.name.clone(), interface.name.clone());
        let period = frame.period.as_nanos();
        let wait = |instant: &Duration| (*instant - at).as_nanos().rem_euclid(period);
        let wait = self.instants?.get(&key).map(wait).filter(|wait| *wait < period / 2)?;
        Some(at + Duration::from_nanos(wait))
    }

    /// Returns the instant at which a frame is sent in times that do not depend on it, behind the frames of some classes.
    fn behind(
        &self,
        frame: &Frame<'a>,
        interface: &Interface,
        at: Duration,
        is_in_the_way: &dyn Fn(&str) -> bool,
        spans: &[Span],
    ) -> Option<Duration> {
        let lost = self.queues.longest(&interface.name, is_in_the_way);
        let mut sent = at;
        // More time lets more frames come before this one. Each turn adds one of them, at least.
        loop {
            let work = self.queues.time(&interface.name, frame.number, is_in_the_way, at, sent);
            let next = through(spans.iter().copied(), at, work, lost)?;
            if next <= sent {
                return Some(sent);
            }
            sent = next;
        }
    }

    /// Keeps the interface free for a frame that no gate holds, from `early` before `at` on. Returns the instant at which
    /// the frame is sent at the latest.
    fn express(
        &mut self,
        frame: &Frame<'a>,
        interface: &'a Interface,
        at: Duration,
        early: Duration,
    ) -> Result<Duration, GateError> {
        let flow = frame.flow;
        // The judge has this frame in the queue of its class, too.
        let same = |class: &str| class == flow.class;
        let (from, mut length) = (at - early, early + interface.sending_time(flow.size));
        // A queue that is never empty needs more than a cycle, and ever more.
        while length <= self.queues.cycle() {
            let work = self.queues.time(&interface.name, frame.number, &same, from, from + length);
            let needed = early + interface.sending_time(flow.size) - interface.frame_time(flow.size) + work;
            if needed <= length {
                break;
            }
            length = needed;
        }
        let start = match &interface.gates {
            _ if length > self.queues.cycle() => None,
            None => Some(from),
            Some(Gates::Given(entries)) => {
                let spans = open(entries, &flow.class, Duration::ZERO, (from, from + length));
                spans.first().filter(|(start, end)| *start <= from && from + length <= *end).map(|_| from)
            }
            Some(Gates::Planned) => self.circles[interface.name.as_str()].earliest(from, length),
        };
        if start != Some(from) {
            let (flow, sender, interface) = (flow.name.clone(), flow.from.clone(), interface.name.clone());
            return Err(GateError::Express { flow, sender, interface, length, from });
        }
        if interface.is_planned() {
            let circle = self.circles.get_mut(interface.name.as_str()).expect("gates are planned");
            circle.take(from, length, &flow.class);
        }
        Ok(from + length)
    }

    fn used_cycle(&self, interface: &Interface) -> Duration {
        match &interface.gates {
            Some(Gates::Given(entries)) => entries.iter().map(|entry| entry.length).sum(),
            _ => self.queues.cycle(),
        }
    }

    /// Sends a frame in a slot, in an interval of its class that is there, or in one of its own. A frame `is_due` if it has
    /// its instant, and does not wait for others.
    fn planned(&mut self, frame: &Frame<'a>, interface: &'a Interface, at: Duration, is_due: bool) -> Option<Duration> {
        let class = frame.flow.class.as_str();
        let same = |other: &str| other == class;
        let here = |slot: &&PlacedSlot| slot.interface == interface.name && belongs(slot.slot, frame.flow);
        let slots: Vec<PlacedSlot> = self.slots.iter().filter(here).cloned().collect();
        if !slots.is_empty() {
            let spans = slots::spans(&slots, interface.opening, self.queues.cycle(), at);
            return self.behind(frame, interface, at, &same, &spans);
        }
        let key = (interface.name.as_str(), class);
        let taken = self.next_interval(key, at);
        let (mut start, mut length) = self.interval(frame, interface, at)?;
        // Frames that are ready in this interval can leave in it, too, if it begins when they are.
        let other = |span| self.queues.last_ready(&interface.name, class, span).filter(|_| !is_due);
        while let Some(ready) = other((start, start + length)) {
            match self.interval(frame, interface, ready).filter(|(start, length)| *start + *length <= frame.limit) {
                Some(later) => (start, length) = later,
                None => break,
            }
        }
        match taken.filter(|until| *until <= start + length) {
            Some(until) => Some(until),
            None => {
                self.take(interface, start, length, class);
                self.intervals.entry(key).or_default().push((start, start + length));
                Some(start + length)
            }
        }
    }

    /// Returns start and length of the first free interval from an instant on. It has time for a frame, and for all others
    /// of its class that can be in the queue then.
    fn interval(&self, frame: &Frame<'a>, interface: &Interface, at: Duration) -> Option<(Duration, Duration)> {
        let same = |class: &str| class == frame.flow.class;
        let mut length = interface.sending_time(frame.flow.size);
        loop {
            let start = self.free(interface, at, length)?;
            let work = self.queues.time(&interface.name, frame.number, &same, start, start + length);
            if interface.opening + work <= length {
                return Some((start, length));
            }
            length = interface.opening + work;
        }
    }

    /// Returns the end of the first interval of a class from an instant on. It is long enough for all frames of the class
    /// that can be in the queue when it begins.
    fn next_interval(&self, key: (&str, &str), at: Duration) -> Option<Duration> {
        let cycle = self.queues.cycle();
        let until = |(start, until): &Span| {
            let wait = Duration::from_nanos((*start - at).as_nanos().rem_euclid(cycle.as_nanos()));
            at + wait + (*until - *start)
        };
        self.intervals.get(&key)?.iter().map(until).min()
    }
}

/// Returns the classes that are ever open together with a class in a list by hand, and the class itself.
fn together<'e>(entries: &'e [GateEntry], class: &'e str) -> Vec<&'e str> {
    let open = entries.iter().filter(|entry| entry.open.iter().any(|open| open == class));
    open.flat_map(|entry| &entry.open).map(String::as_str).chain([class]).collect()
}

/// Returns the times in which the gate of a class is open in a list by hand, between two instants. They are without the
/// time until the first frame starts.
fn open(entries: &[GateEntry], class: &str, opening: Duration, (at, horizon): Span) -> Vec<Span> {
    let cycle: Duration = entries.iter().map(|entry| entry.length).sum();
    let turn = Duration::from_nanos(at.as_nanos().div_euclid(cycle.as_nanos()) * cycle.as_nanos());
    let mut spans: Vec<Span> = Vec::new();
    // A gate can be open from one cycle to the next.
    let mut end = turn - cycle;
    for entry in entries.iter().cycle() {
        let start = end;
        if start >= horizon {
            break;
        }
        end += entry.length;
        if !entry.open.iter().any(|open| open == class) {
            continue;
        }
        match spans.last_mut().filter(|(_, until)| *until == start) {
            Some(last) => last.1 = end,
            None => spans.push((start, end)),
        }
    }
    let opened = spans.into_iter().map(|(start, end)| ((start + opening).min(end), end));
    opened.filter(|(_, end)| *end > at).collect()
}
