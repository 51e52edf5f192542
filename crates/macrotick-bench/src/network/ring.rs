//! A ring in which the kernel leaves the frames of a tap, with their time stamps (`TPACKET_V2`).

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::kit::netns::set;
use crate::kit::process::last_error;

/// The bytes of a frame in the ring, with the kernel's header.
const FRAME: usize = 256;
const FRAMES: usize = 4096;
const BLOCK: usize = 64 << 10;

/// A ring of a tap.
pub struct Ring {
    socket: RawFd,
    memory: *mut u8,
    next: usize,
}

/// A frame in the ring: its time stamp in ns of CLOCK_REALTIME, and its first bytes.
pub struct Tapped<'a> {
    /// The time stamp.
    pub at_ns: i64,
    /// The bytes.
    pub data: &'a [u8],
}

impl Ring {
    /// Makes a ring of a tap.
    pub fn of(socket: RawFd) -> Result<Ring, String> {
        set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
        set(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (FRAME * FRAMES / BLOCK) as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: FRAMES as u32,
        };
        set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a fresh mapping of the whole ring.
        match unsafe { libc::mmap(std::ptr::null_mut(), FRAME * FRAMES, protection, flags, socket, 0) } {
            libc::MAP_FAILED => Err(last_error("a ring")),
            memory => Ok(Ring { socket, memory: memory.cast(), next: 0 }),
        }
    }

    /// Passes the next frame to `take`, and gives its room back. Waits for a frame for at most this time in milliseconds.
    pub fn take<R>(&mut self, patience_ms: i32, take: impl FnOnce(&Tapped) -> R) -> Option<R> {
        // SAFETY: `next` is below the number of frames. The kernel writes a frame before it sets the bit of the user, and
        // does not touch it again before this function clears the word. The data is within the frame.
        unsafe {
            let header = self.memory.add(self.next * FRAME).cast::<libc::tpacket2_hdr>();
            let status = AtomicU32::from_ptr(&raw mut (*header).tp_status);
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                let mut poll = libc::pollfd { fd: self.socket, events: libc::POLLIN, revents: 0 };
                libc::poll(&mut poll, 1, patience_ms);
                if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                    return None;
                }
            }
            let at_ns = i64::from((*header).tp_sec) * 1_000_000_000 + i64::from((*header).tp_nsec);
            let data = header.cast::<u8>().add(usize::from((*header).tp_mac));
            let frame = Tapped { at_ns, data: std::slice::from_raw_parts(data, (*header).tp_snaplen as usize) };
            let taken = take(&frame);
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % FRAMES;
            Some(taken)
        }
    }
}
