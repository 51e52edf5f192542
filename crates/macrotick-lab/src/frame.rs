//! The result channel: the frames from the guest's agent over the second serial port.
//!
//! A frame has these fields, in little-endian order:
//!
//! * the magic `MTF1`
//! * the kind (1 byte)
//! * the length of the name (2)
//! * the length of the data (4)
//! * the CRC-32 of all bytes after the magic, without the CRC itself (4)
//! * the name
//! * the data (zlib)
//!
//! Only a [`Frame::Done`] at the end makes the results valid, so an early end cannot look like a success.

use std::io::{Read, Write};

use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 4] = b"MTF1";
/// Magic, kind, two lengths, checksum.
const HEADER: usize = 15;
/// The longest frame. A larger length is damage, not a reason to wait for more bytes.
const MAX_DATA: usize = 1 << 28;

/// The end of the job's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestStatus {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Signaled(i32),
}

impl GuestStatus {
    /// Whether it exited with code 0.
    pub fn success(self) -> bool {
        self == GuestStatus::Exited(0)
    }
}

impl std::fmt::Display for GuestStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GuestStatus::Exited(code) => write!(f, "exit code {code}"),
            GuestStatus::Signaled(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// One message of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A line of progress while the job runs.
    Live(String),
    /// The program's standard output.
    Stdout(Vec<u8>),
    /// The program's standard error.
    Stderr(Vec<u8>),
    /// A collected file: its path and content.
    File(String, Vec<u8>),
    /// The end of the program.
    Status(GuestStatus),
    /// The reason why the agent could not run the job.
    Refused(String),
    /// The end of the results.
    Done,
}

/// The reason why the results cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// They end before [`Frame::Done`].
    Truncated(String),
    /// They are not the bytes that an agent sends.
    Damaged(String),
}

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Frame::Live(_) => 1,
            Frame::Stdout(_) => 2,
            Frame::Stderr(_) => 3,
            Frame::File(..) => 4,
            Frame::Status(_) => 5,
            Frame::Refused(_) => 6,
            Frame::Done => 7,
        }
    }

    /// Returns the frame's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let status;
        let (name, data): (&str, &[u8]) = match self {
            Frame::Live(text) | Frame::Refused(text) => ("", text.as_bytes()),
            Frame::Stdout(data) | Frame::Stderr(data) => ("", data),
            Frame::File(name, data) => (name, data),
            Frame::Status(value) => {
                status = serde_json::to_vec(value).expect("a status is always JSON");
                ("", &status)
            }
            Frame::Done => ("", &[]),
        };
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).expect("writing to memory succeeds");
        let packed = encoder.finish().expect("writing to memory succeeds");
        let mut out = MAGIC.to_vec();
        out.push(self.kind());
        out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        let sum = checksum(&[&out[MAGIC.len()..], name.as_bytes(), &packed]);
        out.extend_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&packed);
        out
    }

    fn decode(kind: u8, name: String, data: Vec<u8>) -> Result<Frame, String> {
        let text = |data: Vec<u8>| String::from_utf8(data).map_err(|_| "text that is not UTF-8".to_owned());
        Ok(match kind {
            1 => Frame::Live(text(data)?),
            2 => Frame::Stdout(data),
            3 => Frame::Stderr(data),
            4 => Frame::File(name, data),
            5 => Frame::Status(serde_json::from_slice(&data).map_err(|error| error.to_string())?),
            6 => Frame::Refused(text(data)?),
            7 => Frame::Done,
            _ => return Err(format!("unknown kind {kind}")),
        })
    }
}

/// Reads frames from bytes as they arrive.
#[derive(Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    consumed: usize,
    done: bool,
}

