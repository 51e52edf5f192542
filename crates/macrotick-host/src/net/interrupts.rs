//! The interrupts of a device's queues: their CPUs, and the priorities of their threads.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::HostFailure;
use crate::sys::{self, Standing, Tid};
use crate::{file, kernel_threads, Undo};

/// How the interrupts of a queue are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The number of the queue; `None`: the interrupts that belong to no queue, such as that of link changes.
    pub queue: Option<u32>,
    /// The CPUs that take the interrupt; empty: they stay.
    pub cpus: Vec<u32>,
    /// The priority of the interrupt's threads under SCHED_FIFO; `None`: it stays.
    pub priority: Option<u8>,
}

/// An interrupt of a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// The name that the driver gave it, for example `eth0-TxRx-2`.
    pub name: String,
}

impl Interrupt {
    /// Returns the number of the queue: the number after the last dash. A name without one belongs to no queue.
    pub fn queue(&self) -> Option<u32> {
        self.name.rsplit_once('-')?.1.parse().ok()
    }
}

/// A change of this host for an interrupt. Its text is the equivalent command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterruptChange {
    /// Sets the CPUs that take an interrupt.
    Cpus {
        /// The file of the interrupt.
        path: PathBuf,
        /// The CPUs, as a list.
        list: String,
    },
    /// Sets the priority of a thread under SCHED_FIFO.
    Priority {
        /// The thread.
        tid: Tid,
        /// Its name.
        name: String,
        /// The priority.
        priority: u8,
    },
}

impl fmt::Display for InterruptChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InterruptChange::Cpus { path, list } => write!(f, "echo {list} > {}", path.display()),
            InterruptChange::Priority { tid, name, priority } => write!(f, "chrt -f -p {priority} {tid}  # {name}"),
        }
    }
}

/// Returns the interrupts of a device, in order of their numbers. A device without interrupts of its own, such as a veth,
/// has none.
pub fn interrupts(device: &str) -> Result<Vec<Interrupt>, HostFailure> {
    below(Path::new("/"), device)
}

fn below(root: &Path, device: &str) -> Result<Vec<Interrupt>, HostFailure> {
    let messages = root.join("sys/class/net").join(device).join("device/msi_irqs");
    let numbers = match names(&messages) {
        Ok(names) => names.iter().filter_map(|name| name.parse().ok()).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(HostFailure::file("read", messages)(error)),
    };
    let mut found = Vec::new();
    for number in numbers {
        // The kernel makes a folder with the name of each handler.
        let folder = root.join(format!("proc/irq/{number}"));
        let names = names(&folder).map_err(HostFailure::file("read", &folder))?;
        let handlers = names.into_iter().filter(|name| folder.join(name).is_dir());
        found.extend(handlers.map(|name| Interrupt { number, name }));
    }
    found.sort();
    Ok(found)
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Returns the changes that the services of a device need. Changes nothing. A service of a queue without an interrupt
/// makes no change.
pub fn decide(device: &str, services: &[Service]) -> Result<Vec<InterruptChange>, HostFailure> {
    let found = interrupts(device)?;
    let mut changes = Vec::new();
    for service in services {
        for interrupt in found.iter().filter(|interrupt| interrupt.queue() == service.queue) {
            changes.extend(cpus(interrupt.number, &service.cpus)?);
            if let Some(priority) = service.priority {
                changes.extend(priorities(interrupt.number, priority)?);
            }
        }
    }
    Ok(changes)
}

fn cpus(number: u32, cpus: &[u32]) -> Result<Option<InterruptChange>, HostFailure> {
    let path = PathBuf::from(format!("/proc/irq/{number}/smp_affinity_list"));
    let list = sys::cpu_list(cpus);
    let same = cpus.is_empty() || file::read(&path)?.trim() == list;
    Ok((!same).then_some(InterruptChange::Cpus { path, list }))
}

fn priorities(number: u32, priority: u8) -> Result<Vec<InterruptChange>, HostFailure> {
    let prefix = format!("irq/{number}-");
    let threads = kernel_threads::find_all(|name| name.starts_with(&prefix));
    let threads = threads.map_err(HostFailure::file("read", "/proc"))?;
    let fifo = sys::SchedAttr::new(Standing::Fifo(priority), false);
    let same = |attr: sys::SchedAttr| attr.policy == fifo.policy && attr.real_time_priority() == Some(priority);
    let differs = |tid: &Tid| !sys::sched_attr(*tid).is_ok_and(same);
    let change = |(tid, name)| InterruptChange::Priority { tid, name, priority };
    Ok(threads.into_iter().filter(|(tid, _)| differs(tid)).map(change).collect())
}

/// Makes changes. The undo restores CPUs and policies.
pub fn apply(changes: &[InterruptChange], undo: &mut Undo) -> Result<(), HostFailure> {
    for change in changes {
        match change {
            InterruptChange::Cpus { path, list } => file::change(path, &format!("{list}\n"), undo)?,
            InterruptChange::Priority { tid, name, priority } => {
                kernel_threads::set_standing(*tid, name, Standing::Fifo(*priority), undo)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_those_of_the_device() {
        let root = std::env::temp_dir().join(format!("macrotick-interrupts-{}", std::process::id()));
        for folder in ["31/eth7-TxRx-1", "30/eth7-TxRx-0", "29/eth7", "28/other"] {
            fs::create_dir_all(root.join("proc/irq").join(folder)).unwrap();
        }
        fs::write(root.join("proc/irq/31/smp_affinity_list"), "0\n").unwrap();
        let messages = root.join("sys/class/net/eth7/device/msi_irqs");
        fs::create_dir_all(&messages).unwrap();
        ["29", "30", "31"].iter().for_each(|number| fs::write(messages.join(number), "msi\n").unwrap());
        let found = below(&root, "eth7").unwrap();
        let queues: Vec<_> = found.iter().map(|found| (found.number, found.queue())).collect();
        assert_eq!(queues, [(29, None), (30, Some(0)), (31, Some(1))]);
        assert_eq!(found[2].name, "eth7-TxRx-1");
        // A virtual device has no such folder.
        assert_eq!(below(&root, "veth7").unwrap(), []);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_change_reads_as_a_command() {
        let path = PathBuf::from("/proc/irq/30/smp_affinity_list");
        let cpus = InterruptChange::Cpus { path, list: "1-2".into() };
        assert_eq!(cpus.to_string(), "echo 1-2 > /proc/irq/30/smp_affinity_list");
        let name = "irq/30-eth7-TxRx-0".into();
        let priority = InterruptChange::Priority { tid: 77, name, priority: 85 };
        assert_eq!(priority.to_string(), "chrt -f -p 85 77  # irq/30-eth7-TxRx-0");
    }

    #[test]
    fn the_loopback_device_has_none() {
        let service = Service { queue: None, cpus: vec![0], priority: Some(50) };
        assert_eq!(decide("lo", &[service]).unwrap(), []);
    }
}
