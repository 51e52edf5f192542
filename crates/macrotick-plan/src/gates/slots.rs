//! Slots of groups (TDMA), and the frames that leave in them.

use macrotick_model::{Duration, Slot};

use super::queues::Span;

/// A slot with its place on an interface.
#[derive(Clone, Debug)]
pub(super) struct PlacedSlot<'a> {
    pub slot: &'a Slot,
    pub interface: &'a str,
    pub offset: Duration,
}

/// Returns the times of slots from the one around or after an instant on, for two cycles. They are without the time until
/// the first frame starts.
pub(super) fn spans(slots: &[PlacedSlot], opening: Duration, cycle: Duration, at: Duration) -> Vec<Span> {
    let of = |placed: &PlacedSlot| {
        let Slot { period, length, .. } = *placed.slot;
        let first = (at - placed.offset).as_nanos().div_euclid(period.as_nanos());
        let starts = (first..first + cycle / period * 2 + 1).map(|number| placed.offset + period * number);
        starts.map(|start| (start + opening.min(length), start + length)).collect::<Vec<_>>()
    };
    let mut spans: Vec<Span> = slots.iter().flat_map(of).filter(|(_, until)| *until > at).collect();
    spans.sort_unstable();
    spans
}