impl Decoder {
    /// Takes more bytes and returns the complete frames.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, FrameError> {
        self.buffer.extend_from_slice(bytes);
        let mut frames = Vec::new();
        while let Some((frame, length)) = self.next()? {
            self.buffer.drain(..length);
            self.consumed += length;
            self.done |= frame == Frame::Done;
            frames.push(frame);
        }
        Ok(frames)
    }

    /// Fails if the results are not complete.
    pub fn finish(self) -> Result<(), FrameError> {
        match (self.done, self.buffer.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => Err(self.damaged("bytes after the end")),
            (false, true) => Err(FrameError::Truncated(format!("no end mark after {} bytes", self.consumed))),
            (false, false) => Err(FrameError::Truncated(format!(
                "a frame begins at byte {} and has only {} bytes",
                self.consumed,
                self.buffer.len()
            ))),
        }
    }

    /// Whether no byte has arrived.
    pub fn is_silent(&self) -> bool {
        self.consumed == 0 && self.buffer.is_empty()
    }

    fn damaged(&self, what: &str) -> FrameError {
        FrameError::Damaged(format!("{what}, in the frame at byte {}", self.consumed))
    }

    /// Returns the frame at the start of the buffer and its length, if it is complete.
    fn next(&self) -> Result<Option<(Frame, usize)>, FrameError> {
        let buffer = &self.buffer;
        let magic = buffer.len().min(MAGIC.len());
        if buffer[..magic] != MAGIC[..magic] {
            return Err(self.damaged("no magic number"));
        }
        if buffer.len() < HEADER {
            return Ok(None);
        }
        let name_length = usize::from(u16::from_le_bytes([buffer[5], buffer[6]]));
        let data_length = u32::from_le_bytes(buffer[7..11].try_into().expect("four bytes")) as usize;
        if data_length > MAX_DATA {
            return Err(self.damaged("an impossible length"));
        }
        let length = HEADER + name_length + data_length;
        if buffer.len() < length {
            return Ok(None);
        }
        let (name, data) = buffer[HEADER..length].split_at(name_length);
        let sum = u32::from_le_bytes(buffer[11..HEADER].try_into().expect("four bytes"));
        if checksum(&[&buffer[MAGIC.len()..11], name, data]) != sum {
            return Err(self.damaged("a wrong checksum"));
        }
        let mut unpacked = Vec::new();
        ZlibDecoder::new(data).read_to_end(&mut unpacked).map_err(|_| self.damaged("data that does not unpack"))?;
        let name = String::from_utf8(name.to_vec()).map_err(|_| self.damaged("a name that is not UTF-8"))?;
        let frame = Frame::decode(buffer[4], name, unpacked).map_err(|what| self.damaged(&what))?;
        Ok(Some((frame, length)))
    }
}

fn checksum(parts: &[&[u8]]) -> u32 {
    let mut crc = Crc::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Frame> {
        vec![
            Frame::Live("10 %".into()),
            Frame::Stdout(b"out".to_vec()),
            Frame::Stderr(Vec::new()),
            Frame::File("/tmp/x".into(), vec![7; 5000]),
            Frame::Status(GuestStatus::Signaled(9)),
            Frame::Refused("no such file".into()),
            Frame::Done,
        ]
    }

    fn encoded() -> Vec<u8> {
        all().iter().flat_map(Frame::encode).collect()
    }

    #[test]
    fn frames_survive_in_pieces_of_any_size() {
        for piece in [1, 7, 100_000] {
            let mut decoder = Decoder::default();
            let frames: Vec<Frame> =
                encoded().chunks(piece).flat_map(|bytes| decoder.feed(bytes).expect("intact")).collect();
            assert_eq!(frames, all());
            assert_eq!(decoder.finish(), Ok(()));
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = encoded();
        for cut in 0..bytes.len() {
            let mut decoder = Decoder::default();
            decoder.feed(&bytes[..cut]).expect("intact so far");
            assert!(matches!(decoder.finish(), Err(FrameError::Truncated(_))), "cut at {cut}");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = encoded();
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 1;
            let mut decoder = Decoder::default();
            let result = decoder.feed(&bad).and_then(|_| decoder.finish());
            assert!(result.is_err(), "bit at {position}");
        }
    }

    #[test]
    fn nothing_may_follow_the_end() {
        let mut decoder = Decoder::default();
        decoder.feed(&Frame::Done.encode()).unwrap();
        decoder.feed(b"MTF1").unwrap();
        assert!(matches!(decoder.finish(), Err(FrameError::Damaged(_))));
    }
}
