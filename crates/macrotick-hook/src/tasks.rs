//! The tasks that a container declares. They have the form of a description, or a form without commas, because some
//! engines split annotations at commas.

use macrotick_model::GroupTask;

use crate::error::AnnotationFault;

/// The name of the source in the places of errors.
const PLACE: &str = "macrotick.tasks";

/// Reads `NAME KEY=VALUE ...; ...`, or the list under `tasks:` in a container's description.
pub fn decode(text: &str) -> Result<Vec<GroupTask>, AnnotationFault> {
    let source = match text.trim_start().starts_with(['[', '-']) {
        true => text.to_owned(),
        false => list(text)?,
    };
    let tasks = GroupTask::parse_list(&source, PLACE).map_err(|errors| AnnotationFault::Tasks(errors.to_string()))?;
    // The analysis could find an order, but no part would report it to the program.
    match tasks.len() > 1 && tasks.iter().any(|task| task.priority.is_none()) {
        true => Err(AnnotationFault::Order),
        false => Ok(tasks),
    }
}

/// Converts the form without commas to a list of YAML, with one task per line.
fn list(text: &str) -> Result<String, AnnotationFault> {
    let tasks = text.split(';').map(str::trim).filter(|task| !task.is_empty());
    let lines = tasks.map(|task| {
        let pairs = task.split_whitespace().enumerate().map(|(index, word)| match index {
            0 => pair("name", word),
            _ => word.split_once('=').and_then(|(key, value)| pair(key, value)),
        });
        let pairs: Option<Vec<String>> = pairs.collect();
        pairs.map(|pairs| format!("- {{{}}}\n", pairs.join(", "))).ok_or_else(|| AnnotationFault::Pairs(task.into()))
    });
    let lines: String = lines.collect::<Result<_, _>>()?;
    Ok(if lines.is_empty() { "[]".into() } else { lines })
}

fn pair(key: &str, value: &str) -> Option<String> {
    (is_plain(key) && is_plain(value)).then(|| format!("{key}: {value}"))
}

/// Whether the word has no character with a meaning in YAML.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use macrotick_model::Duration;

    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let compact =
            decode("control wcet=200us period=5ms priority=50; log wcet=1ms period=100ms deadline=50ms priority=4;");
        let yaml = "[{name: control, wcet: 200us, period: 5ms, priority: 50}, \
                    {name: log, wcet: 1ms, period: 100ms, deadline: 50ms, priority: 4}]";
        let tasks = decode(yaml).unwrap();
        assert_eq!(compact.unwrap(), tasks);
        assert_eq!((tasks[0].deadline, tasks[1].deadline), (Duration::from_millis(5), Duration::from_millis(50)));
        assert_eq!(decode("- name: a\n  wcet: 1ms\n  period: 5ms\n").unwrap().len(), 1);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, said) in [
            ("a wcet=1ms", "task `a` has no `period`"),
            ("a wcet=1 period=5ms", "--> macrotick.tasks:1:"),
            ("a wcet=1ms period=5ms prio=3", "unknown key `prio`"),
            ("a wcet=1ms period=5ms; b wcet", "`b wcet` is not NAME KEY=VALUE ..."),
            ("a wcet={} period=5ms", "is not NAME KEY=VALUE ..."),
            ("a wcet=1ms period=5ms; a wcet=1ms period=5ms", "duplicate name `a`"),
            ("a wcet=1ms period=5ms; b wcet=1ms period=5ms", "give each task a `priority`"),
            (" ; ", "there is no task"),
            ("[]", "there is no task"),
        ] {
            let told = decode(text).unwrap_err().to_string();
            assert!(told.contains(said), "{text}: {told}");
        }
    }
}
