//! The backend `kernel`: the table and the threads in `/dev/macrotick` (`linux/macrotick.h`).

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use macrotick_host::cgroup;
use macrotick_host::device;
use macrotick_host::lock::Lock;
use macrotick_host::network;
use macrotick_host::sys;
use macrotick_host::HostFailure;
use macrotick_model::{Duration, EntityCounters, Instant, Plan};
use macrotick_uapi::{self as uapi, Device};

use crate::backend::table::{refusal, Table};
use crate::error::NodeError;
use crate::process::child::Child;

/// Installs a plan's table with a lead, and decodes a refusal. Returns the instant of a swap, in nanoseconds.
fn install(device: &Device, plan: &Plan, lead: Duration, flags: u32) -> Result<u64, NodeError> {
    let table = Table::new(plan);
    let mut install = uapi::Install {
        flags,
        clockid: plan.system.sync().map_or(libc::CLOCK_MONOTONIC, |_| libc::CLOCK_TAI) as u32,
        nr_entities: table.entities.len() as u32,
        nr_windows: table.windows.len() as u32,
        cycle_ns: plan.cycle.as_nanos() as u64,
        lead_ns: lead.as_nanos() as u64,
        entities: table.entities.as_ptr() as u64,
        windows: table.windows.as_ptr() as u64,
        ..Default::default()
    };
    match device.call(&mut install).map_err(io::Error::from_raw_os_error) {
        Ok(()) => Ok(install.swap_ns),
        // For example no privilege or no memory: the table itself is correct.
        Err(error) if install.error == 0 => {
            Err(HostFailure::Call { what: "install the table".into(), source: error }.into())
        }
        Err(error) => Err(NodeError::Refused(refusal(&table, &install, &error))),
    }
}

/// An installed table. Dropping it stops and removes it.
pub struct InstalledTable {
    device: Device,
}

impl InstalledTable {
    /// Installs a plan's table with a lead. It does not run yet.
    pub fn install(plan: &Plan, lead: Duration) -> Result<InstalledTable, NodeError> {
        let device = device::open()?;
        install(&device, plan, lead, 0)?;
        Ok(InstalledTable { device })
    }

    /// Replaces this table, which runs, with the table of a plan. Returns the new table's epoch on its clock: the
    /// instant at which all CPUs change to it.
    pub fn swap(&self, plan: &Plan, lead: Duration) -> Result<Instant, NodeError> {
        let at = install(&self.device, plan, lead, uapi::SWAP)?;
        Ok(Instant::from_nanos(at as i64))
    }

    /// Makes a task's thread a member of its entity.
    pub fn bind(&self, child: &Child) -> Result<(), NodeError> {
        let what = || format!("bind the thread of task `{}`", child.name);
        let pidfd = sys::pidfd_open(child.pid(), child.joined_thread()?)
            .map_err(|source| HostFailure::Call { what: what(), source })?;
        self.device.bind(pidfd.as_raw_fd(), &child.name).map_err(|errno| failed(&what(), errno))
    }

    /// Ends the membership of a task's thread. The thread continues as an ordinary one.
    pub fn unbind(&self, child: &Child) -> Result<(), NodeError> {
        let what = || format!("unbind the thread of task `{}`", child.name);
        let pidfd = sys::pidfd_open(child.pid(), child.joined_thread()?)
            .map_err(|source| HostFailure::Call { what: what(), source })?;
        self.device.unbind(pidfd.as_raw_fd()).map_err(|errno| failed(&what(), errno))
    }

    /// Makes a kernel thread a member of a pool.
    pub fn bind_thread(&self, tid: sys::Tid, name: &str, pool: &str) -> Result<(), NodeError> {
        let what = || format!("bind the kernel thread {name} to pool `{pool}`");
        let pidfd = sys::pidfd_open(tid, tid).map_err(|source| HostFailure::Call { what: what(), source })?;
        self.device.bind(pidfd.as_raw_fd(), pool).map_err(|errno| failed(&what(), errno))
    }

    /// Starts the table. Returns the epoch in force. Both instants are on the table's clock.
    pub fn start(&self, epoch: Instant) -> Result<Instant, NodeError> {
        let started = self.device.start(epoch.as_nanos() as u64).map_err(|errno| failed("start the table", errno))?;
        Ok(Instant::from_nanos(started as i64))
    }

    /// Signals the misses of all entities on an eventfd, which replaces the one before.
    pub fn notify(&self, event: RawFd) -> Result<(), NodeError> {
        self.device.notify(uapi::ALL_ENTITIES, event).map_err(|errno| failed("ask for a signal at a miss", errno))
    }

    /// Returns the state of the table on its clock: epoch, cycles, corrections.
    pub fn grid(&self) -> Result<uapi::Get, NodeError> {
        self.device.get().map_err(|errno| failed("read the state of the table", errno))
    }

    /// Stops the table: the kernel releases no more jobs.
    pub fn stop(&self) -> Result<(), NodeError> {
        self.device.stop().map_err(|errno| failed("stop the table", errno))
    }

    /// Returns all counters of an entity. Tries its place in the table first: the tasks, then the pools. While the
    /// kernel swaps tables, the entity may have another place.
    pub fn stats(&self, name: &str, place: usize) -> Result<uapi::Stats, NodeError> {
        let wanted = uapi::name(name);
        match self.device.stats(place as u32) {
            Ok(stats) if stats.name == wanted => return Ok(stats),
            Ok(_) | Err(libc::ENOENT) => {}
            Err(errno) => return Err(failed("read the counters", errno)),
        }
        for place in 0.. {
            match self.device.stats(place) {
                Ok(stats) if stats.name != wanted => {}
                result => return result.map_err(|errno| failed("read the counters", errno)),
            }
        }
        Err(failed("read the counters", libc::ENOENT))
    }

    /// Returns the counters of a task's entity. Tries its place in the system first.
    pub fn counters(&self, name: &str, place: usize) -> Result<EntityCounters, NodeError> {
        let stats = self.stats(name, place)?;
        Ok(EntityCounters {
            released: stats.activations,
            completed: stats.completions,
            missed: stats.misses,
            lost: stats.lost,
            skipped: stats.skipped,
            overrun: stats.preemptions,
            runtime_ns: stats.runtime_ns,
            held_ns: stats.held_ns,
            late: stats.late,
            never_ran: stats.never_ran,
            missed_in_row: stats.misses_in_row,
            stopped: stats.stopped != 0,
            restarted: 0,
        })
    }
}

impl Drop for InstalledTable {
    fn drop(&mut self) {
        // Stopping a stopped table is allowed. No reaction to a failure is possible here.
        let _ = self.stop();
        let _ = self.device.remove();
    }
}

/// Removes the remains of a runner that was killed: its table, the control groups of its pools and containers, and its
/// network namespaces. The threads of its tasks continue under SCHED_OTHER. The lock proves that no runner is alive.
/// Returns whether there was a table. A kernel without the class has no table, but the other remains may exist.
pub fn remove_left(_lock: &Lock) -> Result<bool, NodeError> {
    network::remove_left();
    let removed = remove_table()?;
    cgroup::remove_left();
    Ok(removed)
}

fn remove_table() -> Result<bool, NodeError> {
    let device = match device::open() {
        Err(HostFailure::NoKernelClass) => return Ok(false),
        device => device?,
    };
    match device.remove() {
        Ok(()) => Ok(true),
        Err(libc::ENOENT) => Ok(false),
        Err(errno) => Err(failed("remove the table", errno)),
    }
}

/// Converts a failed call of the device to an error.
fn failed(what: &str, errno: i32) -> NodeError {
    device::failed(what, errno).into()
}
