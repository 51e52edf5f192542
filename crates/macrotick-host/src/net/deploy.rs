//! Deploys the wanted state of devices: reads, decides, changes, reads back, and reverts everything after a failure.

use std::cell::RefCell;
use std::rc::Rc;

use macrotick_model::Duration;

use super::classifier::{self, Filter, Side, CLOSED, FIRST};
use super::decide::{decide, leaves, Changes, CHANGE};
use super::fault::{DeployFault, Reason};
use super::kernel::{Refusal, Shared, ENOTSUPP};
use super::link;
use super::present::{self, Present};
use super::qdisc::{Found, Kind, Placed, Put, ROOT};
use super::step::{commands, Action, Effect, Place, Step};
use super::wanted::{GateClock, Mode, Root, Taprio, Wanted};
use crate::sys::Tid;
use crate::undo::Undo;

/// The time after which gates that have not started are a failure, beyond their start.
const PATIENCE: Duration = Duration::from_millis(2000);
/// The time between two looks at gates that start.
const LOOK: Duration = Duration::from_millis(1);

/// A device with its wanted state.
#[derive(Clone)]
pub struct Target {
    /// The kernel, in the network namespace of the device.
    pub kernel: Shared,
    /// The name of the namespace (`ip netns`), for commands in texts.
    pub namespace: Option<String>,
    /// The wanted state.
    pub wanted: Wanted,
}

/// The steps of a deployment on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The device.
    pub device: String,
    /// The equivalent commands of `tc`, `ip` and `ethtool`, one a line. Lines that begin with `#` are comments.
    pub commands: Vec<String>,
    /// The reason why the device has to be closed meanwhile; `None`: it stays open.
    pub closes: Option<String>,
    /// The gate list changes at its base time, under the running list's handle.
    pub swaps: bool,
}

/// The result of a deployment on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The device.
    pub device: String,
    /// The tier that enforces the gates; `None`: the device has no gates.
    pub mode: Option<Mode>,
    /// The better modes that were refused, each with the kernel's reason.
    pub refused: Vec<(Mode, String)>,
    /// The gates ran already in this mode, and no other was tried.
    pub kept: bool,
    /// The time for which the device was closed, with the frames that were dropped meanwhile; `None`: it stayed open.
    pub closed: Option<(Duration, u32)>,
}

/// A deployment on devices. Dropping it restores their former state.
pub struct Deployment {
    reports: Vec<Report>,
    undo: Undo,
}

/// Returns what a deployment would do. Changes nothing.
pub fn propose(targets: &[Target]) -> Result<Vec<Proposal>, Box<DeployFault>> {
    let decided = decide_all(targets)?;
    let propose = |(target, Decided { changes, .. }): (&Target, Decided)| Proposal {
        device: target.wanted.device.clone(),
        commands: commands(&changes.steps),
        swaps: changes.steps.iter().any(|step| step.what == CHANGE),
        closes: changes.closes,
    };
    Ok(targets.iter().zip(decided).map(propose).collect())
}

/// Changes running gate lists at one instant: `at` is the base time of all lists, in nanoseconds of their clocks. Fails
/// before any change if a device has to be closed for its list. If the instant passes while the lists are sent, it fails
/// too, and the former lists come back.
pub fn swap(targets: &[Target], at: i64) -> Result<Deployment, Box<DeployFault>> {
    let mut targets = targets.to_vec();
    for target in &mut targets {
        if let Some(Root::Taprio { taprio, .. }) = target.wanted.tree.as_mut().map(|tree| &mut tree.root) {
            taprio.base_time = at;
        }
    }
    for (target, Decided { changes, .. }) in targets.iter().zip(decide_all(&targets)?) {
        let reason = match changes.closes {
            Some(why) => why,
            None if wanted_gates(&target.wanted).is_some() && changes.kept.is_none() => {
                "no gate list runs on it".into()
            }
            None => continue,
        };
        return Err(DeployFault::unfit(&target.wanted.device, SWAP, reason, None));
    }
    in_time(&targets, at)?;
    let deployment = Deployment::make(&targets)?;
    // The kernel winds an instant forward that passed while the lists were sent.
    in_time(&targets, at)?;
    Ok(deployment)
}

