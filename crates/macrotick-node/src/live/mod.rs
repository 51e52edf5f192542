//! A long-lived deployment under the backend `kernel`: a run without an end, without records, that can be changed.
//!
//! [`supervise`] begins as a run does (`run.rs`). Then the supervisor sleeps until something is to be done: a process
//! ended (`supervisor.rs`, `watch`), somebody asks for something (`control`), a change is under way (`change`, decided in
//! `difference`), processes that left the deployment are to end (`leaving`), or a control group lost what it was promised
//! (`guard`). It has one thread and waits for nothing
//! else. What others should know lies in a file (`macrotick_host::state`).

mod change;
mod control;
mod difference;
mod guard;
mod leaving;
mod watch;

use std::os::fd::RawFd;

use macrotick_model::{Backend, Duration, Instant, Plan};

pub use change::{Changes, Switch};
pub use difference::{ChangeFault, Fate, Item, Kind, Service};

use crate::deployment::Deployment;
use crate::error::NodeError;
use crate::kernel;
use crate::options::{Output, RunOptions};
use crate::run::{First, Run};
use crate::signals::Signals;
use crate::status;
use crate::supervisor::{Origin, Supervisor};
use change::{Change, Step};
use control::{Answer, Conversation, Heard, Listener, Request};
use guard::Guard;
use leaving::Leaving;
use macrotick_host::limits::OpenFiles;
use macrotick_host::lock::Lock;
use macrotick_host::settings::{self, Held};
use macrotick_host::state::{self, Coming, Deployed, Directory};
use macrotick_host::sys;
use macrotick_host::HostFailure;
use watch::Watch;

/// How long the supervisor sleeps when nothing is to be expected.
const IDLE: Duration = Duration::from_secs(3600);
/// How long a supervisor that was told to end may take until its lock is free.
const END_LIMIT: Duration = Duration::from_secs(5);
/// The latest remarks are kept.
const MOST_REMARKS: usize = 32;

/// What a supervisor tells its caller.
#[derive(Clone, Debug)]
pub enum Event {
    /// The deployment runs from this instant on (`CLOCK_MONOTONIC`).
    Started(Instant),
    /// It was changed.
    Changed(Changes),
    /// A change was refused, and why.
    Refused(String),
    /// Something else that should be known, such as a task that ended.
    Remark(String),
    /// It ends, and why.
    Ending(&'static str),
}

/// What was ended by [`stop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A deployment, by its supervisor.
    Deployment,
    /// A table that nobody looked after.
    Table,
    /// There was nothing.
    Nothing,
}

/// How a long-lived deployment runs.
fn options() -> RunOptions {
    RunOptions { record_limit: Some(0), output: Output::Inherited, ..RunOptions::new(Backend::Kernel) }
}

/// Deploys a plan on this host and looks after it until SIGINT or SIGTERM comes or [`stop`] is called. Needs root.
///
/// What a killed supervisor left behind is removed first. In the end nothing is left, and neither is after an error.
pub fn supervise(plan: &Plan, seed: u64, tell: &mut dyn FnMut(Event)) -> Result<(), NodeError> {
    let options = RunOptions { seed, ..options() };
    let online = sys::online_cpus()?;
    let deployment = Deployment::decode(plan, &options, &online)?;
    let lock = Lock::take(None)?;
    let directory = Directory::make()?;
    recover(&lock, tell)?;
    let signals = Signals::catch().map_err(NodeError::system("catching signals"))?;
    let (_first, _files) = (First::raise(), OpenFiles::raise());
    let listener = Listener::open(&directory)?;
    // Before there is a table, so that it is known whose it is.
    let state = Deployed {
        supervisor: std::process::id(),
        system: plan.system.name.clone(),
        entities: entities(&deployment),
        groups: plan.system.groups.clone(),
        reserved: plan.system.reserved().map(|(task, _)| task.clone()).collect(),
        changes: 0,
        coming: None,
        promised: Vec::new(),
        remarks: Vec::new(),
    };
    directory.tell(&state);
    let (run, epoch) = Run::begin(deployment, &options, &signals, &mut || {})?;
    tell(Event::Started(epoch));
    let guard = Guard::new(&run);
    let (watch, measured) = (Watch::new(&run), run.lead.and_then(|lead| lead.needed));
    let set = run.settings.as_ref().map_or(&[][..], Held::set);
    set.iter().for_each(|text| tell(Event::Remark(text.clone())));
    let remarks = run.remarks();
    remarks.iter().for_each(|remark| tell(Event::Remark(remark.clone())));
    let mut live = Live {
        run,
        epoch,
        state,
        measured,
        watch,
        guard,
        remarks,
        conversations: Vec::new(),
        change: None,
        leaving: Leaving::default(),
        listener,
        directory,
        tell,
    };
    live.tell_state();
    let end = live.serve(&signals);
    let asker = live.end(end);
    drop(lock);
    if let Some(asker) = asker {
        asker.answer(&Answer::Stopped);
    }
    Ok(())
}

