//! What is shared with C: the memory block of `include/macrotick.h` and the kernel's `linux/macrotick.h`.
//!
//! The headers are the source; the test below compares every size and offset with what the C compiler says.

use std::sync::atomic::{AtomicU32, AtomicU64};

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
}

extern "C" {
    pub fn macrotick_node_join() -> i32;
    pub fn macrotick_node_ready() -> i32;
    pub fn macrotick_node_wait(job: *mut JobInfo) -> i32;
    pub fn macrotick_node_leave() -> i32;
    pub fn macrotick_node_epoch() -> u64;
    pub fn macrotick_node_spin(rounds: u64);
}

pub const DEVICE: &str = "/dev/macrotick";
pub const NAME_LEN: usize = 32;
pub const WINDOW_ACTIVATE: u32 = 1 << 0;
pub const WINDOW_DEADLINE: u32 = 1 << 1;

const fn ioc(nr: u32) -> u32 {
    (3 << 30) | (0xBE << 8) | nr
}
pub const IOC_INSTALL: u32 = ioc(0x00);
pub const IOC_START: u32 = ioc(0x01);
pub const IOC_STOP: u32 = ioc(0x02);
pub const IOC_REMOVE: u32 = ioc(0x03);
pub const IOC_STATS: u32 = ioc(0x05);
pub const IOC_BIND: u32 = ioc(0x10);

#[repr(C)]
pub struct Entity {
    pub name: [u8; NAME_LEN],
    pub flags: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub offset_ns: u64,
    pub length_ns: u64,
    pub cpu: u32,
    pub entity: u32,
    pub flags: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Default)]
pub struct Install {
    pub size: u32,
    pub flags: u32,
    pub clockid: u32,
    pub nr_entities: u32,
    pub nr_windows: u32,
    pub reserved: u32,
    pub cycle_ns: u64,
    pub entities: u64,
    pub windows: u64,
    pub error: u32,
    pub error_index: u32,
    pub error_other: u32,
    pub error_reserved: u32,
}

#[repr(C)]
#[derive(Default)]
pub struct Start {
    pub size: u32,
    pub flags: u32,
    pub epoch_ns: u64,
}

#[repr(C)]
#[derive(Default)]
pub struct EntityStats {
    pub size: u32,
    pub entity: u32,
    pub name: [u8; NAME_LEN],
    pub cpu: u32,
    pub nr_threads: u32,
    pub activations: u64,
    pub completions: u64,
    pub misses: u64,
    pub lost: u64,
    pub skipped: u64,
    pub preemptions: u64,
    pub runtime_ns: u64,
}

#[repr(C)]
#[derive(Default)]
pub struct Bind {
    pub size: u32,
    pub flags: u32,
    pub pidfd: i32,
    pub reserved: u32,
    pub name: [u8; NAME_LEN],
}

/// `name` as the kernel wants it. Longer names were refused when the plan was decoded.
pub fn kernel_name(name: &str) -> [u8; NAME_LEN] {
    let mut bytes = [0; NAME_LEN];
    let length = name.len().min(NAME_LEN - 1);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
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
    fn layouts_are_those_of_the_headers() {
        // SAFETY: a constant array of that length, defined in c/node.c.
        let c = unsafe {
            std::slice::from_raw_parts(std::ptr::addr_of!(macrotick_node_layout), macrotick_node_layout_len as usize)
        };
        let sizes = |values: &[usize]| values.iter().map(|&value| value as u32).collect::<Vec<_>>();
        let mut ours = sizes(&[
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
            size_of::<Entity>(),
            size_of::<Window>(),
            offset_of!(Window, cpu),
            offset_of!(Window, flags),
            size_of::<Install>(),
            offset_of!(Install, cycle_ns),
            offset_of!(Install, windows),
            offset_of!(Install, error),
            offset_of!(Install, error_other),
            size_of::<Start>(),
            offset_of!(Start, epoch_ns),
            size_of::<EntityStats>(),
            offset_of!(EntityStats, nr_threads),
            offset_of!(EntityStats, activations),
            offset_of!(EntityStats, runtime_ns),
            size_of::<Bind>(),
            offset_of!(Bind, pidfd),
            offset_of!(Bind, name),
        ]);
        ours.extend([IOC_INSTALL, IOC_START, IOC_STOP, IOC_REMOVE, IOC_STATS, IOC_BIND]);
        ours.extend([crate::kernel::Refusal::INSTALLED, NAME_LEN as u32]);
        assert_eq!(ours, c);
    }
}
