//! The user's side: a reservation from the helper.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use macrotick_host::sys::{self, Tid};
use macrotick_reserve::{Request, Target};
use nix::fcntl::{fcntl, FcntlArg, FdFlag};

use crate::error::GrantError;
use crate::message::{write, Answer, Ask, Reader, PATIENCE};

/// The socket of the helper.
pub const SOCKET: &str = "/run/macrotick-grant.sock";

/// A reservation from the helper. It lasts until this is dropped, or the thread ends.
pub struct Granted {
    socket: UnixStream,
    answers: Reader,
    /// The reservation, for people.
    pub text: String,
    /// The same, for programs.
    pub report: serde_json::Value,
}

/// Asks the helper for a reservation: for the thread of the request, or, with a program to start, for this thread.
///
/// # Errors
///
/// The reason of the helper, or why it cannot be asked.
pub fn ask(socket: &Path, request: &Request) -> Result<Granted, GrantError> {
    let thread: Tid = match &request.target {
        Target::Program(_) => sys::own_tid(),
        Target::Process(thread) => *thread,
    };
    let unreachable = |source| GrantError::Unreachable { path: socket.into(), source };
    let connection = UnixStream::connect(socket).map_err(unreachable)?;
    // The helper waits for its turn, and tries a refused reservation again for a second.
    connection.set_read_timeout(Some(PATIENCE * 2)).map_err(unreachable)?;
    write(&connection, &Ask::of(request, thread)).map_err(unreachable)?;
    let mut answers = Reader::new(&connection).map_err(unreachable)?;
    match answers.read().map_err(unreachable)? {
        Some(Answer::Made { text, report }) => Ok(Granted { socket: connection, answers, text, report }),
        Some(Answer::Refused { text, code }) => Err(GrantError::Refused { text, code }),
        Some(Answer::Ended) | None => Err(GrantError::Lost),
    }
}

impl Granted {
    /// Keeps the reservation when this process executes another program. The program has the connection open, and the
    /// reservation lasts until its first thread ends.
    ///
    /// # Errors
    ///
    /// The kernel's reason why the descriptor does not stay open.
    pub fn keep_for_program(self) -> io::Result<()> {
        fcntl(&self.socket, FcntlArg::F_SETFD(FdFlag::empty()))?;
        std::mem::forget(self.socket);
        Ok(())
    }

    /// Waits until `wait` returns, which gets the connection: it has input when the reservation ends. Then the former
    /// state is back.
    ///
    /// # Errors
    ///
    /// The helper has ended early, or it could not keep the reservation.
    pub fn until(mut self, wait: impl FnOnce(&UnixStream)) -> Result<(), GrantError> {
        wait(&self.socket);
        let _ = self.socket.shutdown(Shutdown::Write);
        match self.answers.read() {
            Ok(Some(Answer::Ended)) => Ok(()),
            Ok(Some(Answer::Refused { text, code })) => Err(GrantError::Refused { text, code }),
            _ => Err(GrantError::Lost),
        }
    }
}
