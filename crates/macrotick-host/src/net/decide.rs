//! Decides on the steps from the present state of a device to the wanted one. It changes nothing.
//!
//! Rules for gates on Linux 6.12:
//! * A gate list is changed under the same handle, where clock, classes and flags stay. The kernel then switches at the
//!   base time, and a refusal leaves the running list alone.
//! * A taprio over another root qdisc can hang the kernel, even over a taprio with another handle. Its refusal resets the
//!   classes of the running one. Therefore the old root is deleted first.
//! * Between the two roots, and until the new list starts, all gates are open. Therefore a device with gates is closed
//!   meanwhile: a filter at egress drops all frames. Addresses, routes and neighbours stay, which a link that goes down
//!   would lose.

use std::collections::BTreeMap;
use std::mem::discriminant;

use super::channels::Channels;
use super::check::check;
use super::classifier::{Filter, Side, CLOSED, FIRST, MAX_CLASSIFIERS};
use super::fault::DeployFault;
use super::present::Present;
use super::qdisc::{Kind, Placed, Put, State, HANDLE, ROOT};
use super::step::{Action, Effect, Order, Place, Step};
use super::taprio::Running;
use super::wanted::{Classifier, GateClock, Leaf, Mode, Root, Taprio, Tree, Wanted};

/// The step that changes a running gate list.
pub(super) const CHANGE: &str = "change the gate list";

/// The steps for one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Changes {
    pub steps: Vec<Step>,
    /// The gates that run already and stay, or change at their base time.
    pub kept: Option<Mode>,
    /// The reason why the device has to be closed.
    pub closes: Option<String>,
}

/// Decides on the steps. `now` returns the present instant of a clock.
pub(super) fn decide(
    place: &Place<'_>,
    present: &Present,
    wanted: &Wanted,
    now: &dyn Fn(GateClock) -> i64,
) -> Result<Changes, Box<DeployFault>> {
    check(wanted, present)?;
    let mut decision = Decision { place, present, wanted, now, steps: Vec::new(), clsact: false };
    decision.neighbours();
    decision.vlan();
    let new_queues = decision.new_queues()?;
    let roots = decision.roots(new_queues)?;
    let closes = match &roots {
        Roots::Replace { why, .. } => present.root().is_some_and(is_gated).then(|| why.clone()),
        _ => None,
    };
    let closed_before = decision.closed_before()?;
    let needs_clsact = wanted.classifiers().any(|(_, wanted)| !wanted.is_empty()) || closes.is_some();
    if needs_clsact {
        decision.clsact()?;
    }
    for (side, classifiers) in wanted.classifiers() {
        decision.classifiers(side, classifiers)?;
    }
    if closes.is_some() && !closed_before {
        decision.close();
    }
    let kept = decision.root(roots, new_queues)?;
    if closes.is_some() || closed_before {
        decision.open();
    }
    Ok(Changes { steps: decision.steps, kept, closes })
}

fn is_gated(found: &super::qdisc::Found) -> bool {
    found.name == "taprio"
}

/// The fate of the root.
enum Roots {
    Stay(Option<Mode>),
    /// The gate list changes under its handle.
    Change {
        old: Box<Placed>,
        new: Box<Placed>,
        mode: Mode,
    },
    /// The old root goes first.
    Replace {
        old: Vec<Placed>,
        why: String,
    },
}

struct Decision<'a> {
    place: &'a Place<'a>,
    present: &'a Present,
    wanted: &'a Wanted,
    now: &'a dyn Fn(GateClock) -> i64,
    steps: Vec<Step>,
    /// A step adds clsact.
    clsact: bool,
}

