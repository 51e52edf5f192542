//! The rules that the network of a plan can break.

use std::fmt;

use macrotick_model::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::simulate::Loss;

/// One broken rule. Instants are since the epoch, in the first hyperperiod. `cycle` is the number of the cycle of the
/// gate list, from 0. Where a rule is broken many times, the violation has the worst or the first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "kebab-case")]
#[allow(missing_docs)] // The message of each rule explains its fields.
pub enum NetworkViolation {
    /// A gate list, or the link or the classes of its interface, cannot be used. The error names the interface.
    Gates { interface: String, error: String },
    /// The cycle of the plan is not a positive multiple of that of the list.
    Cycle { interface: String, cycle: Duration, plan: Duration },
    /// A flow leaves through an interface that is not there.
    UnknownInterface { flow: String, interface: String },
    /// A flow has a class that its interface does not have.
    UnknownClass { flow: String, interface: String, class: String },
    /// The period or the deadline of a flow is not positive, or it is ready before the epoch.
    Times { flow: String, interface: String, period: Duration, ready: Duration, deadline: Duration },
    /// A message has no frames that the link can carry.
    TooLarge { flow: String, interface: String, size: u32, mtu: u32 },
    /// The hyperperiod has too many frames, windows or slots.
    TooMany { interface: String, limit: usize },
    /// A message is not sent. `count` is the number of such messages in the hyperperiod.
    Lost { flow: String, interface: String, cycle: i64, ready: Duration, count: usize, reason: Loss },
    /// A message ends after its deadline. `count` is the number of late messages in the hyperperiod.
    Late {
        flow: String,
        interface: String,
        cycle: i64,
        ready: Duration,
        end: Duration,
        deadline: Duration,
        count: usize,
    },
    /// A frame ends after its gate has closed.
    Overrun { flow: String, interface: String, cycle: i64, start: Duration, end: Duration, close: Duration },
    /// The waiting times of a flow change from one hyperperiod to the next.
    Unsteady { flow: String, interface: String, hyperperiod: Duration },
    /// A slot is not within its period.
    SlotRange { interface: String, group: String, offset: Duration, length: Duration, period: Duration },
    /// A slot has a class that the interface does not have.
    SlotClass { interface: String, group: String, class: String },
    /// The slots are longer together than the cycle.
    SlotSum { interface: String, sum: Duration, cycle: Duration },
    /// Two slots overlap.
    SlotOverlap { interface: String, group: String, begin: Duration, end: Duration, other: String, start: Duration },
    /// The gate of the class of a slot is not open for the whole slot.
    SlotClosed { interface: String, group: String, cycle: i64, begin: Duration, end: Duration, class: String },
    /// The gate of another class is open in a slot.
    SlotShared {
        interface: String,
        group: String,
        cycle: i64,
        begin: Duration,
        end: Duration,
        class: String,
        open: Duration,
    },
    /// A frame of another class can start before a slot and end in it.
    SlotReached {
        interface: String,
        group: String,
        cycle: i64,
        begin: Duration,
        class: String,
        close: Duration,
        reach: Duration,
    },
    /// The gate of the class of a slot is open outside the slots of the class.
    SlotOutside { interface: String, class: String, cycle: i64, from: Duration, until: Duration },
    /// A frame of a flow of another class is on the wire in a slot.
    SlotForeign {
        flow: String,
        interface: String,
        group: String,
        cycle: i64,
        begin: Duration,
        start: Duration,
        end: Duration,
    },
}

