//! Control groups (cgroup v2) whose threads are pools or groups: made or taken over, told what serves them, given back.

mod promise;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use macrotick_model::{CpuSet, Duration, Pool};

pub use promise::Promised;

use crate::error::NodeError;
use crate::sys;

/// Where the hierarchy is mounted.
pub const ROOT: &str = "/sys/fs/cgroup";
/// Of the control groups that the runner makes; the pool's or group's name follows.
const PREFIX: &str = "macrotick-";
/// Names the entity whose windows serve a group.
pub(crate) const ENTITY: &str = "cpu.tt.entity";
/// In every group with the cpu controller.
const WEIGHT: &str = "cpu.weight";
/// Whether a group's CPUs are a scheduling domain of their own.
pub const PARTITION: &str = "cpuset.cpus.partition";
const CONTROL: &str = "cgroup.subtree_control";
/// Of the names of partitions, which no pool and no group can have.
pub const DOMAIN: &str = ".cpus-";
/// In a partition, of the processes that are in no group of their own.
const PLACE: &str = "tasks";
/// How many control groups there may be below one: each takes part in the interrupt in which `cpu.max` of one above it begins or
/// ceases to hold it back.
const DESCENDANTS: &str = "cgroup.max.descendants";
/// And how deep: whoever nests groups with `cpu.max` may have all of them in one interrupt.
const DEPTH: &str = "cgroup.max.depth";
/// What bounds a control group, for itself and for each container in it.
pub const BOUNDS: [(&str, u32); 2] = [(DESCENDANTS, 16), (DEPTH, 4)];
/// How long the last process of a group may take to be gone.
const GRACE: Duration = Duration::from_secs(1);

/// Why a pool or a group has no control group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupFault {
    /// No hierarchy of version 2.
    #[error("no cgroup v2 hierarchy is mounted at {ROOT}")]
    NoHierarchy,
    /// The controller belongs to a hierarchy of version 1, or is switched off.
    #[error("the cgroup v2 hierarchy at {ROOT} has no {0} controller (is cgroup v1 using it?)")]
    NoController(&'static str),
    /// The controller is not enabled for a group that was given.
    #[error("the cpu controller is not enabled for {0} (write +cpu to {CONTROL} of the group above it)")]
    NotEnabled(PathBuf),
    /// The kernel knows nothing of pools.
    #[error("this kernel has no pools: {0} has no {ENTITY}")]
    NoPools(PathBuf),
    /// The kernel knows nothing of budgets.
    #[error("this kernel has no groups with a budget: {0} has no cpu.ds.budget")]
    NoBudgets(PathBuf),
    /// A group that was given is not there.
    #[error("there is no control group {0}")]
    Missing(PathBuf),
    /// A group that was given is the root.
    #[error("{0} is the root of the hierarchy, which cannot be a pool or a group")]
    Root(PathBuf),
    /// The kernel did not make a partition of its CPUs, for the reason that it gives.
    #[error("{0} did not become a partition of its own: `{1}`")]
    NoPartition(PathBuf, String),
    /// A group that was given cannot get to the CPUs of a partition.
    #[error(
        "{path} is a control group of its own, and CPU {cpus} is a partition for deadline tasks, which only groups of the runner \
         can be in"
    )]
    Apart {
        /// The group.
        path: PathBuf,
        /// The partition's CPUs.
        cpus: CpuSet,
    },
    /// The runner would be in the pool.
    #[error("this program itself runs in {0}, which would decide when it runs")]
    Own(PathBuf),
}

/// A controller for the groups below the root. Dropping it disables what it had enabled.
pub struct Controller {
    name: &'static str,
    enabled: bool,
}

impl Controller {
    /// What budgets and windows of control groups come with.
    pub const CPU: &'static str = "cpu";
    /// What partitions come with.
    pub const CPUSET: &'static str = "cpuset";

    /// Enables it where it is not.
    pub fn enable(owner: &Owner, name: &'static str) -> Result<Controller, NodeError> {
        let root = Path::new(ROOT);
        let fault = |fault| NodeError::Group { owner: owner.clone(), fault };
        let Ok(known) = fs::read_to_string(root.join("cgroup.controllers")) else {
            return Err(fault(GroupFault::NoHierarchy));
        };
        if !has_word(&known, name) {
            return Err(fault(GroupFault::NoController(name)));
        }
        let path = root.join(CONTROL);
        let failed = |what| NodeError::group_file(owner, what, &path);
        if has_word(&fs::read_to_string(&path).map_err(failed("read"))?, name) {
            return Ok(Controller { name, enabled: false });
        }
        fs::write(&path, format!("+{name}")).map_err(failed("enable a controller in"))?;
        Ok(Controller { name, enabled: true })
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if self.enabled && !is_used_by_others() {
            let _ = fs::write(Path::new(ROOT).join(CONTROL), format!("-{}", self.name));
        }
    }
}