/// The purpose of a swap.
const SWAP: &str = "swap the gate list";

/// Fails if an instant has passed on the clock of some gates.
fn in_time(targets: &[Target], at: i64) -> Result<(), Box<DeployFault>> {
    let has_passed = |target: &&Target| {
        wanted_gates(&target.wanted).is_some_and(|gates| target.kernel.borrow().now(gates.clock) >= at)
    };
    match targets.iter().find(has_passed) {
        None => Ok(()),
        Some(target) => {
            let (reason, remedy) = (format!("the instant of {at} ns has passed"), "choose a later one".to_owned());
            Err(DeployFault::unfit(&target.wanted.device, SWAP, reason, Some(remedy)))
        }
    }
}

/// Returns the base time and the gates of the list that follows the running one; `None`: no list follows.
pub fn pending(kernel: &Shared, device: &str) -> Result<Option<Taprio>, Box<DeployFault>> {
    let present = read(kernel, device, false)?;
    let gates = present::gates(&present.qdiscs).filter(|running| running.next.is_some());
    Ok(gates.and_then(|running| running.wanted()))
}

/// Returns the kernel thread that opens the gates of a device; `None`: it has no exact gates.
pub fn gate_thread(kernel: &Shared, device: &str) -> Result<Option<Tid>, Box<DeployFault>> {
    let present = read(kernel, device, false)?;
    Ok(present::gates(&present.qdiscs).and_then(|running| running.thread).and_then(|thread| thread.try_into().ok()))
}

/// Returns the device of a VLAN above another device.
pub fn vlan_device(kernel: &Shared, device: &str, vlan: u16) -> Result<String, Box<DeployFault>> {
    let step = format!("find its VLAN {vlan}");
    let below = read(kernel, device, false)?.link.index;
    let answers = kernel.borrow_mut().send(&link::dump());
    let answers = answers.map_err(|refusal| DeployFault::refused(device, &step, refusal, ""))?;
    link::decode_vlan(&answers, below, vlan).ok_or_else(|| {
        let create = format!("create it: `ip link add link {device} name {device}.{vlan} type vlan id {vlan}`");
        DeployFault::unfit(device, &step, "there is no such device".into(), Some(create))
    })
}

/// Returns what a deployment would do on a veth that does not exist yet, with this number of queues. `namespace` is the
/// name of its namespace (`ip netns`).
pub fn propose_new(namespace: Option<&str>, queues: u32, wanted: &Wanted) -> Result<Proposal, Box<DeployFault>> {
    let before = Present::of_new_veth(queues);
    let changes = decide(&Place { device: &wanted.device, namespace, index: 0 }, &before, wanted, &|_| i64::MAX)?;
    Ok(Proposal { device: wanted.device.clone(), commands: commands(&changes.steps), closes: None, swaps: false })
}

/// Starts the gates of a device again, with their list. Does nothing on a device without gates.
///
/// In Linux 6.12, gates of the tier `software` stop in some entry when the link goes down. They stay there when it is up
/// again, and a dump does not show it. The call has no undo, because the configuration stays.
pub fn restart(kernel: &Shared, device: &str) -> Result<(), Box<DeployFault>> {
    let present = read(kernel, device, false)?;
    let (Some(root), Some(_)) = (present.root(), present::gates(&present.qdiscs)) else { return Ok(()) };
    let what = "start the gates again";
    let foreign = || {
        let reason = "Macrotick could not have made them".to_owned();
        DeployFault::unfit(device, what, reason, Some("delete them, and deploy again".into()))
    };
    let place = Place { device, namespace: None, index: present.link.index };
    let mut placed = root.placed().ok_or_else(foreign)?;
    if let Kind::Taprio(taprio) = &mut placed.kind {
        // The kernel keeps those that it was given. It reports them lowered to the intervals.
        taprio.max_sdu.clear();
    }
    let order = place.put(Put::Change, &placed);
    let sent = kernel.borrow_mut().send(&order.message);
    sent.map_err(|refusal| DeployFault::refused(device, what, refusal, ""))?;
    started(kernel, present.link.index).map_err(|reason| failed(device, what, reason))
}