/// Asks the supervisor of the deployment on this host to change to a plan, and waits until it has. `None`: there is no
/// deployment. A refusal is [`NodeError::ChangeRefused`].
pub fn change(plan: &Plan) -> Result<Option<Changes>, NodeError> {
    match control::ask(&Request::Apply(plan.to_json()))? {
        None => Ok(None),
        Some(Answer::Changed(changes)) => Ok(Some(changes)),
        Some(Answer::Refused { text, wrong_input }) => Err(NodeError::ChangeRefused { text, wrong_input }),
        Some(Answer::Stopped) => Err(NodeError::NoAnswer),
    }
}

/// Ends the deployment on this host. Where nobody looks after it any more, removes the table and what else a killed
/// runner or supervisor left behind: control groups and network namespaces. A table whose runner is alive is left alone
/// ([`HostFailure::Busy`]).
pub fn stop() -> Result<Stopped, NodeError> {
    let asked = match control::ask(&Request::Stop) {
        // It was ending already.
        Err(NodeError::NoAnswer) => None,
        asked => asked?,
    };
    if let Some(Answer::Stopped) = asked {
        settings::settle();
        return Ok(Stopped::Deployment);
    }
    let lock = take_lock_of_ending()?;
    let removed = kernel::remove_left(&lock)?;
    state::remove_left();
    settings::settle();
    Ok(if removed { Stopped::Table } else { Stopped::Nothing })
}

/// A supervisor that was told to end by a signal has the lock a little longer.
fn take_lock_of_ending() -> Result<Lock, NodeError> {
    let give_up = sys::now() + END_LIMIT;
    loop {
        match Lock::take(None) {
            Err(HostFailure::Busy { .. }) if state::read(sys::user()).is_some() && sys::now() < give_up => {
                sys::sleep(Duration::from_millis(20));
            }
            result => return Ok(result?),
        }
    }
}

/// Removes what a killed supervisor left: the lock says that there is none, and the file, that there was one. A table
/// that is not its own stays, and will be in the way.
fn recover(lock: &Lock, tell: &mut dyn FnMut(Event)) -> Result<(), NodeError> {
    let Some(left) = state::read(sys::user()) else { return Ok(()) };
    let names = status::entity_names()?;
    let coming = left.coming.as_ref().map(|coming| &coming.entities);
    let is_own = names.is_empty() || names == left.entities || Some(&names) == coming;
    if is_own && kernel::remove_left(lock)? {
        let text = format!("removed what process {}, which was killed, had left of `{}`", left.supervisor, left.system);
        tell(Event::Remark(text));
    }
    Ok(())
}

/// The tasks, then the pools: as they are in the table.
fn entities(deployment: &Deployment) -> Vec<String> {
    let system = &deployment.plan.system;
    let tasks = system.windowed().map(|task| &task.name);
    tasks.chain(system.pools.iter().map(|pool| &pool.name)).cloned().collect()
}

/// A deployment that runs. Fields are dropped in this order: the supervisor's own place last.
struct Live<'a> {
    run: Run<'a>,
    /// Of the running table, on `CLOCK_MONOTONIC`.
    epoch: Instant,
    state: Deployed,
    /// The lead that this host was found to need, if it was measured.
    measured: Option<Duration>,
    watch: Watch,
    guard: Guard,
    /// On processes that ended since the last change, and on that change; the latest of them.
    remarks: Vec<String>,
    conversations: Vec<Conversation>,
    /// With who asked for it.
    change: Option<(Change, Conversation)>,
    leaving: Leaving,
    listener: Listener,
    directory: Directory,
    tell: &'a mut dyn FnMut(Event),
}

