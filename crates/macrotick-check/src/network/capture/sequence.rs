//! Sequence numbers of the messages of a class: lost, duplicate and reordered frames.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The place of a sequence number in the payload of the frames of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// The place of the class in the port. All its frames must have one common numbering.
    pub class: usize,
    /// The offset in the payload.
    pub offset: usize,
    /// The width. A number wraps around at its end.
    pub width: Width,
    /// Whether the most significant byte comes first.
    pub big_endian: bool,
}

/// The width of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
}

/// The result of the sequence numbers of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Numbering {
    /// The numbers that are missing between the lowest and the highest one.
    pub lost: u64,
    /// The frames with a number that an earlier frame has.
    pub duplicate: u64,
    /// The frames with a new number that is lower than an earlier one.
    pub reordered: u64,
    /// The frames that are too short for a number.
    pub unnumbered: u64,
}

impl Sequence {
    fn read(&self, payload: &[u8]) -> Option<u64> {
        let bytes = match self.width {
            Width::U16 => 2,
            Width::U32 => 4,
            Width::U64 => 8,
        };
        let field = payload.get(self.offset..self.offset.checked_add(bytes)?)?;
        let shift = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(match self.big_endian {
            true => field.iter().fold(0, shift),
            false => field.iter().rev().fold(0, shift),
        })
    }

    /// Returns the signed distance from one number to another: the shorter way around.
    fn distance(&self, from: u64, to: u64) -> i64 {
        let distance = to.wrapping_sub(from);
        match self.width {
            Width::U16 => i64::from(distance as i16),
            Width::U32 => i64::from(distance as i32),
            Width::U64 => distance as i64,
        }
    }
}

/// The numbers so far. They are unwrapped: the first one of the capture keeps its value, and later ones continue from
/// the highest one.
#[derive(Debug)]
pub(super) struct Tracker {
    sequence: Sequence,
    seen: HashSet<i128>,
    least: i128,
    highest: i128,
    result: Numbering,
}

impl Tracker {
    pub fn new(sequence: Sequence) -> Tracker {
        Tracker { sequence, seen: HashSet::new(), least: 0, highest: 0, result: Numbering::default() }
    }

    pub fn class(&self) -> usize {
        self.sequence.class
    }

    pub fn add(&mut self, payload: &[u8]) {
        let Some(raw) = self.sequence.read(payload) else {
            self.result.unnumbered += 1;
            return;
        };
        if self.seen.is_empty() {
            (self.least, self.highest) = (raw.into(), raw.into());
        }
        let number = self.highest + i128::from(self.sequence.distance(self.highest as u64, raw));
        if !self.seen.insert(number) {
            self.result.duplicate += 1;
        } else if number < self.highest {
            self.result.reordered += 1;
        }
        self.least = self.least.min(number);
        self.highest = self.highest.max(number);
    }

    pub fn finish(self) -> Numbering {
        let span = if self.seen.is_empty() { 0 } else { self.highest - self.least + 1 };
        let lost = u64::try_from(span - self.seen.len() as i128).unwrap_or(u64::MAX);
        Numbering { lost, ..self.result }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(width: Width, big_endian: bool, payloads: &[&[u8]]) -> Numbering {
        let mut tracker = Tracker::new(Sequence { class: 0, offset: 1, width, big_endian });
        payloads.iter().for_each(|payload| tracker.add(payload));
        tracker.finish()
    }

    #[test]
    fn counts_lost_duplicate_and_reordered() {
        let numbers = |numbers: &[u32]| {
            let payloads: Vec<Vec<u8>> =
                numbers.iter().map(|number| [&[9], &number.to_be_bytes()[..]].concat()).collect();
            let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            let Numbering { lost, duplicate, reordered, .. } = track(Width::U32, true, &payloads);
            (lost, duplicate, reordered)
        };
        assert_eq!(numbers(&[7, 8, 9]), (0, 0, 0));
        assert_eq!(numbers(&[7, 9, 10]), (1, 0, 0));
        assert_eq!(numbers(&[7, 9, 8]), (0, 0, 1));
        assert_eq!(numbers(&[7, 7, 9, 9, 8, 8]), (0, 3, 1));
        assert_eq!(numbers(&[7, 12, 9]), (3, 0, 1));
        // Around the end of 32 bits.
        assert_eq!(numbers(&[u32::MAX - 1, u32::MAX, 1, 0]), (0, 0, 1));
        assert_eq!(numbers(&[]), (0, 0, 0));
    }

    #[test]
    fn reads_widths_and_byte_orders() {
        assert_eq!(track(Width::U16, false, &[&[0, 0xff, 0xff], &[0, 0, 0], &[0, 2, 0]]).lost, 1);
        let far = [0, 0, 0, 0, 0, 0, 0, 0, 0x40];
        assert_eq!(track(Width::U64, false, &[&[0; 9], &far]).lost, (1 << 62) - 1);
        let short = track(Width::U64, true, &[&[], &[1, 2, 3]]);
        assert_eq!(short, Numbering { unnumbered: 2, ..Numbering::default() });
    }
}
