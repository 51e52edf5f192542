//! System calls, with the errno as the error. Times are nanoseconds of `CLOCK_MONOTONIC`.

use std::mem::size_of;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the result of a call that returns -1 for an error.
pub fn done<T: Into<i64>>(result: T) -> Result<i64, i32> {
    let result = result.into();
    if result < 0 {
        Err(errno())
    } else {
        Ok(result)
    }
}

/// `CAP_SYS_NICE` of `include/uapi/linux/capability.h`.
pub const CAP_SYS_NICE: u32 = 23;

/// Takes a capability below 32 out of the caller's effective and permitted sets, for good.
pub fn drop_capability(capability: u32) -> Result<(), i32> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    // Effective, permitted and inheritable; then the same for capabilities from 32 on.
    let mut sets = [0u32; 6];
    // SAFETY: two words of header, six words of sets.
    unsafe { done(libc::syscall(libc::SYS_capget, &header, &mut sets))? };
    for set in &mut sets[..2] {
        *set &= !(1 << capability);
    }
    // SAFETY: as above.
    unsafe { done(libc::syscall(libc::SYS_capset, &header, &sets)).map(drop) }
}

/// Returns the last error.
pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Returns the current time of a clock, in nanoseconds.
pub fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the current time of `CLOCK_MONOTONIC`.
pub fn now_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Returns the current time of `CLOCK_REALTIME`.
pub fn real_ns() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

/// Returns the current time of `CLOCK_TAI`.
pub fn tai_ns() -> u64 {
    read_clock(libc::CLOCK_TAI)
}

/// Returns how far `CLOCK_TAI` is ahead of `CLOCK_MONOTONIC`, with the precision of a reading.
pub fn tai_offset_ns() -> i64 {
    let readings = (0..8).map(|_| (now_ns(), tai_ns(), now_ns()));
    let (before, tai, after) = readings.min_by_key(|(before, _, after)| after - before).unwrap_or_default();
    tai as i64 - ((before + after) / 2) as i64
}

/// Changes the rate of `CLOCK_REALTIME`, and with it `CLOCK_TAI` and `CLOCK_MONOTONIC`.
pub fn adjust_clock(change: libc::timex) -> Result<(), i32> {
    let mut change = change;
    // SAFETY: reads and writes one structure.
    done(unsafe { libc::clock_adjtime(libc::CLOCK_REALTIME, &mut change) }).map(drop)
}

/// Returns an empty change of the clock.
pub fn no_change() -> libc::timex {
    // SAFETY: plain numbers.
    unsafe { std::mem::zeroed() }
}

/// Steps `CLOCK_REALTIME` and `CLOCK_TAI` forward or back.
pub fn step_clock(by_ns: i64) -> Result<(), i32> {
    let mut change = no_change();
    change.modes = libc::ADJ_SETOFFSET | libc::ADJ_NANO;
    change.time.tv_sec = by_ns.div_euclid(1_000_000_000) as _;
    change.time.tv_usec = by_ns.rem_euclid(1_000_000_000) as _;
    adjust_clock(change)
}

/// Sets the seconds by which `CLOCK_TAI` is ahead of `CLOCK_REALTIME`.
pub fn set_tai(seconds: i64) -> Result<(), i32> {
    let mut change = no_change();
    change.modes = libc::ADJ_TAI;
    change.constant = seconds as _;
    adjust_clock(change)
}

/// Returns the CPU time of the calling thread.
pub fn cpu_time_ns() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time of a process.
pub fn cpu_time_of(pid: i32) -> Result<u64, i32> {
    let mut clock = 0;
    // SAFETY: writes a number.
    match unsafe { libc::clock_getcpuclockid(pid, &mut clock) } {
        0 => Ok(read_clock(clock)),
        errno => Err(errno),
    }
}

/// Converts an instant for the C library.
pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Sleeps until an instant of a clock. Signals do not end the sleep.
pub fn sleep_until_on(clock: libc::clockid_t, at_ns: u64) {
    let until = timespec(at_ns);
    // SAFETY: reads one timespec.
    while unsafe { libc::clock_nanosleep(clock, libc::TIMER_ABSTIME, &until, std::ptr::null_mut()) } == libc::EINTR {}
}

/// Sleeps until an instant. Signals do not end the sleep.
pub fn sleep_until(at_ns: u64) {
    sleep_until_on(libc::CLOCK_MONOTONIC, at_ns);
}

/// Waits for no events, until a time-out.
pub fn poll_nothing(ns: u64) {
    // SAFETY: reads one timespec; there are no descriptors.
    unsafe { libc::ppoll(std::ptr::null_mut(), 0, &timespec(ns), std::ptr::null()) };
}

/// Sets how late the sleeps of the calling thread may end. It has no effect on real-time threads.
pub fn set_timer_slack(ns: u64) {
    // SAFETY: takes numbers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns) };
}

/// Sleeps for a time.
pub fn sleep(ns: u64) {
    sleep_until(now_ns() + ns);
}

