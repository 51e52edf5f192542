//! The simulator against a second implementation that steps through each nanosecond, and looks up each entry from the
//! start of the list.

use macrotick_check::network::{simulate, Class, Fate, Frame, Gates, Gating, Guard, Link, Loss, Overheads, Port};
use macrotick_model::{GateEntry, GateList, Instant, SplitMix64};

use crate::common::list;

struct Case {
    port: Port,
    list: GateList,
    epoch: i64,
    begin: Option<i64>,
    frames: Vec<Frame>,
    /// Per class and nanosecond of the cycle, whether the gate is open.
    gates: Vec<Vec<bool>>,
}

/// The fate of a frame: start, end and overrun, or the reason why it is lost.
type Outcome = Result<(i64, i64, i64), Loss>;

impl Case {
    fn entry(&self, at: i64) -> usize {
        let mut offset = (at - self.epoch).rem_euclid(self.list.cycle.as_nanos());
        for (number, entry) in self.list.entries.iter().enumerate() {
            offset -= entry.length.as_nanos();
            if offset < 0 {
                return number;
            }
        }
        unreachable!("the offset is within the cycle")
    }

    fn before(&self, at: i64) -> bool {
        self.begin.is_some_and(|begin| at < begin)
    }

    fn open(&self, class: usize, at: i64) -> bool {
        self.gates[class][(at - self.epoch).rem_euclid(self.list.cycle.as_nanos()) as usize]
    }

    /// Returns the nanoseconds from `at` on in which the class is open; at most a cycle.
    fn rest(&self, class: usize, at: i64) -> i64 {
        (at..at + self.list.cycle.as_nanos()).take_while(|&at| self.open(class, at)).count() as i64
    }

    fn wire(&self, frame: &Frame) -> (i64, i64) {
        let Overheads { preamble, header, tag, fcs, gap, least } = self.port.link.overheads;
        let inner = (header + frame.content + fcs).max(least);
        let bytes = preamble + inner + if frame.tagged { tag } else { 0 };
        let nanos = |bytes: u32| {
            let bits = u64::from(bytes) * 8_000_000_000;
            (bits / self.port.link.speed + u64::from(bits % self.port.link.speed > 0)) as i64
        };
        (nanos(bytes), nanos(bytes + gap))
    }

    fn counted(&self, frame: &Frame) -> i64 {
        let Overheads { preamble, header, tag, fcs, gap, least } = self.port.link.overheads;
        i64::from(match self.port.guard {
            Guard::None => 0,
            Guard::Kernel => header + frame.content,
            Guard::Wire => {
                preamble + (header + frame.content + fcs).max(least) + gap + if frame.tagged { tag } else { 0 }
            }
        })
    }

    fn picos(&self) -> i64 {
        8_000_000 / (self.port.link.speed / 1_000_000) as i64
    }

    fn time(&self, bytes: i64) -> i64 {
        match self.port.gating {
            Gating::Link => bytes * 8_000_000_000 / self.port.link.speed as i64,
            Gating::Qdisc => bytes * self.picos() / 1000,
        }
    }

    fn bytes(&self, time: i64) -> i64 {
        match self.port.gating {
            Gating::Link => time * self.port.link.speed as i64 / 8_000_000_000,
            Gating::Qdisc => time * 1000 / self.picos(),
        }
    }

    fn passes(&self, class: usize, counted: i64, now: i64) -> bool {
        let cycle = self.list.cycle.as_nanos();
        let rest = self.rest(class, now);
        self.before(now) || rest == cycle || rest > 0 && (self.port.guard == Guard::None || self.time(counted) < rest)
    }

    fn refuse(&self, frame: &Frame, waiting: usize) -> Option<Loss> {
        let (cycle, at) = (self.list.cycle.as_nanos(), frame.at.as_nanos());
        let class = &self.port.classes[frame.class];
        let longest = (0..cycle).map(|offset| self.rest(frame.class, offset)).max().unwrap();
        let (counted, limit) = (self.counted(frame), self.bytes(longest));
        let kept = longest == 0 && self.port.guard == Guard::Kernel;
        if class.max_sdu.is_some_and(|limit| frame.content > limit) {
            Some(Loss::MaxSdu { bytes: frame.content, limit: class.max_sdu.unwrap() })
        } else if counted > limit && longest < cycle && !kept && !self.before(at) && self.port.guard != Guard::None {
            Some(Loss::TooLong { bytes: counted as u64, limit: limit as u64 })
        } else {
            (waiting >= class.queue).then_some(Loss::QueueFull { limit: class.queue })
        }
    }

