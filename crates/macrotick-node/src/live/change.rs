//! A running deployment becomes another one.
//!
//! ```text
//! supervisor   decide, start what is new ── … ── stage the table, bind ── … ── commit, end what leaves ── bind ── answer
//! new          initialise, ready ──────────────────┘ first wait             │ jobs
//! kept                                                                      │ goes on in its new windows
//! kernel                                            both tables staged ─────┘ all CPUs change at a cycle's end
//! ```
//!
//! Up to the staging whatever fails leaves the deployment as it was. From then on nothing can fail but what can fail in
//! any running deployment: that a process ends. All of it is done in steps that wait for nothing, so that tasks are begun
//! anew meanwhile, and the deployment can be stopped.

use macrotick_host::sys;
use macrotick_model::{Background, Duration, Instant, LeadInForce, Plan, Workload};
use macrotick_uapi::state;
use serde::{Deserialize, Serialize};

use super::difference::{clock, ChangeFault, Condition, Difference, Fate, Item, Kind};
use super::leaving::Leaving;
use crate::abi;
use crate::child::{find_late, not_ready, Child};
use crate::deployment::Deployment;
use crate::error::NodeError;
use crate::kernel::InstalledTable;
use crate::lead;
use crate::pools::Pools;
use crate::run::{place_task, Run};
use crate::supervisor::{Origin, Supervisor};

/// Something that tells nobody when it is done is looked at again after at least so long.
const LOOK_LEAST: Duration = Duration::from_micros(100);
/// And after at most so long.
const LOOK_MOST: Duration = Duration::from_millis(10);
/// From the placing of a new thread until it sleeps where it was placed.
const SETTLE: Duration = Duration::from_millis(2);
/// The table is staged at least so long before the end of a cycle, or half a cycle: time to bind new threads.
const MARGIN: Duration = Duration::from_millis(5);
/// Into the next cycle, where that margin is over.
const INTO_CYCLE: Duration = Duration::from_micros(50);

/// What a change did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The system's name.
    pub system: String,
    /// The parts of both deployments.
    pub items: Vec<Item>,
    /// The cycle of the former table.
    pub cycle_before: Duration,
    /// The cycle of the new one.
    pub cycle_after: Duration,
    /// The lead of the former table.
    pub lead_before: Duration,
    /// The lead of the new one.
    pub lead_after: Duration,
    /// When the tables changed; `None`: the table stayed as it was.
    pub switch: Option<Switch>,
    /// What went wrong on the side, in words.
    pub remarks: Vec<String>,
}

impl Changes {
    /// Whether everything stayed as it was.
    pub fn is_empty(&self) -> bool {
        changes_nothing(self.switch.is_some(), &self.items)
    }
}

fn changes_nothing(swapped: bool, items: &[Item]) -> bool {
    !swapped && items.iter().all(|item| item.fate == Fate::Kept)
}

/// The instant at which all CPUs changed tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// The table's clock.
    pub clock: String,
    /// The instant on it, in nanoseconds.
    pub ns: i64,
}

/// A change that is under way.
pub struct Change {
    /// The new deployment; once the change is made, the former one.
    other: Deployment,
    lead: Option<LeadInForce>,
    lead_before: Duration,
    difference: Difference,
    /// The processes of new tasks, in the new order, until the change is made.
    tasks: Vec<Child>,
    /// The processes of new background loads, likewise.
    loads: Vec<Child>,
    stage: Stage,
    /// New tasks whose threads are not bound yet.
    unbound: Vec<String>,
    /// On the table's clock.
    switch: Option<Instant>,
    remarks: Vec<String>,
}

/// How far it is. Instants are on `CLOCK_MONOTONIC`.
enum Stage {
    /// New processes initialise themselves.
    Starting { since: Instant },
    /// They are ready, and fall asleep where they were placed.
    Settling { until: Instant },
    /// The kernel has both tables; the former one began at `former_ns` on its clock.
    Staged { since: Instant, at: Instant, former_ns: u64 },
    /// It is made; of new tasks some may not be bound yet.
    Made { since: Instant },
}

/// What is next.
pub enum Step {
    /// To go on at this instant.
    Wait(Instant),
    /// To go on at once: the kernel got the table.
    Staged,
    /// The deployment is another one, whose epoch on `CLOCK_MONOTONIC` this is; to go on at once.
    Made(Instant),
    /// Nothing.
    Done,
}

