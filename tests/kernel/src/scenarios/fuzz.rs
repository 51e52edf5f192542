//! Random calls from several processes. What they return hardly matters; the kernel must survive and work afterwards.

use macrotick_uapi::{self as abi, Device, SCHED_TT};

use super::jobs::ensure_regular;
use super::{unit_ns, Scenario};
use crate::board::{Board, Log};
use crate::check::{Check, Explain};
use crate::ensure;
use crate::ensure_eq;
use crate::group::Group;
use crate::process::{self, periodic, Child};
use crate::random::{variation, Random};
use crate::sys::{self, PiLock, SchedAttr};
use crate::table::Table;

pub const ALL: &[Scenario] = &[
    Scenario::new("fuzz_1", || fuzz(1, 150)).within(60_000),
    Scenario::new("fuzz_2", || fuzz(2, 150)).within(60_000),
    Scenario::new("fuzz_hotplug", || fuzz(1000, 100)).on(2).within(60_000),
    Scenario::new("full_fuzz_3", || fuzz(3, 4000)).within(600_000),
    Scenario::new("full_fuzz_4", || fuzz(4, 4000)).within(600_000),
    Scenario::new("full_fuzz_hotplug_long", || fuzz(1001, 3000)).on(2).within(600_000),
];

const PROCESSES: usize = 6;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// From this seed on CPUs come and go, too.
const WITH_HOTPLUG: u64 = 1000;

/// What a process of the fuzzer knows.
struct Fuzzer {
    random: Random,
    device: Device,
    board: Board,
    u: u64,
    cpus: u32,
    hotplug: bool,
    /// Three faults of Linux 6.12 itself would end the run (docs/kernel-tests.md), so that a process comes under
    /// SCHED_DEADLINE by itself and but once, forks no more from then on, and does not where CPUs come and go.
    was_deadline: bool,
    groups: [Group; 3],
    kernel_thread: i32,
}

/// Words of the board: process ids, calls made, a futex.
const CALLS: usize = PROCESSES;
const LOCK: usize = PROCESSES + 1;

fn fuzz(seed: u64, calls: u64) -> Check {
    let (u, board, cpus) = (unit_ns(), Board::new(PROCESSES + 2), sys::nr_cpus());
    let device = Device::open()?;
    let mut random = Random::new(seed ^ variation() << 32);
    let outer = Group::new("outer")?;
    outer.set("cgroup.subtree_control", "+cpu")?;
    let groups = [Group::new("other")?, outer.child("inner")?, outer];
    let kernel_thread = process::kernel_thread("ksoftirqd/0")?;
    let mut begin = |slot: usize| {
        let random = Random::new(random.number());
        let child = process::fork(|| {
            let Ok(device) = Device::open() else { return 1 };
            let hotplug = seed >= WITH_HOTPLUG;
            let groups = groups.clone();
            Fuzzer { random, device, board, u, cpus, hotplug, was_deadline: false, groups, kernel_thread }.run()
        });
        board.set(slot, child.pid as u64);
        child
    };
    let mut children: Vec<Child> = (0..PROCESSES).map(&mut begin).collect();
    let mut before = u64::MAX;
    while board.get(CALLS) < calls * PROCESSES as u64 {
        sys::sleep(40 * u);
        // All may wait for jobs that no window releases: then one of them must go.
        if board.get(CALLS) == before {
            children[before as usize % PROCESSES].signal(libc::SIGKILL);
        }
        before = board.get(CALLS);
        for (slot, child) in children.iter_mut().enumerate() {
            if child.poll().is_some() {
                *child = begin(slot);
            }
        }
        // Nor may they all wait for a table that nobody starts.
        if device.get().explain("get")?.state != abi::state::RUNNING {
            let _ = table(&mut Random::new(board.get(CALLS)), u, cpus).try_install(&device);
            let _ = device.start(0);
        }
    }
    children.iter().try_for_each(|child| {
        child.signal(libc::SIGKILL);
        child.wait(10_000_000_000).map(drop)
    })?;
    still_works(u)
}

