//! The memory block that a task in C shares with the runner (`include/macrotick.h`).
//!
//! The C header is the source. The test below compares sizes and offsets with those of the C compiler.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

pub const BLOCK_MAGIC: u32 = 0x4b43_544d;
pub const BLOCK_VERSION: u32 = 1;
pub const ENV_SHM: &str = "MACROTICK_SHM";
pub const ENV_TASK: &str = "MACROTICK_TASK";

pub const BACKEND_KERNEL: u32 = 1;
pub const BACKEND_USER: u32 = 2;
pub const BACKEND_SLEEP: u32 = 3;

pub const RUN_RUNNING: u32 = 1;
pub const RUN_STOPPING: u32 = 2;

pub const PHASE_READY: u32 = 2;
pub const PHASE_WAITING: u32 = 3;
pub const PHASE_LEFT: u32 = 4;

pub const FLAG_FULL: u32 = 1;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct JobInfo {
    pub number: u64,
    pub nominal_ns: u64,
    pub start_ns: u64,
    pub lost: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub job: u64,
    pub nominal_ns: u64,
    pub start_ns: u64,
    pub end_ns: u64,
}

#[repr(C)]
pub struct BlockHeader {
    pub magic: u32,
    pub version: u32,
    pub size: u64,
    pub backend: u32,
    pub clockid: u32,
    pub cycle_ns: u64,
    pub nr_offsets: u32,
    pub offsets_at: u32,
    pub capacity: u32,
    pub records_at: u32,
    pub epoch_ns: AtomicU64,
    pub run: AtomicU32,
    pub released: AtomicU32,
    pub phase: AtomicU32,
    pub tid: AtomicU32,
    pub flags: AtomicU32,
    pub completed: AtomicU32,
    pub count: AtomicU64,
    pub taken: AtomicU64,
    pub unrecorded: AtomicU64,
    pub lateness_ns: AtomicI64,
    pub worst_ns: AtomicI64,
}

extern "C" {
    pub fn macrotick_node_join() -> i32;
    pub fn macrotick_node_ready() -> i32;
    pub fn macrotick_node_wait(job: *mut JobInfo) -> i32;
    pub fn macrotick_node_leave() -> i32;
    pub fn macrotick_node_epoch() -> u64;
    pub fn macrotick_node_spin(rounds: u64);
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    extern "C" {
        static macrotick_node_layout_len: u32;
        static macrotick_node_layout: u32;
    }

    #[test]
    fn layouts_are_those_of_the_header() {
        // SAFETY: a constant array of that length, defined in c/node.c.
        let c = unsafe {
            std::slice::from_raw_parts(std::ptr::addr_of!(macrotick_node_layout), macrotick_node_layout_len as usize)
        };
        let sizes = |values: &[usize]| values.iter().map(|&value| value as u32).collect::<Vec<_>>();
        let ours = sizes(&[
            size_of::<JobInfo>(),
            offset_of!(JobInfo, start_ns),
            offset_of!(JobInfo, lost),
            size_of::<Record>(),
            offset_of!(Record, end_ns),
            size_of::<BlockHeader>(),
            offset_of!(BlockHeader, size),
            offset_of!(BlockHeader, backend),
            offset_of!(BlockHeader, cycle_ns),
            offset_of!(BlockHeader, nr_offsets),
            offset_of!(BlockHeader, capacity),
            offset_of!(BlockHeader, records_at),
            offset_of!(BlockHeader, epoch_ns),
            offset_of!(BlockHeader, run),
            offset_of!(BlockHeader, released),
            offset_of!(BlockHeader, phase),
            offset_of!(BlockHeader, tid),
            offset_of!(BlockHeader, flags),
            offset_of!(BlockHeader, completed),
            offset_of!(BlockHeader, count),
            offset_of!(BlockHeader, taken),
            offset_of!(BlockHeader, unrecorded),
            offset_of!(BlockHeader, lateness_ns),
            offset_of!(BlockHeader, worst_ns),
        ]);
        assert_eq!(ours, c);
    }
}