impl Change {
    /// Decides what changes, and starts what is new. A failure leaves everything as it was. `measured` is the lead that
    /// this host was found to need, if it was measured.
    pub fn begin(run: &mut Run, plan: &Plan, measured: Option<Duration>) -> Result<Change, NodeError> {
        let online = sys::online_cpus()?;
        let other = Deployment::decode(plan, run.options, &online)?;
        let condition = |name: &str| condition(run, name);
        let difference = Difference::between(&run.deployment.plan, plan, &condition).map_err(NodeError::Change)?;
        // Beside a running table nothing can be measured.
        let lead = lead::in_force(plan, measured);
        let mut change = Change {
            other,
            lead,
            lead_before: length(run.lead),
            difference,
            tasks: Vec::new(),
            loads: Vec::new(),
            stage: Stage::Starting { since: sys::now() },
            unbound: Vec::new(),
            switch: None,
            remarks: Vec::new(),
        };
        match change.start(run) {
            Ok(()) => Ok(change),
            Err(error) => {
                change.abandon(run);
                Err(error)
            }
        }
    }

    fn start(&mut self, run: &mut Run) -> Result<(), NodeError> {
        self.make_groups(run)?;
        for deployed in &self.other.tasks {
            if self.difference.is_fresh(Kind::Task, &deployed.task.name) {
                self.tasks.push(run.spawn_task(&self.other, deployed, deployed.capacity)?);
            }
        }
        for load in &self.other.plan.system.background {
            if self.difference.is_fresh(Kind::Background, &load.name) {
                self.loads.extend(run.spawn_load(load)?);
            }
        }
        Ok(())
    }

    /// Groups, tables and threads may come in any order.
    fn make_groups(&self, run: &mut Run) -> Result<(), NodeError> {
        let system = &self.other.plan.system;
        let is_new = |name: &str| self.difference.fate(Kind::Pool, name) == Some(Fate::Added);
        match &mut run.pools {
            Some(pools) => {
                let new = system.pools.iter().filter(|pool| is_new(&pool.name));
                pools.extend(&self.other.plan, new, run.domains.as_ref())?
            }
            none => *none = Pools::prepare(&self.other.plan, run.domains.as_ref())?,
        }
        Ok(())
    }

    /// The deployment stays as it was: ends what was started for the change.
    pub fn abandon(mut self, run: &mut Run) {
        // First what runs, then what it runs in.
        self.tasks.clear();
        self.loads.clear();
        if let Some(pools) = &mut run.pools {
            pools.keep(&run.deployment.plan.system);
        }
    }

    /// The places of those tasks of the running deployment that the new one does not have.
    pub fn leaving(&self, run: &Run) -> Vec<usize> {
        let tasks = run.deployment.tasks.iter().enumerate();
        let leaves = |name: &str| self.difference.fate(Kind::Task, name) == Some(Fate::Removed);
        tasks.filter(|(_, deployed)| leaves(&deployed.task.name)).map(|(place, _)| place).collect()
    }

    /// The tasks and pools of the new table, and its instant on the table's clock, once the kernel has it.
    pub fn coming(&self) -> Option<(&Deployment, Instant)> {
        self.switch.map(|switch| (&self.other, switch))
    }

    /// Whether everything stays as it is.
    pub fn is_empty(&self) -> bool {
        changes_nothing(self.switch.is_some(), &self.difference.items)
    }

    /// What the change did. It is done.
    pub fn into_changes(self, run: &Run) -> Changes {
        Changes {
            system: run.deployment.plan.system.name.clone(),
            items: self.difference.items,
            cycle_before: self.other.plan.cycle,
            cycle_after: run.deployment.plan.cycle,
            lead_before: self.lead_before,
            lead_after: length(run.lead),
            switch: self.switch.map(|at| Switch { clock: clock(&run.deployment.plan).into(), ns: at.as_nanos() }),
            remarks: self.remarks,
        }
    }

    /// Does what there is to do. An error comes only as long as the deployment is the former one, and the change is to
    /// be abandoned. `epoch` is that of the table that runs.
    pub fn advance(&mut self, run: &mut Run, epoch: Instant, leaving: &mut Leaving) -> Result<Step, NodeError> {
        let now = sys::now();
        match self.stage {
            Stage::Starting { since } => self.await_ready(run, since),
            Stage::Settling { until } if now < until => Ok(Step::Wait(until)),
            Stage::Settling { .. } => self.stage_table(run, epoch, leaving),
            Stage::Staged { since, at, former_ns } => self.await_switch(run, since, at, former_ns, leaving),
            Stage::Made { since } => Ok(self.bind_the_rest(run, epoch, since)),
        }
    }

