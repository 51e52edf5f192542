//! The supervisor's main loop: it sleeps until there is work, and does it.

use std::os::fd::{AsRawFd, RawFd};

use macrotick_host::state::{Coming, Deployed, Directory, SharedBlock};
use macrotick_host::sys;
use macrotick_model::{Duration, Instant, Plan};

use crate::deployment::network::slot_devices;
use crate::deployment::Deployment;
use crate::error::{ChangeFault, NodeError};
use crate::live::change::{self, Change, Step};
use crate::live::control::{Answer, Conversation, Heard, Listener, Request};
use crate::live::event::Event;
use crate::live::flight::Flight;
use crate::live::guard::{self, Guard};
use crate::live::leaving::Leaving;
use crate::live::reading::Readings;
use crate::live::watch::Watch;
use crate::process::child::Child;
use crate::process::signals::Signals;
use crate::run::collect;
use crate::run::resources::Run;
use crate::run::supervisor::{self, Origin, Supervisor};

/// The longest sleep of the supervisor.
const IDLE: Duration = Duration::from_secs(3600);
/// The maximum number of remarks. The latest ones are kept.
const MOST_REMARKS: usize = 32;

/// A running deployment. Fields drop in this order: the supervisor's own directory last.
pub(super) struct Live<'a> {
    pub(super) run: Run<'a>,
    /// The epoch of the running table, on `CLOCK_MONOTONIC`.
    pub(super) epoch: Instant,
    pub(super) state: Deployed,
    /// The lead that this host needs, if it was measured.
    pub(super) measured: Option<Duration>,
    pub(super) watch: Watch,
    pub(super) guard: Guard,
    /// The recorder of misses, if a task has one.
    pub(super) flight: Option<Flight>,
    /// The latest remarks on processes that ended since the last change, and on that change.
    pub(super) remarks: Vec<String>,
    pub(super) conversations: Vec<Conversation>,
    /// The change in progress, and the peer that requested it.
    pub(super) change: Option<(Change, Conversation)>,
    pub(super) leaving: Leaving,
    /// The readings of a soak. Nothing changes its deployment.
    pub(super) readings: Option<Readings>,
    pub(super) listener: Listener,
    pub(super) directory: Directory,
    pub(super) tell: &'a mut dyn FnMut(Event),
}

/// The reason for the end of a deployment.
pub(super) enum End {
    Signal(&'static str),
    Asked(Conversation),
    Over,
}

impl Live<'_> {
    /// Works until the deployment must end.
    pub(super) fn serve(&mut self, signals: &Signals) -> End {
        let mut at = sys::now();
        loop {
            let reading = self.readings.as_ref().map(|readings| readings.next_look(&self.run, self.epoch));
            let recording = self.flight.as_ref().and_then(Flight::next_look);
            let looks = [self.leaving.next_look(), self.guard.next_look(), reading, recording];
            let at_latest = looks.into_iter().flatten().fold(at, Instant::min);
            let descriptors = self.descriptors();
            supervisor::attend(&mut self.run, at_latest, self.epoch, signals, &descriptors);
            if let Some(signal) = signals.caught() {
                return End::Signal(signal);
            }
            self.tell_ends();
            let broken = self.guard.look(&mut self.run);
            self.tell_promises(broken);
            self.record();
            self.run.descendants.reap();
            self.leaving.look();
            if let Some(asker) = self.listen() {
                return End::Asked(asker);
            }
            if self.read() {
                return End::Over;
            }
            at = self.advance();
        }
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let talking = self.conversations.iter().map(Conversation::descriptor);
        let mut all = self.watch.descriptors();
        all.extend(talking.chain([self.listener.descriptor()]).chain(self.guard.descriptor()));
        all.extend(self.flight.as_ref().and_then(Flight::descriptor));
        all
    }

    /// Handles requests. Returns the peer that requested the end.
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

    /// Takes a reading, if one is due. Returns whether the deployment must end.
    fn read(&mut self) -> bool {
        let Some(readings) = &mut self.readings else { return false };
        if readings.is_over(&self.run, self.epoch) {
            return true;
        }
        if let Some(reading) = readings.look(&mut self.run, self.epoch) {
            (self.tell)(Event::Reading(reading));
        }
        false
    }

    /// Records misses, if one is due.
    fn record(&mut self) {
        let Some(flight) = &mut self.flight else { return };
        let events = flight.look(&self.run, self.epoch).unwrap_or_else(|error| {
            self.flight = None;
            vec![Event::Remark(format!("no miss is recorded any more: {}", error.with_reason()))]
        });
        for event in events {
            match &event {
                Event::Recorded(recorded) => self.remarks.push(recorded.sentence.clone()),
                Event::Remark(text) => self.remarks.push(text.clone()),
                _ => {}
            }
            (self.tell)(event);
            self.tell_state();
        }
    }

    fn begin_change(&mut self, plan: &str, asker: Conversation) {
        if self.readings.is_some() {
            return self.refuse(asker, &NodeError::Change(ChangeFault::Soak));
        }
        if self.change.is_some() {
            return self.refuse(asker, &NodeError::Change(ChangeFault::UnderWay));
        }
        let plan = match Plan::from_json(plan, "the plan") {
            Ok(plan) => plan,
            Err(error) => return asker.answer(&Answer::Refused { text: error.to_string(), wrong_input: true }),
        };
        let broken = self.guard.attend(&mut self.run);
        self.tell_promises(broken);
        match change::begin(&mut self.run, &plan, self.measured) {
            Ok(change) => self.change = Some((change, asker)),
            Err(error) => self.refuse(asker, &error),
        }
    }