impl Decision<'_> {
    fn fault(&self, step: &str, reason: impl Into<String>, remedy: Option<String>) -> Box<DeployFault> {
        DeployFault::unfit(self.place.device, step, reason.into(), remedy)
    }

    fn send(&mut self, what: impl Into<String>, order: Order, undo: impl IntoIterator<Item = Order>) {
        let undo = undo.into_iter().map(Action::Send).collect();
        self.steps.push(Step::new(what, Action::Send(order), undo));
    }

    fn neighbours(&mut self) {
        for wanted in &self.wanted.neighbours {
            let old = self.present.neighbours.iter().find(|old| old.address == wanted.address);
            let undo = match old {
                Some(old) if old == wanted => continue,
                Some(old) => self.place.put_neighbour(old),
                None => self.place.delete_neighbour(wanted),
            };
            let what = format!("set the hardware address of {}", wanted.address);
            self.send(what, self.place.put_neighbour(wanted), [undo]);
        }
    }

    fn vlan(&mut self) {
        let Some(present) = &self.present.link.vlan_priorities else { return };
        let old = |priority: &u32| present.get(priority).copied().unwrap_or(0);
        let changed = self.wanted.vlan_priorities.iter().filter(|(priority, pcp)| old(priority) != **pcp);
        let changed: BTreeMap<u32, u8> = changed.map(|(priority, pcp)| (*priority, *pcp)).collect();
        if changed.is_empty() {
            return;
        }
        let before = changed.keys().map(|priority| (*priority, old(priority))).collect();
        let undo = self.place.set_vlan_priorities(&before);
        self.send("set the priorities of the VLAN", self.place.set_vlan_priorities(&changed), [undo]);
    }

    /// Returns the queues to set; `None`: they stay.
    fn new_queues(&self) -> Result<Option<Channels>, Box<DeployFault>> {
        let (Some(queues), Some(present)) = (self.wanted.queues, self.present.channels) else { return Ok(None) };
        if queues == 0 || queues > present.max {
            let reason = format!("{queues} queues: the device can have 1 to {}", present.max);
            return Err(self.fault("set the number of queues", reason, None));
        }
        Ok((queues != present.queues).then_some(Channels { queues, ..present }))
    }

    fn roots(&self, new_queues: Option<Channels>) -> Result<Roots, Box<DeployFault>> {
        let Some(tree) = &self.wanted.tree else {
            return match (new_queues, self.present.root()) {
                (Some(_), Some(root)) => {
                    let reason = format!("the qdisc `{}` is on the queues", root.name);
                    Err(self.fault("set the number of queues", reason, Some(self.delete_command(root.handle))))
                }
                _ => Ok(Roots::Stay(None)),
            };
        };
        let Some(root) = self.present.root() else {
            return Ok(match tree.root {
                Root::Default if new_queues.is_none() => Roots::Stay(None),
                _ => Roots::Replace { old: Vec::new(), why: String::new() },
            });
        };
        if let Some(State::Taprio(Running { now: Some(_), next: Some(next), .. })) = &root.state {
            let reason = format!("another gate list follows at {} ns, and has not started yet", next.base_time);
            return Err(self.fault("set the gates", reason, Some("try again after it".into())));
        }
        let why_not = match self.kept(tree, root, new_queues) {
            Ok(roots) => return Ok(roots),
            Err(why_not) => why_not,
        };
        let old = self.present.tree().map_err(|name| {
            let reason = format!("it has a qdisc `{name}` that Macrotick could not restore");
            self.fault("replace the root qdisc", reason, Some(self.delete_command(root.handle)))
        })?;
        Ok(Roots::Replace { old, why: why_not })
    }

    fn delete_command(&self, handle: u32) -> String {
        format!("delete it first: `{}`", self.place.delete_root(handle).command)
    }

    /// Keeps the present root, or changes its gate list. Fails with the reason why that is impossible.
    fn kept(&self, tree: &Tree, root: &super::qdisc::Found, new_queues: Option<Channels>) -> Result<Roots, String> {
        if new_queues.is_some() {
            return Err("the number of queues changes".into());
        }
        let wanted: Vec<Placed> = leaves(tree, root.handle).collect();
        let below: Vec<_> = self.present.below_root().collect();
        let same = |placed: &Placed| {
            below.iter().any(|found| {
                found.parent == placed.parent && found.is(&Placed { handle: found.handle, ..placed.clone() })
            })
        };
        if below.len() != wanted.len() || !wanted.iter().all(same) {
            return Err("the qdiscs of queues change".into());
        }
        let placed = |kind| Placed { parent: ROOT, handle: root.handle, sizes: tree.sizes, kind };
        match (&tree.root, &root.state) {
            (Root::Taprio { taprio, else_try }, Some(State::Taprio(running))) => {
                let old = root.placed().ok_or("its size table is another one")?;
                let mode = same_mode(taprio, else_try, running)?;
                let new = placed(Kind::Taprio(Taprio { mode, ..taprio.clone() }));
                Ok(match root.is(&new) {
                    true => Roots::Stay(Some(mode)),
                    false => Roots::Change { old: old.into(), new: new.into(), mode },
                })
            }
            (Root::Mqprio(mapping), _) if root.is(&placed(Kind::Mqprio(mapping.clone()))) => Ok(Roots::Stay(None)),
            (Root::Single(leaf), _) if root.is(&placed(Kind::Leaf(*leaf))) => Ok(Roots::Stay(None)),
            _ => Err(format!("another qdisc takes the place of `{}`", root.name)),
        }
    }

    /// Whether a killed deployment left the device closed.
    fn closed_before(&self) -> Result<bool, Box<DeployFault>> {
        match self.present.filter(Side::Egress, CLOSED) {
            None => Ok(false),
            Some(Some(Filter::Closed)) => Ok(true),
            Some(_) => {
                let command = format!("`tc filter del dev {} egress pref {CLOSED}`", self.place.device);
                let reason = format!("another filter at egress has preference {CLOSED}");
                Err(self.fault("close the device", reason, Some(format!("delete it, or move it: {command}"))))
            }
        }
    }

    fn clsact(&mut self) -> Result<(), Box<DeployFault>> {
        match self.present.special() {
            Some("clsact") => return Ok(()),
            Some(other) => {
                let reason = format!("the qdisc `{other}` is in the place of clsact");
                let remedy = format!("delete it first: `tc qdisc del dev {} {other}`", self.place.device);
                return Err(self.fault("add the place of classifiers", reason, Some(remedy)));
            }
            None => {}
        }
        self.clsact = true;
        let undo = vec![Action::Send(self.place.delete_clsact())];
        let step = Step::new("add the place of classifiers", Action::Send(self.place.add_clsact()), undo);
        self.steps.push(step.needing("CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_ACT"));
        Ok(())
    }

    /// Replaces the classifiers of an earlier deployment.
    fn classifiers(&mut self, side: Side, wanted: &[Classifier]) -> Result<(), Box<DeployFault>> {
        let wanted: Vec<Filter> = wanted.iter().cloned().map(Filter::Classifier).collect();
        let mut missing = Vec::new();
        for number in 0..MAX_CLASSIFIERS {
            let (preference, new) = (FIRST + number as u16, wanted.get(number));
            match self.present.filter(side, preference) {
                Some(Some(old)) if Some(old) == new => continue,
                Some(Some(old)) => {
                    let undo = self.place.add_filter(side, preference, old);
                    self.send("delete an old classifier", self.place.delete_filter(side, preference, old), [undo]);
                }
                Some(None) => {
                    let reason = format!("another filter at {} has preference {preference}", side.name());
                    return Err(self.fault("set the classifiers", reason, None));
                }
                None => {}
            }
            missing.extend(new.map(|new| (preference, new)));
        }
        for (preference, new) in missing {
            let undo = vec![Action::Send(self.place.delete_filter(side, preference, new))];
            let step = Step::new("add a classifier", Action::Send(self.place.add_filter(side, preference, new)), undo);
            self.steps.push(step.needing(new.needs()));
        }
        Ok(())
    }

    fn close(&mut self) {
        let undo = vec![Action::Send(self.place.delete_filter(Side::Egress, CLOSED, &Filter::Closed))];
        let close = Action::Send(self.place.add_filter(Side::Egress, CLOSED, &Filter::Closed));
        let step = Step::new("close the device", close, undo).needing(Filter::Closed.needs());
        self.steps.push(Step { effect: Effect::Closes, ..step });
    }

    fn open(&mut self) {
        let undo = vec![Action::Send(self.place.add_filter(Side::Egress, CLOSED, &Filter::Closed))];
        let open = Action::Send(self.place.delete_filter(Side::Egress, CLOSED, &Filter::Closed));
        self.steps.push(Step { effect: Effect::Opens, ..Step::new("open the device", open, undo) });
        let only_to_close = self.wanted.classifiers().all(|(_, wanted)| wanted.is_empty());
        if self.clsact && only_to_close {
            let undo = [self.place.add_clsact()];
            self.send("delete the place of classifiers", self.place.delete_clsact(), undo);
        }
    }

    /// Adds the steps for root and queues. Returns the mode of gates that are kept.
    fn root(&mut self, roots: Roots, new_queues: Option<Channels>) -> Result<Option<Mode>, Box<DeployFault>> {
        match roots {
            Roots::Stay(mode) => {
                self.set_queues(new_queues);
                Ok(mode)
            }
            Roots::Change { old, new, mode } => {
                let undo = vec![Action::Send(self.place.put(Put::Change, &old)), Action::Await];
                let change = Action::Send(self.place.put(Put::Change, &new));
                self.steps.push(Step::new(CHANGE, change, undo));
                Ok(Some(mode))
            }
            Roots::Replace { old, .. } => {
                self.delete(&old);
                self.set_queues(new_queues);
                if let Some(tree) = &self.wanted.tree {
                    self.add(tree);
                }
                Ok(None)
            }
        }
    }

    fn set_queues(&mut self, new_queues: Option<Channels>) {
        if let (Some(new), Some(old)) = (new_queues, self.present.channels) {
            self.send("set the number of queues", self.place.set_queues(new), [self.place.set_queues(old)]);
        }
    }

    fn delete(&mut self, old: &[Placed]) {
        let Some(root) = old.first() else { return };
        let mut undo: Vec<Action> = old.iter().map(|old| Action::Send(self.place.put(Put::Add, old))).collect();
        if matches!(root.kind, Kind::Taprio(_)) {
            undo.push(Action::Await);
        }
        let delete = Action::Send(self.place.delete_root(root.handle));
        self.steps.push(Step::new("delete the old root qdisc", delete, undo));
    }

    fn add(&mut self, tree: &Tree) {
        let placed = |kind| Placed { parent: ROOT, handle: HANDLE, sizes: tree.sizes, kind };
        let undo = vec![Action::Send(self.place.delete_root(HANDLE))];
        match &tree.root {
            Root::Default => return,
            Root::Mqprio(mapping) => self.add_root(placed(Kind::Mqprio(mapping.clone())), undo),
            Root::Single(leaf) => self.add_root(placed(Kind::Leaf(*leaf)), undo),
            Root::Taprio { taprio, else_try } => {
                let started = Taprio { base_time: started(taprio, (self.now)(taprio.clock)), ..taprio.clone() };
                let modes = [taprio.mode].into_iter().chain(else_try.iter().copied());
                let tries = modes.map(|mode| {
                    let kind = Kind::Taprio(Taprio { mode, ..started.clone() });
                    (mode, self.place.put(Put::Add, &placed(kind)))
                });
                let step = Step::new("add the gates", Action::Try(tries.collect()), undo);
                self.steps.push(step.needing("CONFIG_NET_SCH_TAPRIO"));
            }
        }
        for leaf in leaves(tree, HANDLE) {
            let what = format!("add the qdisc of queue {}", (leaf.parent & 0xffff) - 1);
            // The root takes it with it.
            let step = Step::new(what, Action::Send(self.place.put(Put::Add, &leaf)), Vec::new());
            self.steps.push(step.needing(leaf.kind.name().1));
        }
        if matches!(tree.root, Root::Taprio { .. }) {
            self.steps.push(Step::new("start the gates", Action::Await, Vec::new()));
        }
    }

    fn add_root(&mut self, root: Placed, undo: Vec<Action>) {
        let (name, needs) = root.kind.name();
        let add = Action::Send(self.place.put(Put::Add, &root));
        self.steps.push(Step::new(format!("add the root qdisc {name}"), add, undo).needing(needs));
    }
}