/// Whether somebody else has made a group below the root that has a budget or is a pool: without the controller it would lose that.
fn is_used_by_others() -> bool {
    let groups = fs::read_dir(ROOT).into_iter().flatten().flatten();
    let uses = |folder: PathBuf| {
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        !matches!(read("cpu.ds.budget").trim(), "" | "0") || !read("cpu.tt.entity").trim().is_empty()
    };
    groups.map(|entry| entry.path()).any(uses)
}

/// Whether the runner makes the control group of a pool or a group of that name there: below the root, or in a partition.
pub fn is_default_path(path: &Path, name: &str) -> bool {
    let is_partition = |parent: &&Path| {
        let own = parent.file_name().is_some_and(|own| own.to_string_lossy().starts_with(&format!("{PREFIX}{DOMAIN}")));
        own && parent.parent() == Some(Path::new(ROOT))
    };
    let parent = path.parent().filter(is_partition).unwrap_or(Path::new(ROOT));
    path == path_in(parent, name)
}

/// Where the runner makes the control group of that name: below the root, or in a partition.
pub fn path_of(partition: Option<&Group>, name: &str) -> PathBuf {
    path_in(partition.map_or(Path::new(ROOT), Group::path), name)
}

fn path_in(parent: &Path, name: &str) -> PathBuf {
    parent.join(format!("{PREFIX}{name}"))
}

/// Whose control group it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A pool, of that name.
    Pool(String),
    /// A group.
    Group(String),
    /// Tasks of SCHED_DEADLINE, named by their CPUs.
    Domain(String),
}

impl Owner {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Owner::Pool(name) | Owner::Group(name) | Owner::Domain(name) => name,
        }
    }

    /// The files that tell the kernel what serves it. Written back in this order.
    fn files(&self) -> &'static [&'static str] {
        match self {
            Owner::Pool(_) => &[ENTITY],
            Owner::Group(_) => &["cpu.ds.budget", "cpu.ds.priority", "cpu.ds.fifo", "cpu.ds.lead", ENTITY],
            Owner::Domain(_) => &[PARTITION],
        }
    }

    /// What is wrong with a kernel that has none of them.
    fn lacking(&self, path: PathBuf) -> GroupFault {
        match self {
            Owner::Pool(_) => GroupFault::NoPools(path),
            Owner::Group(_) => GroupFault::NoBudgets(path),
            Owner::Domain(_) => GroupFault::NoPartition(path, format!("no {PARTITION}")),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Pool(name) => write!(f, "pool `{name}`"),
            Owner::Group(name) => write!(f, "group `{name}`"),
            Owner::Domain(name) => write!(f, "deadline tasks on {}", name.trim_start_matches('.')),
        }
    }
}

/// The control group of a pool or a group. Dropping it removes one that was made, with all that runs in it, and gives back
/// one that was taken over.
pub struct Group {
    owner: Owner,
    path: PathBuf,
    kind: Kind,
    /// What the kernel is told of who serves it, file by file, in this order.
    writes: Vec<(&'static str, String)>,
    promised: Option<Promised>,
}

enum Kind {
    Made,
    /// With what its files had said before.
    Given(Vec<String>),
}

impl Group {
    /// Makes the group of a pool, or takes over the one that it is to be, and tells the kernel its entity, whose table
    /// is installed. [`Controller`] must have been enabled.
    pub fn of(pool: &Pool, partition: Option<&Group>) -> Result<Group, NodeError> {
        let mut group = Group::open(Owner::Pool(pool.name.clone()), pool.cgroup.as_deref(), partition)?;
        group.promise(vec![(ENTITY, pool.name.clone())])?;
        Ok(group)
    }

    /// Makes a control group, or takes over the one that is given, which cannot be in a partition. Nothing is told to the
    /// kernel yet.
    pub fn open(owner: Owner, given: Option<&str>, partition: Option<&Group>) -> Result<Group, NodeError> {
        match (given, partition) {
            (None, None) => Group::make(owner),
            (None, Some(partition)) => Group::make_in(&partition.path, owner),
            (Some(path), None) => Group::take_over(owner, Path::new(path)),
            (Some(path), Some(partition)) => {
                let cpus = crate::sys::parse_cpu_list(&partition.read("cpuset.cpus")?).into_iter().collect();
                Err(NodeError::Group { owner, fault: GroupFault::Apart { path: path.into(), cpus } })
            }
        }
    }

