//! One process of a fuzzer, and its calls.

use macrotick_uapi::{self as abi, Device, SCHED_DS, SCHED_TT};

use super::garbage::{self, Scratch};
use super::gates::{self, Gates};
use super::tables::{table, NAMES};
use super::tally::{Kind, Tally};
use super::with_pidfd;
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::group::Group;
use crate::process::{self, Child};
use crate::random::Random;
use crate::sys::{self, PiLock, SchedAttr};

/// The number of the fuzzer's processes.
pub const PROCESSES: usize = 6;

/// The state that all processes of a fuzzer share. The board has their process ids, and a futex.
#[derive(Clone)]
pub struct Shared {
    /// The process ids, and the futex.
    pub board: Board,
    /// The counters of calls.
    pub tally: Tally,
    /// The grid of the tables, in nanoseconds.
    pub u: u64,
    /// The number of CPUs.
    pub cpus: u32,
    /// Whether CPUs are taken offline and brought online.
    pub hotplug: bool,
    /// Control groups. The second one is a child of the last one.
    pub groups: [Group; 3],
    /// A kernel thread that a pool may have.
    pub kernel_thread: i32,
}

/// The word of the futex.
const LOCK: usize = PROCESSES;

impl Shared {
    /// The number of words of the shared memory.
    pub const WORDS: usize = PROCESSES + 1;
}

/// The state of a process of the fuzzer.
pub struct Caller {
    shared: Shared,
    random: Random,
    device: Device,
    scratch: Scratch,
    gates: Gates,
    /// Whether the process has entered SCHED_DEADLINE. Three faults of Linux 6.12 would end the run
    /// (docs/contributing/kernel-tests.md). For this reason a process enters SCHED_DEADLINE by itself, and only once.
    /// It forks no more afterwards, and never enters it with hotplug.
    was_deadline: bool,
}

impl Caller {
    /// Makes a process with this generator.
    pub fn new(shared: Shared, random: Random) -> Check<Caller> {
        let (device, scratch, gates) = (Device::open()?, Scratch::new(), Gates::new(&random)?);
        Ok(Caller { shared, random, device, scratch, gates, was_deadline: false })
    }

    /// Makes calls endlessly.
    pub fn run(&mut self) -> ! {
        for signal in [libc::SIGUSR1, libc::SIGXCPU] {
            // SAFETY: the handler does nothing.
            unsafe { libc::signal(signal, ignore as *const () as usize) };
        }
        loop {
            if self.random.below(3) == 0 {
                self.burst();
            } else {
                self.step();
            }
        }
    }

    /// Makes many short calls.
    fn burst(&mut self) {
        for _ in 0..1 + self.random.below(24) {
            let tally = self.shared.tally;
            if self.random.below(8) == 0 {
                let group = self.group();
                let _ = tally.count(Kind::Group, || garbage::write(&group, &mut self.random));
            } else {
                let _ = tally.count(Kind::Garbage, || self.send_garbage());
            }
        }
    }

    fn send_garbage(&mut self) -> Check {
        let table = table(&mut self.random, self.shared.u, self.shared.cpus);
        self.scratch.send(&self.device, &table, &mut self.random).explain("garbage")
    }

    fn step(&mut self) {
        let kind = match self.random.below(45) {
            0..=3 => Kind::Table,
            4..=12 => Kind::Member,
            13..=16 => Kind::Policy,
            17 => Kind::Affinity,
            18..=19 => Kind::Birth,
            20..=22 => Kind::Signal,
            23 => Kind::Lock,
            24..=26 => Kind::Read,
            27..=33 => Kind::Group,
            34 => Kind::Clock,
            35 if self.shared.hotplug => Kind::Hotplug,
            36..=38 => Kind::Budget,
            39..=40 => Kind::Served,
            41..=43 => Kind::Gates,
            _ => return sys::spin(self.random.below(2 * self.shared.u)),
        };
        let tally = self.shared.tally;
        let _ = tally.count(kind, || self.call(kind));
    }

