//! The reasons why gates cannot be placed.

use macrotick_model::{Duration, Finding, GateList, System};

/// The rule that a frame breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Late {
    /// The deadline of the flow.
    Deadline(Duration),
    /// The start of the next window of the receiver.
    Receiver(String),
}

/// A frame that leaves too late. All instants count from the epoch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "flow `{flow}` of `{sender}`: the frame that is ready at {ready} has crossed interface `{interface}` at {sent}, \
     {} {}",
    *.sent - *.limit,
    after(.rule)
)]
pub struct LateFrame {
    /// The flow.
    pub flow: String,
    /// The sending task or group.
    pub sender: String,
    /// The last interface that the frame crosses.
    pub interface: String,
    /// The instant at which the frame is ready.
    pub ready: Duration,
    /// The instant at which the last interface has sent the frame.
    pub sent: Duration,
    /// The earliest instant at which it can have crossed it. The windows of other tasks may not allow that.
    pub soonest: Duration,
    /// The latest allowed instant.
    pub limit: Duration,
    /// The broken rule.
    pub rule: Late,
}

/// The reason why the gates of an interface cannot be placed beside the windows of the plan. All instants count from the
/// epoch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// A frame leaves too late.
    #[error(transparent)]
    Late(Box<LateFrame>),
    /// An interface has no interval for a frame at all.
    #[error(
        "flow `{flow}` of `{sender}`: interface `{interface}` has no free {length} for the frame that is ready at \
         {ready}, in a whole cycle of {cycle}"
    )]
    NoInterval {
        /// The flow.
        flow: String,
        /// The sending task or group.
        sender: String,
        /// The interface.
        interface: String,
        /// The time of the frame on the link.
        length: Duration,
        /// The instant at which the frame reaches the interface.
        ready: Duration,
        /// The cycle.
        cycle: Duration,
    },
    /// The frames of an express socket meet others.
    #[error(
        "flow `{flow}` of `{sender}`: its express socket passes no gate, and interface `{interface}` is not free for \
         the {length} from {from} on"
    )]
    Express {
        /// The flow.
        flow: String,
        /// The sending task.
        sender: String,
        /// The interface.
        interface: String,
        /// The time in which the frame may be on the link.
        length: Duration,
        /// The start of this time.
        from: Duration,
    },
    /// A slot of a group fits nowhere.
    #[error(
        "the slots of group `{group}` on interface `{interface}`, {length} of every {period}, {}",
        match .offset {
            Some(offset) => format!("do not fit at offset {offset} beside other slots and frames"),
            None => "fit at no offset beside other slots and frames".into(),
        }
    )]
    Slot {
        /// The group.
        group: String,
        /// The interface.
        interface: String,
        /// The length of a slot.
        length: Duration,
        /// The period.
        period: Duration,
        /// The offset, if the description gives it.
        offset: Option<Duration>,
    },
    /// The sync windows of the tables have no room for the class `sync`.
    #[error("interface `{interface}`: a slot of the class `sync` needs {needed}, but a sync window has {length}")]
    Sync {
        /// The interface.
        interface: String,
        /// The time of the longest frame of the class.
        needed: Duration,
        /// The length of a sync window.
        length: Duration,
    },
    /// The windows of a thread that opens gates do not fit on its CPU.
    #[error(
        "interface `{interface}`: the threads that open gates on CPU {cpu} need {gates} of every {cycle} beside {windows} \
         of windows and leads, but together they can have at most {most}"
    )]
    Thread {
        /// The interface.
        interface: String,
        /// The CPU.
        cpu: u32,
        /// The time of the threads in a cycle.
        gates: Duration,
        /// The time of the other windows there, leads included.
        windows: Duration,
        /// The most time for both.
        most: Duration,
        /// The cycle.
        cycle: Duration,
    },
    /// A gate list repeats after a longer time than the kernel can count.
    #[error(
        "the gates of interface `{interface}` repeat after {cycle}, but the kernel allows at most {}",
        GateList::MAX_CYCLE
    )]
    Cycle {
        /// The interface.
        interface: String,
        /// The cycle.
        cycle: Duration,
    },
    /// A gate list has too many entries.
    #[error("the gates of interface `{interface}` need {entries} entries, but at most {most} are possible")]
    Entries {
        /// The interface.
        interface: String,
        /// The number of entries.
        entries: usize,
        /// The most possible entries.
        most: usize,
    },
}

