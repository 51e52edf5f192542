//! The output of a process: its standard output and error, kept for errors, remarks and the observation.

use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::FileExt;

use macrotick_host::sys;
use macrotick_model::visible::visible;

use crate::error::Tail;

/// The maximum size of an output, in bytes. Only written bytes take memory.
pub const MOST: u64 = 16 << 20;
/// The size of the start and of the end that the observation keeps of a long output, in bytes. An output of up to twice
/// this size is kept whole.
const SHOWN: usize = 64 << 10;
/// The size of the end of an output in which errors look for their lines, in bytes.
const TAIL: u64 = 8 << 10;
/// The number of lines that errors show.
const TAIL_LINES: usize = 10;

/// The file that a process writes its output to.
pub struct KeptOutput(File);

impl KeptOutput {
    /// Makes the file. Writes beyond [`MOST`] fail.
    pub fn new() -> io::Result<KeptOutput> {
        let file = sys::memory_file(c"macrotick-output")?;
        file.set_len(MOST)?;
        sys::seal_size(&file)?;
        Ok(KeptOutput(file))
    }

    /// Returns a file for a process's standard output or error.
    pub fn writer(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// Returns the number of written bytes: the process shares the file position.
    fn written(&self) -> u64 {
        (&self.0).stream_position().unwrap_or(0).min(MOST)
    }

    /// Returns whether there is no room for more.
    pub fn is_full(&self) -> bool {
        self.written() == MOST
    }

    fn read(&self, from: u64) -> Vec<u8> {
        // The process may move the position back in the meantime.
        let mut bytes = vec![0; self.written().saturating_sub(from) as usize];
        match self.0.read_exact_at(&mut bytes, from) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }

    /// Returns the last lines, fit for a terminal.
    pub fn tail(&self) -> Tail {
        let text = self.read(self.written().saturating_sub(TAIL));
        Tail(visible(&last_lines(&String::from_utf8_lossy(&text), TAIL_LINES)))
    }

    /// Returns the output. Of a long output, returns the start and the end.
    pub fn text(&self) -> String {
        shorten(&self.read(0))
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Cuts out the middle, and writes there how many bytes are left out.
fn shorten(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy;
    if bytes.len() <= 2 * SHOWN {
        return text(bytes).into_owned();
    }
    // Cuts at ends of lines, if there are any.
    let is_end = |byte: &u8| *byte == b'\n';
    let head = bytes[..SHOWN].iter().rposition(is_end).map_or(SHOWN, |end| end + 1);
    let rest = bytes.len() - SHOWN;
    let tail = bytes[rest..].iter().position(is_end).map_or(rest, |end| rest + end + 1);
    let tail = if tail == bytes.len() { rest } else { tail };
    format!("{}[{} bytes are left out]\n{}", text(&bytes[..head]), tail - head, text(&bytes[tail..]))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn of_a_lot_beginning_and_end_are_told() {
        let output = KeptOutput::new().unwrap();
        let mut writer = output.writer().unwrap();
        (0..100_000).for_each(|line| writeln!(writer, "line {line:05}").unwrap());
        let text = output.text();
        assert!(text.starts_with("line 00000\n") && text.ends_with("line 99999\n"), "{}", text.len());
        let lines: Vec<&str> = text.lines().collect();
        let gap = lines.iter().position(|line| line.ends_with(" bytes are left out]")).unwrap();
        assert!(lines.iter().enumerate().all(|(place, line)| place == gap || line.len() == 10), "cut in lines");
        let left_out = 1_100_000 - 11 * (lines.len() - 1);
        assert_eq!(lines[gap], format!("[{left_out} bytes are left out]"));
        assert_eq!(output.tail().0.lines().last(), Some("line 99999"));
    }

    #[test]
    fn writes_beyond_the_room_fail() {
        let output = KeptOutput::new().unwrap();
        let mut writer = output.writer().unwrap();
        writer.write_all(&vec![b'x'; MOST as usize - 1]).unwrap();
        assert!(!output.is_full());
        writer.write_all(b"\n").unwrap();
        assert!(output.is_full() && writer.write(b"y").is_err());
        assert_eq!(
            output.text().len(),
            2 * SHOWN + format!("[{} bytes are left out]\n", MOST as usize - 2 * SHOWN).len()
        );
    }
}
