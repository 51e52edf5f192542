//! Why the kernel refuses SCHED_DEADLINE, and what helps. The kernel has one number for several reasons, so the
//! circumstances decide between them.

use std::fmt;
use std::io;

use macrotick_analysis::kernel::WHOLE;
use macrotick_host::sys::{self, DeadlineOptions, SchedAttr, Tid};
use macrotick_model::{CpuSet, Duration};

use crate::error::ReserveError;
use crate::facts::Facts;
use crate::room::Room;
use crate::{name_of, PATIENCE, PAUSE};

/// The circumstances that decide on the kernel's answer.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// Whether this process has CAP_SYS_NICE.
    pub may: bool,
    /// Whether it has it only in a user namespace, which the kernel does not accept.
    pub in_namespace: bool,
    /// The CPUs that the thread may use.
    pub affinity: CpuSet,
    /// The CPUs of its root domain.
    pub domain: CpuSet,
    /// The kernel's account.
    pub room: Room,
    /// The bandwidth of the reservation.
    pub need: i128,
    /// Its period.
    pub period: Duration,
    /// Its options.
    pub options: DeadlineOptions,
    /// The present reservations in words, the greatest first.
    pub holders: Vec<String>,
}

/// The kernel's reason.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The sum of all bandwidths would be too high.
    #[error("SCHED_DEADLINE has no room: {need} of a CPU would be promised, and {free} is free{account}. {mend}")]
    Bandwidth {
        /// The bandwidth of the reservation.
        need: Percent,
        /// The free bandwidth.
        free: Percent,
        /// How the free bandwidth comes about.
        account: String,
        /// The step that helps.
        mend: String,
    },
    /// The user may not.
    #[error(
        "SCHED_DEADLINE needs CAP_SYS_NICE: run the command as root, or let the administrator start macrotick-grant.socket. \
         RLIMIT_RTPRIO allows SCHED_FIFO, and no reservation"
    )]
    NotAllowed,
    /// The user may do so only in a user namespace.
    #[error(
        "SCHED_DEADLINE needs CAP_SYS_NICE of the host, and this process has it only in a user namespace: run the command \
         outside of it"
    )]
    Namespace,
    /// The host has no bandwidth at all.
    #[error("kernel.sched_rt_runtime_us is 0, so SCHED_DEADLINE admits no thread: set it, for example to 950000")]
    NoTime,
    /// The affinity is less than the root domain.
    #[error(
        "SCHED_DEADLINE needs the affinity of a whole root domain, here {}, and the thread may use {}: give --cpus {}, \
         or use --by group",
        .domain.words(), .affinity.words(), list(.domain)
    )]
    Affinity {
        /// The CPUs of the thread.
        affinity: CpuSet,
        /// The CPUs of the domain.
        domain: CpuSet,
    },
    /// Privilege and affinity suffice, so something else forbids it.
    #[error(
        "the kernel forbids SCHED_DEADLINE here, although CAP_SYS_NICE and the affinity suffice: look at seccomp and \
         security modules, and at cpuset partitions (cpuset.cpus.partition)"
    )]
    Forbidden,
    /// An option is unknown.
    #[error("this kernel refuses {0}: leave it out, or use a newer kernel")]
    Option(&'static str),
    /// The policy is unknown.
    #[error(
        "this kernel refuses SCHED_DEADLINE with times that are in its ranges: it may be built without the policy"
    )]
    Unknown,
    /// Another errno.
    #[error("the kernel refuses SCHED_DEADLINE: {0}")]
    Other(String),
}

/// A bandwidth in percent of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(pub i128);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 1000 + WHOLE / 2) / WHOLE;
        write!(f, "{}.{} %", tenths / 10, tenths % 10)
    }
}

/// The most reservations that a message names.
const NAMED: usize = 5;

/// Returns the kernel's reason for this errno.
pub fn explain(errno: i32, at: &Circumstances) -> Refusal {
    let covers = at.domain.as_slice().iter().all(|&cpu| at.affinity.contains(cpu));
    match errno {
        libc::EBUSY => bandwidth(at),
        libc::EPERM if !at.may => Refusal::NotAllowed,
        libc::EPERM if at.in_namespace => Refusal::Namespace,
        libc::EPERM if at.room.limits.each == Some(0) => Refusal::NoTime,
        libc::EPERM if !covers => Refusal::Affinity { affinity: at.affinity.clone(), domain: at.domain.clone() },
        libc::EPERM => Refusal::Forbidden,
        libc::EINVAL if at.options.reclaim => Refusal::Option("--reclaim (SCHED_FLAG_RECLAIM, Linux 4.13)"),
        libc::EINVAL if at.options.overrun_signal => {
            Refusal::Option("--overrun-signal (SCHED_FLAG_DL_OVERRUN, Linux 4.16)")
        }
        libc::EINVAL | libc::ENOSYS => Refusal::Unknown,
        errno => Refusal::Other(io::Error::from_raw_os_error(errno).to_string()),
    }
}