fn failed(device: &str, step: &str, reason: Reason) -> Box<DeployFault> {
    let (device, step) = (device.to_owned(), step.to_owned());
    Box::new(DeployFault { device, step, reason, remedy: None, left: Vec::new() })
}

struct Decided {
    before: Present,
    changes: Changes,
}

fn read(kernel: &Shared, device: &str, with_channels: bool) -> Result<Present, Box<DeployFault>> {
    present::read(&mut *kernel.borrow_mut(), device, with_channels).map_err(|refusal| {
        let needs = if with_channels { "CONFIG_ETHTOOL_NETLINK" } else { "" };
        DeployFault::refused(device, "read its state", refusal, needs)
    })
}

fn decide_all(targets: &[Target]) -> Result<Vec<Decided>, Box<DeployFault>> {
    targets.iter().map(decide_one).collect()
}

fn decide_one(target: &Target) -> Result<Decided, Box<DeployFault>> {
    let Target { kernel, namespace, wanted } = target;
    let before = read(kernel, &wanted.device, wanted.queues.is_some())?;
    let place = Place { device: &wanted.device, namespace: namespace.as_deref(), index: before.link.index };
    let now = |clock: GateClock| kernel.borrow().now(clock);
    let changes = decide(&place, &before, wanted, &now)?;
    Ok(Decided { before, changes })
}

impl Deployment {
    /// Brings all devices to their wanted states, or leaves all as they were. Needs root.
    pub fn make(targets: &[Target]) -> Result<Deployment, Box<DeployFault>> {
        let decided = decide_all(targets)?;
        let (mut undo, problems) = (Undo::default(), Rc::new(RefCell::new(Vec::new())));
        let mut reports = Vec::new();
        for (target, decided_one) in targets.iter().zip(&decided) {
            let mut work = Work { target, decided: decided_one, undo: &mut undo, problems: problems.clone() };
            match work.run() {
                Ok(report) => reports.push(report),
                Err(mut fault) => {
                    drop(undo);
                    fault.left = problems.take();
                    fault.left.extend(targets.iter().zip(&decided).filter_map(unlike_before));
                    return Err(fault);
                }
            }
        }
        Ok(Deployment { reports, undo })
    }

    /// Returns what was done, in the order of the targets.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// Leaves the devices as they are now.
    pub fn keep(self) -> Vec<Report> {
        self.undo.forget();
        self.reports
    }
}

/// Returns a remark if the state of a device is not the one from before.
fn unlike_before((target, Decided { before, .. }): (&Target, &Decided)) -> Option<String> {
    let device = &target.wanted.device;
    match read(&target.kernel, device, before.channels.is_some()) {
        Ok(now) if now == *before => None,
        Ok(now) if now.qdiscs != before.qdiscs => Some(format!("the qdiscs of `{device}` are not as before")),
        Ok(_) => Some(format!("filters, neighbours or queues of `{device}` are not as before")),
        Err(fault) => Some(fault.to_string()),
    }
}

type Problems = Rc<RefCell<Vec<String>>>;

/// The work on one device.
struct Work<'a> {
    target: &'a Target,
    decided: &'a Decided,
    undo: &'a mut Undo,
    problems: Problems,
}