    fn step(&self) -> Vec<Outcome> {
        let classes = self.port.classes.len();
        let mut outcomes: Vec<Option<Outcome>> = vec![None; self.frames.len()];
        let mut queues: Vec<Vec<usize>> = vec![Vec::new(); classes];
        let (mut free, mut entry, mut budgets) = (i64::MIN, None, vec![0; classes]);
        let first = self.frames.iter().map(|frame| frame.at.as_nanos()).min().unwrap_or(0);
        let last = self.frames.iter().map(|frame| frame.at.as_nanos()).max().unwrap_or(0);
        let each =
            self.list.cycle.as_nanos() * 3 + self.frames.iter().map(|frame| self.wire(frame).1).max().unwrap_or(0);
        let mut news = first;
        // The walk starts a cycle early, so that it sees the begin of the first entry.
        for now in first - self.list.cycle.as_nanos().. {
            let known = outcomes.iter().flatten().count();
            // After some cycles without news, only blocked frames are left.
            if now > free.max(news).max(last) + each {
                break;
            }
            let valid = Some((self.entry(now), (now - self.epoch).div_euclid(self.list.cycle.as_nanos())));
            let begins = entry != valid;
            if begins {
                entry = valid;
                budgets = (0..classes).map(|class| self.bytes(self.rest(class, now))).collect();
            }
            let arrivals = (0..self.frames.len()).filter(|&frame| self.frames[frame].at.as_nanos() == now);
            match self.port.gating {
                Gating::Link => {
                    for number in arrivals {
                        self.arrive(number, &mut queues, &mut outcomes);
                    }
                    if now >= free {
                        let head = |class: usize| Some((class, *queues[class].first()?));
                        let mut heads = (0..classes).filter_map(head);
                        let next =
                            heads.find(|&(class, head)| self.passes(class, self.counted(&self.frames[head]), now));
                        if let Some((class, number)) = next {
                            queues[class].remove(0);
                            outcomes[number] = Some(Ok(self.send(number, now, &mut free)));
                        }
                    }
                }
                Gating::Qdisc => {
                    if begins {
                        self.drain(now, &mut queues, &mut budgets, &mut free, &mut outcomes);
                    }
                    for number in arrivals {
                        self.arrive(number, &mut queues, &mut outcomes);
                        self.drain(now, &mut queues, &mut budgets, &mut free, &mut outcomes);
                    }
                }
            }
            if outcomes.iter().flatten().count() > known {
                news = now;
            }
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(Err(Loss::Blocked))).collect()
    }

    fn arrive(&self, number: usize, queues: &mut [Vec<usize>], outcomes: &mut [Option<Outcome>]) {
        let frame = &self.frames[number];
        match self.refuse(frame, queues[frame.class].len()) {
            Some(loss) => outcomes[number] = Some(Err(loss)),
            None => queues[frame.class].push(number),
        }
    }

    fn send(&self, number: usize, now: i64, free: &mut i64) -> (i64, i64, i64) {
        let frame = &self.frames[number];
        let (start, (length, occupied)) = (now.max(*free), self.wire(frame));
        *free = start + occupied;
        let rest = self.rest(frame.class, now);
        let close = if self.before(now) || rest == self.list.cycle.as_nanos() { i64::MAX } else { now + rest };
        (start, start + length, (start + length).saturating_sub(close).max(0))
    }