impl fmt::Display for NetworkViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use NetworkViolation::*;
        match self {
            Gates { error, .. } => write!(f, "{error}"),
            Cycle { interface, cycle, plan } => write!(
                f,
                "interface `{interface}`: the cycle {plan} of the plan is not a positive multiple of the cycle {cycle} \
                 of the gate list"
            ),
            UnknownInterface { flow, interface } => write!(f, "flow `{flow}`: no interface is named `{interface}`"),
            UnknownClass { flow, interface, class } => {
                write!(f, "flow `{flow}`: interface `{interface}` has no traffic class `{class}`")
            }
            Times { flow, interface, period, ready, deadline } => write!(
                f,
                "flow `{flow}` on `{interface}`: the period {period} and the deadline {deadline} must be positive, and \
                 the ready offset {ready} must not be negative"
            ),
            TooLarge { flow, interface, size, mtu } => {
                write!(f, "flow `{flow}` on `{interface}`: frames of {mtu} bytes cannot carry a message of {size} bytes")
            }
            TooMany { interface, limit } => write!(
                f,
                "interface `{interface}`: the hyperperiod is too long, or three of it have more than {limit} frames, \
                 windows and slots: use periods with a smaller common multiple"
            ),
            Lost { flow, interface, cycle, ready, count, reason } => write!(
                f,
                "flow `{flow}` on `{interface}`, cycle {cycle}: the message that is ready at {ready} is lost: \
                 {reason}{}",
                others(*count)
            ),
            Late { flow, interface, cycle, ready, end, deadline, count } => write!(
                f,
                "flow `{flow}` on `{interface}`, cycle {cycle}: the message that is ready at {ready} ends at {end}, but \
                 the deadline is {deadline}{}",
                others(*count)
            ),
            Overrun { flow, interface, cycle, start, end, close } => write!(
                f,
                "flow `{flow}` on `{interface}`, cycle {cycle}: a frame takes [{start}, {end}), but its gate closes at \
                 {close}"
            ),
            Unsteady { flow, interface, hyperperiod } => write!(
                f,
                "flow `{flow}` on `{interface}`: its frames wait longer in each hyperperiod of {hyperperiod}: open the \
                 gate longer, or send less"
            ),
            SlotRange { interface, group, offset, length, period } => write!(
                f,
                "group `{group}` on `{interface}`: the slot at {offset} with a length of {length} is not within its \
                 period of {period}"
            ),
            SlotClass { interface, group, class } => {
                write!(f, "group `{group}`: interface `{interface}` has no traffic class `{class}`")
            }
            SlotSum { interface, sum, cycle } => {
                write!(f, "interface `{interface}`: the slots take {sum} of a cycle of {cycle}")
            }
            SlotOverlap { interface, group, begin, end, other, start } => write!(
                f,
                "group `{group}` on `{interface}`: a slot of `{other}` starts at {start}, in the slot [{begin}, {end})"
            ),
            SlotClosed { interface, group, cycle, begin, end, class } => write!(
                f,
                "group `{group}` on `{interface}`, cycle {cycle}: the gate of `{class}` is not open for the whole slot \
                 [{begin}, {end})"
            ),
            SlotShared { interface, group, cycle, begin, end, class, open } => write!(
                f,
                "group `{group}` on `{interface}`, cycle {cycle}: `{class}` can start a frame at {open}, in the slot \
                 [{begin}, {end})"
            ),
            SlotReached { interface, group, cycle, begin, class, close, reach } => write!(
                f,
                "group `{group}` on `{interface}`, cycle {cycle}: the gate of `{class}` closes at {close}, but its \
                 frames can end at {reach}, after the start of the slot at {begin}"
            ),
            SlotOutside { interface, class, cycle, from, until } => write!(
                f,
                "interface `{interface}`, cycle {cycle}: the gate of `{class}` is open in [{from}, {until}), outside \
                 the slots of the class"
            ),
            SlotForeign { flow, interface, group, cycle, begin, start, end } => write!(
                f,
                "flow `{flow}` on `{interface}`, cycle {cycle}: a frame takes [{start}, {end}), in the slot of group \
                 `{group}` at {begin}"
            ),
        }
    }
}

/// Says how many messages share the fate of the named one.
fn others(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        count => format!(" ({count} messages of the hyperperiod)"),
    }
}