/// Returns the qdiscs of queues below a root.
pub(super) fn leaves(tree: &Tree, root: u32) -> impl Iterator<Item = Placed> + '_ {
    tree.leaves.iter().map(move |(queue, leaf): (&u16, &Leaf)| {
        let class = u32::from(*queue) + 1;
        Placed { parent: root | class, handle: root + (class << 16), sizes: None, kind: Kind::Leaf(*leaf) }
    })
}

/// Returns the mode in which running gates can get the wanted list. A better mode that is not running is not tried:
/// that would need a closed device.
fn same_mode(taprio: &Taprio, else_try: &[Mode], running: &Running) -> Result<Mode, String> {
    if !running.has_frame_of(taprio) {
        let clock = running.mode != Mode::Hardware && running.clock != taprio.clock;
        return Err(if clock { "the clock of the gates changes" } else { "the traffic classes change" }.into());
    }
    let mut modes = [taprio.mode].into_iter().chain(else_try.iter().copied());
    let same = modes.find(|mode| discriminant(mode) == discriminant(&running.mode));
    same.ok_or_else(|| format!("the gates change from {} to {}", running.mode.tier(), taprio.mode.tier()))
}

/// Returns a base time that has passed, with the same phase. All gates are open until the base time, and the kernel
/// winds a past one forward to the next cycle.
fn started(taprio: &Taprio, now: i64) -> i64 {
    let cycle = taprio.cycle.as_nanos().max(1);
    let ahead = taprio.base_time - now;
    if ahead <= 0 {
        return taprio.base_time;
    }
    taprio.base_time - (ahead / cycle + 1) * cycle
}