    /// Continues the change, if there is one. Returns the instant of the next call.
    fn advance(&mut self) -> Instant {
        loop {
            let Some((mut change, asker)) = self.change.take() else { return sys::now() + IDLE };
            match change::advance(&mut change, &mut self.run, self.epoch, &mut self.leaving) {
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

    /// Updates the state after a step. Returns the instant to wait for, if the step requires a wait.
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
                self.flight = Flight::renew(self.flight.take(), &self.run).unwrap_or_else(|error| {
                    self.remarks.push(format!("no miss is recorded: {}", error.with_reason()));
                    None
                });
                let changes = self.state.changes + u32::from(!change.is_empty());
                let supervisor = self.state.supervisor;
                self.state = describe(&self.run.deployment, supervisor, changes);
                self.directory.tell_plan(&self.run.deployment.plan);
            }
            Step::Done => {}
        }
        self.tell_state();
        None
    }

    /// Stops watching tasks that leave. The kernel unbinds them at the instant of the switch. They may end before the
    /// supervisor knows about the switch.
    fn let_go(&mut self, leaving: &[usize]) {
        self.watch.leave_out(&self.run, leaving);
        if let Some(supervisor) = &mut self.run.supervisor {
            supervisor.release(leaving);
        }
    }

    /// Restores the state after a change that failed.
    fn take_back(&mut self) {
        let same: Vec<Origin> = (0..self.run.tasks.len()).map(Origin::Same).collect();
        match Supervisor::renew(self.run.supervisor.take(), &self.run, &same) {
            Ok(supervisor) => self.run.supervisor = supervisor,
            Err(error) => self.remarks.push(format!("no task is restarted any more: {}", error.with_reason())),
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
        asker.answer(&Answer::Refused { text: text.clone(), wrong_input: error.is_about_the_plan() });
        (self.tell)(Event::Refused(text));
    }

    /// Reports the processes that ended, and the tasks that were restarted.
    fn tell_ends(&mut self) {
        let news = self.watch.look(&self.run);
        if news.ended.is_empty() && news.begun_anew.is_empty() {
            return;
        }
        self.remarks.extend_from_slice(&news.ended);
        news.ended.into_iter().chain(news.begun_anew).for_each(|text| (self.tell)(Event::Remark(text)));
        self.tell_state();
    }

    /// Reports news about the promises to control groups.
    fn tell_promises(&mut self, news: Vec<String>) {
        if news.is_empty() {
            return;
        }
        self.remarks.extend_from_slice(&news);
        news.into_iter().for_each(|text| (self.tell)(Event::Remark(text)));
        self.tell_state();
    }

    /// Writes the state to the file for other programs.
    pub(super) fn tell_state(&mut self) {
        let surplus = self.remarks.len().saturating_sub(MOST_REMARKS);
        self.remarks.drain(..surplus);
        self.state.gates = self.run.gates.as_ref().map_or_else(Vec::new, |gates| gates.in_force().to_vec());
        self.state.promised = guard::groups(&self.run).into_iter().cloned().collect();
        let block =
            |child: &Child| SharedBlock { task: child.name.clone(), descriptor: child.block.file().as_raw_fd() };
        self.state.blocks = self.run.tasks.iter().map(block).collect();
        self.state.remarks = [&self.remarks, self.watch.remarks()].concat();
        self.directory.tell(&self.state);
    }

    /// Ends the deployment. Returns the peer that waits for the end.
    pub(super) fn end(mut self, end: End) -> Option<Conversation> {
        let (why, asker) = match end {
            End::Signal(signal) => (signal, None),
            End::Asked(asker) => ("macrotick stop", Some(asker)),
            End::Over => ("the time is over", None),
        };
        if let Some(mut readings) = self.readings.take() {
            (self.tell)(Event::Reading(readings.last(&mut self.run, self.epoch)));
        }
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
        if let Err(error) = collect::end(&mut self.run, &told, &mut remarks) {
            remarks.push(error.with_reason());
        }
        remarks.into_iter().for_each(|remark| (self.tell)(Event::Remark(remark)));
        asker
    }
}

/// Describes a deployment for the state file, without gates, promises and remarks.
pub(super) fn describe(deployment: &Deployment, supervisor: u32, changes: u32) -> Deployed {
    let system = &deployment.plan.system;
    Deployed {
        supervisor,
        system: system.name.clone(),
        entities: entities(deployment),
        groups: system.servers().cloned().collect(),
        slots: system.network.as_ref().map_or(Vec::new(), |network| network.slots.clone()),
        slot_devices: slot_devices(system),
        reserved: system.reserved().map(|(task, _)| task.clone()).collect(),
        changes,
        coming: None,
        gates: Vec::new(),
        promised: Vec::new(),
        blocks: Vec::new(),
        remarks: Vec::new(),
    }
}

/// Returns the tasks, then the pools, in the order of the table.
fn entities(deployment: &Deployment) -> Vec<String> {
    let system = &deployment.plan.system;
    let tasks = system.windowed().map(|task| &task.name);
    tasks.cloned().chain(system.pools().map(|pool| pool.name)).collect()
}