    /// Makes a control group below the root.
    pub fn make(owner: Owner) -> Result<Group, NodeError> {
        Group::make_in(Path::new(ROOT), owner)
    }

    fn make_in(parent: &Path, owner: Owner) -> Result<Group, NodeError> {
        let path = path_in(parent, owner.name());
        // One may be left over from a run that was killed; the lock says that nobody uses it.
        if path.is_dir() {
            remove(&path);
        }
        fs::create_dir(&path).map_err(NodeError::group_file(&owner, "make", &path))?;
        let group = Group { owner, path, kind: Kind::Made, writes: Vec::new(), promised: None };
        match group.has(group.owner.files()[0]) {
            true => Ok(group),
            false => Err(group.fault(group.owner.lacking(group.path.clone()))),
        }
    }

    fn take_over(owner: Owner, path: &Path) -> Result<Group, NodeError> {
        let fault = |fault| NodeError::Group { owner: owner.clone(), fault };
        let Some(path) = path.canonicalize().ok().filter(|path| path.join("cgroup.procs").is_file()) else {
            return Err(fault(GroupFault::Missing(path.into())));
        };
        if path == Path::new(ROOT) {
            return Err(fault(GroupFault::Root(path)));
        }
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        if own_group(&own).is_some_and(|own| own.starts_with(&path)) {
            return Err(fault(GroupFault::Own(path)));
        }
        // Until it is known what the files say, nothing is to be given back.
        let mut before = Vec::new();
        for file in owner.files().iter().map(|file| path.join(file)) {
            match fs::read_to_string(&file) {
                Ok(text) => before.push(text.trim().to_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let enabled = path.join(WEIGHT).exists();
                    return Err(fault(if enabled { owner.lacking(path) } else { GroupFault::NotEnabled(path) }));
                }
                Err(error) => return Err(NodeError::group_file(&owner, "read", &file)(error)),
            }
        }
        Ok(Group { owner, path, kind: Kind::Given(before), writes: Vec::new(), promised: None })
    }

    /// Bounds the control groups below one that was made, which has room for so many containers. Returns what could not be: who
    /// has made one that was taken over may need as many as it has.
    pub fn bound(&self, containers: u32) -> Option<String> {
        let [(descendants, most), (depth, deepest)] = BOUNDS;
        let write = |file: &str, most: u32| fs::write(self.path.join(file), most.to_string());
        match &self.kind {
            Kind::Made => {
                write(descendants, most * (1 + containers)).and_then(|()| write(depth, deepest)).err().map(|error| {
                    format!("{}: it cannot be bounded how many control groups are below it: {error}", self.owner)
                })
            }
            Kind::Given(_) => self.read(descendants).is_ok_and(|text| text.trim() == "max").then(|| {
                let (owner, path) = (&self.owner, self.path.display());
                format!(
                    "{owner}: nothing bounds how many control groups there are below {path}, which was there before \
                     ({descendants}): the more, the longer `cpu.max` of one of them takes in an interrupt"
                )
            }),
        }
    }

    /// The name of its pool or group.
    pub fn name(&self) -> &str {
        self.owner.name()
    }

    /// Whose it is.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one of its files.
    pub fn write(&self, file: &str, text: &str) -> Result<(), NodeError> {
        fs::write(self.path.join(file), format!("{text}\n")).map_err(self.failed("write", file))
    }

    /// Reads one of its files.
    pub fn read(&self, file: &str) -> Result<String, NodeError> {
        fs::read_to_string(self.path.join(file)).map_err(self.failed("read", file))
    }

    /// Has the kernel make a partition of CPUs of it, and makes a place for processes there beside the groups to come, which
    /// have a cpu controller.
    pub fn divide(&self, cpus: &CpuSet) -> Result<(), NodeError> {
        self.write("cpuset.cpus", &crate::sys::cpu_list(cpus.as_slice()))?;
        self.write(PARTITION, "root")?;
        let state = self.read(PARTITION)?.trim().to_owned();
        if state != "root" {
            return Err(self.fault(GroupFault::NoPartition(self.path.clone(), state)));
        }
        self.write(CONTROL, "+cpu")?;
        let place = self.path.join(PLACE);
        fs::create_dir(&place).map_err(NodeError::group_file(&self.owner, "make", &place))
    }

    /// The file of processes of the place that [`divide`](Group::divide) made.
    pub fn place(&self) -> Result<File, NodeError> {
        self.open_file(&format!("{PLACE}/cgroup.procs"))
    }

    /// Its file of processes, for one that is to enter it.
    pub fn entrance(&self) -> Result<File, NodeError> {
        self.open_file("cgroup.procs")
    }

