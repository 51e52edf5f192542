//! The common parts of the hidden verbs of benches: processes, and the memory that they share.

use std::fs;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use macrotick_uapi::{Device, Entity, Install, Sized32, Window};
use serde::de::DeserializeOwned;
use serde::Serialize;

/// Runs a verb with the words behind it: its main function. Writes an error to standard error.
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

/// Forks a process that runs `run` and exits; returns its id. The process writes an error to standard error.
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

/// Starts a thread with a small stack. If it fails, the process ends, because an attack without one of its threads
/// would be too weak.
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

/// Locks all mapped pages in memory, shared memory included.
pub fn lock_memory() -> Result<(), String> {
    // SAFETY: passes a number.
    match unsafe { libc::mlockall(libc::MCL_CURRENT) } {
        0 => Ok(()),
        _ => Err(last_error("mlockall")),
    }
}

/// Computes without end. It has no pause instruction: for each one, an emulator would leave its fast path.
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

/// Kills a child that was not reaped.
pub fn kill(child: i32) {
    // SAFETY: passes two numbers.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// Kills a child and reaps it.
pub fn end(child: i32) -> Result<(), String> {
    kill(child);
    // SAFETY: no status is asked for.
    match unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } {
        -1 => Err(last_error("waitpid")),
        _ => Ok(()),
    }
}

/// Waits for a child that must succeed.
pub fn wait(child: i32) -> Result<(), String> {
    let mut status = 0;
    // SAFETY: writes one number.
    match unsafe { libc::waitpid(child, &mut status, 0) } {
        -1 => Err(last_error("waitpid")),
        _ if status == 0 => Ok(()),
        _ => Err(format!("process {child} ended with status {status:#x}")),
    }
}

/// Returns the last error of the system, with the name of its cause.
pub fn last_error(what: &str) -> String {
    format!("{what}: {}", std::io::Error::last_os_error())
}

/// Returns memory that this process and its later children share. It is never freed.
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

/// Closed when it is zero, then open for good. Processes wait for it.
#[repr(transparent)]
pub struct Gate(AtomicU32);

impl Gate {
    /// Opens the gate, and wakes all waiting processes up.
    pub fn open(&self) {
        self.0.store(1, Ordering::SeqCst);
        // SAFETY: wakes the waiters of the word.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Waits until the gate is open.
    pub fn wait(&self) {
        while self.0.load(Ordering::SeqCst) == 0 {
            // SAFETY: waits while the word is zero, without a limit.
            unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAIT, 0, std::ptr::null::<u8>()) };
        }
    }
}

/// `struct sched_attr`, in its first version.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Times of SCHED_DEADLINE, in nanoseconds: runtime, deadline, period.
    times: [u64; 3],
}

/// Sets the caller's policy, and its priority; 0 for a policy without one.
pub fn set_policy(policy: u32, priority: u32) -> Result<(), String> {
    set_policy_of(0, policy, priority)
}

/// Sets policy and priority of any thread.
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

/// Returns the processor time of the caller.
pub fn processor_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one structure.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Parses a number among a verb's words.
pub fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

/// Reads the host's input for a guest from a file.
pub fn read<T: DeserializeOwned>(path: &str) -> Result<T, String> {
    let text = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("{path}: {error}"))
}

/// Prints a guest's output for the host on a line.
pub fn print(what: &impl Serialize) -> Result<(), String> {
    println!("{}", serde_json::to_string(what).map_err(|error| error.to_string())?);
    Ok(())
}