    fn call(&mut self, kind: Kind) -> Check {
        match kind {
            Kind::Table => self.change_table(),
            Kind::Member => self.change_membership(),
            Kind::Read => self.read_out(),
            Kind::Group => self.regroup(),
            Kind::Policy => self.set_policy(),
            Kind::Budget => self.change_budget(),
            Kind::Served => self.be_served(),
            Kind::Affinity => self.set_affinity(),
            Kind::Birth => self.give_birth(),
            Kind::Signal => self.signal(),
            Kind::Lock => self.lock(),
            Kind::Hotplug => {
                let cpu = 1 + self.random.below(u64::from(self.shared.cpus - 1)) as u32;
                sys::set_online(cpu, self.random.below(2) == 0).explain("hotplug")
            }
            Kind::Garbage => self.send_garbage(),
            Kind::Gates => self.change_gates(),
            Kind::Clock => {
                let u = self.shared.u;
                sys::step_clock(self.random.below(50 * u) as i64 - 20 * u as i64).explain("clock")
            }
        }
    }

    fn change_table(&mut self) -> Check {
        let device = &self.device;
        match self.random.below(10) {
            0..=2 => table(&mut self.random, self.shared.u, self.shared.cpus).install(device),
            3..=5 => {
                let table = table(&mut self.random, self.shared.u, self.shared.cpus);
                table.swap(device).map(drop).map_err(|refusal| format!("{refusal:?}"))
            }
            6..=7 => device.start(self.random.below(2) * sys::now_ns()).map(drop).explain("start"),
            8 => device.stop().explain("stop"),
            _ => device.remove().explain("remove"),
        }
    }

    fn change_membership(&mut self) -> Check {
        let name = *self.random.pick(&NAMES);
        match self.random.below(10) {
            0..=2 => self.device.bind(-1, name).explain("bind"),
            3 => {
                let whom = self.somebody();
                self.with(whom, |device, pidfd| device.bind(pidfd, name))
            }
            4 => {
                let whom = self.somebody();
                self.with(whom, |device, pidfd| device.unbind(pidfd))
            }
            5 => self.device.unbind(-1).explain("unbind"),
            // Softirqs are late when their thread has no windows, but not endlessly.
            6 if self.random.below(2) == 0 => {
                self.with(self.shared.kernel_thread, |device, pidfd| device.bind(pidfd, name))
            }
            6 => self.with(self.shared.kernel_thread, |device, pidfd| device.unbind(pidfd)),
            _ => self.device.wait().map(drop).explain("wait"),
        }
    }

    fn with(&self, whom: i32, what: impl FnOnce(&Device, i32) -> Result<(), i32>) -> Check {
        with_pidfd(whom, |pidfd| what(&self.device, pidfd))
    }

    fn read_out(&mut self) -> Check {
        match self.random.below(4) {
            0 => self.notify(),
            1 => self.device.stats(self.random.below(4) as u32).map(drop).explain("stats"),
            _ => {
                let mut entities = [abi::Entity::default(); 4];
                let mut windows = [abi::Window::default(); 8];
                self.device.read(&mut entities, &mut windows).map(drop).explain("get")
            }
        }
    }

    fn notify(&mut self) -> Check {
        // SAFETY: takes numbers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK) };
        let entity = *self.random.pick(&[0, 1, 2, 3, abi::ALL_ENTITIES]);
        let result = self.device.notify(entity, fd);
        // SAFETY: a descriptor of our own.
        unsafe { libc::close(fd) };
        result.explain("notify")
    }

    fn somebody(&mut self) -> i32 {
        match self.shared.board.get(self.random.below(PROCESSES as u64) as usize) {
            0 => std::process::id() as i32, // not started; 0 would mean the process group
            pid => pid as i32,
        }
    }

    fn group(&mut self) -> Group {
        self.random.pick(&self.shared.groups).clone()
    }

