//! What the hidden verbs of benches have in common: processes, and the memory that they share.

use std::fs;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use macrotick_uapi::{Device, Entity, Install, Sized32, Window};
use serde::de::DeserializeOwned;
use serde::Serialize;

/// The main function of a verb, which gets the words behind it. What it fails with goes to standard error.
pub fn main(run: impl FnOnce(&[&str]) -> Result<(), String>) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Forks a process for one thing; returns its id. What it fails with goes to standard error.
pub fn fork(run: impl FnOnce() -> Result<(), String>) -> Result<i32, String> {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(last_error("fork")),
        0 => {
            let result = run();
            if let Err(reason) = &result {
                eprintln!("{reason}");
            }
            // SAFETY: ends the child without the parent's clean-up.
            unsafe { libc::_exit(i32::from(result.is_err())) }
        }
        child => Ok(child),
    }
}

/// Begins one of many threads, with a small stack. Its failure ends the process: that of an attack without part of it would
/// tell too little.
pub fn spawn(run: impl FnOnce() -> Result<(), String> + Send + 'static) -> Result<(), String> {
    const STACK: usize = 32 << 10;
    let run = || {
        if let Err(reason) = run() {
            eprintln!("{reason}");
            std::process::exit(1);
        }
    };
    thread::Builder::new().stack_size(STACK).spawn(run).map(drop).map_err(|error| format!("a thread: {error}"))
}

/// Has all pages that are mapped, shared memory included.
pub fn lock_memory() -> Result<(), String> {
    // SAFETY: passes a number.
    match unsafe { libc::mlockall(libc::MCL_CURRENT) } {
        0 => Ok(()),
        _ => Err(last_error("mlockall")),
    }
}

/// Never sleeps. Without the instruction that tells the processor so: an emulator leaves its fast path for each one.
pub fn spin() -> ! {
    loop {
        std::hint::black_box(());
    }
}

/// Installs a table on CLOCK_MONOTONIC.
pub fn install(
    device: &Device,
    entities: &[Entity],
    windows: &[Window],
    cycle_ns: u64,
    lead_ns: u64,
) -> Result<(), String> {
    let mut request = Install {
        clockid: libc::CLOCK_MONOTONIC as u32,
        nr_entities: entities.len() as u32,
        nr_windows: windows.len() as u32,
        cycle_ns,
        entities: entities.as_ptr() as u64,
        windows: windows.as_ptr() as u64,
        lead_ns,
        ..Default::default()
    }
    .sized();
    device.call(&mut request).map_err(|errno| format!("cannot install: errno {errno}, error {}", request.error))
}

/// Ends a child that was not reaped.
pub fn kill(child: i32) {
    // SAFETY: passes two numbers.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// Ends a child, and reaps it.
pub fn end(child: i32) -> Result<(), String> {
    kill(child);
    // SAFETY: no status is asked for.
    match unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } {
        -1 => Err(last_error("waitpid")),
        _ => Ok(()),
    }
}

/// Waits for a child that has to succeed.
pub fn wait(child: i32) -> Result<(), String> {
    let mut status = 0;
    // SAFETY: writes one number.
    match unsafe { libc::waitpid(child, &mut status, 0) } {
        -1 => Err(last_error("waitpid")),
        _ if status == 0 => Ok(()),
        _ => Err(format!("process {child} ended with status {status:#x}")),
    }
}

/// The last error of the system, and what it is of.
pub fn last_error(what: &str) -> String {
    format!("{what}: {}", std::io::Error::last_os_error())
}

/// Memory that this process and those it forks have in common; it is never given back.
///
/// # Safety
///
/// Zeroes are a valid `T`, and sharing it is sound, as with atomic words.
pub unsafe fn share<T>() -> Result<&'static T, String> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh mapping of zeroes, which the caller says is a valid value.
    unsafe {
        match libc::mmap(std::ptr::null_mut(), size_of::<T>(), protection, flags, -1, 0) {
            libc::MAP_FAILED => Err(last_error("mmap")),
            memory => Ok(&*memory.cast::<T>()),
        }
    }
}

/// Shut when it is zero, and then open for good. Processes wait at it.
#[repr(transparent)]
pub struct Gate(AtomicU32);

impl Gate {
    /// Lets everybody through.
    pub fn open(&self) {
        self.0.store(1, Ordering::SeqCst);
        // SAFETY: wakes whoever waits for the word.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Waits until it is open.
    pub fn wait(&self) {
        while self.0.load(Ordering::SeqCst) == 0 {
            // SAFETY: waits while the word is zero, without a limit.
            unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAIT, 0, std::ptr::null::<u8>()) };
        }
    }
}

/// `struct sched_attr`, as first published.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Of SCHED_DEADLINE, in nanoseconds: runtime, deadline, period.
    times: [u64; 3],
}

/// Gives the caller a policy, and a priority where that has any, else 0.
pub fn set_policy(policy: u32, priority: u32) -> Result<(), String> {
    set_policy_of(0, policy, priority)
}

/// The same for any thread.
pub fn set_policy_of(thread: i32, policy: u32, priority: u32) -> Result<(), String> {
    set_attr(thread, SchedAttr { policy, priority, ..Default::default() })
}

/// Gives the caller a reservation of SCHED_DEADLINE, with the deadline at the end of the period.
pub fn set_deadline(runtime_ns: u64, period_ns: u64) -> Result<(), String> {
    let policy = libc::SCHED_DEADLINE as u32;
    set_attr(0, SchedAttr { policy, times: [runtime_ns, period_ns, period_ns], ..Default::default() })
}

fn set_attr(thread: i32, attr: SchedAttr) -> Result<(), String> {
    let attr = SchedAttr { size: size_of::<SchedAttr>() as u32, ..attr };
    // SAFETY: reads one structure.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &attr, 0) } {
        0 => Ok(()),
        _ => Err(last_error("sched_setattr")),
    }
}

/// Processor time of the caller.
pub fn processor_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one structure.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A number among a verb's words.
pub fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

/// What the host has for a guest, of a file.
pub fn read<T: DeserializeOwned>(path: &str) -> Result<T, String> {
    let text = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("{path}: {error}"))
}

/// What a guest has for the host, on a line.
pub fn print(what: &impl Serialize) -> Result<(), String> {
    println!("{}", serde_json::to_string(what).map_err(|error| error.to_string())?);
    Ok(())
}