/// After everything one simple table runs as ever.
fn still_works(u: u64) -> Check {
    let device = Device::open()?;
    let _ = device.remove();
    let log = Log::new(8);
    Table::single(20 * u, 0, 2 * u, 4 * u).install(&device)?;
    periodic("t", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    sys::sleep_until(epoch + 3 * 20 * u - u);
    ensure_eq!(log.count(), 3, "jobs afterwards");
    ensure_regular(&log.jobs(), 0, epoch, 20 * u, 2 * u)?;
    let threads = device.stats(0).explain("stats")?.nr_threads;
    ensure!(threads == 1, "{threads} threads afterwards");
    Ok(())
}

fn table(random: &mut Random, u: u64, cpus: u32) -> Table {
    let mut table = Table::new(20 * u + random.below(1000));
    let mut at = [0u64; 16];
    for _ in 0..1 + random.below(6) {
        let cpu = random.below(u64::from(cpus)) as usize;
        let name = NAMES[random.below(3) as usize];
        let begin = at[cpu] + random.below(3) * u;
        let length = abi::MIN_WINDOW_NS + random.below(3 * u);
        at[cpu] = begin + length;
        table = table.window(name, cpu as u32, begin, length, random.below(4) as u32);
        table = table.misses(random.below(3) as u32, random.below(4) as u32);
    }
    if random.below(2) == 0 {
        table = table.lead(random.below(u / 2));
    }
    for index in 0..table.entities.len() {
        if random.below(4) == 0 {
            make_pool(&mut table, index, random);
        }
    }
    if random.below(4) == 0 {
        let at = at.iter().max().copied().unwrap_or(0);
        let bound = random.below(u) as u32;
        table = (0..cpus).fold(table, |table, cpu| table.sync(cpu, at, 2 * u, bound));
    }
    table.windows.sort_by_key(|window| (window.cpu, window.offset_ns));
    table
}

/// Mostly one that is taken.
fn make_pool(table: &mut Table, index: usize, random: &mut Random) {
    let order = *random.pick(&[0, abi::RR, abi::PRIORITY, abi::RR | abi::PRIORITY]);
    let slack = *random.pick(&[0, abi::SLACK]);
    let slice_ns = *random.pick(&[0, 0, abi::MIN_SLICE_NS, abi::SLICE_NS]);
    let entity = &mut table.entities[index];
    (entity.flags, entity.max_misses, entity.slice_ns) = (abi::POOL | order | slack, 0, slice_ns);
    for window in table.windows.iter_mut().filter(|window| window.entity as usize == index) {
        window.flags = 0;
    }
}

impl Fuzzer {
    fn run(&mut self) -> i32 {
        for signal in [libc::SIGUSR1, libc::SIGXCPU] {
            // SAFETY: the handler does nothing.
            unsafe { libc::signal(signal, ignore as *const () as usize) };
        }
        loop {
            self.board.add(CALLS, 1);
            self.step();
        }
    }

    fn step(&mut self) {
        match self.random.below(33) {
            0 => {
                let table = table(&mut self.random, self.u, self.cpus);
                let _ = if self.random.below(2) == 0 {
                    table.try_install(&self.device)
                } else {
                    table.swap(&self.device).map(drop)
                };
            }
            1 => drop(self.device.start(self.random.below(2) * sys::now_ns())),
            31 => drop(sys::step_clock(self.random.below(50 * self.u) as i64 - 20 * self.u as i64)),
            2 => drop(self.device.stop()),
            3 if self.random.below(3) == 0 => drop(self.device.remove()),
            4..=6 => drop(self.device.bind(-1, NAMES[self.random.below(3) as usize])),
            7 => drop(self.with_somebody(|device, pidfd, name| device.bind(pidfd, name))),
            8 => drop(self.with_somebody(|device, pidfd, _| device.unbind(pidfd))),
            9 => drop(self.device.unbind(-1)),
            10..=12 => drop(self.device.wait()),
            // SAFETY: takes nothing.
            13 => drop(unsafe { libc::sched_yield() }),
            14..=16 => self.set_policy(),
            17 => self.set_affinity(),
            18 if !self.was_deadline => drop(process::try_fork(|| 0).map(|child| child.wait(self.u * 50))),
            19 if !self.was_deadline => self.thread(),
            20 if self.random.below(4) == 0 => self.signal(libc::SIGKILL),
            21 => self.signal(libc::SIGUSR1),
            22 => self.lock(),
            23 => self.read_out(),
            24 if self.hotplug && self.cpus > 1 => {
                let cpu = 1 + self.random.below(u64::from(self.cpus - 1)) as u32;
                let _ = sys::set_online(cpu, self.random.below(2) == 0);
            }
            25 => self.notify(),
            26..=29 => self.regroup(),
            30 => drop(self.with_kernel_thread()),
            _ => sys::spin(self.random.below(2 * self.u)),
        }
    }

    /// A thread that joins the entity where this one is in the class, and then waits for one job.
    fn thread(&self) {
        let begun = std::thread::Builder::new().spawn(|| drop(Device::open().map(|device| device.wait())));
        if let Ok(thread) = begun {
            let _ = thread.join();
        }
    }

    fn somebody(&mut self) -> i32 {
        match self.board.get(self.random.below(PROCESSES as u64) as usize) {
            0 => std::process::id() as i32, // not yet begun, and 0 would be the whole process group
            pid => pid as i32,
        }
    }

    fn with_somebody(&mut self, what: fn(&Device, i32, &str) -> Result<(), i32>) -> Result<(), i32> {
        let pidfd = sys::pidfd_open(self.somebody(), 0)?;
        let result = what(&self.device, pidfd, NAMES[self.random.below(3) as usize]);
        // SAFETY: a descriptor of our own.
        unsafe { libc::close(pidfd) };
        result
    }

    fn set_policy(&mut self) {
        let whom = if self.random.below(2) == 0 { 0 } else { self.somebody() };
        let attr = *self.random.pick(&[
            SchedAttr::policy(SCHED_TT),
            SchedAttr::policy(SCHED_TT),
            SchedAttr { flags: sys::RESET_ON_FORK, ..SchedAttr::policy(SCHED_TT) },
            SchedAttr::other(),
            SchedAttr::policy(libc::SCHED_IDLE as u32),
            SchedAttr::fifo(1),
            SchedAttr::deadline(self.u, 20 * self.u),
        ]);
        if attr.policy != libc::SCHED_DEADLINE as u32 {
            let _ = sys::set_sched(whom, attr);
        } else if !self.was_deadline && !self.hotplug {
            self.was_deadline = sys::set_sched(0, attr).is_ok();
        }
    }

    fn set_affinity(&mut self) {
        let cpu = self.random.below(u64::from(self.cpus)) as u32;
        let all: Vec<u32> = (0..self.cpus).collect();
        let whom = self.somebody();
        let _ = if self.random.below(2) == 0 { sys::set_affinity(whom, &[cpu]) } else { sys::set_affinity(whom, &all) };
    }

    fn signal(&mut self, signal: i32) {
        Child { pid: self.somebody() }.signal(signal);
    }

    fn lock(&mut self) {
        let lock = PiLock(self.board.futex(LOCK));
        let word = lock.0.load(std::sync::atomic::Ordering::SeqCst);
        // A lock whose owner was killed is lost: its word is cleared by whoever notices.
        // SAFETY: takes numbers.
        if word != 0 && unsafe { libc::kill((word & 0x3fff_ffff) as i32, 0) } != 0 {
            let _ = lock.0.compare_exchange(
                word,
                0,
                std::sync::atomic::Ordering::SeqCst,
                std::sync::atomic::Ordering::SeqCst,
            );
        }
        if lock.lock().is_ok() {
            sys::spin(self.u / 4);
            let _ = lock.unlock();
        }
    }

    /// Into a group, out of it, or another entity for it.
    fn regroup(&mut self) {
        let group = self.random.pick(&self.groups).clone();
        let whom = if self.random.below(2) == 0 { 0 } else { self.somebody() };
        let _ = match self.random.below(6) {
            0 => group.serve(NAMES[self.random.below(3) as usize]),
            1 => group.serve(""),
            2 => Group::root().take(whom),
            3 if !self.was_deadline => {
                process::fork_into(group.path(), || 0).and_then(|child| child.wait(self.u * 50).map(drop))
            }
            _ => group.take(whom),
        };
    }

    /// Softirqs are late when theirs has no windows, but not for ever.
    fn with_kernel_thread(&mut self) -> Result<(), i32> {
        let pidfd = sys::pidfd_open(self.kernel_thread, 0)?;
        let name = NAMES[self.random.below(3) as usize];
        let result = if self.random.below(2) == 0 { self.device.bind(pidfd, name) } else { self.device.unbind(pidfd) };
        // SAFETY: a descriptor of our own.
        unsafe { libc::close(pidfd) };
        result
    }

    fn notify(&mut self) {
        // SAFETY: takes numbers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK) };
        let entity = *self.random.pick(&[0, 1, 2, 3, abi::ALL_ENTITIES]);
        let _ = self.device.notify(entity, fd);
        // SAFETY: a descriptor of our own.
        unsafe { libc::close(fd) };
    }

    fn read_out(&mut self) {
        let mut entities = [abi::Entity::default(); 4];
        let mut windows = [abi::Window::default(); 8];
        let _ = self.device.read(&mut entities, &mut windows);
        let _ = self.device.stats(self.random.below(4) as u32);
        let _ = sys::sched(self.somebody());
    }
}

extern "C" fn ignore(_: i32) {}