/// The receiver to start later, the earliest instant, and the sender, which must not follow.
pub(crate) struct Later {
    pub receiver: String,
    pub at: Duration,
    pub sender: String,
}

impl GateError {
    /// Returns the error with its place in the description of the system.
    pub(crate) fn finding(&self, system: &System) -> Finding {
        let network = system.network.as_ref();
        let at = network.and_then(|network| match self {
            GateError::Late(late) => {
                let index = network.flows.iter().position(|one| one.name == late.flow)?;
                let key = if matches!(late.rule, Late::Deadline(_)) { "deadline" } else { "to" };
                Some(format!("network.flows[{index}].{key}"))
            }
            GateError::NoInterval { flow, .. } | GateError::Express { flow, .. } => {
                let index = network.flows.iter().position(|one| one.name == *flow)?;
                Some(format!("network.flows[{index}].name"))
            }
            GateError::Slot { group, interface, length, period, .. } => {
                let is_it = |slot: &macrotick_model::Slot| {
                    let there = network.interface_of(slot).is_some_and(|one| one.name == *interface);
                    there && (&slot.group, slot.length, slot.period) == (group, *length, *period)
                };
                Some(format!("network.slots[{}]", network.slots.iter().position(is_it)?))
            }
            GateError::Thread { interface, .. } => {
                let index = network.interfaces.iter().position(|one| one.name == *interface)?;
                Some(format!("network.interfaces[{index}].lead"))
            }
            GateError::Sync { interface, .. }
            | GateError::Cycle { interface, .. }
            | GateError::Entries { interface, .. } => {
                let index = network.interfaces.iter().position(|one| one.name == *interface)?;
                Some(format!("network.interfaces[{index}].gates"))
            }
        });
        Finding { at: at.unwrap_or("network".into()), message: self.to_string(), hint: self.hint() }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            GateError::Late(late) if matches!(late.rule, Late::Deadline(_)) => {
                "set a longer `deadline`, a faster link, or fewer frames that are ready at the same time"
            }
            GateError::Late(_) => {
                "set an `offset` of the receiver, or of the sender, so that the receiver starts after the frame"
            }
            GateError::NoInterval { .. } => "leave more of the link free",
            GateError::Express { .. } => "let other frames be ready outside the windows of the sender",
            GateError::Slot { .. } => "set another `offset`, or shorter slots",
            GateError::Sync { .. } => "set a longer `length` of `clock: {tai: ...}`",
            GateError::Thread { .. } => "set a shorter `lead`, or another `cpu` of the interface",
            GateError::Cycle { .. } => "choose periods with a shorter common multiple",
            GateError::Entries { .. } => {
                "choose longer periods, offsets with which the frames repeat earlier, or one class for several flows"
            }
        };
        Some(hint.into())
    }

    /// Returns the flow of a frame that has no place.
    pub(super) fn flow(&self) -> Option<&str> {
        match self {
            GateError::Late(late) => Some(&late.flow),
            GateError::NoInterval { flow, .. } => Some(flow),
            _ => None,
        }
    }

    /// Returns the receiver that would have to start later.
    pub(super) fn later(&self) -> Option<Later> {
        let GateError::Late(late) = self else { return None };
        let Late::Receiver(receiver) = &late.rule else { return None };
        // The receiver's own window can be the obstacle.
        let at = if late.soonest > late.limit { late.soonest } else { late.sent };
        Some(Later { receiver: receiver.clone(), at, sender: late.sender.clone() })
    }
}

fn after(rule: &Late) -> String {
    match rule {
        Late::Deadline(deadline) => format!("after its deadline of {deadline}"),
        Late::Receiver(receiver) => format!("after the start of the receiver's next window, that of task `{receiver}`"),
    }
}