fn bandwidth(at: &Circumstances) -> Refusal {
    let room = &at.room;
    let (Some(free), Some(each)) = (room.free(), room.limits.each) else {
        return Refusal::Other("device or resource busy".into());
    };
    let mut account = format!(
        " of {} for {} (kernel.sched_rt_runtime_us allows {} per CPU",
        Percent(room.most().unwrap_or(0)),
        at.domain.words(),
        Percent(each)
    );
    if room.limits.servers > 0 {
        account += &format!(", the server of ordinary threads has {} of it", Percent(room.limits.servers));
    }
    if room.taken > 0 {
        account += ", windows and budgets come first";
    }
    account += ")";
    let mut holders = at.holders.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if at.holders.len() > NAMED {
        holders += &format!(" and {} more", at.holders.len() - NAMED);
    }
    if at.need <= free {
        let mend = "A thread that has just ended keeps its bandwidth up to the end of its period: try again".into();
        return Refusal::Bandwidth { need: Percent(at.need), free: Percent(free), account, mend };
    }
    let shorter = match room.longest(at.period) {
        Some(runtime) if runtime >= Duration::from_micros(1) => {
            format!("Use --runtime {} or less", Duration::from_micros(runtime.as_nanos() / 1000))
        }
        _ => "Use another domain".into(),
    };
    let others = if holders.is_empty() { ".".into() } else { format!(", or end one of these: {holders}.") };
    Refusal::Bandwidth { need: Percent(at.need), free: Percent(free), account, mend: shorter + &others }
}

fn list(cpus: &CpuSet) -> String {
    macrotick_host::sys::cpu_list(cpus.as_slice())
}

/// Returns the circumstances of a reservation on this host, for a thread with these CPUs.
pub fn circumstances(attr: &SchedAttr, affinity: &CpuSet, facts: &Facts) -> Circumstances {
    let mut room = facts.room();
    room.threads.sort_by_key(|thread| std::cmp::Reverse(thread.bandwidth));
    let holder = |thread: &macrotick_host::present::DeadlineThread| {
        let share = Percent(thread.bandwidth.into());
        format!("{} (thread {}, {share})", name_of(thread.thread), thread.thread)
    };
    Circumstances {
        may: may_set_deadlines(),
        in_namespace: !sys::is_in_first_user_namespace(),
        affinity: affinity.clone(),
        domain: facts.domain.clone(),
        holders: room.threads.iter().map(holder).collect(),
        room,
        need: attr.bandwidth().unwrap_or(0).into(),
        period: attr.promised().map_or(Duration::ZERO, |task| task.period),
        options: attr.options(),
    }
}

/// Puts a thread under SCHED_DEADLINE; 0 is the caller. It tries again while the refusal has no lasting reason.
pub fn reserve(thread: Tid, attr: &SchedAttr, affinity: &CpuSet, facts: &Facts) -> Result<(), ReserveError> {
    reserve_within(PATIENCE, thread, attr, affinity, facts)
}

/// The same, for at most this long.
pub fn reserve_within(
    patience: Duration,
    thread: Tid,
    attr: &SchedAttr,
    affinity: &CpuSet,
    facts: &Facts,
) -> Result<(), ReserveError> {
    let give_up = sys::now() + patience;
    loop {
        let Err(error) = sys::set_sched_attr(thread, attr) else { return Ok(()) };
        if error.raw_os_error() == Some(libc::ESRCH) {
            return Err(ReserveError::NoProcess(thread));
        }
        let refused = refused(&error, attr, affinity, facts);
        let passes = match error.raw_os_error() {
            // The bandwidth of a thread that has ended comes back at the end of its period.
            Some(libc::EBUSY) => foreseen(attr, facts).is_none(),
            // The kernel asks for the CPUs that the thread may use at this instant (`p->cpus_ptr`, __sched_setscheduler()
            // in kernel/sched/syscalls.c). With PREEMPT_RT this is one CPU while another thread has preempted it inside a
            // spinlock.
            Some(libc::EPERM) => matches!(refused, ReserveError::Kernel(Refusal::Forbidden)),
            _ => false,
        };
        if !passes || sys::now() >= give_up {
            return Err(refused);
        }
        sys::sleep(PAUSE);
    }
}

/// Returns the error of a refused reservation.
fn refused(error: &io::Error, attr: &SchedAttr, affinity: &CpuSet, facts: &Facts) -> ReserveError {
    let at = circumstances(attr, affinity, facts);
    ReserveError::Kernel(explain(error.raw_os_error().unwrap_or(0), &at))
}

/// Returns the refusal that the account predicts.
pub fn foreseen(attr: &SchedAttr, facts: &Facts) -> Option<ReserveError> {
    let need = i128::from(attr.bandwidth()?);
    let free = facts.room().free()?;
    let refused = || ReserveError::Kernel(bandwidth(&circumstances(attr, &facts.affinity, facts)));
    (need > free).then(refused)
}