    /// Moves a process into a group or out of it, changes a group's entity, or makes and removes a group.
    fn regroup(&mut self) -> Check {
        let group = self.group();
        let whom = if self.random.below(2) == 0 { 0 } else { self.somebody() };
        match self.random.below(16) {
            0..=2 => group.serve(self.random.pick::<&str>(&NAMES)),
            3 => group.serve(""),
            4..=5 => Group::root().take(whom),
            6..=7 if !self.was_deadline => {
                process::fork_into(group.path(), || 0).and_then(|child| child.wait(self.shared.u * 50).map(drop))
            }
            8 => self.brief_group(&group),
            // Without the controller, the groups below lose their files and the settings in them.
            9 => group.set("cgroup.subtree_control", self.random.pick::<&str>(&["-cpu", "+cpu", "+cpu"])),
            10 => group.set("cgroup.freeze", self.random.pick::<&str>(&["1", "0", "0"])),
            _ => group.take(whom),
        }
    }

    /// Changes budgets: microseconds of a period of 2500 us, on all CPUs or on one.
    fn change_budget(&mut self) -> Check {
        let group = self.group();
        match self.random.below(12) {
            11 => group.set("cpu.ds.lead", self.random.pick::<&str>(&["0", "10", "200"])),
            10 => self.assign_kernel_thread(&group),
            9 => group.set("cpu.ds.fifo", self.random.pick::<&str>(&["0", "1"])),
            0 => group.set("cpu.ds.priority", &(1 + self.random.below(4)).to_string()),
            1 => group.get("cpu.ds.stat").and(group.get("cpu.ds.budget")).map(drop),
            2 => {
                let period = *self.random.pick(&["2500", "2500", "1000", "10000"]);
                std::fs::write("/proc/sys/kernel/sched_ds_period_us", period).map_err(|error| error.to_string())
            }
            _ => {
                let budget = *self.random.pick(&[0, 50, 100, 300, 700, 1500]);
                let cpu = self.random.below(u64::from(self.shared.cpus));
                let text = if self.random.below(3) == 0 { format!("{cpu}={budget}") } else { budget.to_string() };
                group.set("cpu.ds.budget", &text)
            }
        }
    }

    /// Assigns the kernel thread to a group, or another thread, which may have ended.
    fn assign_kernel_thread(&mut self, group: &Group) -> Check {
        let whom = if self.random.below(4) == 0 { self.somebody() } else { self.shared.kernel_thread };
        let sign = *self.random.pick(&["", "", "-"]);
        group.set("cpu.ds.kthreads", &format!("{sign}{whom}")).and(group.get("cpu.ds.kthreads").map(drop))
    }

    /// Sets SCHED_DS, which needs a budget of the thread's group.
    fn be_served(&mut self) -> Check {
        let whom = match self.random.below(8) {
            0..=3 => 0,
            4..=6 => self.somebody(),
            _ => self.shared.kernel_thread,
        };
        let flags = if self.random.below(8) == 0 { sys::RESET_ON_FORK } else { 0 };
        let attr = SchedAttr { priority: 1 + self.random.below(99) as u32, flags, ..SchedAttr::policy(SCHED_DS) };
        sys::set_sched(whom, attr).explain("SCHED_DS")
    }

    fn brief_group(&mut self, parent: &Group) -> Check {
        let group = parent.child(&format!("brief-{}", std::process::id()))?;
        let served = group.serve(self.random.pick::<&str>(&NAMES));
        let budget = if self.random.below(2) == 0 { group.set("cpu.ds.budget", "200") } else { Ok(()) };
        let taken = group.take(0);
        let left = Group::root().take(0);
        group.remove().and(served).and(budget).and(taken).and(left)
    }

