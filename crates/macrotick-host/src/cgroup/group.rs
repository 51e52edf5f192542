//! The control group of a pool or a group: making it or taking it over, its supply, and giving it back.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use macrotick_model::{CpuSet, Duration, Pool};

use super::{
    below_root_of, path_in, remove, threads_below, GroupFault, Owner, Promised, BOUNDS, CONTROL, CPUS, ENTITY,
    PARTITION, PROCESSES, ROOT,
};
use crate::error::HostFailure;
use crate::sys;

/// A file of every group with the cpu controller.
const WEIGHT: &str = "cpu.weight";
/// The group in a partition for processes without a group of their own.
const PLACE: &str = "tasks";

/// The control group of a pool or a group. Dropping it removes a group that was made, with all processes in it, and
/// restores a group that was taken over.
pub struct Group {
    pub(super) owner: Owner,
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// The writes that select its supply, file by file, in this order.
    pub(super) writes: Vec<(&'static str, String)>,
    pub(super) promised: Option<Promised>,
}

/// The kind of a cpuset partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// The scheduler moves threads between its CPUs.
    Domain,
    /// The scheduler moves no thread to another CPU.
    Isolated,
}

impl Division {
    fn word(self) -> &'static str {
        match self {
            Division::Domain => "root",
            Division::Isolated => "isolated",
        }
    }
}

pub(super) enum Kind {
    Made,
    /// An existing group, with the former contents of its files.
    Given(Vec<String>),
}

impl Group {
    /// Makes the group of a pool, or takes over the given one, and tells the kernel its entity. The table of the entity
    /// must be installed, and the [`Controller`](super::Controller) enabled.
    pub fn of(pool: &Pool, partition: Option<&Group>) -> Result<Group, HostFailure> {
        let mut group = Group::open(Owner::Pool(pool.name.clone()), pool.cgroup.as_deref(), partition)?;
        group.promise(vec![(ENTITY, pool.name.clone())])?;
        Ok(group)
    }

    /// Makes a control group, or takes over the given one, which cannot be in a partition. The kernel does not know its
    /// supply yet.
    pub fn open(owner: Owner, given: Option<&str>, partition: Option<&Group>) -> Result<Group, HostFailure> {
        match (given, partition) {
            (None, None) => Group::make(owner),
            (None, Some(partition)) => Group::make_in(&partition.path, owner),
            (Some(path), None) => Group::take_over(owner, Path::new(path)),
            (Some(path), Some(partition)) => {
                let cpus = sys::parse_cpu_list(&partition.read(CPUS)?).into_iter().collect();
                Err(HostFailure::Group { owner, fault: GroupFault::Apart { path: path.into(), cpus } })
            }
        }
    }

    /// Makes a control group below the root.
    pub fn make(owner: Owner) -> Result<Group, HostFailure> {
        Group::make_in(Path::new(ROOT), owner)
    }

    fn make_in(parent: &Path, owner: Owner) -> Result<Group, HostFailure> {
        let path = path_in(parent, owner.name());
        // A killed run may have left one. The lock ensures that no other run uses it.
        if path.is_dir() {
            remove(&path);
        }
        fs::create_dir(&path).map_err(HostFailure::group_file(&owner, "make", &path))?;
        let group = Group { owner, path, kind: Kind::Made, writes: Vec::new(), promised: None };
        match group.has(group.owner.files()[0]) {
            true => Ok(group),
            false => Err(group.fault(group.owner.lacking(group.path.clone()))),
        }
    }

    fn take_over(owner: Owner, path: &Path) -> Result<Group, HostFailure> {
        let fault = |fault| HostFailure::Group { owner: owner.clone(), fault };
        let Some(path) = path.canonicalize().ok().filter(|path| path.join(PROCESSES).is_file()) else {
            return Err(fault(GroupFault::Missing(path.into())));
        };
        if path == Path::new(ROOT) {
            return Err(fault(GroupFault::Root(path)));
        }
        let own = below_root_of("self").ok().flatten().map(|own| Path::new(ROOT).join(own));
        if own.is_some_and(|own| own.starts_with(&path)) {
            return Err(fault(GroupFault::Own(path)));
        }
        // An error before all files are read must restore nothing. Therefore the group is constructed last.
        let mut before = Vec::new();
        for file in owner.files().iter().map(|file| path.join(file)) {
            match fs::read_to_string(&file) {
                Ok(text) => before.push(text.trim().to_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let enabled = path.join(WEIGHT).exists();
                    return Err(fault(if enabled { owner.lacking(path) } else { GroupFault::NotEnabled(path) }));
                }
                Err(error) => return Err(HostFailure::group_file(&owner, "read", &file)(error)),
            }
        }
        Ok(Group { owner, path, kind: Kind::Given(before), writes: Vec::new(), promised: None })
    }

