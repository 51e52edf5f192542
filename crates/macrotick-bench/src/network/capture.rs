//! A capture file with time stamps in nanoseconds, in the format pcap.

/// The bytes of a frame that the file keeps: the headers up to UDP, and 16 bytes of the datagram.
pub const KEPT: usize = 58;
/// The magic number of files with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
const ETHERNET: u32 = 1;

/// A capture in memory.
pub struct File(Vec<u8>);

impl File {
    /// Makes a file without frames.
    pub fn new() -> File {
        let [major, minor] = VERSION.map(u16::to_ne_bytes);
        let words = [0, 0, KEPT as u32, ETHERNET].map(u32::to_ne_bytes).concat();
        File([&MAGIC.to_ne_bytes(), &major[..], &minor, &words].concat())
    }

    /// Adds a frame of a length, with its first bytes.
    pub fn add(&mut self, at_ns: i64, length: usize, data: &[u8]) {
        let kept = &data[..data.len().min(KEPT).min(length)];
        let second = 1_000_000_000;
        let words = [(at_ns / second) as u32, (at_ns % second) as u32, kept.len() as u32, length as u32];
        self.0.extend(words.map(u32::to_ne_bytes).concat());
        self.0.extend(kept);
    }

    /// Returns the file's content.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use macrotick_check::network::capture::Capture;

    use super::*;

    #[test]
    fn the_judge_reads_the_file() {
        let mut file = File::new();
        file.add(1_767_225_600_000_000_007, 1514, &[5; 100]);
        file.add(1_767_225_601_999_999_999, 20, &[6; 100]);
        let frames: Vec<_> = Capture::new(file.bytes()).unwrap().map(Result::unwrap).collect();
        let at = |frame: usize| frames[frame].at.unwrap().as_nanos();
        assert_eq!([at(0), at(1)], [1_767_225_600_000_000_007, 1_767_225_601_999_999_999]);
        assert_eq!([frames[0].length, frames[1].length], [1514, 20]);
        assert_eq!((frames[0].data, frames[1].data), (&[5; KEPT][..], &[6; 20][..]));
    }
}