    fn drain(
        &self,
        now: i64,
        queues: &mut [Vec<usize>],
        budgets: &mut [i64],
        free: &mut i64,
        outcomes: &mut [Option<Outcome>],
    ) {
        'dequeue: loop {
            for class in 0..queues.len() {
                let Some(&number) = queues[class].first() else { continue };
                let counted = self.counted(&self.frames[number]);
                if !self.passes(class, counted, now) {
                    continue;
                }
                let endless = |class| self.rest(class, now) == self.list.cycle.as_nanos();
                if !self.before(now) {
                    (0..budgets.len()).for_each(|class| budgets[class] -= counted);
                    if budgets[class] < 0 && !endless(class) {
                        continue;
                    }
                }
                queues[class].remove(0);
                outcomes[number] = Some(Ok(self.send(number, now, free)));
                continue 'dequeue;
            }
            return;
        }
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn case(seed: u64) -> Case {
    let random = &mut SplitMix64::new(seed);
    let mut between = |low: i64, high: i64| low + (random.bits() % (high - low + 1) as u64) as i64;
    let classes = between(1, 3) as usize;
    let entries: Vec<(i64, String)> = (0..between(1, 5))
        .map(|_| {
            (
                between(1, 40),
                (0..classes).filter(|_| between(0, 1) == 1).map(|class| NAMES[class]).collect::<Vec<_>>().join(" "),
            )
        })
        .collect();
    let entries: Vec<(i64, &str)> = entries.iter().map(|(length, open)| (*length, open.as_str())).collect();
    let list = list(&entries);
    let overheads = Overheads {
        preamble: between(0, 2) as u32,
        header: between(1, 3) as u32,
        tag: between(0, 2) as u32,
        fcs: between(0, 2) as u32,
        gap: between(0, 3) as u32,
        least: between(0, 8) as u32,
    };
    // Speeds at which a byte takes 1 ns, 2 2/3 ns, or 8/7 ns.
    let speed = [8_000_000_000, 3_000_000_000, 7_000_000_000][between(0, 2) as usize];
    let link = Link { speed, overheads, mtu: 100 };
    let class = |name: &&str, queue, max_sdu| Class { queue, max_sdu, ..Class::new(*name) };
    let mut port = Port::new("left", link, Vec::new());
    for name in &NAMES[..classes] {
        let max_sdu = (between(0, 5) == 0).then(|| between(1, 12) as u32);
        port.classes.push(class(name, between(1, 6) as usize, max_sdu));
    }
    port.gating = [Gating::Link, Gating::Qdisc][between(0, 1) as usize];
    port.guard =
        [Guard::Wire, Guard::Kernel, Guard::None][between(0, if port.gating == Gating::Link { 2 } else { 1 }) as usize];
    let epoch = between(-200, 300);
    let mut gates = Gates::new(&NAMES[..classes], &list, Instant::from_nanos(epoch)).unwrap();
    let begin = (between(0, 3) == 0).then(|| {
        let now = between(-100, 100);
        gates = gates.clone().from(Instant::from_nanos(now));
        let cycle = list.cycle.as_nanos();
        // The epoch if it is later, else the first start of a cycle that is later.
        (now + 1..).find(|at| *at == epoch || *at > epoch && (at - epoch) % cycle == 0).unwrap()
    });
    port.gates = Some(gates);
    let frames = (0..between(1, 14)).map(|_| Frame {
        class: between(0, classes as i64 - 1) as usize,
        content: between(0, 14) as u32,
        tagged: between(0, 1) == 1,
        at: Instant::from_nanos(between(-60, 160)),
    });
    let frames = frames.collect();
    let expanded: Vec<&GateEntry> =
        list.entries.iter().flat_map(|entry| (0..entry.length.as_nanos()).map(move |_| entry)).collect();
    let opens = |name: &&str| expanded.iter().map(|entry| entry.open.iter().any(|open| open == name)).collect();
    let gates = NAMES[..classes].iter().map(opens).collect();
    Case { port, list, epoch, begin, frames, gates }
}

#[test]
fn the_simulator_agrees_with_a_walk_through_each_nanosecond() {
    let mut sent = 0;
    for seed in 0..2000 {
        let case = case(seed);
        let fates = simulate(&case.port, &case.frames).unwrap().fates;
        let outcome = |fate: &Fate| match fate {
            Fate::Sent { start, end, overrun, .. } => Ok((start.as_nanos(), end.as_nanos(), overrun.as_nanos())),
            Fate::Lost { reason } => Err(reason.clone()),
        };
        let fast: Vec<Outcome> = fates.iter().map(outcome).collect();
        assert_eq!(fast, case.step(), "seed {seed}: {:?} {:?} {:?}", case.port, case.list, case.frames);
        sent += fast.iter().filter(|outcome| outcome.is_ok()).count();
        if case.port.guard == Guard::Wire && case.port.gating == Gating::Link {
            let overruns = fast.iter().flatten().filter(|(_, _, overrun)| *overrun > 0);
            assert_eq!(overruns.count(), 0, "seed {seed}: the whole frame is within its window");
        }
    }
    assert!(sent > 5_000, "{sent} frames are sent");
}
