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
    /// A gate list belongs to an interface that the system does not have.
    UnknownList { interface: String },
    /// An interface without gates has a gate list.
    StrayList { interface: String },
    /// An interface with gates has no gate list.
    NoList { interface: String },
    /// An interface has several gate lists.
    TwoLists { interface: String },
    /// The gate list is not the one that the description has by hand.
    OtherList { interface: String },
    /// The gate of a flow is not open for long enough at a stretch.
    Short {
        flow: String,
        sender: String,
        interface: String,
        class: String,
        open: Duration,
        frame: Duration,
        opening: Duration,
    },
    /// A frame of a flow is not sent. `count` is the number of such frames in the cycle.
    Unsent { flow: String, sender: String, interface: String, ready: Duration, reason: Loss, count: usize },
    /// A frame of a flow leaves the last interface after its deadline. `behind`: only behind frames of other flows.
    AfterDeadline {
        flow: String,
        sender: String,
        interface: String,
        ready: Duration,
        end: Duration,
        deadline: Duration,
        behind: bool,
        count: usize,
    },
    /// A frame of a flow leaves the last interface after the start of the receiver's next window.
    AfterWindow {
        flow: String,
        sender: String,
        receiver: String,
        interface: String,
        ready: Duration,
        end: Duration,
        window: Duration,
        behind: bool,
        count: usize,
    },
    /// The arrivals of frames do not settle.
    Unsettled,
    /// The flows have too many frames.
    TooManyFrames { limit: i64 },
    /// A class that a flow or a slot uses is open together with another one.
    NotAlone { interface: String, class: String, other: String, from: Duration, until: Duration },
    /// A frame of another class can be on the link when a class opens.
    GuardBand { interface: String, class: String, opens: Duration, other: String, closes: Duration, reach: Duration },
    /// A sync window has too little time for the class `sync` alone.
    SyncTime { interface: String, window: Duration, needed: Duration, given: Duration },
    /// The gate list has no place for the slots of a group.
    SlotUnplaced { interface: String, group: String, class: String, period: Duration, length: Duration },
    /// No group serves the thread that opens the gates of an interface.
    NoThread { interface: String, thread: String, lead: Duration },
    /// The thread that opens the gates has windows on another CPU than the description says.
    ThreadCpu { interface: String, group: String, cpu: u32, other: u32 },
    /// The thread that opens the gates has no window around an opening.
    ThreadWindow { interface: String, group: String, class: String, opens: Duration, begin: Duration, end: Duration },
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
            UnknownList { interface } => {
                write!(f, "the plan has a gate list for `{interface}`, but the system has no such interface")
            }
            StrayList { interface } => write!(
                f,
                "interface `{interface}`: the plan has a gate list, but the description leaves all its gates open"
            ),
            NoList { interface } => {
                write!(f, "interface `{interface}`: the description has gates, but the plan has no gate list")
            }
            TwoLists { interface } => write!(f, "interface `{interface}`: the plan has several gate lists"),
            OtherList { interface } => {
                write!(f, "interface `{interface}`: the gate list is not the one of the description")
            }
            Short { flow, sender, interface, class, open: Duration::ZERO, .. } => {
                write!(f, "flow `{flow}` of `{sender}`: the gate of class `{class}` on `{interface}` never opens")
            }
            Short { flow, sender, interface, class, open, frame, opening } => write!(
                f,
                "flow `{flow}` of `{sender}`: the gate of class `{class}` on `{interface}` is open for at most {open} \
                 at a stretch. A frame takes {frame}, and can start {opening} after the opening"
            ),
            Unsent { flow, sender, interface, ready, reason, count } => write!(
                f,
                "flow `{flow}` of `{sender}`: interface `{interface}` does not send the frame that is ready at {ready}: \
                 {reason}{}",
                frames(*count)
            ),
            AfterDeadline { flow, sender, interface, ready, end, deadline, behind, count } => write!(
                f,
                "flow `{flow}` of `{sender}`: the frame that is ready at {ready} has crossed interface `{interface}` at \
                 {end}{}, after its deadline at {deadline}{}{}",
                because(*behind),
                frames(*count),
                remedy(*behind)
            ),
            AfterWindow { flow, sender, receiver, interface, ready, end, window, behind, count } => write!(
                f,
                "flow `{flow}` of `{sender}`: the frame that is ready at {ready} has crossed interface `{interface}` at \
                 {end}{}, after the start of the next window of `{receiver}` at {window}{}{}",
                because(*behind),
                frames(*count),
                remedy(*behind)
            ),
            Unsettled => write!(
                f,
                "the simulation of the flows does not settle: flows that cross interfaces in opposite orders delay each \
                 other. Give them classes of their own"
            ),
            TooManyFrames { limit } => write!(
                f,
                "the flows have more than {limit} frames in all simulations of a cycle: use periods with a smaller \
                 common multiple"
            ),
            NotAlone { interface, class, other, from, until } => write!(
                f,
                "interface `{interface}`: class `{other}` is open beside `{class}` in [{from}, {until}), but the flows \
                 and slots of `{class}` need the link alone"
            ),
            GuardBand { interface, class, opens, other, closes, reach } => write!(
                f,
                "interface `{interface}`: class `{other}` closes at {closes}, and its longest frame occupies the link \
                 until {reach}, but `{class}` opens at {opens}"
            ),
            SyncTime { interface, window, needed, given } => write!(
                f,
                "interface `{interface}`: the sync window at {window} has {given} for the class `sync` alone, but its \
                 frames need {needed}"
            ),
            SlotUnplaced { interface, group, class, period, length } => write!(
                f,
                "group `{group}` on `{interface}`: class `{class}` is not open for {length} at the same place of every \
                 {period}"
            ),
            NoThread { interface, thread, lead } => write!(
                f,
                "interface `{interface}` has a lead of {lead}, but no group serves the thread `{thread}`"
            ),
            ThreadCpu { interface, group, cpu, other } => write!(
                f,
                "group `{group}`: the thread that opens the gates of `{interface}` has windows on CPU {other}, but \
                 belongs to CPU {cpu}"
            ),
            ThreadWindow { interface, group, class, opens, begin, end } => write!(
                f,
                "group `{group}`: class `{class}` opens on `{interface}` at {opens}, but no window covers the lead and \
                 the time to send, [{begin}, {end})"
            ),
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

/// Says how many frames of the cycle share the fate of the named one.
fn frames(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        count => format!(" ({count} frames of the cycle)"),
    }
}

fn because(behind: bool) -> &'static str {
    match behind {
        true => ", behind frames of other flows of its class",
        false => "",
    }
}

fn remedy(behind: bool) -> &'static str {
    match behind {
        true => ": give each flow a class of its own",
        false => "",
    }
}

/// Says how many messages share the fate of the named one.
fn others(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        count => format!(" ({count} messages of the hyperperiod)"),
    }
}
