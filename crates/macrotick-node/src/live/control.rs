//! The connection to a deployment's supervisor: one request and one answer over a socket of root.
//!
//! A message is its length (32 bits, little-endian) and JSON. The supervisor never waits for a peer. It reads the
//! missing part of a message when that part arrives.

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

/// The maximum size of a message. It is larger than any plan.
const MOST_BYTES: usize = 512 << 20;
/// The time limit for a request to arrive completely.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time without an answer after which the supervisor may be kept from running.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(2);
/// The time limit for sending an answer. An answer is short and fits into the socket's buffer.
const WRITE_LIMIT: std::time::Duration = std::time::Duration::from_secs(1);

/// A request to the supervisor.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Change to a plan (its JSON).
    Apply(String),
    /// End the deployment.
    Stop,
}

/// An answer of the supervisor.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The change is made.
    Changed(Changes),
    /// The change is refused, and the deployment is unchanged.
    Refused {
        /// The reason.
        text: String,
        /// Whether the plan is the cause, and not the host.
        wrong_input: bool,
    },
    /// The deployment and all its parts are removed.
    Stopped,
}

/// Sends a request to the supervisor and waits for the answer, without a time limit. Calls `nudge` if no answer comes
/// within [`SILENCE`]. Returns `None` if there is no supervisor.
pub fn ask(request: &Request, nudge: &dyn Fn()) -> Result<Option<Answer>, NodeError> {
    let path = state::socket(sys::user());
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
        Err(source) => return Err(NodeError::Control { what: "connect to", path, source }),
    };
    // A supervisor that has ended does not read. The missing answer then gives the error.
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

/// Decodes a message. Returns `None` if bytes are missing.
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

/// The supervisor's side of the socket.
pub struct Listener(UnixListener);

impl Listener {
    /// Listens in the supervisor's directory. The lock ensures that no other process listens there.
    pub fn open(directory: &Directory) -> Result<Listener, NodeError> {
        let failed = |source| NodeError::Control { what: "listen on", path: directory.socket(), source };
        directory.listen().map(Listener).map_err(failed)
    }

    /// Returns the descriptor that becomes readable when a peer connects.
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Accepts a peer that connected meanwhile.
    pub fn accept(&self) -> Option<Conversation> {
        let (stream, _) = self.0.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(Conversation { stream, heard: Vec::new(), until: sys::now() + PATIENCE })
    }
}

/// A peer that sends a request or waits for an answer.
pub struct Conversation {
    stream: UnixStream,
    heard: Vec<u8>,
    until: Instant,
}

/// The result of reading from a peer.
pub enum Heard {
    /// The request is incomplete.
    Part,
    /// A complete request.
    Request(Request),
    /// The peer has gone, its time is over, or its message is not understood.
    Nothing,
}

impl Conversation {
    /// Returns the descriptor that becomes readable when more bytes arrive.
    pub fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Reads the bytes that have arrived.
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

    /// Answers, and ends the conversation. Errors are ignored: the peer may have gone.
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
