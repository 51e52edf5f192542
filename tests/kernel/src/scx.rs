//! Schedulers of sched_ext, loaded with only bpf(2) and without a BPF compiler.
//!
//! A scheduler is the only element of a struct_ops map. The element's value is a header and the kernel's `struct
//! sched_ext_ops`. A value with only a name is the default scheduler: a queue from which all CPUs take threads. To
//! delete the element unloads the scheduler. A scheduler does not end with its process; [`disable`] ends it, whatever
//! process has loaded it.

mod btf;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

use crate::board::Board;
use crate::check::{Check, Explain};
use crate::process::{self, Child};
use crate::random::{self, Random};
use crate::sys::{self, SchedAttr};
use btf::{Btf, Struct};

/// The commands of bpf(2), and their constants (include/uapi/linux/bpf.h).
const MAP_CREATE: i32 = 0;
const MAP_UPDATE_ELEM: i32 = 2;
const MAP_DELETE_ELEM: i32 = 3;
const PROG_LOAD: i32 = 5;
const BTF_LOAD: i32 = 18;
const MAP_TYPE_STRUCT_OPS: u32 = 26;
const PROG_TYPE_STRUCT_OPS: u32 = 27;

/// The constants of kernel/sched/ext.c.
const SWITCH_PARTIAL: u64 = 1 << 3;
const ENQ_LAST: u64 = 1 << 1;
const DSQ_GLOBAL: u64 = 1 << 63 | 1;
const SLICE_NS: u64 = 5_000_000;

/// The time after which a ready thread that did not run makes the watchdog eject a [`Kind::Stalls`] scheduler.
pub const STALL_MS: u32 = 300;

const STATE: &str = "/sys/kernel/sched_ext/state";

/// The kind of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The default scheduler.
    Plain,
    /// The default scheduler, only for threads of SCHED_EXT.
    Partial,
    /// A scheduler with a program: each thread runs for 5 ms, and is then the last.
    Turns,
    /// It loses its threads, until the watchdog ejects it.
    Stalls,
    /// It refuses a thread, and is ejected before it has any thread.
    Refuses(i32),
    /// Its flags contradict each other: it is ejected before it has seen a thread.
    Contradicts,
}

/// The kernel's types for schedulers, from its BTF.
struct Types {
    value: Struct,
    ops: Struct,
    dispatch: u32,
    pid: usize,
}

/// Reads the types once, which takes the debug kernel some time. A process calls this before it forks processes that
/// are measured.
fn types() -> Check<&'static Types> {
    static TYPES: OnceLock<Check<Types>> = OnceLock::new();
    let read = || {
        let btf = Btf::of_kernel()?;
        Ok(Types {
            value: btf.structure("bpf_struct_ops_sched_ext_ops")?,
            ops: btf.structure("sched_ext_ops")?,
            dispatch: btf.function("scx_bpf_dispatch")?,
            pid: btf.structure("task_struct")?.member("pid")?.1,
        })
    };
    TYPES.get_or_init(read).as_ref().map_err(Clone::clone)
}

/// A loaded scheduler. Dropping it unloads the scheduler, unless it was ejected before.
#[derive(Debug)]
pub struct Scheduler {
    map: OwnedFd,
}

impl Scheduler {
    /// Loads a scheduler. Fails while another one is loaded.
    pub fn load(kind: Kind) -> Check<Scheduler> {
        Scheduler::try_load(kind)?.explain("load a scheduler")
    }

    /// Does the same where the kernel may refuse. The inner error is an errno.
    pub fn try_load(kind: Kind) -> Check<Result<Scheduler, i32>> {
        let types = types()?;
        let (value, _programs) = value_of(kind, types)?;
        let map = create_map(types).explain("make a map of struct_ops")?;
        Ok(update(&map, &value).map(|()| Scheduler { map }))
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let (key, mut attr) = (0u32, Attr::default());
        attr.set(0, &(self.map.as_raw_fd() as u32).to_le_bytes());
        attr.set(8, &(std::ptr::from_ref(&key) as u64).to_le_bytes());
        let _ = attr.call(MAP_DELETE_ELEM);
    }
}

/// Returns the kernel's state of sched_ext: `enabled`, `disabled`, or a transition.
pub fn state() -> String {
    std::fs::read_to_string(STATE).unwrap_or_default().trim().to_owned()
}

/// Whether a scheduler is loaded, or is in a transition.
pub fn is_loaded() -> bool {
    let state = state();
    !state.is_empty() && state != "disabled"
}

