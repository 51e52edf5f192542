//! How others talk to a deployment's supervisor: one request and one answer over a socket of root's.
//!
//! A message is its length (32 bits, little-endian) and JSON. The supervisor never waits for a peer: what has not come
//! yet is read when it comes.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};

use macrotick_host::state::{self, Directory};
use macrotick_host::sys;
use macrotick_model::{Duration, Instant};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::NodeError;
use crate::live::changes::Changes;

/// More than any plan is long.
const MOST_BYTES: usize = 512 << 20;
/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_secs(10);
/// After this without an answer something may keep the supervisor from running.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(2);
/// How long an answer may take to be taken, which is short and goes into the socket's buffer.
const WRITE_LIMIT: std::time::Duration = std::time::Duration::from_secs(1);

/// What the supervisor is asked for.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// To change to a plan (its JSON).
    Apply(String),
    /// To end the deployment.
    Stop,
}

/// What it says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The change is made.
    Changed(Changes),
    /// It is not, and everything is as it was.
    Refused {
        /// Why.
        text: String,
        /// Whether the plan is wrong, and not the host.
        wrong_input: bool,
    },
    /// Nothing is left of the deployment.
    Stopped,
}

/// Asks the supervisor, and waits for as long as the answer takes. `None`: there is no supervisor. One that does not answer
/// for [`SILENCE`] is nudged.
pub fn ask(request: &Request, nudge: &dyn Fn()) -> Result<Option<Answer>, NodeError> {
    let path = state::socket(sys::user());
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
        Err(source) => return Err(NodeError::Control { what: "connect to", path, source }),
    };
    // Whoever does not answer any more does not read any more, either.
    let _ = stream.write_all(&encode(request));
    let mut message = Vec::new();
    let _ = stream.set_read_timeout(Some(SILENCE));
    let mut heard = stream.read_to_end(&mut message);
    if heard.as_ref().is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)) {
        nudge();
        let _ = stream.set_read_timeout(None);
        heard = stream.read_to_end(&mut message);
    }
    heard.map_err(|_| NodeError::NoAnswer)?;
    if message.is_empty() {
        return Err(NodeError::NoAnswer);
    }
    decode(&message)?.map(Some).ok_or(NodeError::NoAnswer)
}

fn encode(message: &impl Serialize) -> Vec<u8> {
    let text = serde_json::to_vec(message).expect("a message is always JSON");
    [&(text.len() as u32).to_le_bytes()[..], &text].concat()
}

/// A message from its bytes; `None`: some are still missing.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<Option<T>, NodeError> {
    let Some((length, text)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MOST_BYTES {
        return Err(NodeError::Protocol(format!("a message of {length} bytes")));
    }
    match text.get(..length) {
        None => Ok(None),
        Some(text) => serde_json::from_slice(text).map(Some).map_err(|error| NodeError::Protocol(error.to_string())),
    }
}

/// The supervisor's end.
pub struct Listener(UnixListener);

impl Listener {
    /// Listens in a directory where nobody else does: the lock says so.
    pub fn open(directory: &Directory) -> Result<Listener, NodeError> {
        let failed = |source| NodeError::Control { what: "listen on", path: directory.socket(), source };
        directory.listen().map(Listener).map_err(failed)
    }

    /// What becomes readable when somebody comes.
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Who came meanwhile.
    pub fn accept(&self) -> Option<Conversation> {
        let (stream, _) = self.0.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(Conversation { stream, heard: Vec::new(), until: sys::now() + PATIENCE })
    }
}

/// Somebody who asks, or waits for an answer.
pub struct Conversation {
    stream: UnixStream,
    heard: Vec<u8>,
    until: Instant,
}

/// What came of listening to somebody.
pub enum Heard {
    /// Not all yet.
    Part,
    /// A request.
    Request(Request),
    /// Nothing that could be understood, or the peer has gone.
    Nothing,
}

impl Conversation {
    /// What becomes readable when more comes.
    pub fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Takes what has come.
    pub fn listen(&mut self) -> Heard {
        let mut some = [0; 1 << 16];
        loop {
            match self.stream.read(&mut some) {
                Ok(0) => return Heard::Nothing,
                Ok(count) => self.heard.extend_from_slice(&some[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Heard::Nothing,
            }
        }
        match decode(&self.heard) {
            Ok(Some(request)) => Heard::Request(request),
            Ok(None) if sys::now() < self.until => Heard::Part,
            _ => Heard::Nothing,
        }
    }

    /// Answers, and ends the conversation. A peer that has gone misses nothing.
    pub fn answer(mut self, answer: &Answer) {
        let ready = self.stream.set_nonblocking(false).and_then(|()| self.stream.set_write_timeout(Some(WRITE_LIMIT)));
        let _ = ready.and_then(|()| self.stream.write_all(&encode(answer)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_whole_or_awaited() {
        let request = Request::Apply("{}".into());
        let bytes = encode(&request);
        for length in 0..bytes.len() {
            assert_eq!(decode::<Request>(&bytes[..length]).unwrap(), None, "{length}");
        }
        assert_eq!(decode(&bytes).unwrap(), Some(request));
        assert!(matches!(decode::<Request>(&encode(&"nonsense")), Err(NodeError::Protocol(_))));
        assert!(matches!(decode::<Request>(&[0xff; 8]), Err(NodeError::Protocol(_))));
    }

    #[test]
    fn a_request_comes_in_parts_and_is_answered() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut conversation = Conversation { stream: ours, heard: Vec::new(), until: sys::now() + PATIENCE };
        let bytes = encode(&Request::Stop);
        theirs.write_all(&bytes[..3]).unwrap();
        assert!(matches!(conversation.listen(), Heard::Part));
        theirs.write_all(&bytes[3..]).unwrap();
        assert!(matches!(conversation.listen(), Heard::Request(Request::Stop)));
        conversation.answer(&Answer::Stopped);
        let mut answer = Vec::new();
        theirs.read_to_end(&mut answer).unwrap();
        assert_eq!(decode(&answer).unwrap(), Some(Answer::Stopped));
    }

    #[test]
    fn who_hangs_up_is_not_waited_for() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        drop(theirs);
        let mut conversation = Conversation { stream: ours, heard: Vec::new(), until: sys::now() + PATIENCE };
        assert!(matches!(conversation.listen(), Heard::Nothing));
    }
}
