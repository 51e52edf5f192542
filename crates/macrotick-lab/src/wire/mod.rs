//! A wire between two guests, in virtual time.
//!
//! Each guest's virtual time counts its own instructions, and passes as fast as the host allows. Frames must arrive at
//! a fixed virtual instant, independent of the host. Therefore the guests meet: both stop at each multiple of
//! [`port::TURN_NS`], in the middle of an instruction. They exchange the frames since the last meeting, and continue. A
//! frame takes at least [`port::DELAY_NS`], which is longer than a turn, so it arrives in time.
//!
//! A guest's end of the wire is a program ([`port`]), which the job starts. QEMU loads a plugin (`wire.c`) that stops
//! the guest. A guest's memory is a file, so the host can exchange a page of it.

pub mod port;
mod post;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::error::{Context, LabError};
use crate::layout::Layout;
use crate::plugin;
use post::{BEGINNING, PAGE};

const SOURCE: &str = include_str!("wire.c");

/// Builds the plugin, unless it is up to date.
pub(crate) fn build(layout: &Layout) -> Result<PathBuf, LabError> {
    plugin::build(layout, "wire", SOURCE)
}

/// Returns the arguments with which QEMU can stop the guest and the host can access its memory.
pub(crate) fn arguments(plugin: &Path, dir: &Path, memory_mib: u32) -> Vec<String> {
    // A saved machine's memory has this name, so it is needed here, too.
    let name = "id=pc.ram,x-use-canonical-path-for-ramblock-id=off";
    let memory =
        format!("memory-backend-file,{name},size={memory_mib}M,share=on,mem-path={}", memory_path(dir).display());
    let plugin = format!("{},socket={}", plugin.display(), socket_path(dir).display());
    ["-object", &memory, "-machine", "memory-backend=pc.ram", "-plugin", &plugin].map(str::to_owned).to_vec()
}

fn memory_path(dir: &Path) -> PathBuf {
    dir.join("memory")
}

fn socket_path(dir: &Path) -> PathBuf {
    dir.join("wire")
}

/// The host's side of one guest.
pub(crate) struct End {
    listener: UnixListener,
    dir: PathBuf,
}

impl End {
    /// Listens for the guest that will run in this directory.
    pub fn new(dir: &Path) -> Result<End, LabError> {
        let socket = socket_path(dir);
        let listener = UnixListener::bind(&socket).context("bind", &socket)?;
        Ok(End { listener, dir: dir.to_owned() })
    }

    /// Unblocks [`join`] if the guest ended before it connected.
    pub fn give_up(&self) {
        // A guest that is already connected is served first.
        let _ = UnixStream::connect(socket_path(&self.dir));
    }

    fn connect(&self) -> Result<Guest, LabError> {
        let (stream, _) = self.listener.accept().context("accept", &socket_path(&self.dir))?;
        Ok(Guest { stream, memory_path: memory_path(&self.dir), memory: None })
    }
}

/// Serves two guests until both have gone.
pub(crate) fn join(ends: &[End; 2]) -> Result<(), LabError> {
    let mut guests = [ends[0].connect()?, ends[1].connect()?];
    loop {
        let [first, second] = &mut guests;
        match (first.post()?, second.post()?) {
            (None, None) => return Ok(()),
            (first_sent, second_sent) => {
                first.go_on(first_sent, second_sent)?;
                second.go_on(second_sent, first_sent)?;
            }
        }
    }
}

/// A page of a guest's memory: its address and content.
type Post = (u64, [u8; PAGE]);

/// A running guest.
struct Guest {
    stream: UnixStream,
    memory_path: PathBuf,
    memory: Option<File>,
}

impl Guest {
    /// Waits for the next meeting. Returns the guest's page, or `None` if the guest has ended.
    fn post(&mut self) -> Result<Option<Post>, LabError> {
        let mut address = [0; 8];
        if self.stream.read_exact(&mut address).is_err() {
            return Ok(None);
        }
        let (address, mut page) = (u64::from_le_bytes(address), [0; PAGE]);
        self.memory()?.read_exact_at(&mut page, address).context("read", &self.memory_path)?;
        if !page.starts_with(&BEGINNING.to_le_bytes()) {
            return Err(LabError::Job(format!("a guest's memory has no message at {address:#x}")));
        }
        Ok(Some((address, page)))
    }

    /// Ends the meeting with the other guest's page, or with an empty one if that guest has ended.
    fn go_on(&mut self, own: Option<Post>, other: Option<Post>) -> Result<(), LabError> {
        let Some((address, _)) = own else { return Ok(()) };
        let page = other.map_or([0; PAGE], |(_, page)| page);
        self.memory()?.write_all_at(&page, address).context("write", &self.memory_path)?;
        // A guest that was stopped at its limit does not continue.
        let _ = self.stream.write_all(&[1]);
        Ok(())
    }

    fn memory(&mut self) -> Result<&File, LabError> {
        if self.memory.is_none() {
            let opened = OpenOptions::new().read(true).write(true).open(&self.memory_path);
            self.memory = Some(opened.context("open", &self.memory_path)?);
        }
        Ok(self.memory.as_ref().expect("it was opened"))
    }
}