    fn await_ready(&mut self, run: &Run, since: Instant) -> Result<Step, NodeError> {
        let late = match find_late(&self.tasks, abi::PHASE_READY)? {
            None => find_late(&self.loads, abi::PHASE_READY)?,
            late => late,
        };
        let now = sys::now();
        match late {
            Some(late) if now - since > run.options.ready_limit => {
                Err(not_ready(late, abi::PHASE_READY, run.options.ready_limit))
            }
            Some(_) => Ok(Step::Wait(next_look(now, since))),
            None => {
                self.place(run)?;
                self.stage = Stage::Settling { until: staging_instant(run, now + SETTLE)? };
                Ok(Step::Wait(now))
            }
        }
    }

    /// Who sleeps is woken, to fall asleep where it may run now: only there it can be bound.
    fn place(&self, run: &Run) -> Result<(), NodeError> {
        for child in &self.tasks {
            let deployed = self.other.tasks.iter().find(|deployed| deployed.task.name == child.name);
            deployed.map_or(Ok(()), |deployed| place_task(child, deployed))?;
            child.block.nudge();
        }
        let mut children = self.loads.iter();
        for load in self.fresh_loads() {
            children.by_ref().take(load.count as usize).try_for_each(|child| run.place_load(child, load))?;
        }
        Ok(())
    }

    fn fresh_loads(&self) -> impl Iterator<Item = &Background> {
        let loads = self.other.plan.system.background.iter();
        loads.filter(|load| self.difference.is_fresh(Kind::Background, &load.name))
    }

    /// Hands the table to the kernel; from here on the change is made. Where it needs none, it is made at once.
    fn stage_table(&mut self, run: &mut Run, epoch: Instant, leaving: &mut Leaving) -> Result<Step, NodeError> {
        // They may have ended since.
        find_late(&self.tasks, abi::PHASE_READY).and(find_late(&self.loads, abi::PHASE_READY))?;
        if !run.deployment.plan.system.has_windows() {
            self.commit(run, epoch, leaving);
            return Ok(Step::Made(epoch));
        }
        let gone = || NodeError::Change(ChangeFault::TableGone);
        let table = run.table.as_ref().ok_or_else(gone)?;
        let grid = table.grid()?;
        if grid.state != state::RUNNING {
            return Err(gone());
        }
        if !self.difference.swaps && length(self.lead) == length(run.lead) {
            self.commit(run, epoch, leaving);
            return Ok(Step::Made(epoch));
        }
        let switch = table.swap(&self.other.plan, length(self.lead))?;
        let at = switch - Duration::from_nanos(grid.offset_ns);
        self.switch = Some(switch);
        self.stage = Stage::Staged { since: sys::now(), at, former_ns: grid.epoch_ns };
        // Nothing comes first: the instant is near.
        self.unbound = self.difference.names(Kind::Task, Fate::Added).map(str::to_string).collect();
        bind_new(table, &self.tasks, &mut self.unbound, at, &mut self.remarks);
        if let Some(pools) = &mut run.pools {
            let is_new = |name: &str| self.difference.fate(Kind::Pool, name) == Some(Fate::Added);
            let told = pools.remarks().len();
            let bound = pools.bind_kernel_threads(&self.other.plan, table, &|pool| is_new(&pool.name));
            self.remarks.extend_from_slice(&pools.remarks()[told..]);
            self.remarks.extend(bound.err().map(|error| error.with_reason()));
        }
        Ok(Step::Staged)
    }

    /// A thread of the kernel confirms the change soon after its instant.
    fn await_switch(
        &mut self,
        run: &mut Run,
        since: Instant,
        at: Instant,
        former_ns: u64,
        leaving: &mut Leaving,
    ) -> Result<Step, NodeError> {
        let gone = || NodeError::Change(ChangeFault::TableGone);
        let table = run.table.as_ref().ok_or_else(gone)?;
        bind_new(table, &self.tasks, &mut self.unbound, at, &mut self.remarks);
        let now = sys::now();
        if now < at {
            return Ok(Step::Wait(if self.unbound.is_empty() { at } else { at.min(next_look(now, since)) }));
        }
        let grid = table.grid()?;
        match grid.state == state::RUNNING {
            true if self.switch == Some(Instant::from_nanos(grid.epoch_ns as i64)) => {
                self.commit(run, at, leaving);
                Ok(Step::Made(at))
            }
            true if grid.epoch_ns == former_ns => Ok(Step::Wait(next_look(now, at))),
            _ => Err(gone()),
        }
    }

