//! A limit on the rate of answers.

/// A bucket of permissions, which fills at a rate and holds those of 100 ms, at least one.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    /// The cost of a permission, in ns.
    cost: i64,
    /// The room of the bucket, in ns.
    room: i64,
    /// The content of the bucket, in ns.
    level: i64,
    /// The instant of the last question, in ns; `None` before the first one.
    last: Option<i64>,
}

impl RateLimit {
    /// Makes a full bucket for `rate` permissions a second; a rate of zero counts as one.
    pub fn new(rate: u32) -> RateLimit {
        let cost = 1_000_000_000 / i64::from(rate.max(1));
        let room = cost.max(100_000_000);
        RateLimit { cost, room, level: room, last: None }
    }

    /// Whether there is a permission at an instant, which is taken.
    pub fn allows(&mut self, now: i64) -> bool {
        let passed = now.saturating_sub(self.last.unwrap_or(now)).max(0);
        self.last = Some(now);
        self.level = self.level.saturating_add(passed).min(self.room);
        let allowed = self.level >= self.cost;
        self.level -= if allowed { self.cost } else { 0 };
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_holds_after_a_burst() {
        let mut limit = RateLimit::new(1_000);
        let allowed =
            |limit: &mut RateLimit, from: i64, to: i64| (from..to).filter(|us| limit.allows(us * 1_000)).count();
        // 100 at once, and one more in each millisecond.
        assert_eq!(allowed(&mut limit, 0, 100_000), 199);
        assert_eq!(allowed(&mut limit, 100_000, 200_000), 100);
    }

    #[test]
    fn slow_rates_and_clocks_that_step_are_no_trap() {
        let mut limit = RateLimit::new(1);
        assert!(limit.allows(5_000_000_000) && !limit.allows(5_500_000_000));
        assert!(!limit.allows(0), "the clock was set back");
        assert!(limit.allows(1_000_000_000) && !limit.allows(i64::MIN));
        assert!(limit.allows(i64::MAX));
        assert!(RateLimit::new(0).allows(0));
    }
}