    /// Limits the control groups below a group that was made, with room for this many containers. Returns a remark if
    /// there is no limit. A group that was taken over keeps its own limit, because its owner may need any number of
    /// groups.
    pub fn bound(&self, containers: u32) -> Option<String> {
        let [(descendants, most), (depth, deepest)] = BOUNDS;
        let write = |file: &str, most: u32| fs::write(self.path.join(file), most.to_string());
        match &self.kind {
            Kind::Made => {
                write(descendants, most * (1 + containers)).and_then(|()| write(depth, deepest)).err().map(|error| {
                    format!("{}: cannot set a limit for the number of control groups below it: {error}", self.owner)
                })
            }
            Kind::Given(_) => self.read(descendants).is_ok_and(|text| text.trim() == "max").then(|| {
                let (owner, path) = (&self.owner, self.path.display());
                format!(
                    "{owner}: no limit for control groups below {path}, which existed before ({descendants}): \
                     with more groups, `cpu.max` of one of them takes longer in an interrupt"
                )
            }),
        }
    }

    /// Returns the name of its pool or group.
    pub fn name(&self) -> &str {
        self.owner.name()
    }

    /// Returns its owner.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Returns its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one of its files.
    pub fn write(&self, file: &str, text: &str) -> Result<(), HostFailure> {
        fs::write(self.path.join(file), format!("{text}\n")).map_err(self.failed("write", file))
    }

    /// Reads one of its files.
    pub fn read(&self, file: &str) -> Result<String, HostFailure> {
        fs::read_to_string(self.path.join(file)).map_err(self.failed("read", file))
    }

    /// Makes it a partition of these CPUs. The groups below get the cpu controller, and processes of the partition get
    /// a place beside them.
    pub fn divide(&self, cpus: &CpuSet, division: Division) -> Result<(), HostFailure> {
        self.write(CPUS, &sys::cpu_list(cpus.as_slice()))?;
        self.write(PARTITION, division.word())?;
        let state = self.read(PARTITION)?.trim().to_owned();
        if state != division.word() {
            return Err(self.fault(GroupFault::NoPartition(self.path.clone(), state)));
        }
        self.write(CONTROL, "+cpu")?;
        let place = self.path.join(PLACE);
        fs::create_dir(&place).map_err(HostFailure::group_file(&self.owner, "make", &place))
    }

    /// Opens the file of processes of the place that [`divide`](Group::divide) made.
    pub fn place(&self) -> Result<File, HostFailure> {
        self.open_file(&format!("{PLACE}/{PROCESSES}"))
    }

    /// Opens its file of processes, for a process that enters the group.
    pub fn entrance(&self) -> Result<File, HostFailure> {
        self.open_file(PROCESSES)
    }

    fn open_file(&self, file: &str) -> Result<File, HostFailure> {
        let path = self.path.join(file);
        OpenOptions::new().write(true).open(&path).map_err(HostFailure::group_file(&self.owner, "open", &path))
    }

    /// Returns the processor time of its processes since it was made. Processes that have ended also count.
    pub fn usage(&self) -> Result<Duration, HostFailure> {
        let text = self.read("cpu.stat")?;
        parse_usage(&text).ok_or_else(|| self.not_understood("cpu.stat"))
    }

    /// Makes the error for a file that lacks the expected content.
    pub fn not_understood(&self, file: &str) -> HostFailure {
        self.failed("parse", file)(io::ErrorKind::InvalidData.into())
    }

    /// Returns the threads in it and in the groups below.
    pub fn threads(&self) -> Vec<sys::Tid> {
        threads_below(&self.path)
    }

    fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    fn fault(&self, fault: GroupFault) -> HostFailure {
        HostFailure::Group { owner: self.owner.clone(), fault }
    }

    pub(super) fn failed(&self, what: &'static str, file: &str) -> impl Fn(io::Error) -> HostFailure {
        HostFailure::group_file(&self.owner, what, &self.path.join(file))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        match &self.kind {
            Kind::Made => remove(&self.path),
            // The group may be gone, together with its container.
            Kind::Given(before) => {
                for (file, text) in self.owner.files().iter().zip(before) {
                    let _ = self.write(file, text);
                }
            }
        }
    }
}

fn parse_usage(text: &str) -> Option<Duration> {
    let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Duration::from_micros(usage.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_in_microseconds() {
        let text = "usage_usec 1234\nuser_usec 1000\nsystem_usec 234\n";
        assert_eq!(parse_usage(text), Some(Duration::from_micros(1234)));
        assert_eq!(parse_usage("user_usec 1000\n"), None);
    }

    /// No host has such a group.
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
