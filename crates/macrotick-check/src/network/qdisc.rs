//! Gates that decide as `taprio_dequeue()` of Linux 6.12. The qdisc acts whenever a frame is queued and whenever an
//! entry begins. It then gives the device all frames that the gates, the guard band and the budgets of the entry let
//! through.

use super::gates::{Gates, Interval};
use super::queues::Queues;

/// The bytes that each class may still send in an entry; `None` without a limit.
struct Budgets {
    /// The interval for which they are.
    interval: Option<Interval>,
    left: Vec<Option<i64>>,
}

/// Sends all frames.
pub(crate) fn run(queues: &mut Queues) {
    let port = queues.port;
    let Some(mut now) = queues.arrival() else { return };
    let mut budgets = Budgets { interval: None, left: Vec::new() };
    // The intervals since something was queued or sent.
    let mut idle = 0;
    loop {
        // The qdisc runs when an entry begins, and after each arrival. Each run can charge the budgets, so that there
        // must be no other. The timer of the entry comes before an arrival at the same instant.
        let begins = port.gates.as_ref().is_some_and(|gates| gates.interval(now).begin == now);
        let mut active = begins && drain(queues, &mut budgets, now);
        while queues.arrival() == Some(now) {
            queues.admit();
            drain(queues, &mut budgets, now);
            active = true;
        }
        idle = if active { 0 } else { idle + 1 };
        let entry = port.gates.as_ref().filter(|gates| queues.any() && idle <= gates.entries()).map(|gates| {
            // Every frame leaves at once before the list begins, so that it has started.
            gates.interval(now).end
        });
        match entry.into_iter().chain(queues.arrival()).min() {
            Some(later) => now = later,
            // After a whole cycle without a frame, every further one is like it.
            None => return,
        }
    }
}

/// Gives the device all frames that may leave, and returns whether there was one.
fn drain(queues: &mut Queues, budgets: &mut Budgets, now: i64) -> bool {
    let mut any = false;
    while let Some(class) = dequeue(queues, budgets, now) {
        queues.send(class, now);
        any = true;
    }
    any
}

/// Returns the class of the next frame. As in the kernel, a frame that passes the guard band is charged to all classes
/// with a limit. This holds even if the frame then stays because its own budget is used up.
fn dequeue(queues: &Queues, budgets: &mut Budgets, now: i64) -> Option<usize> {
    let port = queues.port;
    let Some(gates) = port.gates.as_ref().filter(|gates| !gates.before(now)) else {
        return queues.heads().next().map(|(class, _)| class);
    };
    budgets.refill(queues, gates, now);
    for (class, counted) in queues.heads() {
        if !port.passes(gates, class, counted, now) {
            continue;
        }
        if budgets.charge(class, counted) {
            return Some(class);
        }
    }
    None
}

impl Budgets {
    /// Sets the budgets at the begin of each interval, as `taprio_set_budgets()`.
    fn refill(&mut self, queues: &Queues, gates: &Gates, now: i64) {
        let interval = gates.interval(now);
        if self.interval == Some(interval) {
            return;
        }
        let budget = |class| {
            let duration = gates.duration(class, interval.entry);
            (!gates.always(class)).then(|| queues.port.counted_bytes(duration) as i64)
        };
        self.interval = Some(interval);
        self.left = (0..queues.port.classes.len()).map(budget).collect();
    }

    /// Charges a frame as `taprio_update_budgets()`, and returns whether the budget of its class is enough.
    fn charge(&mut self, class: usize, bytes: u64) -> bool {
        for left in self.left.iter_mut().flatten() {
            *left -= bytes as i64;
        }
        self.left[class].is_none_or(|left| left >= 0)
    }
}