impl Work<'_> {
    fn run(&mut self) -> Result<Report, Box<DeployFault>> {
        let device = self.target.wanted.device.clone();
        let kept = self.decided.changes.kept;
        let mut report = Report { device, mode: kept, refused: Vec::new(), kept: kept.is_some(), closed: None };
        let mut closed_at = None;
        for step in &self.decided.changes.steps {
            let dropped = if step.effect == Effect::Opens { self.dropped() } else { 0 };
            self.perform(step, &mut report)?;
            self.undo_later(step);
            match step.effect {
                Effect::Closes => closed_at = Some(self.now()),
                Effect::Opens => report.closed = closed_at.map(|at| (Duration::from_nanos(self.now() - at), dropped)),
                Effect::None => {}
            }
        }
        self.verify(report.mode)?;
        Ok(report)
    }

    fn now(&self) -> i64 {
        self.target.kernel.borrow().now(GateClock::Monotonic)
    }

    /// Returns the number of frames that the closed device has dropped.
    fn dropped(&self) -> u32 {
        let filters = present::read_filters(&mut *self.target.kernel.borrow_mut(), self.decided.before.link.index);
        let is_it = |found: &classifier::Found| found.side == Side::Egress && found.preference == CLOSED;
        let closed = filters.unwrap_or_default().into_iter().find(is_it);
        closed.map_or(0, |closed| closed.packets)
    }

    fn perform(&self, step: &Step, report: &mut Report) -> Result<(), Box<DeployFault>> {
        let device = &self.target.wanted.device;
        let refused = |refusal| DeployFault::refused(device, &step.what, refusal, step.needs);
        match &step.action {
            Action::Send(order) => drop(self.target.kernel.borrow_mut().send(&order.message).map_err(refused)?),
            Action::Await => started(&self.target.kernel, self.decided.before.link.index)
                .map_err(|reason| failed(device, &step.what, reason))?,
            Action::Try(tries) => {
                for (number, (mode, order)) in tries.iter().enumerate() {
                    let answer = self.target.kernel.borrow_mut().send(&order.message);
                    match answer {
                        Ok(_) => {
                            report.mode = Some(*mode);
                            break;
                        }
                        Err(refusal) if number + 1 < tries.len() && means_unavailable(&refusal) => {
                            report.refused.push((*mode, why_not(*mode, &refusal)));
                        }
                        Err(refusal) => return Err(refused(refusal)),
                    }
                }
            }
        }
        Ok(())
    }

    fn undo_later(&mut self, step: &Step) {
        if step.undo.is_empty() {
            return;
        }
        let (kernel, index) = (self.target.kernel.clone(), self.decided.before.link.index);
        let (actions, problems) = (step.undo.clone(), self.problems.clone());
        self.undo.later(move || {
            for action in &actions {
                problems.borrow_mut().extend(revert(&kernel, index, action));
            }
        });
    }

    /// Reads the state back, and compares it with the wanted one.
    fn verify(&self, mode: Option<Mode>) -> Result<(), Box<DeployFault>> {
        let wanted = &self.target.wanted;
        let after = read(&self.target.kernel, &wanted.device, wanted.queues.is_some())?;
        match difference(wanted, mode, &after) {
            None => Ok(()),
            Some(found) => Err(failed(&wanted.device, "verify the new state", Reason::Differs(found))),
        }
    }
}

/// Takes a step back. Returns a remark if that fails.
fn revert(kernel: &Shared, index: i32, action: &Action) -> Option<String> {
    match action {
        Action::Send(order) => {
            let refusal = kernel.borrow_mut().send(&order.message).err()?;
            Some(format!("`{}`: {refusal}", order.command))
        }
        Action::Await => started(kernel, index).err().map(|_| "the former gates have not started".into()),
        Action::Try(_) => None,
    }
}

/// Waits until the gates of a device are in force. A list that was sent with a past base time starts within a cycle.
fn started(kernel: &Shared, index: i32) -> Result<(), Reason> {
    let mut first_look = None;
    loop {
        let qdiscs = present::read_qdiscs(&mut *kernel.borrow_mut(), index).map_err(Reason::Refused)?;
        let gates = present::gates(&qdiscs).ok_or(Reason::Differs("no gates".into()))?;
        let Some(next) = gates.next.as_ref() else { return Ok(()) };
        let now = kernel.borrow().now(gates.clock);
        let first_look = *first_look.get_or_insert(now);
        let start = next.base_time.max(first_look + next.cycle.as_nanos());
        // The kernel reports a switch of exact gates when the next frame comes.
        if matches!(gates.mode, Mode::Exact { .. }) && now >= start {
            return Ok(());
        }
        if now > start + PATIENCE.as_nanos() {
            return Err(Reason::Late);
        }
        kernel.borrow_mut().wait(LOOK);
    }
}