    /// The new deployment takes the place of the former one.
    fn commit(&mut self, run: &mut Run, epoch: Instant, leaving: &mut Leaving) {
        std::mem::swap(&mut run.deployment, &mut self.other);
        run.lead = self.lead;
        let origins = self.exchange_tasks(run, leaving);
        self.exchange_loads(run, epoch);
        if let Some(pools) = &mut run.pools {
            pools.keep(&run.deployment.plan.system);
        }
        run.supervisor = match Supervisor::renew(run.supervisor.take(), run, &origins) {
            Ok(supervisor) => supervisor,
            Err(error) => {
                self.remarks.push(format!("no task is begun anew any more: {}", error.with_reason()));
                None
            }
        };
        self.unbound.extend(self.difference.names(Kind::Task, Fate::Replaced).map(str::to_string));
        self.stage = Stage::Made { since: sys::now() };
    }

    /// Returns of each task where its process comes from.
    fn exchange_tasks(&mut self, run: &mut Run, leaving: &mut Leaving) -> Vec<Origin> {
        let mut former: Vec<Option<Child>> = std::mem::take(&mut run.tasks).into_iter().map(Some).collect();
        let mut fresh = std::mem::take(&mut self.tasks).into_iter();
        let mut origins = Vec::new();
        for deployed in &run.deployment.tasks {
            let name = &deployed.task.name;
            let is_kept = self.difference.fate(Kind::Task, name) == Some(Fate::Kept);
            let origin = match self.other.tasks.iter().position(|other| other.task.name == *name) {
                Some(place) if is_kept => Origin::Same(place),
                Some(_) => Origin::Other,
                None => Origin::New,
            };
            run.tasks.extend(match origin {
                Origin::Same(place) => former[place].take(),
                Origin::Other | Origin::New => fresh.next(),
            });
            origins.push(origin);
        }
        for (child, deployed) in former.into_iter().zip(&self.other.tasks) {
            let Some(child) = child else { continue };
            // The entity of a task that is replaced is still there, and would serve both.
            if let Some(table) = &run.table {
                let _ = table.unbind(&child);
            }
            leaving.add(child, matches!(deployed.task.run, Workload::Program(_)));
        }
        origins
    }

    fn exchange_loads(&mut self, run: &mut Run, epoch: Instant) {
        let mut former = std::mem::take(&mut run.background);
        let mut fresh = std::mem::take(&mut self.loads);
        fresh.iter().for_each(|child| child.block.publish(epoch));
        for load in &run.deployment.plan.system.background {
            let is_fresh = self.difference.is_fresh(Kind::Background, &load.name);
            let from = if is_fresh { &mut fresh } else { &mut former };
            run.background.extend(take(from, load));
        }
        former.iter_mut().for_each(Child::kill);
    }

    fn bind_the_rest(&mut self, run: &Run, epoch: Instant, since: Instant) -> Step {
        if let Some(table) = &run.table {
            bind_new(table, &run.tasks, &mut self.unbound, epoch, &mut self.remarks);
        }
        let now = sys::now();
        if self.unbound.is_empty() {
            return Step::Done;
        }
        if now - since < run.options.ready_limit {
            return Step::Wait(next_look(now, since));
        }
        let late = self.unbound.drain(..).map(|name| format!("task `{name}`: its thread could not be bound in time"));
        self.remarks.extend(late);
        Step::Done
    }
}

/// When to look again at something that is awaited since an instant. The supervisor comes before those that it waits
/// for: where they are slow, or a look is, it leaves them ever more time.
fn next_look(now: Instant, since: Instant) -> Instant {
    let waited = Duration::from_nanos((now - since).as_nanos() / 4);
    now + waited.clamp(LOOK_LEAST, LOOK_MOST)
}

/// Takes the processes of a load out of others.
fn take(children: &mut Vec<Child>, load: &Background) -> Vec<Child> {
    let names: Vec<String> = load.process_names().collect();
    let (taken, rest) = std::mem::take(children).into_iter().partition(|child| names.contains(&child.name));
    *children = rest;
    taken
}

