//! Loads beside the measured threads, under SCHED_OTHER.

use std::io::Write;
use std::net::UdpSocket;

use super::board::Board;
use super::process::{fork, spin};
use super::{disk, hostile};

/// The number of timers of the unprivileged process, and their period.
const TIMERS: (usize, u64) = (100, 1_000_000);

/// A load under SCHED_OTHER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing.
    None,
    /// A process that never sleeps.
    Hog,
    /// A process that writes files and synchronises.
    Io,
    /// Two processes that send and receive datagrams.
    Network,
    /// An unprivileged process with many timers.
    Timers,
}

impl Load {
    /// All loads.
    pub const ALL: [Load; 5] = [Load::None, Load::Hog, Load::Io, Load::Network, Load::Timers];

    /// Returns the name in tables and on the guest's command line.
    pub fn name(self) -> &'static str {
        match self {
            Load::None => "alone",
            Load::Hog => "hog",
            Load::Io => "io",
            Load::Network => "network",
            Load::Timers => "timers",
        }
    }

    /// Parses a name of [`Load::name`].
    pub fn from_name(name: &str) -> Result<Load, String> {
        Load::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| format!("no load `{name}`"))
    }
}

/// Starts the processes of a load. They join the board.
pub fn begin(load: Load, board: &'static Board) -> Result<Vec<i32>, String> {
    let begun = |body: fn(&'static Board) -> Result<(), String>| fork(move || body(board));
    match load {
        Load::None => Ok(Vec::new()),
        Load::Hog => Ok(vec![begun(|board| {
            board.join();
            spin()
        })?]),
        Load::Io => {
            disk::mount()?;
            Ok(vec![begun(write_files)?])
        }
        Load::Network => {
            let (one, other) = (socket()?, socket()?);
            let to = one.local_addr().map_err(|error| error.to_string())?;
            let send = fork(|| send(&other, to, board))?;
            Ok(vec![send, fork(|| receive(&one, board))?])
        }
        Load::Timers => Ok(vec![begun(|board| hostile::run(&vec![TIMERS.1; TIMERS.0], board))?]),
    }
}

fn socket() -> Result<UdpSocket, String> {
    UdpSocket::bind("127.0.0.1:0").map_err(|error| format!("a socket: {error}"))
}

/// Sends datagrams without a pause and without end.
fn send(socket: &UdpSocket, to: std::net::SocketAddr, board: &Board) -> Result<(), String> {
    board.join();
    loop {
        // The kernel drops datagrams when the receiver has no room.
        let _ = socket.send_to(&[0; 1000], to);
    }
}

fn receive(socket: &UdpSocket, board: &Board) -> Result<(), String> {
    let mut buffer = [0; 2000];
    board.join();
    loop {
        let _ = socket.recv(&mut buffer);
    }
}

/// Writes a file, synchronises all files, and removes it, without end.
fn write_files(board: &'static Board) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("a file: {error}");
    let path = format!("{}/load", disk::PATH);
    board.join();
    loop {
        let mut file = std::fs::File::create(&path).map_err(failed)?;
        file.write_all(&[1; 64 << 10]).and_then(|()| file.sync_all()).map_err(failed)?;
        // SAFETY: takes nothing.
        unsafe { libc::sync() };
        std::fs::remove_file(&path).map_err(failed)?;
    }
}
