//! The load of the paper: `stress -c 2 -i 2 -m 2 --vm-bytes 128M -d 2 --hdd-bytes 15M`, under SCHED_OTHER.

use std::fs::{self, File};
use std::io::Write;

use crate::kit::{disk, process};

/// Processes of each kind.
const EACH: usize = 2;
const MEMORY: usize = 128 << 20;
const PAGE: usize = 4096;
/// The disk of the lab has 16 MiB: two files of 15 MB do not fit.
const FILE: usize = 4 << 20;
const BLOCK: usize = 1 << 20;

/// Starts the processes.
pub fn begin() -> Result<Vec<i32>, String> {
    disk::mount()?;
    let mut children = Vec::new();
    for number in 0..EACH {
        children.push(process::fork(compute)?);
        children.push(process::fork(synchronise)?);
        children.push(process::fork(touch)?);
        children.push(process::fork(move || write(number))?);
    }
    Ok(children)
}

/// Takes roots.
fn compute() -> Result<(), String> {
    let mut value = 2.0f64;
    loop {
        value = std::hint::black_box(value).sqrt() + 1.0;
    }
}

/// Writes all that is dirty to its disk.
fn synchronise() -> Result<(), String> {
    loop {
        // SAFETY: takes nothing.
        unsafe { libc::sync() };
    }
}

/// Allocates memory, writes to each page, and frees it.
fn touch() -> Result<(), String> {
    loop {
        let mut memory: Vec<u8> = Vec::with_capacity(MEMORY);
        for at in (0..MEMORY).step_by(PAGE) {
            // SAFETY: within the allocation.
            unsafe { memory.as_mut_ptr().add(at).write_volatile(b'Z') };
        }
    }
}

/// Writes a file, and removes it.
fn write(number: usize) -> Result<(), String> {
    let path = format!("{}/stress{number}", disk::PATH);
    let failed = |error: std::io::Error| format!("{path}: {error}");
    let block = vec![b'Z'; BLOCK];
    loop {
        let mut file = File::create(&path).map_err(failed)?;
        for _ in 0..FILE / BLOCK {
            file.write_all(&block).map_err(failed)?;
        }
        drop(file);
        fs::remove_file(&path).map_err(failed)?;
    }
}