/// Why a deployment ends.
enum End {
    Signal(&'static str),
    Asked(Conversation),
}

impl Live<'_> {
    /// Does what there is to do until the deployment is to end.
    fn serve(&mut self, signals: &Signals) -> End {
        let mut at = sys::now();
        loop {
            let looks = [self.leaving.next_look(), self.guard.next_look()];
            let at_latest = looks.into_iter().flatten().fold(at, Instant::min);
            self.run.attend(at_latest, self.epoch, signals, &self.descriptors());
            if let Some(signal) = signals.caught() {
                return End::Signal(signal);
            }
            self.tell_ends();
            let broken = self.guard.look(&mut self.run);
            self.tell_promises(broken);
            self.run.descendants.reap();
            self.leaving.look();
            if let Some(asker) = self.listen() {
                return End::Asked(asker);
            }
            at = self.advance();
        }
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let talking = self.conversations.iter().map(Conversation::descriptor);
        let mut all = self.watch.descriptors();
        all.extend(talking.chain([self.listener.descriptor()]).chain(self.guard.descriptor()));
        all
    }

    /// Takes up what others ask for. Returns who asked for the end.
    fn listen(&mut self) -> Option<Conversation> {
        self.conversations.extend(self.listener.accept());
        for mut conversation in std::mem::take(&mut self.conversations) {
            match conversation.listen() {
                Heard::Part => self.conversations.push(conversation),
                Heard::Nothing => {}
                Heard::Request(Request::Stop) => return Some(conversation),
                Heard::Request(Request::Apply(plan)) => self.begin_change(&plan, conversation),
            }
        }
        None
    }

    fn begin_change(&mut self, plan: &str, asker: Conversation) {
        if self.change.is_some() {
            return self.refuse(asker, &NodeError::Change(ChangeFault::UnderWay));
        }
        let plan = match Plan::from_json(plan, "the plan") {
            Ok(plan) => plan,
            Err(error) => return asker.answer(&Answer::Refused { text: error.to_string(), wrong_input: true }),
        };
        let broken = self.guard.attend(&mut self.run);
        self.tell_promises(broken);
        match Change::begin(&mut self.run, &plan, self.measured) {
            Ok(change) => self.change = Some((change, asker)),
            Err(error) => self.refuse(asker, &error),
        }
    }

    /// Goes on with the change, if there is one; returns when to do so again.
    fn advance(&mut self) -> Instant {
        loop {
            let Some((mut change, asker)) = self.change.take() else { return sys::now() + IDLE };
            match change.advance(&mut self.run, self.epoch, &mut self.leaving) {
                Ok(Step::Done) => self.finish(change, asker),
                Err(error) => {
                    change.abandon(&mut self.run);
                    self.take_back();
                    self.refuse(asker, &error);
                }
                Ok(step) => {
                    let wait = self.take_note(&change, step);
                    self.change = Some((change, asker));
                    if let Some(at) = wait {
                        return at;
                    }
                }
            }
        }
    }

    /// Returns until when to wait, if that is what the step says.
    fn take_note(&mut self, change: &Change, step: Step) -> Option<Instant> {
        match step {
            Step::Wait(at) => return Some(at),
            Step::Staged => {
                self.let_go(&change.leaving(&self.run));
                let coming = change.coming();
                self.state.coming = coming.map(|(other, at)| Coming {
                    system: other.plan.system.name.clone(),
                    entities: entities(other),
                    instant_ns: at.as_nanos(),
                });
            }
            Step::Made(epoch) => {
                self.epoch = epoch;
                self.watch.renew(&self.run);
                self.guard.renew(&self.run);
                self.remarks.clear();
                let changes = self.state.changes + u32::from(!change.is_empty());
                let supervisor = self.state.supervisor;
                let system = self.run.deployment.plan.system.name.clone();
                // They do not change with the system.
                let groups = std::mem::take(&mut self.state.groups);
                let reserved = std::mem::take(&mut self.state.reserved);
                let entities = entities(&self.run.deployment);
                self.state = Deployed {
                    supervisor,
                    system,
                    entities,
                    groups,
                    reserved,
                    changes,
                    coming: None,
                    promised: Vec::new(),
                    remarks: Vec::new(),
                };
            }
            Step::Done => {}
        }
        self.tell_state();
        None
    }

