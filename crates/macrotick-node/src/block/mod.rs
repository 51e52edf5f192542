//! The memory block that the runner shares with each process it starts (layout: `include/macrotick.h`).

pub mod abi;

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use macrotick_host::{proc, sys};
use macrotick_model::{Duration, Instant};

use crate::block::abi::{BlockHeader, Record};

/// A mapped block. The runner's mapping is locked too, and reading it never waits.
pub struct Block {
    file: File,
    header: NonNull<BlockHeader>,
    size: usize,
    /// The values that the process gets and must not change. The process is able to change them. Therefore the runner
    /// reads them again only to check whether it did.
    told: Told,
    /// The number of records that the runner has taken. The process is able to change the copy in the block.
    taken: u64,
}

/// The constant part of a header, field by field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    magic: u32,
    version: u32,
    size: u64,
    backend: u32,
    clockid: u32,
    cycle_ns: u64,
    nr_offsets: u32,
    offsets_at: u32,
    capacity: u32,
    records_at: u32,
}

// SAFETY: the fields that change after creation are atomic, or read only after the writer has ended.
unsafe impl Send for Block {}

/// The lateness of a task's jobs, as its process tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// The lateness of the latest job.
    pub latest: Duration,
    /// The largest lateness since the process started.
    pub worst: Duration,
}

/// Reads the lateness from the block that another process has open. It disturbs neither that process nor the task.
/// Returns `None` if this user may not read the block. Also returns `None` if the task has told none: it had no job yet,
/// or its program has an older header.
pub fn lateness_of(process: u32, descriptor: RawFd) -> Option<Lateness> {
    let file = proc::open_file(process as sys::Tid, descriptor).ok()?;
    let number = |at: usize| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at as u64).ok()?;
        Some(i64::from_ne_bytes(bytes))
    };
    let mut head = [0; 8];
    file.read_exact_at(&mut head, 0).ok()?;
    let known = [abi::BLOCK_MAGIC.to_ne_bytes(), abi::BLOCK_VERSION.to_ne_bytes()].concat();
    let latest = number(std::mem::offset_of!(BlockHeader, lateness_ns)).filter(|_| head[..] == known[..])?;
    let worst = number(std::mem::offset_of!(BlockHeader, worst_ns))?;
    // The lateness of a job is never exactly zero twice: zeros mean that no job has told one.
    let told = (latest, worst) != (0, 0);
    told.then_some(Lateness { latest: Duration::from_nanos(latest), worst: Duration::from_nanos(worst) })
}

/// The parameters of a block.
pub struct BlockSpec<'a> {
    /// `abi::BACKEND_*`.
    pub backend: u32,
    /// The cycle of the nominal instants.
    pub cycle: Duration,
    /// The nominal instants of a cycle. Empty for a process.
    pub offsets: &'a [Duration],
    /// The number of records that fit.
    pub capacity: u32,
}

impl Block {
    /// Makes a block: writes it, faults its pages in, and leaves it in the state `starting`.
    pub fn new(spec: &BlockSpec) -> io::Result<Block> {
        let offsets_at = size_of::<BlockHeader>().next_multiple_of(64);
        let records_at = (offsets_at + size_of_val(spec.offsets)).next_multiple_of(64);
        let size = records_at + spec.capacity as usize * size_of::<Record>();
        let file = sys::memory_file(c"macrotick-block")?;
        file.set_len(size as u64)?;
        // If a process truncated the file, the next read of the runner would kill the runner with SIGBUS.
        sys::seal_size(&file)?;
        let told = Told {
            magic: abi::BLOCK_MAGIC,
            version: abi::BLOCK_VERSION,
            size: size as u64,
            backend: spec.backend,
            clockid: libc::CLOCK_MONOTONIC as u32,
            cycle_ns: spec.cycle.as_nanos() as u64,
            nr_offsets: spec.offsets.len() as u32,
            offsets_at: offsets_at as u32,
            capacity: spec.capacity,
            records_at: records_at as u32,
        };
        let block = Block::map(file, size, told)?;
        let header = block.header.as_ptr();
        // SAFETY: the mapping is `size` bytes of zeroes that no other process has yet; the offsets are within it.
        unsafe {
            (*header).magic = told.magic;
            (*header).version = told.version;
            (*header).size = told.size;
            (*header).backend = told.backend;
            (*header).clockid = told.clockid;
            (*header).cycle_ns = told.cycle_ns;
            (*header).nr_offsets = told.nr_offsets;
            (*header).offsets_at = told.offsets_at;
            (*header).capacity = told.capacity;
            (*header).records_at = told.records_at;
            let table = header.cast::<u8>().add(offsets_at).cast::<u64>();
            for (index, offset) in spec.offsets.iter().enumerate() {
                table.add(index).write(offset.as_nanos() as u64);
            }
        }
        Ok(block)
    }

