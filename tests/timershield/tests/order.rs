//! Compares the kernel's order with a naive list. `MACROTICK_SEED=n` draws other operations.

use macrotick_model::SplitMix64;
use macrotick_timershield_tests::{clocks, levels, Naive, Order, Timer};

const CAPACITY: usize = 160;
const OPERATIONS: u64 = 1_000_000;

/// Random choices. The seed determines all of them.
struct Random(SplitMix64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.bits() % bound
    }
}

/// Both orders, and the free numbers.
struct Pair {
    order: Order,
    naive: Naive,
    free: Vec<usize>,
    random: Random,
    /// The numbers of levels and instants in use. With few of them, timers collide often.
    levels: u64,
    span: u64,
}

impl Pair {
    fn new(seed: u64, levels: u64, span: u64) -> Pair {
        let free = (0..CAPACITY).collect();
        Pair {
            order: Order::new(CAPACITY),
            naive: Naive::default(),
            free,
            random: Random(SplitMix64::new(seed)),
            levels,
            span,
        }
    }

    /// Draws a level. The levels in use are as far apart as possible, and include the lowest and the highest one.
    fn level(&mut self) -> u32 {
        let step = self.random.below(self.levels) * u64::from(levels() - 1);
        (step / (self.levels - 1).max(1)) as u32
    }

    fn add(&mut self, number: usize, level: u32) {
        let expires = self.random.below(self.span) as i64 - (self.span / 8) as i64;
        let clock = self.random.below(u64::from(clocks())) as u32;
        // Some timers never expire. KTIME_MAX only works where no offset makes it overflow.
        let never = if clock == 0 { i64::MAX } else { i64::MAX / 2 };
        let expires = if self.random.below(200) == 0 { never } else { expires };
        let timer = Timer { number, expires, level, clock };
        self.order.add(timer);
        self.naive.add(timer);
    }

    fn remove(&mut self, timer: Timer) {
        self.order.remove(timer);
        self.naive.remove(timer);
    }

    fn any(&mut self) -> Option<Timer> {
        let timers = self.naive.timers().len() as u64;
        (timers > 0).then(|| self.naive.timers()[self.random.below(timers) as usize])
    }

    /// Returns the number of the first timer of the highest level with an expired one, and checks it.
    fn expired(&mut self, now: i64) -> Option<usize> {
        let number = self.order.expired(now);
        let level = self.naive.expired(now);
        let right = match (number, level) {
            (Some(number), Some(level)) => self.naive.firsts(level, now).contains(&number),
            (number, level) => number.is_none() && level.is_none(),
        };
        assert!(right, "expired at {now}: {number:?} of level {level:?}");
        number
    }

    /// Removes that timer, as the interrupt does.
    fn expire(&mut self) {
        let now = self.random.below(self.span) as i64;
        let Some(number) = self.expired(now) else { return };
        let timer = *self.naive.timers().iter().find(|one| one.number == number).expect("a pending timer");
        self.remove(timer);
        self.free.push(number);
    }

    fn act(&mut self) {
        match self.random.below(100) {
            0..40 => {
                let Some(number) = self.free.pop() else { return };
                let level = self.level();
                self.add(number, level);
            }
            40..62 => {
                let Some(timer) = self.any() else { return };
                self.remove(timer);
                self.free.push(timer.number);
            }
            62..80 => {
                let Some(timer) = self.any() else { return };
                let moved = Timer { level: self.level(), ..timer };
                self.remove(timer);
                self.order.add(moved);
                self.naive.add(moved);
            }
            80..98 => self.expire(),
            _ => {
                // CLOCK_MONOTONIC is the common clock, which has no offset.
                let clock = 1 + self.random.below(u64::from(clocks() - 1)) as u32;
                let offset = self.random.below(self.span) as i64 - (self.span / 2) as i64;
                self.order.set_offset(clock, offset);
                self.naive.set_offset(clock, offset);
            }
        }
    }

    fn compare(&mut self) {
        let level = self.random.below(u64::from(levels())) as u32;
        assert_eq!(self.order.earliest(level), self.naive.earliest(level), "earliest at or above {level}");
        let now = self.random.below(self.span) as i64;
        self.expired(now);
        let soonest = self.naive.earliest(0).map(|(_, expires)| expires);
        let soonest = soonest.filter(|&expires| expires != i64::MAX);
        assert_eq!(self.order.soonest(), soonest, "soonest");
        assert_eq!(self.order.count(), self.naive.timers().len(), "count");
    }
}

fn compare(seed: u64, levels: u64, span: u64) {
    let mut pair = Pair::new(seed, levels, span);
    for _ in 0..OPERATIONS {
        pair.act();
        pair.compare();
    }
    while let Some(timer) = pair.any() {
        pair.remove(timer);
        pair.compare();
    }
    assert_eq!((pair.order.count(), pair.order.earliest(0)), (0, None));
}

fn seed() -> u64 {
    std::env::var("MACROTICK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

#[test]
fn all_levels() {
    compare(seed(), u64::from(levels()), 1_000_000);
}

#[test]
fn a_few_levels() {
    compare(seed() + 1, 3, 100_000);
}

#[test]
fn one_level() {
    compare(seed() + 2, 1, 1000);
}

#[test]
fn equal_expiries() {
    compare(seed() + 3, u64::from(levels()), 12);
}

#[test]
fn empty() {
    let order = Order::new(1);
    assert_eq!((order.count(), order.earliest(0), order.expired(i64::MAX - 1)), (0, None, None));
    assert_eq!(order.soonest(), None);
}

/// Checks a sleep without an end: KTIME_MAX is also the first expiry of an order without timers.
#[test]
fn one_that_never_expires_comes_into_an_empty_order() {
    for (before, level) in [(None, 0), (None, 3), (Some(1), 3), (Some(3), 1), (Some(3), 3)] {
        let mut order = Order::new(1);
        if let Some(level) = before {
            let timer = Timer { number: 0, expires: 100, level, clock: 0 };
            order.add(timer);
            order.remove(timer);
        }
        order.add(Timer { number: 0, expires: i64::MAX, level, clock: 0 });
        assert_eq!(order.earliest(0), Some((level, i64::MAX)), "{level} after {before:?}");
        assert_eq!(order.earliest(level + 1), None, "{level} after {before:?}");
    }
}
