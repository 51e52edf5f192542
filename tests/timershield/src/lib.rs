//! TimerShield's order of pending timers (`kernel/overlay/kernel/time/timershield/order.h`), compiled for user space.
//!
//! The test compares it with a list that is searched completely, over millions of random operations.

mod ffi {
    #[repr(C)]
    pub struct Harness {
        _private: [u8; 0],
    }

    extern "C" {
        pub fn harness_levels() -> u32;
        pub fn harness_clocks() -> u32;
        pub fn harness_new(nodes: usize) -> *mut Harness;
        pub fn harness_free(harness: *mut Harness);
        pub fn harness_add(harness: *mut Harness, timer: usize, expires: i64, level: u32, clock: u32);
        pub fn harness_del(harness: *mut Harness, timer: usize, level: u32, clock: u32);
        pub fn harness_count(harness: *const Harness) -> u32;
        pub fn harness_earliest(harness: *mut Harness, level: u32, expires: *mut i64) -> i32;
        pub fn harness_expired(harness: *mut Harness, now: i64) -> std::ffi::c_long;
        pub fn harness_soonest(harness: *const Harness) -> i64;
        pub fn harness_set_offset(harness: *mut Harness, clock: u32, offset: i64);
    }
}

/// Returns the number of levels.
pub fn levels() -> u32 {
    // SAFETY: takes nothing.
    unsafe { ffi::harness_levels() }
}

/// Returns the number of clocks.
pub fn clocks() -> u32 {
    // SAFETY: takes nothing.
    unsafe { ffi::harness_clocks() }
}

/// A pending timer. The caller identifies it by a number below the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Timer {
    pub number: usize,
    pub expires: i64,
    pub level: u32,
    pub clock: u32,
}

/// The kernel's order of timers.
pub struct Order(*mut ffi::Harness);

impl Order {
    /// Makes an empty order for this many timers.
    pub fn new(capacity: usize) -> Order {
        // SAFETY: allocates.
        let harness = unsafe { ffi::harness_new(capacity) };
        assert!(!harness.is_null(), "no memory");
        Order(harness)
    }

    /// Adds a timer, which must not be pending.
    pub fn add(&mut self, timer: Timer) {
        // SAFETY: numbers are below the capacity.
        unsafe { ffi::harness_add(self.0, timer.number, timer.expires, timer.level, timer.clock) }
    }

    /// Removes a timer, which must be pending.
    pub fn remove(&mut self, timer: Timer) {
        // SAFETY: numbers are below the capacity.
        unsafe { ffi::harness_del(self.0, timer.number, timer.level, timer.clock) }
    }

    /// Returns the number of pending timers.
    pub fn count(&self) -> usize {
        // SAFETY: reads.
        unsafe { ffi::harness_count(self.0) as usize }
    }

    /// Returns the level and expiry of the timer that expires first at or above a level.
    pub fn earliest(&self, level: u32) -> Option<(u32, i64)> {
        let mut expires = 0;
        // SAFETY: reads, and writes one number.
        let best = unsafe { ffi::harness_earliest(self.0, level, &mut expires) };
        u32::try_from(best).ok().map(|best| (best, expires))
    }

    /// Returns the number of the first timer of the highest level that has an expired one.
    pub fn expired(&self, now: i64) -> Option<usize> {
        // SAFETY: reads.
        usize::try_from(unsafe { ffi::harness_expired(self.0, now) }).ok()
    }

    /// Returns the expiry of the first of all timers.
    pub fn soonest(&self) -> Option<i64> {
        // SAFETY: reads.
        Some(unsafe { ffi::harness_soonest(self.0) }).filter(|&expires| expires != i64::MAX)
    }

    /// Sets how far a clock is ahead of the common one.
    pub fn set_offset(&mut self, clock: u32, offset: i64) {
        // SAFETY: clocks are below their number.
        unsafe { ffi::harness_set_offset(self.0, clock, offset) }
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        // SAFETY: allocated by new().
        unsafe { ffi::harness_free(self.0) }
    }
}

/// The same order as a list, in the sequence in which timers were added.
pub struct Naive {
    timers: Vec<Timer>,
    offsets: Vec<i64>,
}

impl Default for Naive {
    fn default() -> Naive {
        Naive { timers: Vec::new(), offsets: vec![0; clocks() as usize] }
    }
}

impl Naive {
    fn expiry(&self, timer: &Timer) -> i64 {
        timer.expires - self.offsets[timer.clock as usize]
    }

    /// Adds a timer.
    pub fn add(&mut self, timer: Timer) {
        self.timers.push(timer);
    }

    /// Removes a timer.
    pub fn remove(&mut self, timer: Timer) {
        self.timers.retain(|one| one.number != timer.number);
    }

    /// Returns all pending timers.
    pub fn timers(&self) -> &[Timer] {
        &self.timers
    }

    /// Returns the level and expiry of the timer that expires first at or above a level. Of equal expiries, it is the
    /// highest level.
    pub fn earliest(&self, level: u32) -> Option<(u32, i64)> {
        let above = self.timers.iter().filter(|timer| timer.level >= level);
        let best = above.map(|timer| (self.expiry(timer), std::cmp::Reverse(timer.level))).min();
        best.map(|(expires, level)| (level.0, expires))
    }

    /// Returns the highest level that has an expired timer.
    pub fn expired(&self, now: i64) -> Option<u32> {
        self.timers.iter().filter(|timer| self.expiry(timer) <= now).map(|timer| timer.level).max()
    }

    /// Returns the numbers of the timers of a level that may come first at an instant. They have expired, and are the
    /// earliest of their clock. Of equal expiries, it is the oldest timer.
    pub fn firsts(&self, level: u32, now: i64) -> Vec<usize> {
        let of = |clock| self.timers.iter().filter(move |timer| (timer.level, timer.clock) == (level, clock));
        let oldest = (0..clocks()).filter_map(|clock| of(clock).min_by_key(|timer| self.expiry(timer)));
        oldest.filter(|timer| self.expiry(timer) <= now).map(|timer| timer.number).collect()
    }

    /// Sets how far a clock is ahead of the common one.
    pub fn set_offset(&mut self, clock: u32, offset: i64) {
        self.offsets[clock as usize] = offset;
    }
}
