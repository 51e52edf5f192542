//! The mapped rings of the flight recorder.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{fence, AtomicU32, Ordering};

use crate::Event;

/// The rings of all CPUs, mapped for reading. The kernel goes on writing.
#[derive(Debug)]
pub struct Rings {
    first: NonNull<Event>,
    rings: usize,
    events: usize,
}

// SAFETY: the mapping belongs to no thread, and this program only reads it.
unsafe impl Send for Rings {}

impl Rings {
    pub(crate) fn map(device: &File, rings: usize, events: usize) -> Result<Rings, i32> {
        let length = rings * events * size_of::<Event>();
        // SAFETY: a new mapping, which nothing else uses.
        let at =
            unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, device.as_raw_fd(), 0) };
        match NonNull::new(at.cast::<Event>()) {
            Some(first) if at != libc::MAP_FAILED => Ok(Rings { first, rings, events }),
            _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// Returns the number of rings. The ring of a CPU has its number.
    pub fn count(&self) -> usize {
        self.rings
    }

    /// Returns the latest events of a ring, the oldest first. Events that the kernel overwrites meanwhile are left out.
    ///
    /// # Panics
    ///
    /// There is no such ring.
    pub fn latest(&self, ring: usize) -> Vec<Event> {
        assert!(ring < self.rings, "ring {ring} of {}", self.rings);
        let mut events: Vec<Event> = (0..self.events).filter_map(|place| self.event(ring, place)).collect();
        // An interrupt can come between an event's place and its instant.
        events.sort_by_key(|event| (event.ns, event.sequence));
        events
    }

    /// Reads an event. The kernel sets its sequence to zero before it changes the rest, and to its number afterwards.
    fn event(&self, ring: usize, place: usize) -> Option<Event> {
        // SAFETY: the place is inside the mapping. The sequence is the first field, and aligned.
        let (at, sequence) = unsafe {
            let at = self.first.as_ptr().add(ring * self.events + place);
            (at, &*at.cast::<AtomicU32>())
        };
        let before = sequence.load(Ordering::Acquire);
        // SAFETY: any bytes are an event. If they change meanwhile, the sequence does, too.
        let event = unsafe { ptr::read_volatile(at) };
        fence(Ordering::Acquire);
        (before != 0 && sequence.load(Ordering::Relaxed) == before).then_some(Event { sequence: before, ..event })
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        let length = self.rings * self.events * size_of::<Event>();
        // SAFETY: nothing refers to the mapping any longer: events are copies.
        unsafe { libc::munmap(self.first.as_ptr().cast(), length) };
    }
}
