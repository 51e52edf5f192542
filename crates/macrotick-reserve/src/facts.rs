//! The facts of this host and of a running process that the choice and the admission need.

use std::path::Path;

use macrotick_analysis::kernel::{round_up, PARTS};
use macrotick_analysis::servers;
use macrotick_host::cgroup::ROOT;
use macrotick_host::deadline::{domain_of, DeadlineLimits};
use macrotick_host::present::{self, analysed, deadline_threads, together, DeadlineThread};
use macrotick_host::sys::{self, SchedAttr, Tid};
use macrotick_host::{budgets, proc, HostFailure};
use macrotick_model::CpuSet;

use crate::admission::{Behind, Supply};
use crate::choice::{Host, NoGroups};
use crate::error::ReserveError;
use crate::request::Target;
use crate::room::Room;

/// The host, seen from a program.
pub struct Facts {
    /// The online CPUs.
    pub online: CpuSet,
    /// The CPUs of the program's root domain.
    pub domain: CpuSet,
    /// The CPUs that the program may use.
    pub affinity: CpuSet,
    /// The limits of SCHED_DEADLINE.
    pub limits: DeadlineLimits,
    /// Whether it has groups with a budget.
    pub groups: Result<(), NoGroups>,
    /// Windows and budgets, on a kernel that has them.
    pub served: Option<servers::Host>,
    /// The process; 0 if it does not run yet.
    pub process: Tid,
    /// Its threads that have not ended, with their attributes; none if it does not run yet.
    pub threads: Vec<(Tid, SchedAttr)>,
    /// The thread that the user names; 0 if the process does not run yet.
    pub thread: Tid,
    /// When it began, in ticks of the user clock since the boot. A later thread can have its id.
    pub started: u64,
    /// The thread that has the reservation already.
    own: Option<Tid>,
}

/// The present reservation of the program itself, if it is to change. It does not count as one of the others.
#[derive(Clone, Copy)]
pub enum Own<'a> {
    Nothing,
    Thread(Tid),
    Group(&'a Path),
}

impl Facts {
    /// Reads them.
    pub fn read(target: &Target, own_one: Own) -> Result<Facts, ReserveError> {
        let Named { process, thread, started, threads } = Named::by(target)?;
        let reserved = threads.iter().find(|(_, attr)| !attr.has_no_supply());
        if let (Some((_, attr)), Own::Nothing) = (reserved, own_one) {
            return Err(ReserveError::Reserved { process, policy: sys::policy_name(attr.policy) });
        }
        let own = if thread == 0 { sys::own_tid() } else { thread };
        let groups = groups();
        let mut served = groups.is_ok().then(present::present).transpose()?;
        if let (Some(present), Own::Group(path)) = (&mut served, own_one) {
            present.groups.retain(|group| group.path != path);
        }
        Ok(Facts {
            online: sys::online_cpus()?.into_iter().collect(),
            domain: domain_of(own)?,
            affinity: sys::affinity(thread).map_err(|error| match error.raw_os_error() {
                Some(libc::ESRCH) => ReserveError::NoProcess(thread),
                _ => HostFailure::system("sched_getaffinity")(error).into(),
            })?,
            limits: DeadlineLimits::of_host()?,
            served: served.map(|present| analysed(&present, &together(&present.groups))).transpose()?,
            groups,
            process,
            threads,
            thread,
            started,
            own: if let Own::Thread(thread) = own_one { Some(thread) } else { None },
        })
    }

