//! The answers as text.

use std::fmt::Write as _;
use std::path::PathBuf;

use macrotick_analysis::servers::{self, Change, Host};
use macrotick_model::{Container, Duration};

use crate::answer::{Place, SlotPlace, Verdict};
use crate::{Answer, Base};

/// Returns all answers, with the commands or the keys that make them true. `took` is the time for all of them.
pub fn describe(base: &Base, answers: &[Answer], took: Duration) -> String {
    let mut text = format!("{}\n", base.what);
    for remark in &base.remarks {
        let _ = writeln!(text, "{remark}");
    }
    for answer in answers {
        let _ = writeln!(text);
        match &answer.verdict {
            Verdict::Admitted(place) => admitted(&mut text, base, &answer.container, place),
            Verdict::Refused { reasons } => {
                let _ = writeln!(text, "{}: refused", answer.name);
                for reason in reasons {
                    let _ = writeln!(text, "  {}", reason.text);
                }
            }
        }
    }
    let _ = writeln!(text, "\nanswered in {} us", took.as_nanos() / 1000);
    text
}

fn admitted(text: &mut String, base: &Base, container: &Container, place: &Place) {
    let Place { cpu, priority, budget, tasks, slots, changes, host, group } = place;
    let _ = writeln!(
        text,
        "{}: admitted on CPU {cpu}, budget {budget} of every {}, priority {priority}",
        container.name, host.server_period
    );
    for task in tasks {
        let _ = writeln!(text, "  task {}: {task}", task.name);
    }
    for SlotPlace { interface, slot } in slots {
        let macrotick_check::network::Slot { class, period, offset, length, .. } = slot;
        let _ =
            writeln!(text, "  slot on {interface}: {length} of every {period} from {offset} on, for class `{class}`");
    }
    if let Some(advice) = servers::period_advice(host).filter(|advice| advice.group == container.name) {
        let _ = writeln!(text, "  remark: {advice}");
    }
    if !changes.is_empty() {
        let _ = writeln!(text, "  before it starts:");
        for change in changes {
            let _ = writeln!(text, "    {change}");
        }
    }
    match &base.directories {
        Some(directories) => commands(text, directories, place),
        None => {
            let _ = write!(text, "  as a group of the system:\n{}", group.to_yaml());
            let slots: String = container.slots().map(|slot| slot.to_yaml()).collect();
            if !slots.is_empty() {
                let _ = write!(text, "  with these slots of its network:\n{slots}");
            }
        }
    }
}

/// Prints the commands that write the groups' files. The container's group does not exist yet, or has a path of its
/// own.
fn commands(text: &mut String, directories: &[(String, Vec<PathBuf>)], place: &Place) {
    for change in &place.changes {
        let (Change::Budget { group, .. } | Change::Priority { group, .. }) = change;
        // Containers of this call have no directory yet.
        let known = directories.iter().find(|(name, _)| name == group);
        let known = known.map_or(vec![format!("({group})").into()], |(_, paths)| paths.clone());
        let (file, value) = match change {
            Change::Priority { to, .. } => ("cpu.ds.priority", to.to_string()),
            Change::Budget { .. } => ("cpu.ds.budget", budgets(&place.host, group)),
        };
        for directory in known {
            let _ = writeln!(text, "  echo {value} > {}/{file}", directory.display());
        }
    }
    let _ = writeln!(text, "  in its control group:");
    let _ = writeln!(text, "    echo {} > cpu.ds.priority", place.priority);
    let _ = writeln!(text, "    echo {} > cpu.ds.fifo", u8::from(place.group.serve_fifo));
    if let Some(lead) = place.group.lead {
        let _ = writeln!(text, "    echo {} > cpu.ds.lead", lead.as_nanos() / 1000);
    }
    let _ = writeln!(text, "    echo {}={} > cpu.ds.budget", place.cpu, place.budget.as_nanos() / 1000);
}

/// Returns the budgets of all CPUs: the file takes them at once.
fn budgets(host: &Host, group: &str) -> String {
    let servers = host.groups.iter().filter(|other| other.name == group).flat_map(|group| &group.servers);
    let each: Vec<String> =
        servers.map(|server| format!("{}={}", server.cpu, server.budget.as_nanos() / 1000)).collect();
    format!("'{}'", each.join(" "))
}
