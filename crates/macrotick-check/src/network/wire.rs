//! Gates that choose the next frame when the link is free.

use super::gates::Gates;
use super::queues::Queues;

/// Sends all frames.
pub(crate) fn run(queues: &mut Queues) {
    let Some(mut now) = queues.arrival() else { return };
    loop {
        // A frame that arrives when the link becomes free takes part in the choice. If the queue is full, it is lost.
        while queues.arrival().is_some_and(|at| at <= now) {
            queues.admit();
        }
        match pick(queues, now) {
            Some(class) => {
                queues.send(class, now);
                now = queues.free;
            }
            None => match next(queues, now) {
                Some(later) => now = later,
                None => return,
            },
        }
    }
}

/// Returns the most important class with a frame that may start.
fn pick(queues: &Queues, now: i64) -> Option<usize> {
    let passes = |gates: &Gates, class, counted| queues.port.passes(gates, class, counted, now);
    let may =
        |&(class, counted): &(usize, u64)| queues.port.gates.as_ref().is_none_or(|gates| passes(gates, class, counted));
    queues.heads().find(may).map(|(class, _)| class)
}

/// Returns the next instant at which the choice can be another one: an arrival, or the start of a window for a frame
/// that waits. `now` is not before the begin of the list, because all gates are open until then.
fn next(queues: &Queues, now: i64) -> Option<i64> {
    let gates = queues.port.gates.as_ref();
    let opening =
        |(class, counted)| gates.and_then(|gates| gates.next_window(class, now, queues.port.counted_time(counted)));
    queues.heads().filter_map(opening).chain(queues.arrival()).min()
}
