//! The text that describes a change of a deployment.

use macrotick_model::Duration;
use macrotick_node::{Changes, Fate, Item, Kind, Service};
use macrotick_report::table::{toned, Cell, Table, Tone};

use crate::seconds;

/// Returns the change as text of at most `width` columns.
pub fn describe(changes: &Changes, colour: bool, width: usize) -> String {
    let mut text = format!("{}: {}\n", changes.system, headline(changes));
    for (what, before, after) in
        [("cycle", changes.cycle_before, changes.cycle_after), ("lead", changes.lead_before, changes.lead_after)]
    {
        if before != after {
            text.push_str(&format!("  {what}: {before} -> {after}\n"));
        }
    }
    if !changes.gates.is_empty() {
        text.push_str(&format!("  gates: other lists on {}\n", changes.gates.join(", ")));
    }
    text.push_str(&table(changes).text(colour, width));
    for remark in &changes.remarks {
        text.push_str(&format!("{}\n", Tone::Bad.paint(remark, colour)));
    }
    text
}

fn headline(changes: &Changes) -> String {
    match &changes.switch {
        Some(switch) => format!("changed at {} s of {}", seconds(switch.ns), switch.clock),
        None if changes.is_empty() => "nothing changes".into(),
        None => "changed, with the same table".into(),
    }
}

fn table(changes: &Changes) -> Table {
    let mut table = Table::new(5, &["", "", "CPU", "windows before", "windows now"]);
    for item in &changes.items {
        let cpu = item.after.as_ref().or(item.before.as_ref()).map_or("-".into(), |service| service.cpus.to_string());
        table.rows.push(vec![
            verdict(item),
            format!("{} {}", kind(item.kind), item.name).into(),
            cpu.into(),
            windows(item.before.as_ref(), changes.cycle_before).into(),
            windows(item.after.as_ref(), changes.cycle_after).into(),
        ]);
    }
    table
}

fn verdict(item: &Item) -> Cell {
    match item.fate {
        Fate::Added => toned("added", Tone::Good),
        Fate::Removed => toned("removed", Tone::Bad),
        Fate::Replaced => toned("replaced", Tone::Strong),
        Fate::Kept if item.rearranged => toned("kept, in other windows", Tone::Strong),
        Fate::Kept => toned("kept", Tone::Faint),
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Task => "task",
        Kind::Pool => "pool",
        Kind::Process => "process",
    }
}

fn windows(service: Option<&Service>, cycle: Duration) -> String {
    match service {
        None => "-".into(),
        Some(Service { windows: 1, time, first, .. }) => format!("{time} of {cycle} at {first}"),
        Some(Service { windows, time, first, .. }) => format!("{time} of {cycle} in {windows}, from {first}"),
    }
}

#[cfg(test)]
mod tests {
    use macrotick_node::Switch;

    use super::*;

    fn changes() -> Changes {
        let ms = Duration::from_millis;
        let service = |windows, time, first| {
            Some(Service {
                cpus: [0].into_iter().collect(),
                windows,
                time: ms(time),
                first: Duration::from_micros(first),
            })
        };
        let item = |kind, name: &str, fate, before, after, rearranged| Item {
            kind,
            name: name.into(),
            fate,
            before,
            after,
            rearranged,
        };
        Changes {
            system: "s".into(),
            items: vec![
                item(Kind::Task, "a", Fate::Kept, service(2, 4, 0), service(1, 2, 250), true),
                item(Kind::Task, "b", Fate::Added, None, service(1, 1, 0), false),
                item(Kind::Process, "hog", Fate::Removed, None, None, false),
            ],
            cycle_before: ms(20),
            cycle_after: ms(10),
            lead_before: Duration::ZERO,
            lead_after: Duration::ZERO,
            switch: Some(Switch { clock: "CLOCK_MONOTONIC".into(), ns: 12_400_000_000 }),
            gates: vec!["left".into()],
            remarks: vec!["something".into()],
        }
    }

    #[test]
    fn a_change_is_told_part_by_part() {
        let expected = "\
s: changed at 12.400000000 s of CLOCK_MONOTONIC
  cycle: 20ms -> 10ms
  gates: other lists on left
                                        CPU  windows before         windows now
kept, in other windows  task a          0    4ms of 20ms in 2, from 0ns  2ms of 10ms at 250us
added                   task b          0    -                      1ms of 10ms at 0ns
removed                 process hog     -    -                      -
something
";
        let squeeze = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(squeeze(&describe(&changes(), false, 120)), squeeze(expected));
    }

    #[test]
    fn a_table_that_stays_is_told() {
        let mut same = Changes { switch: None, ..changes() };
        assert!(describe(&same, false, 100).starts_with("s: changed, with the same table\n"));
        same.items.truncate(1);
        assert!(describe(&same, false, 100).starts_with("s: changed, with the same table\n"));
        same.gates.clear();
        assert!(describe(&same, false, 100).starts_with("s: nothing changes\n"));
    }
}
