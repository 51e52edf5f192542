//! The memory block that the runner shares with each process it starts (layout: `include/macrotick.h`).

pub mod abi;

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use macrotick_host::sys;
use macrotick_model::{Duration, Instant};

use crate::block::abi::{BlockHeader, Record};

/// A block, mapped. The mapping is locked in the runner as well, so that reading it never waits.
pub struct Block {
    file: File,
    header: NonNull<BlockHeader>,
    size: usize,
}

// SAFETY: what changes after creation is atomic, or read only after the writer has ended.
unsafe impl Send for Block {}

/// What a block is made for.
pub struct BlockSpec<'a> {
    /// `abi::BACKEND_*`.
    pub backend: u32,
    /// The cycle.
    pub cycle: Duration,
    /// The nominal instants of a cycle; none for a process.
    pub offsets: &'a [Duration],
    /// How many records fit.
    pub capacity: u32,
}

impl Block {
    /// A new block: written, faulted in, in the state `starting`.
    pub fn new(spec: &BlockSpec) -> io::Result<Block> {
        let offsets_at = size_of::<BlockHeader>().next_multiple_of(64);
        let records_at = (offsets_at + size_of_val(spec.offsets)).next_multiple_of(64);
        let size = records_at + spec.capacity as usize * size_of::<Record>();
        let file = sys::memory_file(c"macrotick-block")?;
        file.set_len(size as u64)?;
        let block = Block::map(file, size)?;
        let header = block.header.as_ptr();
        // SAFETY: the mapping is `size` bytes of zeroes, which nobody else has yet; the offsets' place is within it.
        unsafe {
            (*header).magic = abi::BLOCK_MAGIC;
            (*header).version = abi::BLOCK_VERSION;
            (*header).size = size as u64;
            (*header).backend = spec.backend;
            (*header).clockid = libc::CLOCK_MONOTONIC as u32;
            (*header).cycle_ns = spec.cycle.as_nanos() as u64;
            (*header).nr_offsets = spec.offsets.len() as u32;
            (*header).offsets_at = offsets_at as u32;
            (*header).capacity = spec.capacity;
            (*header).records_at = records_at as u32;
            let table = header.cast::<u8>().add(offsets_at).cast::<u64>();
            for (index, offset) in spec.offsets.iter().enumerate() {
                table.add(index).write(offset.as_nanos() as u64);
            }
        }
        Ok(block)
    }

    fn map(file: File, size: usize) -> io::Result<Block> {
        // SAFETY: a fresh shared mapping of a file of that size.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(at.cast()) {
            Some(header) if at != libc::MAP_FAILED => Ok(Block { file, header, size }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The file behind it, to be inherited.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The header, which lives as long as the block.
    pub fn header(&self) -> &BlockHeader {
        // SAFETY: mapped and initialised; the fields that change are atomic.
        unsafe { self.header.as_ref() }
    }

    /// How far the process is: `abi::PHASE_*`.
    pub fn phase(&self) -> u32 {
        self.header().phase.load(Ordering::Acquire)
    }

    /// The thread that joined.
    pub fn tid(&self) -> sys::Tid {
        self.header().tid.load(Ordering::Relaxed) as sys::Tid
    }

    /// Whether the process completed a job.
    pub fn has_completed(&self) -> bool {
        self.header().completed.load(Ordering::Relaxed) != 0
    }

    /// Wakes a process that is ready, so that it falls asleep again where it may run now.
    pub fn nudge(&self) {
        sys::futex_wake(&self.header().run);
    }

    /// Whether there was no room for more records.
    pub fn is_full(&self) -> bool {
        self.header().flags.load(Ordering::Relaxed) & abi::FLAG_FULL != 0
    }

    /// Tells the epoch: the run begins.
    pub fn publish(&self, epoch: Instant) {
        self.header().epoch_ns.store(epoch.as_nanos() as u64, Ordering::Relaxed);
        self.set_run(abi::RUN_RUNNING);
    }

    /// Tells that the run is over.
    pub fn stop(&self) {
        self.set_run(abi::RUN_STOPPING);
        sys::futex_wake(&self.header().released);
    }

    fn set_run(&self, run: u32) {
        self.header().run.store(run, Ordering::Release);
        sys::futex_wake(&self.header().run);
    }

    /// The records, once their writer has ended.
    pub fn records(&self) -> Vec<Record> {
        let header = self.header();
        let count = header.count.load(Ordering::Acquire).min(header.capacity.into()) as usize;
        // SAFETY: `count` records fit into the mapping; a record is plain numbers.
        unsafe {
            let first = self.header.as_ptr().cast::<u8>().add(header.records_at as usize).cast::<Record>();
            (0..count).map(|index| first.add(index).read_volatile()).collect()
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this size; no reference outlives the block.
        unsafe { libc::munmap(self.header.as_ptr().cast(), self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_holds_what_it_was_made_for() {
        let offsets = [Duration::from_micros(20), Duration::from_micros(520)];
        let spec =
            BlockSpec { backend: abi::BACKEND_SLEEP, cycle: Duration::from_millis(1), offsets: &offsets, capacity: 7 };
        let block = Block::new(&spec).unwrap();
        let header = block.header();
        assert_eq!((header.nr_offsets, header.capacity, header.cycle_ns), (2, 7, 1_000_000));
        assert_eq!(header.size, block.file().metadata().unwrap().len());
        assert_eq!((block.phase(), block.is_full()), (0, false));
        assert!(block.records().is_empty());
        block.publish(Instant::from_nanos(100));
        assert_eq!(header.epoch_ns.load(Ordering::Relaxed), 100);
    }
}
