//! The queues of a port during a simulation: arrivals, drops, and frames that leave.

use std::collections::VecDeque;

use macrotick_model::{Duration, Instant};

use super::port::{Frame, Guard, Port};
use super::simulate::{Fate, Loss};

/// The state of a simulated port. Frames have numbers: their places in the input.
pub(crate) struct Queues<'a> {
    pub port: &'a Port,
    frames: &'a [Frame],
    /// The frames in the order of their arrival; at the same instant, in that of the input.
    order: Vec<usize>,
    /// The number of frames in `order` that have arrived.
    arrived: usize,
    waiting: Vec<VecDeque<usize>>,
    /// Per class, the most frames that waited at the same time.
    pub longest: Vec<usize>,
    fates: Vec<Option<Fate>>,
    /// The instant from which the link is free, after the gap of the last frame.
    pub free: i64,
}

impl<'a> Queues<'a> {
    pub fn new(port: &'a Port, frames: &'a [Frame]) -> Queues<'a> {
        let mut order: Vec<usize> = (0..frames.len()).collect();
        order.sort_by_key(|&frame| frames[frame].at);
        Queues {
            port,
            frames,
            order,
            arrived: 0,
            waiting: vec![VecDeque::new(); port.classes.len()],
            longest: vec![0; port.classes.len()],
            fates: vec![None; frames.len()],
            free: i64::MIN,
        }
    }

    /// Returns the instant of the next arrival.
    pub fn arrival(&self) -> Option<i64> {
        self.order.get(self.arrived).map(|&frame| self.frames[frame].at.as_nanos())
    }

    /// Puts the next arrival into its queue, or drops it.
    pub fn admit(&mut self) {
        let number = self.order[self.arrived];
        self.arrived += 1;
        let frame = &self.frames[number];
        match self.refuse(frame) {
            Some(reason) => self.fates[number] = Some(Fate::Lost { reason }),
            None => {
                let queue = &mut self.waiting[frame.class];
                queue.push_back(number);
                self.longest[frame.class] = self.longest[frame.class].max(queue.len());
            }
        }
    }

    /// Returns the reason to drop a frame on arrival: the limits of `taprio_enqueue()` and of the queue.
    fn refuse(&self, frame: &Frame) -> Option<Loss> {
        let class = &self.port.classes[frame.class];
        if let Some(limit) = class.max_sdu.filter(|&limit| frame.content > limit) {
            return Some(Loss::MaxSdu { bytes: frame.content, limit });
        }
        if let Some((bytes, limit)) = self.too_long(frame) {
            return Some(Loss::TooLong { bytes, limit });
        }
        let full = self.waiting[frame.class].len() >= class.queue;
        full.then_some(Loss::QueueFull { limit: class.queue })
    }

    /// Compares a frame with the longest window of its class, as `taprio_update_queue_max_sdu()`. The kernel has no
    /// limit before the list begins.
    fn too_long(&self, frame: &Frame) -> Option<(u64, u64)> {
        let gates = self.port.gates.as_ref()?;
        let exempt = self.port.guard == Guard::None || gates.always(frame.class);
        if exempt || gates.before(frame.at.as_nanos()) {
            return None;
        }
        let longest = gates.longest(frame.class);
        // Without a size table, the subtraction of the header makes the limit of a class that never opens wrap around.
        // Its frames then wait for ever.
        if longest == 0 && self.port.guard == Guard::Kernel {
            return None;
        }
        let (bytes, limit) = (self.port.counted(frame), self.port.counted_bytes(longest));
        (bytes > limit).then_some((bytes, limit))
    }

    /// Whether a frame waits.
    pub fn any(&self) -> bool {
        self.waiting.iter().any(|queue| !queue.is_empty())
    }

    /// Returns the classes with a waiting frame, in the order of their importance, and the bytes of the first frame as
    /// the gates count them.
    pub fn heads(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let head = |(class, queue): (usize, &VecDeque<usize>)| {
            queue.front().map(|&number| (class, self.port.counted(&self.frames[number])))
        };
        self.waiting.iter().enumerate().filter_map(head)
    }

    /// Sends the first waiting frame of a class, which the gates let through at `now`, as soon as the link is free.
    pub fn send(&mut self, class: usize, now: i64) {
        let Some(number) = self.waiting[class].pop_front() else { return };
        let Port { link, gates, .. } = self.port;
        let Frame { content, tagged, at, .. } = self.frames[number];
        let start = now.max(self.free);
        let end = start + link.time(link.frame_bytes(content, tagged)).as_nanos();
        self.free = start + link.time(link.wire_bytes(content, tagged)).as_nanos();
        let close = gates.as_ref().filter(|gates| !gates.before(now)).and_then(|gates| gates.window(class, now));
        let overrun = close.map_or(0, |(_, close)| (end - close).max(0));
        self.fates[number] = Some(Fate::Sent {
            start: Instant::from_nanos(start),
            end: Instant::from_nanos(end),
            waited: Instant::from_nanos(start) - at,
            overrun: Duration::from_nanos(overrun),
        });
    }

    /// Ends the simulation: frames that still wait are blocked.
    pub fn finish(self) -> Vec<Fate> {
        let blocked = Fate::Lost { reason: Loss::Blocked };
        self.fates.into_iter().map(|fate| fate.unwrap_or_else(|| blocked.clone())).collect()
    }
}