    /// Returns the part that the choice needs.
    pub fn host(&self) -> Host<'_> {
        Host { domain: &self.domain, groups: &self.groups }
    }

    /// Checks that the thread can have a reservation of its own.
    pub fn check_thread(&self) -> Result<(), ReserveError> {
        let (thread, process) = (self.thread, self.process);
        match self.threads.is_empty() || self.threads.iter().any(|(one, _)| *one == thread) {
            true => Ok(()),
            false => Err(ReserveError::Ended { thread, process, left: self.threads.len() }),
        }
    }

    /// Returns the threads of SCHED_DEADLINE in the program's domain.
    pub fn deadline_threads(&self) -> Vec<DeadlineThread> {
        let shares = |cpus: &CpuSet| cpus.as_slice().iter().any(|&cpu| self.domain.contains(cpu));
        deadline_threads().filter(|thread| shares(&thread.cpus) && Some(thread.thread) != self.own).collect()
    }

    /// Returns the CPU time for deadline tasks in the domain, and the tasks that it has already.
    pub fn supply(&self, others: Vec<DeadlineThread>) -> Result<Supply, ReserveError> {
        let behind = match &self.served {
            None => Behind::Nothing,
            Some(host) => self.behind(host)?,
        };
        Ok(Supply {
            cpus: self.domain.as_slice().len() as u32,
            tasks: others.into_iter().map(|other| other.task).collect(),
            servers: self.limits.servers > 0,
            behind,
        })
    }

    fn behind(&self, host: &servers::Host) -> Result<Behind, ReserveError> {
        let taken: i128 = self.domain.as_slice().iter().map(|&cpu| taken(host, cpu)).sum();
        match self.domain.as_slice() {
            _ if taken == 0 => Ok(Behind::Nothing),
            &[cpu] => {
                let table = host.tables.iter().find(|table| table.cpu == cpu);
                let budgets = host.groups.iter().filter_map(|group| group.on(cpu)).map(|server| server.budget).sum();
                let left =
                    macrotick_analysis::deadline::Left::new(host.cycle, host.lead, table, host.server_period, budgets);
                left.map(|left| Behind::One(Box::new(left))).map_err(ReserveError::Late)
            }
            _ => Ok(Behind::Several),
        }
    }

    /// Returns the kernel's account of the domain.
    pub fn room(&self) -> Room {
        let cpus = self.domain.as_slice();
        let taken = self.served.iter().flat_map(|host| cpus.iter().map(|&cpu| taken(host, cpu))).sum();
        let threads = self.deadline_threads();
        Room { cpus: cpus.len(), limits: self.limits, taken, threads }
    }
}

/// The process and the thread that the user names.
#[derive(Default)]
struct Named {
    process: Tid,
    thread: Tid,
    started: u64,
    threads: Vec<(Tid, SchedAttr)>,
}

impl Named {
    /// Finds them. A process that has ended is none, even if it is not reaped.
    fn by(target: &Target) -> Result<Named, ReserveError> {
        let &Target::Process(thread) = target else { return Ok(Named::default()) };
        if !proc::is_of_this_namespace() {
            return Err(ReserveError::ForeignProc);
        }
        let none = || ReserveError::NoProcess(thread);
        let started = proc::started(thread).ok_or_else(none)?;
        let process = proc::process_of(thread).ok_or_else(none)?;
        let attr = |thread| sys::sched_attr(thread).ok().map(|attr| (thread, attr));
        let running = proc::threads(process).filter(|&thread| !proc::has_ended(thread));
        let threads: Vec<_> = running.filter_map(attr).collect();
        match threads.is_empty() {
            true => Err(none()),
            false => Ok(Named { process, thread, started, threads }),
        }
    }
}

/// Returns the parts of a CPU that windows and budgets take, in the kernel's unit.
fn taken(host: &servers::Host, cpu: u32) -> i128 {
    let windows = host.tables.iter().filter(|table| table.cpu == cpu).flat_map(|table| &table.windows);
    let windows = round_up(windows.map(|window| window.length).sum(), host.cycle, PARTS);
    let budgets = host.groups.iter().filter_map(|group| group.on(cpu));
    windows + budgets.map(|server| round_up(server.budget, host.server_period, PARTS)).sum::<i128>()
}

/// Whether this host has groups with a budget, or why not.
fn groups() -> Result<(), NoGroups> {
    if budgets::server_period().is_err() {
        return Err(NoGroups::NoClass);
    }
    let controllers = std::fs::read_to_string(format!("{ROOT}/cgroup.controllers")).unwrap_or_default();
    match controllers.split_whitespace().any(|name| name == "cpu") {
        true => Ok(()),
        false => Err(NoGroups::NoHierarchy),
    }
}