/// Returns how many schedulers were loaded since boot.
pub fn loads() -> u64 {
    let text = std::fs::read_to_string("/sys/kernel/sched_ext/enable_seq").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Ejects any loaded scheduler, with SysRq-S.
pub fn disable() -> Check {
    std::fs::write("/proc/sysrq-trigger", "S").map_err(|error| format!("SysRq: {error}"))?;
    let gone = sys::eventually(10_000_000_000, || !is_loaded());
    gone.then_some(()).ok_or_else(|| format!("sched_ext is {} after SysRq-S", state()))
}

/// The argument of bpf(2).
struct Attr([u8; 128]);

impl Default for Attr {
    fn default() -> Attr {
        Attr([0; 128])
    }
}

impl Attr {
    fn set(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn call(&self, command: i32) -> Result<i64, i32> {
        // SAFETY: reads the argument, and the memory at its pointers.
        sys::done(unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_ptr(), self.0.len()) })
    }

    fn make(&self, command: i32) -> Result<OwnedFd, i32> {
        // SAFETY: a fresh descriptor without another owner.
        self.call(command).map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }
}

/// Loads types of our own. The kernel requires them, although it uses its own types for the map's value.
fn load_types() -> Result<OwnedFd, i32> {
    let (bytes, mut attr) = (btf::smallest(), Attr::default());
    attr.set(0, &(bytes.as_ptr() as u64).to_le_bytes());
    attr.set(16, &(bytes.len() as u32).to_le_bytes());
    attr.make(BTF_LOAD)
}

fn create_map(types: &Types) -> Result<OwnedFd, i32> {
    let (own, mut attr) = (load_types()?, Attr::default());
    let words = [MAP_TYPE_STRUCT_OPS, 4, types.value.size as u32, 1];
    attr.set(0, &words.map(u32::to_le_bytes).concat());
    attr.set(48, &(own.as_raw_fd() as u32).to_le_bytes());
    attr.set(60, &types.value.id.to_le_bytes());
    attr.make(MAP_CREATE)
}

fn update(map: &OwnedFd, value: &[u8]) -> Result<(), i32> {
    let (key, mut attr) = (0u32, Attr::default());
    attr.set(0, &(map.as_raw_fd() as u32).to_le_bytes());
    attr.set(8, &(std::ptr::from_ref(&key) as u64).to_le_bytes());
    attr.set(16, &(value.as_ptr() as u64).to_le_bytes());
    attr.call(MAP_UPDATE_ELEM).map(drop)
}

/// Returns the map's element, and the programs that it names, which must exist until it is loaded.
fn value_of(kind: Kind, types: &Types) -> Check<(Vec<u8>, Vec<OwnedFd>)> {
    let (mut value, mut programs) = (vec![0; types.value.size], Vec::new());
    let data = types.value.member("data")?.1;
    let mut set = |member: &str, bytes: &[u8]| -> Check {
        let at = data + types.ops.member(member)?.1;
        value[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    };
    set("name", b"macrotick_test")?;
    let program = match kind {
        Kind::Plain | Kind::Partial | Kind::Contradicts => None,
        Kind::Turns => Some(("enqueue", turns(types))),
        Kind::Stalls => Some(("enqueue", forgets())),
        Kind::Refuses(pid) => Some(("init_task", refuses(types, pid))),
    };
    match kind {
        Kind::Partial => set("flags", &SWITCH_PARTIAL.to_le_bytes())?,
        Kind::Contradicts => set("flags", &ENQ_LAST.to_le_bytes())?,
        Kind::Stalls => set("timeout_ms", &STALL_MS.to_le_bytes())?,
        _ => {}
    }
    if let Some((member, code)) = program {
        let program = load_program(types, member, &code)?;
        set(member, &u64::from(program.as_raw_fd() as u32).to_le_bytes())?;
        programs.push(program);
    }
    Ok((value, programs))
}

fn load_program(types: &Types, member: &str, code: &[u64]) -> Check<OwnedFd> {
    let (license, mut log, mut attr) = (c"GPL", vec![0u8; 16384], Attr::default());
    attr.set(0, &[PROG_TYPE_STRUCT_OPS, code.len() as u32].map(u32::to_le_bytes).concat());
    attr.set(8, &[code.as_ptr() as u64, license.as_ptr() as u64].map(u64::to_le_bytes).concat());
    attr.set(24, &[1, log.len() as u32].map(u32::to_le_bytes).concat());
    attr.set(32, &(log.as_mut_ptr() as u64).to_le_bytes());
    attr.set(68, &types.ops.member(member)?.0.to_le_bytes());
    attr.set(108, &types.ops.id.to_le_bytes());
    let loaded = attr.make(PROG_LOAD);
    let said = || String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
    loaded.map_err(|errno| format!("the program for {member}: errno {errno}: {}", said()))
}

/// Encodes one instruction of BPF.
fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    let low = u64::from(code) | u64::from(to | from << 4) << 8 | u64::from(offset as u16) << 16;
    low | u64::from(value as u32) << 32
}

/// `r[to] = value`
fn set(to: u8, value: i32) -> u64 {
    instruction(0xb7, to, 0, 0, value)
}

/// `r[to] = value`, in two instructions.
fn set_long(to: u8, value: u64) -> [u64; 2] {
    [instruction(0x18, to, 0, 0, value as i32), instruction(0, 0, 0, 0, (value >> 32) as i32)]
}

