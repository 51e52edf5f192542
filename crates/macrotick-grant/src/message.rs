//! The request and the answers: one line of JSON each.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration as WallTime;

use macrotick_host::sys::{DeadlineOptions, Tid};
use macrotick_model::{CpuSet, Duration};
use macrotick_reserve::{Mechanism, Request, Target, Times};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of these messages.
pub const VERSION: u32 = 1;
/// The longest line, in bytes. A set of 1024 CPUs is a text of 4 KiB.
const LONGEST: u64 = 1 << 14;
/// The longest wait for a line.
pub const PATIENCE: WallTime = WallTime::from_secs(5);

/// The request of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ask {
    pub version: u32,
    pub thread: Tid,
    pub runtime: Duration,
    pub period: Duration,
    pub deadline: Duration,
    pub reclaim: bool,
    pub overrun_signal: bool,
    pub cpus: Option<CpuSet>,
}

/// An answer of the helper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// The reservation is there, for people and for programs.
    Made { text: String, report: serde_json::Value },
    /// The thread has ended, or the connection was closed, and nothing is left.
    Ended,
    /// There is no reservation, for this reason; with the exit code.
    Refused { text: String, code: u8 },
}

impl Ask {
    /// Makes the message of a request for a thread.
    pub fn of(request: &Request, thread: Tid) -> Ask {
        let Times { runtime, period, deadline } = request.times;
        let DeadlineOptions { reclaim, overrun_signal } = request.options;
        Ask { version: VERSION, thread, runtime, period, deadline, reclaim, overrun_signal, cpus: request.cpus.clone() }
    }

    /// Returns the request for the thread, or the reason why there is none. The rest is checked where every request is.
    pub fn request(&self) -> Result<Request, String> {
        let Ask { version, thread, runtime, period, deadline, .. } = *self;
        if version != VERSION {
            return Err(format!("version {version} of the messages, and this is version {VERSION}"));
        }
        if thread <= 0 {
            return Err(format!("{thread} is no thread"));
        }
        if let Some((name, _)) = [("runtime", runtime), ("period", period), ("deadline", deadline)]
            .into_iter()
            .find(|(_, length)| *length <= Duration::ZERO)
        {
            return Err(format!("the {name} is not longer than zero"));
        }
        Ok(Request {
            target: Target::Process(thread),
            times: Times { runtime, period, deadline },
            cpus: self.cpus.clone(),
            all_threads: false,
            options: DeadlineOptions { reclaim: self.reclaim, overrun_signal: self.overrun_signal },
            by: Some(Mechanism::Deadline),
        })
    }
}

/// Writes a message.
pub fn write(mut socket: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let line = serde_json::to_string(message).expect("a message is always JSON") + "\n";
    socket.write_all(line.as_bytes())
}

/// Reads messages from a socket.
pub struct Reader(BufReader<UnixStream>);

impl Reader {
    /// Reads from a copy of the descriptor.
    pub fn new(socket: &UnixStream) -> io::Result<Reader> {
        socket.try_clone().map(|copy| Reader(BufReader::new(copy)))
    }

    /// Reads a message. `None`: the other side has closed the connection.
    pub fn read<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = String::new();
        self.0.by_ref().take(LONGEST).read_line(&mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if !line.ends_with('\n') {
            return Err(io::Error::other(format!("the line has no end within {LONGEST} bytes")));
        }
        Ok(Some(serde_json::from_str(&line)?))
    }

    /// Whether more has arrived than the messages that were read.
    pub fn has_more(&self) -> bool {
        !self.0.buffer().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::us;

    use super::*;

    fn one() -> Ask {
        Ask {
            version: VERSION,
            thread: 7,
            runtime: us(1000),
            period: us(10_000),
            deadline: us(5000),
            reclaim: false,
            overrun_signal: true,
            cpus: Some([0, 1].into_iter().collect()),
        }
    }

    /// Sends a text to a reader, and closes the connection.
    fn read(text: &str) -> io::Result<Option<Ask>> {
        let (to, from) = UnixStream::pair().unwrap();
        (&to).write_all(text.as_bytes()).unwrap();
        drop(to);
        Reader::new(&from)?.read()
    }

    #[test]
    fn a_request_is_as_before_on_the_other_side() {
        let text = serde_json::to_string(&one()).unwrap();
        assert_eq!(read(&(text.clone() + "\n")).unwrap(), Some(one()));
        let request = one().request().unwrap();
        assert_eq!(Ask::of(&request, 7), one());
        assert_eq!(request.by, Some(Mechanism::Deadline));
        assert_eq!(read("").unwrap(), None);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let text = serde_json::to_string(&one()).unwrap() + "\n";
        for (from, to) in [
            ("}\n", "}"),
            ("}\n", ", \"root\": true}\n"),
            ("\"thread\":7", "\"thread\":7.5"),
            ("\"thread\":7", "\"thread\":99999999999"),
            ("\"thread\":7,", ""),
            ("\"1ms\"", "\"1\""),
            ("\"1ms\"", "\"99999999999999999999s\""),
            ("{", "[{"),
            ("true", "1"),
        ] {
            let wrong = text.replacen(from, to, 1);
            assert!(wrong != text && read(&wrong).is_err(), "{wrong}");
        }
        let long = format!("{{\"version\": 1, \"x\": \"{}\"}}\n", "y".repeat(LONGEST as usize));
        assert!(read(&long).unwrap_err().to_string().contains("has no end within"), "a long line is not read");
        for (ask, said) in [
            (Ask { version: 2, ..one() }, "version 2 of the messages"),
            (Ask { thread: 0, ..one() }, "0 is no thread"),
            (Ask { thread: -1, ..one() }, "-1 is no thread"),
            (Ask { runtime: us(0), ..one() }, "the runtime is not longer than zero"),
            (Ask { period: us(-1), ..one() }, "the period is not longer than zero"),
            (Ask { deadline: us(0), ..one() }, "the deadline is not longer than zero"),
        ] {
            let told = ask.request().unwrap_err();
            assert!(told.contains(said), "{told}");
        }
    }
}