/// Executes the instruction at which QEMU ends a CPU's turn: the other CPUs need it.
pub fn relax() {
    // For arm64, the standard library has a barrier instead, which does not end a turn.
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint that changes nothing.
    unsafe {
        std::arch::asm!("yield", options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    std::hint::spin_loop();
}

/// Uses a moment. With one CPU, [`relax`] would only cost wall time.
fn busy() {
    if are_several_cpus() {
        relax();
    } else {
        std::hint::black_box(());
    }
}

/// Whether the machine started with several CPUs. The first call reads a file, which takes the debug kernel
/// milliseconds: a process calls this before it forks processes that are measured.
pub fn are_several_cpus() -> bool {
    static SEVERAL: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *SEVERAL.get_or_init(|| nr_cpus() > 1)
}

/// Uses CPU time.
pub fn spin(ns: u64) {
    let end = cpu_time_ns() + ns;
    while cpu_time_ns() < end {
        (0..50).for_each(|_| busy());
    }
}

/// Takes the page faults of all current mappings, and lets [`spin`] run once to warm up. Later mappings are not
/// affected. The function does not lock the memory: the lab does not swap, and locking takes several times as long.
pub fn prefault() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (range, rest) in maps.lines().filter_map(|line| line.split_once(' ')) {
        let bound = |text: &str| usize::from_str_radix(text, 16).unwrap_or(0);
        let (from, to) = range.split_once('-').map_or((0, 0), |(from, to)| (bound(from), bound(to)));
        if rest.starts_with("rw") {
            // SAFETY: changes no contents.
            unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_POPULATE_WRITE) };
        } else if rest.starts_with('r') && rest.contains('/') {
            // A page fault also maps the neighbouring pages of the file. MADV_POPULATE_READ would look them up one by
            // one.
            // SAFETY: this process may read them, and the program's file has them.
            (from..to).step_by(4096).for_each(|page| _ = unsafe { (page as *const u8).read_volatile() });
        }
    }
    spin(1000);
}

/// Computes until an instant.
pub fn spin_until(at_ns: u64) {
    while now_ns() < at_ns {
        busy();
    }
}

/// Computes endlessly.
pub fn hog() -> ! {
    loop {
        (0..1000).for_each(|_| busy());
    }
}

/// Checks repeatedly until something holds or the limit is over. Between checks it sleeps twice as long as a check
/// took, and at least a unit. This leaves time for the threads under test, which may have lower priorities.
pub fn eventually(limit_ns: u64, mut holds: impl FnMut() -> bool) -> bool {
    let (end, least) = (now_ns() + limit_ns, crate::scenarios::unit_ns());
    loop {
        let began = now_ns();
        if holds() {
            return true;
        }
        let ended = now_ns();
        if ended > end {
            return false;
        }
        sleep((2 * (ended - began)).max(least));
    }
}

/// Returns the calling thread's id.
pub fn gettid() -> i32 {
    // SAFETY: takes nothing.
    unsafe { libc::gettid() }
}

/// The first published version of `struct sched_attr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SchedAttr {
    pub size: u32,
    pub policy: u32,
    pub flags: u64,
    pub nice: i32,
    pub priority: u32,
    pub runtime_ns: u64,
    pub deadline_ns: u64,
    pub period_ns: u64,
}

/// The flag that makes children start under `SCHED_OTHER`.
pub const RESET_ON_FORK: u64 = 1;

impl SchedAttr {
    /// Returns attributes with only a policy.
    pub fn policy(policy: u32) -> SchedAttr {
        SchedAttr { size: size_of::<SchedAttr>() as u32, policy, ..Default::default() }
    }

    /// Returns `SCHED_OTHER`.
    pub fn other() -> SchedAttr {
        SchedAttr::policy(libc::SCHED_OTHER as u32)
    }

    /// Returns `SCHED_FIFO` with a priority.
    pub fn fifo(priority: u32) -> SchedAttr {
        SchedAttr { priority, ..SchedAttr::policy(libc::SCHED_FIFO as u32) }
    }

    /// Returns `SCHED_DEADLINE`, with the deadline at the period's end.
    pub fn deadline(runtime_ns: u64, period_ns: u64) -> SchedAttr {
        SchedAttr { runtime_ns, deadline_ns: period_ns, period_ns, ..SchedAttr::policy(libc::SCHED_DEADLINE as u32) }
    }
}

/// Sets the attributes of a thread; 0 is the caller.
pub fn set_sched(tid: i32, attr: SchedAttr) -> Result<(), i32> {
    // SAFETY: reads one structure.
    done(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &attr, 0) }).map(drop)
}

/// Sets another priority under the same policy.
pub fn set_priority(tid: i32, priority: i32) -> Result<(), i32> {
    // SAFETY: reads one structure.
    done(i64::from(unsafe { libc::sched_setparam(tid, &libc::sched_param { sched_priority: priority }) })).map(drop)
}