/// `r[to] = *(u64 *)(r[from] + offset)`
fn load(to: u8, from: u8, offset: i16) -> u64 {
    instruction(0x79, to, from, offset, 0)
}

/// `return r0`
fn exit() -> u64 {
    instruction(0x95, 0, 0, 0, 0)
}

/// `scx_bpf_dispatch(p, SCX_DSQ_GLOBAL, SLICE_NS, enq_flags)`
fn turns(types: &Types) -> Vec<u64> {
    let [low, high] = set_long(2, DSQ_GLOBAL);
    let call = instruction(0x85, 0, 2, 0, types.dispatch as i32);
    vec![load(4, 1, 8), load(1, 1, 0), low, high, set(3, SLICE_NS as i32), call, exit()]
}

fn forgets() -> Vec<u64> {
    vec![set(0, 0), exit()]
}

/// `return p->pid == pid ? -ENOMEM : 0`
fn refuses(types: &Types, pid: i32) -> Vec<u64> {
    let read_pid = instruction(0x61, 1, 1, types.pid as i16, 0);
    let unless_equal = instruction(0x55, 1, 0, 1, pid);
    vec![load(1, 1, 0), read_pid, set(0, 0), unless_equal, set(0, -libc::ENOMEM), exit()]
}

/// A process that loads and unloads schedulers, each for up to 8 ms, with pauses of the same length. Some are ejected
/// while they are loaded, and some by SysRq-S. The process gets a request to end, and no signal. Linux 6.12 panics if a
/// kill interrupts the load of a scheduler: `scx_create_rt_helper()` only checks for NULL, and reads through `-EINTR`.
pub struct Changer {
    child: Child,
    /// Not zero: the process must end.
    asked: Board,
}

impl Changer {
    /// Forks the process. The seed determines its choices.
    pub fn start(seed: u64) -> Check<Changer> {
        types()?;
        let_timers_expire()?;
        let asked = Board::new(1);
        let child = process::fork(|| {
            if sys::set_sched(0, SchedAttr::fifo(30)).is_err() {
                return 1;
            }
            change(Random::new(seed), asked);
            0
        });
        Ok(Changer { child, asked })
    }

    /// Returns its process id.
    pub fn pid(&self) -> i32 {
        self.child.pid
    }

    /// Lets the process unload its scheduler and end.
    pub fn end(&self) -> Check {
        self.asked.set(0, 1);
        self.child.succeed(10_000_000_000)
    }
}

/// Gives the threads of softirqs the priority of RCU's threads. While Linux 6.12 unloads a scheduler, new threads are in
/// the fair class already, above those of sched_ext, and `scx_cgroup_lock()` waits for RCU. With PREEMPT_RT, RCU's timers
/// expire in ksoftirqd. If that is a thread of sched_ext, a busy new thread stops RCU.
fn let_timers_expire() -> Check {
    (0..sys::nr_cpus()).try_for_each(|cpu| {
        let thread = process::kernel_thread(&format!("ksoftirqd/{cpu}"))?;
        sys::set_sched(thread, SchedAttr::fifo(1)).explain("the policy of ksoftirqd")
    })
}

fn change(mut random: Random, asked: Board) {
    while asked.get(0) == 0 {
        let refuses = Kind::Refuses(std::process::id() as i32);
        let kinds = [Kind::Plain, Kind::Turns, Kind::Turns, Kind::Partial, Kind::Contradicts, refuses];
        let begin = sys::now_ns();
        let loaded = Scheduler::load(*random.pick(&kinds));
        let load = sys::now_ns() - begin;
        sys::sleep(random.below(8_000_000));
        let begin = sys::now_ns();
        if random.below(8) == 0 {
            let _ = disable();
        }
        drop(loaded);
        let unload = sys::now_ns() - begin;
        // On the debug kernel, the walks over all threads take longer than the pauses between them. Threads of the
        // kernel with a low priority need time, too: without it, RCU complains about a stall.
        sys::sleep(random.below(8_000_000) + load + unload);
    }
}

/// The schedulers beside a scenario ([`crate::scenarios::SCX`]).
pub enum Beside {
    /// A scheduler is loaded.
    Loaded(Scheduler),
    /// Schedulers come and go.
    Changes(Changer),
}

impl Beside {
    /// Starts it: `loaded` or `changes`.
    pub fn start(how: &str) -> Check<Beside> {
        match how {
            "loaded" => Scheduler::load(Kind::Plain).map(Beside::Loaded),
            "changes" => Changer::start(random::variation()).map(Beside::Changes),
            _ => Err(format!("{how} schedulers of sched_ext?")),
        }
    }

    /// Returns the process that it needs, if any.
    pub fn pid(&self) -> Option<i32> {
        match self {
            Beside::Loaded(_) => None,
            Beside::Changes(changer) => Some(changer.pid()),
        }
    }

    /// Ends it.
    pub fn end(self) -> Check {
        match self {
            Beside::Loaded(scheduler) => {
                drop(scheduler);
                Ok(())
            }
            Beside::Changes(changer) => changer.end(),
        }
    }
}