/// Whether this process has CAP_SYS_NICE.
fn may_set_deadlines() -> bool {
    const CAP_SYS_NICE: u32 = 23;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set >> CAP_SYS_NICE & 1 == 1)
}

#[cfg(test)]
mod tests {
    use macrotick_analysis::deadline::Task;
    use macrotick_fixtures::us;
    use macrotick_host::deadline::DeadlineLimits;
    use macrotick_host::present::DeadlineThread;

    use super::*;

    fn at() -> Circumstances {
        let both: CpuSet = [0, 1].into_iter().collect();
        let limits = DeadlineLimits { each: Some(WHOLE * 95 / 100), servers: WHOLE / 20, least: us(100), most: us(9) };
        let thread =
            |bandwidth| DeadlineThread { thread: 7, task: Task::implicit(us(1), us(2)), bandwidth, cpus: both.clone() };
        Circumstances {
            may: true,
            in_namespace: false,
            affinity: both.clone(),
            domain: both.clone(),
            room: Room { cpus: 2, limits, taken: 0, threads: vec![thread(1 << 20), thread(1 << 19)] },
            need: WHOLE / 2,
            period: us(1000),
            options: DeadlineOptions::default(),
            holders: vec!["video (thread 7, 100.0 %)".into()],
        }
    }

    #[test]
    fn each_answer_of_the_kernel_has_its_reason_and_a_step() {
        let one = || [1].into_iter().collect();
        let none = |at: &mut Circumstances| at.room.limits.each = Some(0);
        let reclaim = |at: &mut Circumstances| at.options.reclaim = true;
        let overrun = |at: &mut Circumstances| at.options.overrun_signal = true;
        type Change<'a> = &'a dyn Fn(&mut Circumstances);
        let namespace = |at: &mut Circumstances| at.in_namespace = true;
        let cases: [(i32, Change, &str); 11] = [
            (
                libc::EBUSY,
                &|_| {},
                "SCHED_DEADLINE has no room: 50.0 % of a CPU would be promised, and 30.0 % is free of 180.0 % for the \
                 CPUs 0, 1 (kernel.sched_rt_runtime_us allows 95.0 % per CPU, the server of ordinary threads has \
                 5.0 % of it). Use --runtime 300us or less, or end one of these: video (thread 7, 100.0 %).",
            ),
            (libc::EPERM, &|at| at.may = false, "SCHED_DEADLINE needs CAP_SYS_NICE: run the command as root"),
            (libc::EPERM, &namespace, "this process has it only in a user namespace"),
            (libc::EPERM, &none, "kernel.sched_rt_runtime_us is 0, so SCHED_DEADLINE admits no thread"),
            (
                libc::EPERM,
                &|at| at.affinity = one(),
                "here the CPUs 0, 1, and the thread may use CPU 1: give --cpus 0,1",
            ),
            (libc::EPERM, &|_| {}, "look at seccomp and security modules"),
            (libc::EINVAL, &reclaim, "this kernel refuses --reclaim (SCHED_FLAG_RECLAIM, Linux 4.13)"),
            (libc::EINVAL, &overrun, "this kernel refuses --overrun-signal (SCHED_FLAG_DL_OVERRUN, Linux 4.16)"),
            (libc::EINVAL, &|_| {}, "it may be built without the policy"),
            (libc::ENOSYS, &|_| {}, "it may be built without the policy"),
            (libc::ENOMEM, &|_| {}, "the kernel refuses SCHED_DEADLINE: Cannot allocate memory"),
        ];
        for (errno, change, said) in cases {
            let mut at = at();
            change(&mut at);
            let told = explain(errno, &at).to_string();
            assert!(told.contains(said), "{errno}: {told}");
        }
    }

    #[test]
    fn what_fits_by_the_account_must_be_tried_again() {
        let told = explain(libc::EBUSY, &Circumstances { need: WHOLE / 10, ..at() }).to_string();
        assert!(told.contains("10.0 % of a CPU would be promised, and 30.0 % is free"), "{told}");
        assert!(told.ends_with("keeps its bandwidth up to the end of its period: try again"), "{told}");
    }

    #[test]
    fn a_domain_without_room_has_no_shorter_runtime_to_offer() {
        let mut full = at();
        full.room.threads[1].bandwidth = 1 << 20;
        full.holders = (0..7).map(|thread| format!("t{thread}")).collect();
        full.room.taken = 100;
        let told = explain(libc::EBUSY, &full).to_string();
        assert!(told.contains("and 0.0 % is free") && told.contains("windows and budgets come first"), "{told}");
        assert!(told.ends_with("Use another domain, or end one of these: t0, t1, t2, t3, t4 and 2 more."), "{told}");
    }
}
