//! Makes the outcome of a run, or its error, from the run's files.

use std::collections::BTreeMap;
use std::path::Path;

use macrotick_model::Duration;

use crate::command;
use crate::console;
use crate::error::{Death, LabError};
use crate::frame::{Decoder, Frame, FrameError, GuestStatus};
use crate::job::GuestOutcome;

/// Lines of the console that an error shows.
const TAIL: usize = 40;

/// The results so far from the result channel.
#[derive(Default)]
pub struct Results {
    decoder: Decoder,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
    status: Option<GuestStatus>,
    refused: Option<String>,
    damage: Option<FrameError>,
}

impl Results {
    /// Takes bytes of the channel; progress lines go to `live` at once.
    pub fn feed(&mut self, bytes: &[u8], live: &mut dyn FnMut(&str)) {
        if self.damage.is_some() {
            return;
        }
        match self.decoder.feed(bytes) {
            Ok(frames) => frames.into_iter().for_each(|frame| self.take(frame, live)),
            Err(damage) => self.damage = Some(damage),
        }
    }

    fn take(&mut self, frame: Frame, live: &mut dyn FnMut(&str)) {
        match frame {
            Frame::Live(line) => live(&line),
            Frame::Stdout(data) => self.stdout = data,
            Frame::Stderr(data) => self.stderr = data,
            Frame::File(path, data) => drop(self.files.insert(path, data)),
            Frame::Status(status) => self.status = Some(status),
            Frame::Refused(why) => self.refused = Some(why),
            Frame::Done => {}
        }
    }

    /// Returns the outcome after the end of QEMU; `dir` has the run's files, `boot` is the console up to the
    /// checkpoint.
    pub fn finish(self, dir: &Path, boot: &str, wall: Duration, allow: bool) -> Result<GuestOutcome, LabError> {
        let console = format!("{boot}{}", command::read_lossy(&dir.join("console")));
        let silent = self.decoder.is_silent();
        let intact = self.damage.map_or_else(|| self.decoder.finish(), Err);
        if let Some(why) = self.refused {
            return Err(LabError::Agent(why));
        }
        let death = match intact {
            Ok(()) => None,
            Err(_) if silent => Some(Death::Silent),
            Err(FrameError::Truncated(what)) => Some(Death::Truncated(what)),
            Err(FrameError::Damaged(what)) => Some(Death::Damaged(what)),
        };
        let status = match (death, self.status) {
            (None, Some(status)) => status,
            (None, None) => return Err(died(dir, Some(Death::Truncated("no exit status".into())))),
            (Some(death), _) => return Err(died(dir, Some(death))),
        };
        let complaints = console::scan(&console);
        if !complaints.is_empty() && !allow {
            return Err(LabError::Console { findings: complaints, dir: dir.to_owned() });
        }
        let (stdout, stderr, files) = (self.stdout, self.stderr, self.files);
        Ok(GuestOutcome { status, stdout, stderr, files, console, complaints, paths: Vec::new(), wall })
    }
}

/// Makes the error of a guest that ended early. A panic on the console, or QEMU's own message, explains more than the
/// results.
pub fn died(dir: &Path, death: Option<Death>) -> LabError {
    let console = command::read_lossy(&dir.join("console"));
    let qemu = command::read_lossy(&dir.join("qemu"));
    let death = match console::panic_line(&console) {
        Some(line) => Death::Panic(line),
        None if qemu.contains("qemu-system") => Death::Qemu(command::tail(&qemu, 5)),
        None => death.unwrap_or(Death::Silent),
    };
    LabError::Died { death, tail: command::tail(&console, TAIL), dir: dir.to_owned() }
}

/// Makes the error of a guest that was stopped at its limit.
pub fn over_limit(dir: &Path, limit: Duration) -> LabError {
    let console = command::read_lossy(&dir.join("console"));
    LabError::WallLimit { limit, tail: command::tail(&console, TAIL), dir: dir.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Recordings of guests: a crash, the results of `uname -a`, a back trace between the lines of another thread.
    const PANIC: &str = include_str!("../tests/data/panic.txt");
    const INTERLEAVED: &str = include_str!("../tests/data/interleaved.txt");
    const RESULTS: &[u8] = include_bytes!("../tests/data/results.bin");

    /// Judges recorded files as the files of a run.
    fn judge(name: &str, console: &str, results: &[u8], qemu: &str) -> Result<GuestOutcome, LabError> {
        let dir = std::env::temp_dir().join(format!("macrotick-outcome-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("console"), console).unwrap();
        fs::write(dir.join("qemu"), qemu).unwrap();
        let mut taken = Results::default();
        taken.feed(results, &mut |_| {});
        let outcome = taken.finish(&dir, "", Duration::ZERO, false);
        fs::remove_dir_all(&dir).unwrap();
        outcome
    }

    fn death(outcome: Result<GuestOutcome, LabError>) -> Death {
        match outcome {
            Err(LabError::Died { death, .. }) => death,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn whole_results_and_a_quiet_console_are_an_outcome() {
        let outcome = judge("whole", "", RESULTS, "").unwrap();
        assert_eq!(outcome.status, GuestStatus::Exited(0));
        assert!(outcome.stdout_text().starts_with("Linux lab 6.12."), "{}", outcome.stdout_text());
    }

    #[test]
    fn a_panic_explains_missing_results() {
        let expected = "Kernel panic - not syncing: sysrq triggered crash";
        assert_eq!(death(judge("panic", PANIC, b"", "")), Death::Panic(expected.into()));
        assert_eq!(death(judge("panic-late", PANIC, &RESULTS[..90], "")), Death::Panic(expected.into()));
    }

    #[test]
    fn cut_or_damaged_results_are_no_outcome() {
        assert!(matches!(death(judge("cut", "", &RESULTS[..RESULTS.len() - 1], "")), Death::Truncated(_)));
        let mut damaged = RESULTS.to_vec();
        damaged[40] ^= 0x10;
        assert!(matches!(death(judge("damaged", "", &damaged, "")), Death::Damaged(_)));
        assert_eq!(death(judge("silent", "", b"", "")), Death::Silent);
    }

    #[test]
    fn what_qemu_says_of_itself_is_told() {
        let said = "qemu-system-x86_64: could not load kernel 'x'";
        assert_eq!(death(judge("qemu", "", b"", said)), Death::Qemu(said.into()));
    }

    #[test]
    fn a_complaint_between_other_lines_is_found() {
        let outcome = judge("interleaved", INTERLEAVED, RESULTS, "");
        let Err(LabError::Console { findings, .. }) = outcome else { panic!("{outcome:?}") };
        assert!(findings[0].excerpt.contains("Call Trace:"), "{}", findings[0].excerpt);
        assert!(findings[0].excerpt.contains("audio: buffer"), "{}", findings[0].excerpt);
    }
}
