//! The kernel's ring buffer in pages, as `trace_pipe_raw` of tracefs gives them (kernel/trace/ring_buffer.c,
//! include/linux/ring_buffer.h).
//!
//! A page has a time stamp, the length of its data, and events. An event begins with a word: five bits for its kind or
//! length, and 27 bits for the time since the event before.

use std::io::{self, ErrorKind, Read};

/// The longest page, in bytes.
const PAGE: usize = 1 << 16;
/// The bytes before the data: the time stamp, and the length in the lower bits of the second word.
const HEAD: usize = 16;
const LENGTH: u64 = 0x3fff_ffff;
/// Kinds of events; smaller numbers are lengths in words.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// The bits of a time in the first word of an event, and the mask of the bits above an absolute time.
const TIME_BITS: u32 = 27;
const ABSOLUTE: u64 = (1 << 59) - 1;

/// Reads all pages that a ring buffer has now ([`Instance::open_raw`](super::Instance::open_raw)). Calls a function with
/// the time in nanoseconds and the data of each event.
pub fn drain(buffer: &mut impl Read, mut found: impl FnMut(i64, &[u8])) -> io::Result<()> {
    let mut page = vec![0; PAGE];
    loop {
        match buffer.read(&mut page) {
            Ok(0) => return Ok(()),
            Ok(length) => events(&page[..length], &mut found),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Calls a function with the time in nanoseconds and the data of each event of a page.
fn events(page: &[u8], mut found: impl FnMut(i64, &[u8])) {
    let word = |at: usize| Some(u32::from_ne_bytes(page.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(page.get(at..at + 8)?.try_into().ok()?));
    let (Some(mut now), Some(length)) = (long(0), long(8)) else { return };
    let end = page.len().min(HEAD + (length & LENGTH) as usize);
    let mut at = HEAD;
    while at + 4 <= end {
        let Some(head) = word(at) else { return };
        // The compiler orders the bits of a field as those of the machine.
        let (kind, delta) = match cfg!(target_endian = "little") {
            true => (head & 31, u64::from(head >> 5)),
            false => (head >> TIME_BITS, u64::from(head & ((1 << TIME_BITS) - 1))),
        };
        let (Some(second), after) = (word(at + 4).or(Some(0)), at + 4) else { return };
        let (begin, size) = match kind {
            PADDING if delta == 0 => return,
            PADDING => (after, second as usize),
            TIME_EXTEND => {
                now += delta + (u64::from(second) << TIME_BITS);
                at += 8;
                continue;
            }
            TIME_STAMP => {
                now = (now & !ABSOLUTE) | delta | (u64::from(second) << TIME_BITS);
                at += 8;
                continue;
            }
            0 => (at + 8, (second as usize).saturating_sub(4)),
            words => (after, words as usize * 4),
        };
        now += delta;
        let next = begin + size;
        if kind != PADDING && next <= end {
            found(now as i64, &page[begin..next]);
        }
        // The size of an event is a whole number of words, and never zero.
        at = next.max(at + 4).next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(stamp: u64, data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u64) | 1 << 31;
        [&stamp.to_ne_bytes()[..], &length.to_ne_bytes(), data, &[0xff; 32]].concat()
    }

    fn head(kind: u32, delta: u32) -> Vec<u8> {
        (delta << 5 | kind).to_ne_bytes().to_vec()
    }

    fn of(page: &[u8]) -> Vec<(i64, Vec<u8>)> {
        let mut all = Vec::new();
        events(page, |at, data| all.push((at, data.to_vec())));
        all
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn events_have_times_and_data() {
        let long = [1u8; 12];
        let data = [
            head(2, 5),
            vec![7; 8],
            head(TIME_EXTEND, 3),
            2u32.to_ne_bytes().to_vec(),
            head(PADDING, 1),
            8u32.to_ne_bytes().to_vec(),
            vec![9; 4],
            head(0, 4),
            16u32.to_ne_bytes().to_vec(),
            long.to_vec(),
        ]
        .concat();
        let later = 1005 + 3 + (2 << 27) + 1 + 4;
        assert_eq!(of(&page(1000, &data)), [(1005, vec![7; 8]), (later, long.to_vec())]);
    }

    #[test]
    fn broken_pages_end() {
        for length in 0..64 {
            let data: Vec<u8> = (0..length).map(|byte| (byte * 37) as u8).collect();
            of(&page(1, &data));
            of(&page(1, &data)[..length]);
        }
        assert_eq!(of(&page(1, &[0; 4])), []);
        assert_eq!(of(&[]), []);
    }
}
