//! The verdicts as text.

use std::fmt;

use super::capture::{
    Bursts, CaptureVerdict, ClassCapture, FlowCapture, Gaps, Numbering, Offsets, Outside, Stray, StrayKind,
};
use super::plan::{ClassLoad, FlowVerdict, InterfaceVerdict, NetworkVerdict};
use macrotick_model::Duration;

/// The number of violations in the text. More are only counted.
const SHOWN: usize = 20;

impl fmt::Display for NetworkVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.violations.len() {
            0 => writeln!(f, "network: feasible")?,
            1 => writeln!(f, "network: not feasible: 1 violation")?,
            count => writeln!(f, "network: not feasible: {count} violations")?,
        }
        for violation in self.violations.iter().take(SHOWN) {
            writeln!(f, "  {violation}")?;
        }
        if self.violations.len() > SHOWN {
            writeln!(f, "  and {} more", self.violations.len() - SHOWN)?;
        }
        loads(f, &self.interfaces, &self.flows)
    }
}

/// Writes the load of interfaces, and a table of flows.
pub(crate) fn loads(f: &mut fmt::Formatter<'_>, interfaces: &[InterfaceVerdict], flows: &[FlowVerdict]) -> fmt::Result {
    interfaces.iter().try_for_each(|interface| load(f, interface))?;
    if flows.is_empty() {
        return Ok(());
    }
    let width = flows.iter().map(|flow| flow.name.len()).max().unwrap_or(0).max("flow".len());
    writeln!(f, "{:<width$} {:>8} {:>12} {:>12}", "flow", "messages", "latency", "slack")?;
    for FlowVerdict { name, messages, latency, slack, .. } in flows {
        writeln!(f, "{name:<width$} {messages:>8} {:>12} {:>12}", time(*latency), time(*slack))?;
    }
    Ok(())
}

fn load(f: &mut fmt::Formatter<'_>, interface: &InterfaceVerdict) -> fmt::Result {
    let InterfaceVerdict { name, hyperperiod, classes, slots } = interface;
    write!(f, "interface {name}: repeats after {hyperperiod}")?;
    match *slots > 0.0 {
        true => writeln!(f, ", slots take {}", percent(*slots))?,
        false => writeln!(f)?,
    }
    for ClassLoad { name: class, frames, waited, queued, utilisation, open } in
        classes.iter().filter(|one| one.frames > 0)
    {
        writeln!(
            f,
            "  class {class}: {frames} {}, {} of the link, open {}, at most {waited} in the queue, {queued} waiting",
            plural(*frames as u64, "frame"),
            percent(*utilisation),
            percent(*open)
        )?;
    }
    Ok(())
}

impl fmt::Display for CaptureVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CaptureVerdict { interface, frames, other, untimed, unclassified, classes, flows, strays } = self;
        let result = match (*frames, self.is_clean()) {
            (0, _) => "no frame to judge",
            (_, true) => "all frames in their windows and slots",
            (_, false) => "not all frames in their windows and slots",
        };
        writeln!(f, "capture of {interface}: {frames} {}: {result}", plural(*frames, "frame"))?;
        for (count, what) in [
            (*unclassified, "without a traffic class"),
            (*untimed, "without a usable time stamp"),
            (*other, "of other interfaces, not judged"),
        ] {
            if count > 0 {
                writeln!(f, "  {count} {} {what}", plural(count, "frame"))?;
            }
        }
        classes.iter().try_for_each(|result| class(f, result))?;
        flows.iter().try_for_each(|result| flow(f, result))?;
        strays.iter().try_for_each(|one| stray(f, one))
    }
}

fn class(f: &mut fmt::Formatter<'_>, class: &ClassCapture) -> fmt::Result {
    let ClassCapture { name, frames, inside, early, late, closed, .. } = class;
    write!(f, "  class {name}: {frames} {}, {inside} in their windows", plural(*frames, "frame"))?;
    outside(f, early, "early")?;
    outside(f, late, "late")?;
    if *closed > 0 {
        write!(f, ", {closed} although the gate never opens")?;
    }
    outside(f, &class.outside_slots, "outside their slots")?;
    outside(f, &class.foreign_slots, "in slots of other classes")?;
    writeln!(f)?;
    if let Some(Offsets { earliest, latest, mean }) = class.offsets {
        writeln!(f, "    from the opening: earliest {earliest}, mean {mean}, latest {latest}")?;
    }
    if let Some(Gaps { least, greatest, mean }) = class.gaps {
        writeln!(f, "    gaps: least {least}, mean {mean}, greatest {greatest}")?;
    }
    if let Some(Bursts { cycles, empty, least, most }) = class.bursts {
        let cycle = plural(cycles, "cycle");
        writeln!(f, "    bursts: {least} to {most} frames per cycle in {cycles} {cycle}, {empty} without a frame")?;
    }
    if let Some(numbering) = class.numbers {
        write!(f, "    numbers: ")?;
        numbers(f, numbering)?;
        writeln!(f)?;
    }
    Ok(())
}

fn flow(f: &mut fmt::Formatter<'_>, flow: &FlowCapture) -> fmt::Result {
    let FlowCapture { name, frames, numbers: numbering } = flow;
    write!(f, "  flow {name}: {frames} {}", plural(*frames, "frame"))?;
    if let Some(numbering) = numbering {
        write!(f, ", ")?;
        numbers(f, *numbering)?;
    }
    writeln!(f)
}

fn numbers(f: &mut fmt::Formatter<'_>, numbers: Numbering) -> fmt::Result {
    let Numbering { lost, duplicate, reordered, unnumbered } = numbers;
    write!(f, "{lost} lost, {duplicate} duplicate, {reordered} reordered")?;
    match unnumbered {
        0 => Ok(()),
        count => write!(f, ", {count} {} without a number", plural(count, "frame")),
    }
}

fn outside(f: &mut fmt::Formatter<'_>, outside: &Outside, what: &str) -> fmt::Result {
    match outside.frames {
        0 => Ok(()),
        frames => write!(f, ", {frames} {what} by at most {}", outside.worst),
    }
}

fn stray(f: &mut fmt::Formatter<'_>, stray: &Stray) -> fmt::Result {
    let Stray { number, class, kind, group, by, cycle, at } = stray;
    write!(f, "  frame {number}, class `{class}`, cycle {cycle} at {at}: ")?;
    match kind {
        StrayKind::Early => writeln!(f, "{by} before its gate opens"),
        StrayKind::Late => writeln!(f, "{by} after its gate has closed"),
        StrayKind::Closed => writeln!(f, "the gate of its class never opens"),
        StrayKind::OutsideSlots => writeln!(f, "{by} outside the slots of its class"),
        StrayKind::ForeignSlot => {
            writeln!(f, "{by} in the slot of group `{}`", group.as_deref().unwrap_or("unknown"))
        }
    }
}

fn time(time: Option<Duration>) -> String {
    time.map_or("none".into(), |time| time.to_string())
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 {
        noun.to_owned()
    } else {
        format!("{noun}s")
    }
}

/// Formats a share in tenths of a percent, rounded up, so that no load looks smaller than it is. The small subtrahend
/// keeps a tenth that a float represents slightly too large.
fn percent(share: f64) -> String {
    // The sum makes a positive zero of a negative one.
    format!("{:.1} %", ((share * 1000.0 - 1e-6).ceil().max(0.0) + 0.0) / 10.0)
}