/// Whether kernel or device cannot do it, whereas another mode may be possible.
fn means_unavailable(refusal: &Refusal) -> bool {
    [libc::EINVAL, libc::EOPNOTSUPP, libc::ERANGE, ENOTSUPP].contains(&refusal.errno)
}

fn why_not(mode: Mode, refusal: &Refusal) -> String {
    match mode {
        Mode::Exact { .. } if refusal.text.as_ref().is_none_or(|text| text.contains("reserved bit")) => {
            format!("this kernel has no exact gates ({refusal})")
        }
        _ => refusal.to_string(),
    }
}

fn wanted_gates(wanted: &Wanted) -> Option<&Taprio> {
    match &wanted.tree.as_ref()?.root {
        Root::Taprio { taprio, .. } => Some(taprio),
        _ => None,
    }
}

/// Returns the first part of the state that differs from the wanted one, in words.
fn difference(wanted: &Wanted, mode: Option<Mode>, after: &Present) -> Option<String> {
    if after.filter(Side::Egress, CLOSED).is_some() {
        return Some("a closed device".into());
    }
    if let Some(tree) = &wanted.tree {
        let kind = match &tree.root {
            Root::Default => None,
            Root::Mqprio(mapping) => Some(Kind::Mqprio(mapping.clone())),
            Root::Single(leaf) => Some(Kind::Leaf(*leaf)),
            Root::Taprio { taprio, .. } => {
                Some(Kind::Taprio(Taprio { mode: mode.unwrap_or(taprio.mode), ..taprio.clone() }))
            }
        };
        match (kind, after.root()) {
            (None, None) => {}
            (Some(kind), Some(root)) => {
                let placed = Placed { parent: ROOT, handle: root.handle, sizes: tree.sizes, kind };
                if !root.is(&placed) {
                    return Some(format!("`{}`", in_words(root)));
                }
                let missing = leaves(tree, root.handle).find(|leaf| !after.below_root().any(|found| same(found, leaf)));
                if let Some(leaf) = missing {
                    return Some(format!("no `{}` at queue {}", leaf.kind.words(), (leaf.parent & 0xffff) - 1));
                }
            }
            (None, Some(root)) => return Some(format!("`{}`", in_words(root))),
            (Some(_), None) => return Some("the default root qdisc".into()),
        }
    }
    for (side, classifiers) in wanted.classifiers() {
        for (preference, classifier) in (FIRST..).zip(classifiers) {
            if after.filter(side, preference) != Some(Some(&Filter::Classifier(classifier.clone()))) {
                return Some(format!("another classifier at {}, preference {preference}", side.name()));
            }
        }
    }
    let neighbour = wanted.neighbours.iter().find(|neighbour| !after.neighbours.contains(neighbour));
    if let Some(neighbour) = neighbour {
        return Some(format!("another hardware address of {}", neighbour.address));
    }
    let map = after.link.vlan_priorities.as_ref();
    let has = |priority: &u32| map.and_then(|map| map.get(priority)).copied().unwrap_or(0);
    if let Some((priority, _)) = wanted.vlan_priorities.iter().find(|(priority, pcp)| has(priority) != **pcp) {
        return Some(format!("PCP {} for priority {priority}", has(priority)));
    }
    match (wanted.queues, after.channels) {
        (Some(queues), Some(found)) if found.queues != queues => Some(format!("{} transmit queues", found.queues)),
        _ => None,
    }
}

fn same(found: &Found, wanted: &Placed) -> bool {
    found.is(&Placed { handle: found.handle, ..wanted.clone() })
}

/// Describes a root that was read back, as arguments for tc.
fn in_words(root: &Found) -> String {
    root.placed().map_or_else(|| root.name.clone(), |placed| placed.kind.words())
}