/// Binds the threads of those of the children that are named, and lets them go. Named stay those that have to be tried
/// again; that one cannot be bound is remarked, and is as if it had ended.
fn bind_new(
    table: &InstalledTable,
    children: &[Child],
    unbound: &mut Vec<String>,
    epoch: Instant,
    remarks: &mut Vec<String>,
) {
    unbound.retain(|name| {
        let Some(child) = children.iter().find(|child| child.name == *name) else { return false };
        if child.block.phase() < abi::PHASE_READY {
            // It is begun anew.
            return true;
        }
        match table.bind(child) {
            Ok(()) => {
                child.block.publish(epoch);
                false
            }
            // Whoever began it anew did it.
            Err(error) if error.errno() == Some(libc::EBUSY) => false,
            // It fell asleep on another CPU, and will do so on its own after this.
            Err(error) if error.errno() == Some(libc::EAGAIN) => {
                child.block.nudge();
                true
            }
            Err(error) => {
                remarks.push(error.with_reason());
                false
            }
        }
    });
}

/// How a task of the running deployment is.
fn condition(run: &Run, name: &str) -> Condition {
    let Some(task) = run.tasks.iter().position(|child| child.name == name) else { return Condition::Sound };
    if run.supervisor.as_ref().is_some_and(|supervisor| supervisor.cares_for(task)) {
        return Condition::Sound;
    }
    if run.tasks[task].exited().is_some() {
        return Condition::Dead;
    }
    let counters = run.table.as_ref().and_then(|table| table.counters(name, task).ok());
    match counters.is_some_and(|counters| counters.stopped) {
        true => Condition::Stopped,
        false => Condition::Sound,
    }
}

fn length(lead: Option<LeadInForce>) -> Duration {
    lead.map_or(Duration::ZERO, |lead| lead.lead)
}

/// The first instant from one on at which enough of the running cycle is left.
fn staging_instant(run: &Run, from: Instant) -> Result<Instant, NodeError> {
    let Some(table) = &run.table else { return Ok(from) };
    let grid = table.grid()?;
    let epoch = Instant::from_nanos(grid.epoch_ns as i64 - grid.offset_ns);
    Ok(early_in_cycle(from, epoch, run.deployment.plan.cycle))
}

fn early_in_cycle(from: Instant, epoch: Instant, cycle: Duration) -> Instant {
    let since = (from - epoch).as_nanos().rem_euclid(cycle.as_nanos());
    let left = cycle - Duration::from_nanos(since);
    let margin = MARGIN.min(Duration::from_nanos(cycle.as_nanos() / 2));
    if left >= margin {
        return from;
    }
    from + left + INTO_CYCLE
}

#[cfg(test)]
mod tests {
    use macrotick_model::Lead;

    use super::*;

    #[test]
    fn a_table_is_staged_early_in_a_cycle() {
        let us = Duration::from_micros;
        let at = |since: i64, cycle: i64| {
            let epoch = Instant::from_nanos(1_000_000_000);
            (early_in_cycle(epoch + us(since), epoch, us(cycle)) - epoch).as_nanos() / 1000
        };
        assert_eq!([at(0, 20_000), at(15_000, 20_000), at(15_001, 20_000)], [0, 15_000, 20_050]);
        assert_eq!([at(2500, 1000), at(2501, 1000)], [2500, 3050]);
        // Before its first cycle.
        assert_eq!([at(-4000, 20_000), at(-15_000, 20_000)], [50, -15_000]);
    }

    #[test]
    fn looks_become_rarer() {
        let at = |us: i64| Instant::from_nanos(us * 1000);
        let looks = [at(1000), at(5000), at(1_001_000)].map(|now| (next_look(now, at(1000)) - now).as_nanos() / 1000);
        assert_eq!(looks, [100, 1000, 10_000]);
    }

    #[test]
    fn a_measured_lead_stays() {
        let us = Duration::from_micros;
        let plan = |lead| {
            let mut plan = crate::deployment::tests::plan(Vec::new(), Vec::new());
            plan.system.lead = lead;
            plan
        };
        let measured = Some(us(6));
        let beside = |lead, measured| lead::in_force(&plan(lead), measured).map(|lead| lead.lead);
        assert_eq!(beside(None, measured), None);
        assert_eq!(beside(Some(Lead::Fixed(us(3))), measured), Some(us(3)));
        assert_eq!(beside(Some(Lead::Auto(us(20))), measured), Some(us(6)));
        assert_eq!(beside(Some(Lead::Auto(us(4))), measured), Some(us(4)));
        assert_eq!(beside(Some(Lead::Auto(us(20))), None), Some(us(20)));
    }
}
