//! Profiles on a host that is a directory: what they change, and that they leave nothing behind.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use macrotick_fixtures::hold;
use macrotick_model::{Backend, System};

use super::journal::Journal;
use super::*;
use crate::sys::{SchedAttr, Standing, Tid};

/// A directory that stands for a host. A thread is a directory of `proc` with its name, policy and CPUs.
struct Fake {
    root: PathBuf,
    is_root: bool,
    /// The number of changes so far.
    acts: Cell<u32>,
    /// The number of the change that fails.
    failure: Cell<Option<u32>>,
    /// The number of the change before which the program dies: nothing it does has an effect any more.
    death: Cell<Option<u32>>,
    /// Files that the kernel refuses to change, with the reason.
    refused: Vec<(&'static str, i32)>,
    /// A file that keeps its contents when it is written.
    deaf: Option<&'static str>,
}

const RECORD: &str = "record.json";
const OTHER: &str = "SCHED_OTHER";

impl Fake {
    fn new(name: &str) -> Fake {
        let root = std::env::temp_dir().join(format!("macrotick-profile-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let fake = Fake {
            root,
            is_root: true,
            acts: Cell::new(0),
            failure: Cell::new(None),
            death: Cell::new(None),
            refused: Vec::new(),
            deaf: None,
        };
        fake.fill();
        fake
    }

    /// Makes a host with four CPUs. Its network device `eth1` has two queues.
    fn fill(&self) {
        for (path, text) in [
            ("sys/class/net/lo/operstate", "unknown"),
            ("sys/devices/pci/0000:00:03.0/msi_irqs/24", "msix"),
            ("sys/devices/pci/0000:00:03.0/msi_irqs/25", "msix"),
            ("sys/devices/pci/0000:00:03.0/irq", "24"),
            ("sys/class/net/eth1/threaded", "0"),
            ("sys/class/net/eth1/queues/rx-0/rps_cpus", "2"),
            ("sys/class/net/eth1/queues/rx-1/rps_cpus", "0"),
            ("sys/class/net/eth1/queues/tx-0/xps_cpus", "1"),
            ("sys/class/net/eth1/queues/tx-1/traffic_class", "0"),
            ("proc/irq/default_smp_affinity", "f"),
            ("proc/irq/0/timer/x", ""),
            ("proc/irq/0/smp_affinity_list", "0-3"),
            ("proc/irq/8/rtc0/x", ""),
            ("proc/irq/8/smp_affinity_list", "1"),
            ("proc/irq/9/acpi/x", ""),
            ("proc/irq/9/smp_affinity_list", "2,3"),
            ("proc/irq/24/eth1-TxRx-0/x", ""),
            ("proc/irq/24/smp_affinity_list", "0-3"),
            ("proc/irq/25/eth1-TxRx-1/x", ""),
            ("proc/irq/25/smp_affinity_list", "0-3"),
            ("proc/irq/26/smp_affinity_list", "0-3"),
            ("proc/sys/kernel/osrelease", "6.12.117"),
            ("proc/sys/kernel/watchdog_cpumask", "0-3"),
            ("proc/sys/kernel/watchdog", "1"),
            ("proc/sys/kernel/timer_migration", "1"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
            ("sys/kernel/debug/sched/fair_server/cpu1/runtime", "50000000"),
            ("sys/kernel/rcu_normal", "0"),
            ("sys/devices/virtual/workqueue/cpumask", "f"),
            ("sys/devices/system/cpu/cpu1/cpuidle/state0/latency", "0"),
            ("sys/devices/system/cpu/cpu1/cpuidle/state0/disable", "0"),
            ("sys/devices/system/cpu/cpu1/cpuidle/state1/latency", "2"),
            ("sys/devices/system/cpu/cpu1/cpuidle/state1/disable", "0"),
            ("sys/devices/system/cpu/cpu1/cpuidle/state2/latency", "50"),
            ("sys/devices/system/cpu/cpu1/cpuidle/state2/disable", "1"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_available_governors", "performance powersave"),
        ] {
            self.put(path, text);
        }
        std::os::unix::fs::symlink("../../../devices/pci/0000:00:03.0", self.root.join("sys/class/net/eth1/device"))
            .unwrap();
        let other = Standing::Other(0);
        for (tid, name, standing) in [
            (10, "ksoftirqd/0", other),
            (11, "ksoftirqd/1", other),
            (12, "backlog_napi/1", other),
            (13, "irq/24-eth1-TxR", Standing::Fifo(50)),
            (14, "irq/25-eth1-TxR", Standing::Fifo(50)),
            (15, "irq/8-rtc0", Standing::Fifo(50)),
            (16, "napi/eth1-8193", other),
            (17, "napi/eth10-8194", other),
        ] {
            self.put(&format!("proc/{tid}/comm"), name);
            let policy = SchedAttr::new(standing, false);
            self.put(&format!("proc/{tid}/policy"), &serde_json::to_string(&policy).unwrap());
            self.put(&format!("proc/{tid}/cpus"), "[0,1,2,3]");
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap().trim().to_owned()
    }

    fn standing_of(&self, tid: Tid) -> String {
        self.policy(tid).unwrap().to_string()
    }

    /// Returns all files with their contents, except the record.
    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(folder).unwrap() {
                let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
                if kind.is_dir() {
                    walk(&path, all);
                } else if kind.is_file() {
                    all.insert(path.clone(), fs::read(&path).unwrap());
                }
            }
        }
        let mut all = BTreeMap::new();
        walk(&self.root, &mut all);
        all.remove(&self.root.join(RECORD));
        all
    }

    /// Counts a change, and fails if it is its turn.
    fn act(&self) -> io::Result<()> {
        let number = self.acts.get();
        self.acts.set(number + 1);
        let is_dead = self.death.get().is_some_and(|death| number >= death);
        match is_dead || self.failure.get() == Some(number) {
            true => Err(io::Error::from_raw_os_error(libc::EIO)),
            false => Ok(()),
        }
    }

    fn overwrite(&self, path: &str, text: &str) -> io::Result<()> {
        self.act()?;
        if let Some((_, errno)) = self.refused.iter().find(|(refused, _)| *refused == path) {
            return Err(io::Error::from_raw_os_error(*errno));
        }
        let mut file = OpenOptions::new().write(true).open(self.at(path))?;
        if self.deaf == Some(path) {
            return Ok(());
        }
        file.set_len(0)?;
        writeln!(file, "{text}")
    }

    fn has_record(&self) -> bool {
        self.root.join(RECORD).exists()
    }
}

impl Access for Fake {
    fn is_root(&self) -> bool {
        self.is_root
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(self.at(path.to_str().unwrap()))
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        self.overwrite(path.to_str().unwrap(), text)
    }

    fn names(&self, path: &Path) -> Vec<String> {
        ThisHost(PROFILE).names(&self.at(path.to_str().unwrap()))
    }

    fn target(&self, link: &Path) -> Option<String> {
        ThisHost(PROFILE).target(&self.at(link.to_str().unwrap()))
    }

    /// The threads of receive queues exist while their switch is on.
    fn threads(&self) -> Vec<(Tid, String)> {
        let has_napi = self.text("sys/class/net/eth1/threaded") == "1";
        let tids = self.names(Path::new("/proc")).into_iter().filter_map(|name| name.parse().ok());
        let threads = tids.map(|tid: Tid| (tid, self.text(&format!("proc/{tid}/comm"))));
        threads.filter(|(_, name)| has_napi || !name.starts_with("napi/")).collect()
    }

    fn is_still(&self, thread: Tid, name: &str) -> bool {
        fs::read_to_string(self.at(&format!("proc/{thread}/comm"))).is_ok_and(|comm| comm.trim() == name)
    }

    fn policy(&self, thread: Tid) -> io::Result<SchedAttr> {
        let text = fs::read_to_string(self.at(&format!("proc/{thread}/policy")))?;
        serde_json::from_str(&text).map_err(io::Error::other)
    }

    fn set_policy(&self, thread: Tid, policy: &SchedAttr) -> io::Result<()> {
        self.overwrite(&format!("/proc/{thread}/policy"), &serde_json::to_string(policy).unwrap())
    }

    fn affinity(&self, thread: Tid) -> io::Result<CpuSet> {
        let text = fs::read_to_string(self.at(&format!("proc/{thread}/cpus")))?;
        serde_json::from_str(&text).map_err(io::Error::other)
    }

    fn set_affinity(&self, thread: Tid, cpus: &CpuSet) -> io::Result<()> {
        let list: Vec<String> = cpus.as_slice().iter().map(u32::to_string).collect();
        self.overwrite(&format!("/proc/{thread}/cpus"), &format!("[{}]", list.join(",")))
    }

    fn limit_latency(&self, _us: u32) -> io::Result<File> {
        self.act()?;
        File::open("/dev/null")
    }

    fn record(&self) -> Option<String> {
        fs::read_to_string(self.root.join(RECORD)).ok()
    }

    fn set_record(&self, text: Option<&str>) -> io::Result<()> {
        self.act()?;
        crate::file::replace(&self.root.join(RECORD), text)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

const ONLINE: [u32; 4] = [0, 1, 2, 3];
/// A profile with every setting.
const ALL: &str = "{like: macrotick, napi-threads: true, partition: true}";
const ALL_PROFILES: [&str; 5] = ["real-time", "affinity", "isolation", "macrotick", ALL];

fn system(profile: &str) -> System {
    let text = format!(
        "system: s\ncpus: [1]\nprofile: {profile}\ntasks:\n  - {{name: a, period: 1ms, wcet: 10us, priority: 90, run: {{spin: 5us}}}}\n  \
         - {{name: b, period: 1ms, wcet: 10us, priority: 80, run: {{udp-receive: {{at: \"10.0.0.1:1\"}}}}}}\n"
    );
    System::parse(&text, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn request(system: &System, backend: Backend) -> Request<'_> {
    let priority = |priority| Some(priority).filter(|_| backend == Backend::Fifo);
    Request { system, backend, priorities: vec![priority(90), priority(80)], online: &ONLINE }
}

fn take(access: &Rc<Fake>, profile: &str, backend: Backend) -> Result<Option<InForce>, ProfileFault> {
    let system = system(profile);
    InForce::take_from(access.clone(), &request(&system, backend), Holder::this_process("s"))
}

fn in_force(access: &Rc<Fake>, profile: &str) -> InForce {
    take(access, profile, Backend::Fifo).unwrap_or_else(|fault| panic!("{fault}")).expect("a profile")
}

fn told(access: &Rc<Fake>, profile: &str) -> String {
    take(access, profile, Backend::Fifo).map(drop).unwrap_err().to_string()
}

/// Returns a holder that is gone.
fn gone() -> Holder {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let holder = Holder::Process { name: "s".into(), id: child.id(), start: 1 };
    child.wait().unwrap();
    holder
}

#[test]
fn each_profile_makes_its_changes() {
    for (name, profile) in
        ["real-time", "affinity", "isolation", "macrotick"].map(|name| (name, name)).into_iter().chain([("all", ALL)])
    {
        let host = Rc::new(Fake::new(&format!("golden-{name}")));
        let system = system(profile);
        let mut text = String::from("# Commands\n\n");
        for line in commands_from(&*host, &request(&system, Backend::Fifo)).unwrap() {
            text += &format!("{line}\n");
        }
        text += "\n# Settings in force\n\n";
        let force = in_force(&host, profile);
        for SettingInForce { name, before, value, absent } in &force.observed().settings {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
            text += &match absent {
                Some(reason) => format!("{name}: absent: {reason}\n"),
                None => format!("{name}: {} -> {}\n", shown(before), shown(value)),
            };
        }
        hold(&format!("crates/macrotick-host/src/profile/golden/{name}.txt"), &text);
    }
}

#[test]
fn without_a_profile_nothing_changes() {
    let host = Rc::new(Fake::new("none"));
    for profile in ["none", "{like: none, devices: [eth1]}"] {
        assert!(take(&host, profile, Backend::Kernel).unwrap().is_none());
    }
    assert_eq!(host.acts.get(), 0);
}

#[test]
fn the_end_restores_every_file() {
    for profile in ALL_PROFILES {
        let host = Rc::new(Fake::new("end"));
        let before = host.contents();
        let force = in_force(&host, profile);
        assert!(host.contents() != before && host.has_record(), "{profile}");
        drop(force);
        assert_eq!(host.contents(), before, "{profile}");
        assert!(!host.has_record(), "{profile}");
    }
}

/// The other profiles make a part of the changes of these.
const LARGEST: [&str; 2] = ["affinity", ALL];

/// Each change fails once, also those of the record.
#[test]
fn a_failure_at_any_step_leaves_nothing_behind() {
    for profile in LARGEST {
        let whole = Rc::new(Fake::new("whole"));
        let force = in_force(&whole, profile);
        let steps = whole.acts.get();
        drop(force);
        assert!(steps >= 4, "{profile}: {steps}");
        for step in 0..steps {
            let host = Rc::new(Fake::new("failure"));
            host.failure.set(Some(step));
            let before = host.contents();
            match take(&host, profile, Backend::Fifo) {
                // The kernel may refuse to move an interrupt.
                Ok(force) => drop(force),
                Err(fault) => assert!(fault.to_string().starts_with("cannot "), "{fault}"),
            }
            assert_eq!(host.contents(), before, "{profile}: step {step}");
            assert!(!host.has_record(), "{profile}: step {step}");
        }
    }
}

/// The program dies before each change, also in the middle of the restoration.
#[test]
fn the_next_start_restores_the_host_after_a_crash() {
    for profile in LARGEST {
        let whole = Rc::new(Fake::new("alive"));
        drop(in_force(&whole, profile));
        for step in 0..whole.acts.get() {
            let host = Rc::new(Fake::new("dead"));
            host.death.set(Some(step));
            let before = host.contents();
            let system = system(profile);
            drop(InForce::take_from(host.clone(), &request(&system, Backend::Fifo), gone()));
            host.death.set(None);
            let had_record = host.has_record();
            assert!(host.contents() == before || had_record, "{profile}: step {step}");
            assert_eq!(record::left(&*host).is_some(), had_record);
            assert_eq!(record::settle(&*host), had_record);
            assert_eq!(host.contents(), before, "{profile}: step {step}");
            assert!(!host.has_record() && record::left(&*host).is_none(), "{profile}: step {step}");
        }
    }
}

#[test]
fn a_failed_restoration_is_repeated() {
    let host = Rc::new(Fake::new("again"));
    let before = host.contents();
    let force = in_force(&host, "isolation");
    // The first change of the restoration fails, the others succeed.
    host.failure.set(Some(host.acts.get()));
    drop(force);
    assert!(host.contents() != before && host.has_record());
    assert_eq!(record::left(&*host).as_deref(), Some("its holder"));
    assert!(record::settle(&*host));
    assert_eq!(host.contents(), before);
    assert!(!host.has_record());
}

#[test]
fn what_another_program_sets_stays() {
    let host = Rc::new(Fake::new("other"));
    let force = in_force(&host, "macrotick");
    host.put("proc/sys/kernel/timer_migration", "2");
    drop(force);
    assert_eq!(host.text("proc/sys/kernel/timer_migration"), "2");
    assert_eq!(host.text("sys/kernel/rcu_normal"), "0");
}

#[test]
fn a_thread_with_the_number_of_another_one_stays() {
    let host = Rc::new(Fake::new("number"));
    let force = in_force(&host, "real-time");
    assert_eq!(host.standing_of(13), "SCHED_FIFO 82");
    host.put("proc/13/comm", "another");
    drop(force);
    assert_eq!((host.standing_of(13), host.standing_of(14)), ("SCHED_FIFO 82".into(), "SCHED_FIFO 50".into()));
}

#[test]
fn a_host_has_one_profile_at_a_time() {
    let host = Rc::new(Fake::new("one"));
    let force = in_force(&host, "real-time");
    let expected =
        format!("the profile of s (process {}) is in force: a host has one profile at a time", std::process::id());
    assert_eq!(told(&host, "affinity"), expected);
    assert_eq!(host.text("proc/irq/24/smp_affinity_list"), "0-3");
    drop(force);
    drop(in_force(&host, "affinity"));
}

/// The threads that serve tasks are above the tasks that wait for them.
#[test]
fn serving_threads_are_above_those_that_wait() {
    let host = Rc::new(Fake::new("above"));
    let levels = |profile: &str, backend| {
        let force = take(&host, profile, backend).unwrap_or_else(|fault| panic!("{fault}")).expect("a profile");
        let levels = (host.standing_of(13), host.standing_of(11), host.standing_of(10));
        (levels, force.remarks().to_vec())
    };
    let three = |one: &str, two: &str| ((one.to_owned(), two.to_owned(), format!("{OTHER} 0")), Vec::<String>::new());
    // Task `a` has 90, and does not wait for the network.
    assert_eq!(levels("macrotick", Backend::Fifo), three("SCHED_FIFO 82", "SCHED_FIFO 81"));
    assert_eq!(levels("real-time", Backend::Fifo), three("SCHED_FIFO 82", "SCHED_OTHER 0"));
    // Windows come first.
    assert_eq!(levels("macrotick", Backend::Kernel), three("SCHED_FIFO 50", "SCHED_FIFO 49"));
    let (_, remarks) = levels("{like: real-time, interrupts: 60}", Backend::Fifo);
    let remark = "profile: `interrupts` gives the threads priority 60: task `b` with priority 80 waits for them, and \
                  keeps them from the CPU";
    assert_eq!(remarks, [remark]);
    assert_eq!(levels("{like: real-time, interrupts: 85}", Backend::Fifo).1, [""; 0]);
}

#[test]
fn a_thread_of_a_group_keeps_its_policy() {
    let host = Rc::new(Fake::new("served"));
    let mut system = system("macrotick");
    let text = "system: s\ncpus: [1]\ngroups: [{name: net, cpus: [1], budget: 100us, priority: 1, kernel-threads: [ksoftirqd, irq/24-eth1-TxR]}]\n";
    system.groups = System::parse(text, "g.yaml").unwrap_or_else(|errors| panic!("{errors}")).groups;
    let force = InForce::take_from(host.clone(), &request(&system, Backend::Kernel), Holder::this_process("s"));
    let force = force.unwrap_or_else(|fault| panic!("{fault}")).unwrap();
    let absent = |setting: &&SettingInForce| setting.absent.as_deref() == Some("group `net` serves the thread");
    let names: Vec<&str> =
        force.observed().settings.iter().filter(absent).map(|setting| setting.name.as_str()).collect();
    assert_eq!(names, ["policy of irq/24-eth1-TxR", "policy of ksoftirqd/1"]);
    assert_eq!(host.standing_of(11), "SCHED_OTHER 0");
}

#[test]
fn a_host_without_a_setting_is_no_failure() {
    let host = Rc::new(Fake::new("lacking"));
    for path in ["sys/devices/system/cpu/cpu1", "sys/kernel/debug", "sys/devices/virtual", "proc/13", "proc/14"] {
        fs::remove_dir_all(host.at(path)).unwrap();
    }
    fs::remove_file(host.at("proc/sys/kernel/timer_migration")).unwrap();
    let force = in_force(&host, "macrotick");
    let absent = force.observed().settings.iter().filter_map(|setting| Some((&setting.name, setting.absent.as_ref()?)));
    let text: String = absent.map(|(name, reason)| format!("{name}: {reason}\n")).collect();
    hold("crates/macrotick-host/src/profile/golden/absent.txt", &text);
}

/// An interrupt that cannot move stays, and those of a device must move.
#[test]
fn only_other_interrupts_may_stay() {
    let mut fixed = Fake::new("fixed");
    fixed.refused = vec![("/proc/irq/0/smp_affinity_list", libc::EIO)];
    let host = Rc::new(fixed);
    let force = in_force(&host, "isolation");
    let of = |name: &str| force.observed().settings.iter().find(|setting| setting.name == name).unwrap();
    let reason = "the kernel does not let it move: Input/output error (os error 5)";
    assert_eq!(of("/proc/irq/0/smp_affinity_list").absent.as_deref(), Some(reason));
    assert_eq!(of("/proc/irq/8/smp_affinity_list").value.as_deref(), Some("0,2,3"));
    assert_eq!(force.partition(), Some(&CpuSet::from_iter([1])));
}

#[test]
fn a_profile_needs_a_cpu_for_others() {
    let host = Rc::new(Fake::new("cpus"));
    let mut system = system("isolation");
    system.cpus = ONLINE.to_vec();
    let force = InForce::take_from(host.clone(), &request(&system, Backend::Fifo), Holder::this_process("s"));
    let force = force.unwrap_or_else(|fault| panic!("{fault}")).unwrap();
    let reason = Some("the profile has every CPU of this host");
    let absent = force.observed().settings.iter().filter(|setting| setting.absent.as_deref() == reason);
    let names: Vec<&str> = absent.map(|setting| setting.name.as_str()).collect();
    assert_eq!(names, ["shield-interrupts", "shield-workqueues", "partition"]);
    assert_eq!((force.partition(), host.text("proc/sys/kernel/watchdog").as_str()), (None, "0"));
}

#[test]
fn refusals_name_place_reason_and_remedy() {
    let mut text = String::new();
    let refusal = |name: &str, change: &dyn Fn(&mut Fake), profile: &str| {
        let mut fake = Fake::new(name);
        change(&mut fake);
        let host = Rc::new(fake);
        let before = host.contents();
        let told = told(&host, profile);
        assert_eq!(host.contents(), before, "{name}");
        told + "\n"
    };
    text += &refusal("user", &|fake| fake.is_root = false, "affinity");
    text += &refusal("device", &|_| (), "{like: affinity, devices: [eth1, eth9]}");
    text += &refusal("governor", &|_| (), "{governor: schedutil}");
    let stuck = |fake: &mut Fake| fake.refused = vec![("/proc/irq/25/smp_affinity_list", libc::EIO)];
    text += &refusal("stuck", &stuck, "affinity");
    let strict = |fake: &mut Fake| fake.refused = vec![("/proc/13/policy", libc::EPERM)];
    text += &refusal("strict", &strict, "real-time");
    text += &refusal("deaf", &|fake| fake.deaf = Some("/sys/kernel/rcu_normal"), "macrotick");
    text += &refusal("record", &|fake| fake.failure.set(Some(0)), "real-time");
    let host = Rc::new(Fake::new("cpu"));
    let refused = |system: &System, priorities| {
        let request = Request { priorities, ..request(system, Backend::Fifo) };
        InForce::take_from(host.clone(), &request, Holder::this_process("s")).map(drop).unwrap_err().to_string() + "\n"
    };
    let mut offline = system("affinity");
    offline.cpus = vec![1, 7];
    text += &refused(&offline, vec![None, None]);
    text += &refused(&system("real-time"), vec![None, Some(97)]);
    hold("crates/macrotick-host/src/profile/golden/refusals.txt", &text);
}

fn steps() -> Vec<journal::Step> {
    let write = |path: &str, value: &str| journal::Step::Write { path: path.into(), value: value.into() };
    vec![
        write("/proc/sys/kernel/timer_migration", "0"),
        write("/sys/kernel/mm/transparent_hugepage/enabled", "never"),
        journal::Step::Policy { thread: 10, name: "ksoftirqd/0".into(), standing: Standing::Fifo(49) },
    ]
}

fn host_with_choice(name: &str) -> Fake {
    let fake = Fake::new(name);
    fake.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    fake
}

#[test]
fn a_journal_reverts_its_changes_in_another_program() {
    let host = Rc::new(host_with_choice("journal"));
    let mut first = Journal::of(host.clone()).unwrap();
    let made: Vec<String> = steps().iter().map(|step| first.make(step).unwrap().to_string()).collect();
    assert_eq!(
        made,
        [
            "kernel.timer_migration: 1 -> 0",
            "/sys/kernel/mm/transparent_hugepage/enabled: madvise -> never",
            "policy of ksoftirqd/0: SCHED_OTHER 0 -> SCHED_FIFO 49"
        ]
    );
    assert!(first.make(&steps()[0]).unwrap().failure.is_none() && first.len() == 3, "it has the value");
    host.put("proc/sys/kernel/timer_migration", "2");
    // The value of another program stays; the rest is as it was.
    let mut second = Journal::of(host.clone()).unwrap();
    let undone: Vec<String> = second.undo().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        undone,
        [
            "policy of ksoftirqd/0: SCHED_FIFO 49 -> SCHED_OTHER 0",
            "/sys/kernel/mm/transparent_hugepage/enabled: never -> madvise",
            "kernel.timer_migration: another program has set 2, which stays"
        ]
    );
    assert_eq!(host.text("sys/kernel/mm/transparent_hugepage/enabled"), "madvise");
    assert_eq!(host.standing_of(10), format!("{OTHER} 0"));
    assert_eq!(second.len(), 1, "the other program may give its value back");
    host.put("proc/sys/kernel/timer_migration", "0");
    assert!(second.undo().unwrap()[0].failure.is_none() && second.is_empty() && !host.has_record());
    assert_eq!(host.text("proc/sys/kernel/timer_migration"), "1");
}

/// A journal that is damaged may be the only place with the values before.
#[test]
fn a_damaged_journal_is_kept() {
    let host = Rc::new(Fake::new("journal-damaged"));
    Journal::of(host.clone()).unwrap().make(&steps()[0]).unwrap();
    let whole = host.record().unwrap();
    for damaged in [&whole[..whole.len() / 2], "", "{}", "[1]"] {
        host.set_record(Some(damaged)).unwrap();
        assert!(Journal::of(host.clone()).is_err(), "{damaged}");
        assert_eq!(host.record().as_deref(), Some(damaged));
    }
}

#[test]
fn a_journal_tells_refusals_and_keeps_what_it_cannot_revert() {
    let path = "/proc/sys/kernel/timer_migration";
    let mut fake = Fake::new("journal-refused");
    fake.refused = vec![(path, libc::EINVAL)];
    let mut journal = Journal::of(Rc::new(fake)).unwrap();
    let refused = journal.make(&steps()[0]).unwrap();
    assert_eq!(refused.to_string(), "kernel.timer_migration: the kernel refused 0: Invalid argument (os error 22)");
    assert!(journal.is_empty(), "nothing changed");
    let missing = journal.make(&journal::Step::Write { path: "/sys/none".into(), value: "1".into() }).unwrap();
    assert_eq!(missing.to_string(), "/sys/none: this host does not have it");

    let host = Rc::new(Fake::new("journal-left"));
    let mut journal = Journal::of(host.clone()).unwrap();
    journal.make(&steps()[0]).unwrap();
    host.failure.set(Some(host.acts.get()));
    let undone = journal.undo().unwrap();
    assert!(undone[0].failure.is_some() && journal.len() == 1, "{undone:?}");
    assert!(journal.undo().unwrap()[0].failure.is_none() && journal.is_empty());
    assert_eq!(host.text("proc/sys/kernel/timer_migration"), "1");
}

#[test]
fn a_journal_survives_a_death_at_any_change() {
    for death in 0..20 {
        let host = Rc::new(host_with_choice("journal-death"));
        let before = host.contents();
        host.death.set(Some(death));
        let mut journal = Journal::of(host.clone()).unwrap();
        let done = steps().iter().all(|step| journal.make(step).is_ok_and(|made| made.failure.is_none()));
        host.death.set(None);
        drop(journal);
        Journal::of(host.clone()).unwrap().undo().unwrap();
        let mut after = host.contents();
        // A choice is written back without the other words, which only a kernel adds.
        let choice = host.at("sys/kernel/mm/transparent_hugepage/enabled");
        if after.get(&choice).is_some_and(|text| text == b"madvise\n") {
            after.insert(choice.clone(), before[&choice].clone());
        }
        assert_eq!(after, before, "death at change {death}");
        assert!(!host.has_record());
        if done {
            return;
        }
    }
    panic!("the steps need fewer changes");
}