    fn set_policy(&mut self) -> Check {
        if self.random.below(4) == 0 {
            // SAFETY: takes nothing.
            return sys::done(unsafe { libc::sched_yield() }).map(drop).explain("yield");
        }
        let whom = if self.random.below(2) == 0 { 0 } else { self.somebody() };
        let attr = *self.random.pick(&[
            SchedAttr::policy(SCHED_TT),
            SchedAttr::policy(SCHED_TT),
            SchedAttr { flags: sys::RESET_ON_FORK, ..SchedAttr::policy(SCHED_TT) },
            SchedAttr::other(),
            SchedAttr::policy(libc::SCHED_IDLE as u32),
            SchedAttr::fifo(1),
            SchedAttr { policy: libc::SCHED_RR as u32, ..SchedAttr::fifo(2) },
            SchedAttr::deadline(self.shared.u, 20 * self.shared.u),
        ]);
        if attr.policy != libc::SCHED_DEADLINE as u32 {
            return sys::set_sched(whom, attr).explain("policy");
        }
        if !self.was_deadline && !self.shared.hotplug {
            self.was_deadline = sys::set_sched(0, attr).is_ok();
        }
        sys::sched(whom).map(drop).explain("policy")
    }

    /// Makes a call about gates, or moves their thread.
    fn change_gates(&mut self) -> Check {
        let name = *self.random.pick(&NAMES);
        match self.random.below(12) {
            0 => {
                let thread = process::kernel_thread(gates::THREAD)?;
                self.with(thread, |device, pidfd| device.bind(pidfd, name))
            }
            1 => {
                let thread = process::kernel_thread(gates::THREAD)?;
                let attr = *self.random.pick(&[SchedAttr::other(), SchedAttr::fifo(50), SchedAttr::policy(SCHED_DS)]);
                sys::set_sched(thread, attr).explain("the policy of the gate's thread")
            }
            _ => self.gates.call(&mut self.random).explain("gates"),
        }
    }

    fn set_affinity(&mut self) -> Check {
        let cpu = self.random.below(u64::from(self.shared.cpus)) as u32;
        let all: Vec<u32> = (0..self.shared.cpus).collect();
        let whom = self.somebody();
        let cpus = if self.random.below(2) == 0 { vec![cpu] } else { all };
        sys::set_affinity(whom, &cpus).explain("affinity")
    }

    /// Forks a child, or starts a thread that waits for one job. In the class, the thread joins the entity.
    fn give_birth(&mut self) -> Check {
        if self.was_deadline {
            return Err("no children".into());
        }
        if self.random.below(2) == 0 {
            let child = process::try_fork(|| 0).explain("fork")?;
            return child.wait(self.shared.u * 50).map(drop);
        }
        let begun = std::thread::Builder::new().spawn(|| drop(Device::open().map(|device| device.wait())));
        begun.map_err(|error| error.to_string())?.join().map_err(|_| "a thread panicked".into())
    }

    fn signal(&mut self) -> Check {
        let whom = Child { pid: self.somebody() };
        match self.random.below(12) {
            0 => whom.signal(libc::SIGKILL),
            1..=3 => {
                whom.signal(libc::SIGSTOP);
                whom.signal(libc::SIGCONT);
            }
            _ => whom.signal(libc::SIGUSR1),
        }
        Ok(())
    }

    fn lock(&mut self) -> Check {
        let lock = PiLock(self.shared.board.futex(LOCK));
        let word = lock.0.load(std::sync::atomic::Ordering::SeqCst);
        // A lock is lost if its owner was killed. The next process that notices this clears its word.
        // SAFETY: takes numbers.
        if word != 0 && unsafe { libc::kill((word & 0x3fff_ffff) as i32, 0) } != 0 {
            let _ = lock.0.compare_exchange(
                word,
                0,
                std::sync::atomic::Ordering::SeqCst,
                std::sync::atomic::Ordering::SeqCst,
            );
        }
        lock.lock().explain("lock")?;
        sys::spin(self.shared.u / 4);
        lock.unlock().explain("unlock")
    }
}

extern "C" fn ignore(_: i32) {}