    fn open_file(&self, file: &str) -> Result<File, NodeError> {
        let path = self.path.join(file);
        OpenOptions::new().write(true).open(&path).map_err(NodeError::group_file(&self.owner, "open", &path))
    }

    /// The processor time that its processes have had since it was made, those that are gone included.
    pub fn usage(&self) -> Result<Duration, NodeError> {
        let text = self.read("cpu.stat")?;
        parse_usage(&text).ok_or_else(|| self.failed("understand", "cpu.stat")(io::ErrorKind::InvalidData.into()))
    }

    /// The threads in it now, and in the groups below.
    pub fn threads(&self) -> Vec<sys::Tid> {
        threads_below(&self.path)
    }

    fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    fn fault(&self, fault: GroupFault) -> NodeError {
        NodeError::Group { owner: self.owner.clone(), fault }
    }

    fn failed(&self, what: &'static str, file: &str) -> impl Fn(io::Error) -> NodeError {
        NodeError::group_file(&self.owner, what, &self.path.join(file))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        match &self.kind {
            Kind::Made => remove(&self.path),
            // It may be gone meanwhile, with its container.
            Kind::Given(before) => {
                for (file, text) in self.owner.files().iter().zip(before) {
                    let _ = self.write(file, text);
                }
            }
        }
    }
}

/// Removes the groups that a killed runner left behind.
pub fn remove_left() {
    for entry in fs::read_dir(ROOT).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
}

/// Ends all processes of a group and of those below, and removes these groups. Nothing can be done about a failure.
pub fn remove(path: &Path) {
    let _ = fs::write(path.join("cgroup.kill"), "1");
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    // A process leaves its group only when its last thread is gone.
    let give_up = sys::now() + GRACE;
    while fs::remove_dir(path).is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY)) && sys::now() < give_up {
        sys::sleep(Duration::from_millis(1));
    }
}

/// The threads in a group and in those below; one may vanish meanwhile.
pub fn threads_below(path: &Path) -> Vec<sys::Tid> {
    let text = fs::read_to_string(path.join("cgroup.threads")).unwrap_or_default();
    let mut threads: Vec<sys::Tid> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            threads.extend(threads_below(&entry.path()));
        }
    }
    threads
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|other| other == word)
}

/// The group of `/proc/PID/cgroup`, in the hierarchy of version 2.
fn own_group(text: &str) -> Option<PathBuf> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(ROOT).join(path))
}

fn parse_usage(text: &str) -> Option<Duration> {
    let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Duration::from_micros(usage.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_whole_words() {
        assert!(has_word("cpuset cpu io\n", "cpu"));
        assert!(!has_word("cpuset io\n", "cpu"));
    }

    #[test]
    fn the_own_group_is_that_of_version_2() {
        let text = "4:cpu,cpuacct:/user\n0::/user.slice/session.scope\n";
        assert_eq!(own_group(text), Some("/sys/fs/cgroup/user.slice/session.scope".into()));
        assert_eq!(own_group("4:cpu:/\n"), None);
    }

    #[test]
    fn groups_are_below_the_root_or_in_a_partition() {
        let is = |path: &str| is_default_path(Path::new(path), "web");
        assert!(is("/sys/fs/cgroup/macrotick-web") && is("/sys/fs/cgroup/macrotick-.cpus-1/macrotick-web"));
        assert!(!is("/sys/fs/cgroup/macrotick-other") && !is("/sys/fs/cgroup/other/macrotick-web"));
        assert!(!is("/sys/fs/cgroup/a/macrotick-.cpus-1/macrotick-web"));
    }

    #[test]
    fn usage_is_in_microseconds() {
        let text = "usage_usec 1234\nuser_usec 1000\nsystem_usec 234\n";
        assert_eq!(parse_usage(text), Some(Duration::from_micros(1234)));
        assert_eq!(parse_usage("user_usec 1000\n"), None);
    }

    /// Whatever this host is like, it has no such group.
    #[test]
    fn a_group_that_is_not_there_is_named() {
        let owner = || Owner::Pool("web".into());
        match Group::take_over(owner(), Path::new("/sys/fs/cgroup/no-such-group")).map(drop) {
            Err(error) => {
                assert_eq!(error.to_string(), "pool `web`: there is no control group /sys/fs/cgroup/no-such-group")
            }
            Ok(()) => panic!("it was taken over"),
        }
        let ordinary = Group::take_over(owner(), Path::new("/tmp")).map(drop).unwrap_err().to_string();
        assert_eq!(ordinary, "pool `web`: there is no control group /tmp");
    }
}