    /// Tasks that the kernel unbinds at the instant of the change may end by themselves before it is known here.
    fn let_go(&mut self, leaving: &[usize]) {
        self.watch.leave_out(&self.run, leaving);
        if let Some(supervisor) = &mut self.run.supervisor {
            supervisor.release(leaving);
        }
    }

    /// After a change that was not made.
    fn take_back(&mut self) {
        let same: Vec<Origin> = (0..self.run.tasks.len()).map(Origin::Same).collect();
        match Supervisor::renew(self.run.supervisor.take(), &self.run, &same) {
            Ok(supervisor) => self.run.supervisor = supervisor,
            Err(error) => self.remarks.push(format!("no task is begun anew any more: {}", error.with_reason())),
        }
        self.watch.renew(&self.run);
        self.state.coming = None;
        self.tell_state();
    }

    fn finish(&mut self, change: Change, asker: Conversation) {
        let changes = change.into_changes(&self.run);
        self.remarks.extend_from_slice(&changes.remarks);
        self.tell_state();
        asker.answer(&Answer::Changed(changes.clone()));
        (self.tell)(Event::Changed(changes));
    }

    fn refuse(&mut self, asker: Conversation, error: &NodeError) {
        let text = error.with_reason();
        asker.answer(&Answer::Refused { text: text.clone(), wrong_input: is_about_the_plan(error) });
        (self.tell)(Event::Refused(text));
    }

    /// Tells which processes ended, and which were begun anew.
    fn tell_ends(&mut self) {
        let news = self.watch.look(&self.run);
        if news.ended.is_empty() && news.begun_anew.is_empty() {
            return;
        }
        self.remarks.extend_from_slice(&news.ended);
        news.ended.into_iter().chain(news.begun_anew).for_each(|text| (self.tell)(Event::Remark(text)));
        self.tell_state();
    }

    /// Tells what became of promises to control groups.
    fn tell_promises(&mut self, news: Vec<String>) {
        if news.is_empty() {
            return;
        }
        self.remarks.extend_from_slice(&news);
        news.into_iter().for_each(|text| (self.tell)(Event::Remark(text)));
        self.tell_state();
    }

    /// Tells the state to whoever reads the file.
    fn tell_state(&mut self) {
        let surplus = self.remarks.len().saturating_sub(MOST_REMARKS);
        self.remarks.drain(..surplus);
        self.state.promised = guard::groups(&self.run).into_iter().cloned().collect();
        self.state.remarks = [&self.remarks, self.watch.remarks()].concat();
        self.directory.tell(&self.state);
    }

    /// Ends everything; returns who waits to be told.
    fn end(mut self, end: End) -> Option<Conversation> {
        let (why, asker) = match end {
            End::Signal(signal) => (signal, None),
            End::Asked(asker) => ("macrotick stop", Some(asker)),
        };
        (self.tell)(Event::Ending(why));
        if let Some((change, waiting)) = self.change.take() {
            change.abandon(&mut self.run);
            self.refuse(waiting, &NodeError::Change(ChangeFault::Ending));
        }
        self.tell_ends();
        let told = self.watch.told(&self.run);
        if let Some(supervisor) = self.run.supervisor.take() {
            supervisor.end(&mut self.run.tasks);
        }
        let mut remarks = Vec::new();
        if let Err(error) = self.run.end(&told, &mut remarks) {
            remarks.push(error.with_reason());
        }
        remarks.into_iter().for_each(|remark| (self.tell)(Event::Remark(remark)));
        asker
    }
}

/// Whether a change was refused for what is in the plan, and not for what the host did not do.
fn is_about_the_plan(error: &NodeError) -> bool {
    matches!(
        error,
        NodeError::Change(
            ChangeFault::Windows { .. }
                | ChangeFault::Clock { .. }
                | ChangeFault::Namespaces
                | ChangeFault::Reservations
                | ChangeFault::Moves { .. }
                | ChangeFault::Pool { .. }
                | ChangeFault::Kind(_)
        ) | NodeError::PlanVersion(_)
            | NodeError::NotPositive { .. }
            | NodeError::NoActivation(_)
            | NodeError::NoWindow(_)
            | NodeError::Migrates(_)
            | NodeError::NameTooLong(_)
    )
}