    fn map(file: File, size: usize, told: Told) -> io::Result<Block> {
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
            Some(header) if at != libc::MAP_FAILED => Ok(Block { file, header, size, told, taken: 0 }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the file of the block, which the process inherits.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the header, which lives as long as the block. Read only its atomic fields: the process may write any
    /// value there.
    pub fn header(&self) -> &BlockHeader {
        // SAFETY: mapped and initialised; the fields that change are atomic.
        unsafe { self.header.as_ref() }
    }

    /// Returns whether the process left the constant fields unchanged. If it did not, no value in the block is valid.
    pub fn is_intact(&self) -> bool {
        let header = self.header.as_ptr();
        // SAFETY: mapped; each field is a plain number, and any value of it is valid.
        let now = unsafe {
            Told {
                magic: (&raw const (*header).magic).read_volatile(),
                version: (&raw const (*header).version).read_volatile(),
                size: (&raw const (*header).size).read_volatile(),
                backend: (&raw const (*header).backend).read_volatile(),
                clockid: (&raw const (*header).clockid).read_volatile(),
                cycle_ns: (&raw const (*header).cycle_ns).read_volatile(),
                nr_offsets: (&raw const (*header).nr_offsets).read_volatile(),
                offsets_at: (&raw const (*header).offsets_at).read_volatile(),
                capacity: (&raw const (*header).capacity).read_volatile(),
                records_at: (&raw const (*header).records_at).read_volatile(),
            }
        };
        now == self.told && self.started().checked_sub(self.taken).is_some_and(|kept| kept <= self.told.capacity.into())
    }

    /// Returns the stage of the process: `abi::PHASE_*`.
    pub fn phase(&self) -> u32 {
        self.header().phase.load(Ordering::Acquire)
    }

    /// Returns the thread that joined, as the process reports it.
    /// [`Child::thread`](crate::process::child::Child::thread) checks that the process has this thread.
    pub fn tid(&self) -> sys::Tid {
        self.header().tid.load(Ordering::Relaxed) as sys::Tid
    }

    /// Returns whether the process completed a job.
    pub fn has_completed(&self) -> bool {
        self.header().completed.load(Ordering::Relaxed) != 0
    }

    /// Wakes a process that is ready. It falls asleep again on the CPUs where it may run by then.
    pub fn nudge(&self) {
        sys::futex_wake(&self.header().run);
    }

    /// Returns whether there was no room for more records.
    pub fn is_full(&self) -> bool {
        self.is_intact() && self.header().flags.load(Ordering::Relaxed) & abi::FLAG_FULL != 0
    }

    /// Publishes the epoch: the run starts.
    pub fn publish(&self, epoch: Instant) {
        self.header().epoch_ns.store(epoch.as_nanos() as u64, Ordering::Relaxed);
        self.set_run(abi::RUN_RUNNING);
    }

    /// Reports the end of the run to the process.
    pub fn stop(&self) {
        self.set_run(abi::RUN_STOPPING);
        sys::futex_wake(&self.header().released);
    }

    fn set_run(&self, run: u32) {
        self.header().run.store(run, Ordering::Release);
        sys::futex_wake(&self.header().run);
    }

    /// Returns the number of records that the process has started.
    fn started(&self) -> u64 {
        self.header().count.load(Ordering::Acquire)
    }

    /// Returns the records that are not taken. The record of a running job has no end yet. Returns no record if the
    /// block is not [intact](Block::is_intact).
    pub fn records(&self) -> Vec<Record> {
        if !self.is_intact() {
            return Vec::new();
        }
        // Read once: a process could change it between two readings.
        let kept = self.started().wrapping_sub(self.taken).min(self.told.capacity.into());
        let place = |number: u64| (number % u64::from(self.told.capacity)) as usize;
        // SAFETY: places are below the capacity, for which the mapping has room; a record is plain numbers.
        unsafe {
            let first = self.header.as_ptr().cast::<u8>().add(self.told.records_at as usize).cast::<Record>();
            (self.taken..self.taken + kept).map(|number| first.add(place(number)).read_volatile()).collect()
        }
    }

    /// Takes the records, and frees their places for more. A record without an end is returned and stays, because its
    /// job may still run: a later call returns it again.
    pub fn take(&mut self) -> Vec<Record> {
        let records = self.records();
        let running = records.last().is_some_and(|record| record.end_ns == 0);
        self.taken += records.len() as u64 - u64::from(running);
        self.header().taken.store(self.taken, Ordering::Release);
        records
    }

    /// Returns the number of jobs that left no record, because there was no room.
    pub fn unrecorded(&self) -> u64 {
        self.header().unrecorded.load(Ordering::Relaxed)
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
    use std::mem::offset_of;

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

    /// Writes the record of a job as a process does.
    fn write(block: &Block, number: u64, end_ns: u64) {
        let record = Record { job: number, nominal_ns: 1, start_ns: 2, end_ns };
        let place = block.told.records_at as usize + (number % 4) as usize * size_of::<Record>();
        // SAFETY: the place of a record in a block with four of them.
        unsafe { block.header.as_ptr().cast::<u8>().add(place).cast::<Record>().write(record) };
        block.header().count.store(number + 1, Ordering::Release);
    }

    #[test]
    fn taken_records_make_room_and_running_jobs_stay() {
        let offsets = [Duration::ZERO];
        let spec = BlockSpec { backend: 3, cycle: Duration::from_millis(1), offsets: &offsets, capacity: 4 };
        let mut block = Block::new(&spec).unwrap();
        let numbers = |records: Vec<Record>| records.iter().map(|record| record.job).collect::<Vec<_>>();
        (0..3).for_each(|number| write(&block, number, u64::from(number < 2)));
        assert_eq!(numbers(block.take()), [0, 1, 2]);
        assert_eq!(block.header().taken.load(Ordering::Relaxed), 2, "job 2 may still run");
        (2..6).for_each(|number| write(&block, number, 9));
        assert_eq!(numbers(block.records()), [2, 3, 4, 5]);
        assert_eq!(numbers(block.take()), [2, 3, 4, 5]);
        assert!(block.take().is_empty() && block.is_intact());
        // More than fit, and fewer than were taken: neither is possible.
        for count in [11, 5] {
            block.header().count.store(count, Ordering::Relaxed);
            assert!(!block.is_intact() && block.take().is_empty(), "{count}");
        }
    }

    #[test]
    fn the_lateness_is_read_from_outside() {
        let spec = BlockSpec { backend: 3, cycle: Duration::from_millis(1), offsets: &[Duration::ZERO], capacity: 0 };
        let block = Block::new(&spec).unwrap();
        let read = || lateness_of(std::process::id(), block.file().as_raw_fd());
        assert_eq!(read(), None, "no job has told one");
        block.header().lateness_ns.store(250, Ordering::Relaxed);
        block.header().worst_ns.store(900, Ordering::Relaxed);
        let ns = Duration::from_nanos;
        assert_eq!(read(), Some(Lateness { latest: ns(250), worst: ns(900) }));
        let other = File::open("/proc/self/exe").unwrap();
        assert_eq!(lateness_of(std::process::id(), other.as_raw_fd()), None, "another file");
        assert_eq!(lateness_of(std::process::id(), -1), None);
    }

    #[test]
    fn what_a_process_writes_over_is_not_believed() {
        let spec = BlockSpec { backend: 3, cycle: Duration::from_millis(1), offsets: &[Duration::ZERO], capacity: 7 };
        for (from, to, flags) in
            [(0, size_of::<BlockHeader>(), u32::MAX), (36, 40, 0), (offset_of!(BlockHeader, count), 0, 0)]
        {
            let block = Block::new(&spec).unwrap();
            block.header().count.store(3, Ordering::Relaxed);
            assert!(block.is_intact() && block.records().len() == 3);
            let to = if to == 0 { block.size } else { to };
            // SAFETY: within the mapping, which no other process has.
            unsafe { block.header.as_ptr().cast::<u8>().add(from).write_bytes(0xff, to - from) };
            assert_eq!(block.header().flags.load(Ordering::Relaxed), flags);
            assert!(!block.is_intact() && block.records().is_empty() && !block.is_full());
            assert!(block.file().set_len(0).is_err());
        }
    }
}