/// Returns the attributes of a thread; 0 is the caller.
pub fn sched(tid: i32) -> Result<SchedAttr, i32> {
    let mut attr = SchedAttr::default();
    // SAFETY: writes at most the size that is passed.
    done(unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &mut attr, size_of::<SchedAttr>(), 0) })?;
    Ok(attr)
}

/// Lets a thread run on these CPUs only; 0 is the caller.
pub fn set_affinity(tid: i32, cpus: &[u32]) -> Result<(), i32> {
    // SAFETY: the set is plain bits.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu as usize, &mut set));
        done(libc::sched_setaffinity(tid, size_of::<libc::cpu_set_t>(), &set)).map(drop)
    }
}

/// Moves the caller to one CPU, under SCHED_FIFO.
pub fn under_fifo_on(cpu: u32, priority: u32) -> Result<(), i32> {
    set_affinity(0, &[cpu])?;
    set_sched(0, SchedAttr::fifo(priority))
}

/// Returns the CPUs of a thread; 0 is the caller.
pub fn affinity(tid: i32) -> Result<Vec<u32>, i32> {
    // SAFETY: the set is plain bits.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        done(libc::sched_getaffinity(tid, size_of::<libc::cpu_set_t>(), &mut set))?;
        Ok((0..64).filter(|&cpu| libc::CPU_ISSET(cpu as usize, &set)).collect())
    }
}

/// The flag of [`pidfd_open`] for a thread that need not be the first of its process.
pub const PIDFD_THREAD: i32 = libc::O_EXCL;

/// Opens a pidfd, which is never closed: the processes of scenarios live only for a short time.
pub fn pidfd_open(tid: i32, flags: i32) -> Result<i32, i32> {
    // SAFETY: takes numbers.
    done(unsafe { libc::syscall(libc::SYS_pidfd_open, tid, flags) }).map(|fd| fd as i32)
}

/// Sets the name of the calling thread.
pub fn set_name(name: &str) {
    let name = std::ffi::CString::new(name).unwrap_or_default();
    // SAFETY: a terminated name.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Returns the dynamic priority in `/proc/TID/stat`: 20 + nice, or negative for real-time threads (-1 - priority; -100
/// in the class).
pub fn shown_priority(tid: i32) -> Result<i64, String> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/stat")).map_err(|error| error.to_string())?;
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields.split_whitespace().nth(15).and_then(|field| field.parse().ok()).ok_or_else(|| format!("odd stat: {text}"))
}

/// Whether the kernel's version names PREEMPT_RT.
pub fn is_preempt_rt() -> bool {
    std::fs::read_to_string("/proc/version").is_ok_and(|version| version.contains("PREEMPT_RT"))
}

/// Returns the caller's CPU.
pub fn this_cpu() -> u32 {
    // SAFETY: takes nothing.
    unsafe { libc::sched_getcpu() as u32 }
}

/// Returns the number of online CPUs.
pub fn nr_cpus() -> u32 {
    // SAFETY: takes a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) as u32 }
}

/// Takes a CPU offline, or brings it online.
pub fn set_online(cpu: u32, online: bool) -> Result<(), i32> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    let written = std::fs::write(path, if online { "1" } else { "0" });
    written.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
}

/// Switches TimerShield on or off.
pub fn set_timershield(on: bool) -> Result<(), i32> {
    let written = std::fs::write("/proc/sys/kernel/timershield", if on { "1" } else { "0" });
    written.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
}

/// A lock with priority inheritance in shared memory: `FUTEX_LOCK_PI` with a fast path.
#[derive(Clone, Copy)]
pub struct PiLock(pub &'static AtomicU32);

impl PiLock {
    /// Takes the lock.
    pub fn lock(&self) -> Result<(), i32> {
        let tid = gettid() as u32;
        while self.0.compare_exchange(0, tid, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            match self.futex(libc::FUTEX_LOCK_PI) {
                Err(libc::EAGAIN | libc::EINTR) => continue,
                result => return result,
            }
        }
        Ok(())
    }

    /// Releases the lock.
    pub fn unlock(&self) -> Result<(), i32> {
        let tid = gettid() as u32;
        match self.0.compare_exchange(tid, 0, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Ok(()),
            Err(_) => self.futex(libc::FUTEX_UNLOCK_PI),
        }
    }

    /// Releases the lock on behalf of an owner that has ended, and that took it by the fast path, unknown to the
    /// kernel.
    pub fn forget(&self, owner: i32) {
        let _ = self.0.compare_exchange(owner as u32, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Whether a thread sleeps in the kernel for the lock.
    pub fn is_contended(&self) -> bool {
        self.0.load(Ordering::SeqCst) & 0x8000_0000 != 0
    }

    fn futex(&self, operation: i32) -> Result<(), i32> {
        // SAFETY: the word is never unmapped; no time limit.
        done(unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, 0, 0, 0, 0) }).map(drop)
    }
}
