//! The events of a thread. A key names an event by its beginning: `run`, `run0` and `run_b` are the same event.

use super::fields::Field;
use super::json::Value;
use super::MOST_MICROS;
use crate::findings::Findings;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Computes an amount of work.
    Run,
    /// Computes for a time.
    Runtime,
    /// Sleeps for a time.
    Sleep,
    /// Waits for the next release.
    Timer,
    /// Lets other threads run.
    Yield,
    /// Writes memory or a device.
    Work,
    /// Depends on other threads.
    Between,
}

/// The events in the order in which rt-app compares them: `runtime` comes before `run`.
const EVENTS: [(&str, Kind); 17] = [
    ("lock", Kind::Between),
    ("unlock", Kind::Between),
    ("wait", Kind::Between),
    ("signal", Kind::Between),
    ("broad", Kind::Between),
    ("sync", Kind::Between),
    ("sleep", Kind::Sleep),
    ("runtime", Kind::Runtime),
    ("run", Kind::Run),
    ("timer", Kind::Timer),
    ("suspend", Kind::Between),
    ("resume", Kind::Between),
    ("mem", Kind::Work),
    ("iorun", Kind::Work),
    ("yield", Kind::Yield),
    ("barrier", Kind::Between),
    ("fork", Kind::Between),
];

/// Properties with the beginning of an event.
const NO_EVENTS: [&str; 1] = ["membind_nodes"];

/// A timer of rt-app.
#[derive(Clone, Debug)]
pub struct Timer {
    /// The path of the event.
    pub path: String,
    /// The period in microseconds, longer than zero.
    pub period: i64,
    /// Whether a late wait moves all later releases.
    pub is_relative: bool,
    /// The name, if threads share the timer.
    pub shared: Option<String>,
}

/// All events of a phase.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// The computing time of a round in microseconds.
    pub run: i64,
    /// The path of the first event that computes.
    pub run_path: Option<String>,
    /// The timer, if there is one.
    pub timer: Option<Timer>,
    /// The time of all sleeps in microseconds.
    pub sleep: i64,
    /// The path of the first sleep.
    pub sleep_path: Option<String>,
    /// Whether a computation follows a sleep in the same round.
    pub sleeps_between: bool,
    /// Whether the thread yields.
    pub yields: bool,
    /// The paths of events that write memory or a device.
    pub work: Vec<String>,
}

fn kind(key: &str) -> Option<Kind> {
    let is_event = !NO_EVENTS.contains(&key);
    EVENTS.iter().find(|(name, _)| is_event && key.starts_with(name)).map(|(_, kind)| *kind)
}

/// Whether a key names an event.
pub fn is_event(key: &str) -> bool {
    kind(key).is_some()
}

impl Events {
    /// Adds the event of a key. The caller has asked whether it is one.
    pub fn add(&mut self, key: &str, field: &Field, findings: &mut Findings) {
        match kind(key) {
            Some(Kind::Run) => self.add_run(field, findings),
            Some(Kind::Runtime) => {
                findings.remark(&field.path, "becomes an amount of work (`spin`), not a length of time");
                self.add_run(field, findings);
            }
            Some(Kind::Sleep) => self.add_sleep(field, findings),
            Some(Kind::Timer) => self.add_timer(field, findings),
            Some(Kind::Yield) => self.yields = true,
            Some(Kind::Work) => self.work.push(field.path.clone()),
            Some(Kind::Between) => findings.refuse(
                &field.path,
                "an event between threads has no counterpart: write a program, or run rt-app in a group",
            ),
            None => {}
        }
    }

    fn add_run(&mut self, field: &Field, findings: &mut Findings) {
        let Some(run) = field.micros(findings) else { return };
        self.run += run;
        if self.run > MOST_MICROS {
            findings.refuse(&field.path, format!("the computing time of a round is longer than {MOST_MICROS}us"));
            self.run = MOST_MICROS;
        }
        self.run_path.get_or_insert_with(|| field.path.clone());
        self.sleeps_between |= self.sleep > 0 && run > 0;
    }

    fn add_sleep(&mut self, field: &Field, findings: &mut Findings) {
        let Some(sleep) = field.micros(findings) else { return };
        self.sleep = (self.sleep + sleep).min(MOST_MICROS);
        if sleep > 0 {
            self.sleep_path.get_or_insert_with(|| field.path.clone());
        }
    }

    fn add_timer(&mut self, field: &Field, findings: &mut Findings) {
        let (mut period, mut reference, mut is_relative) = (None, None, true);
        for (key, field) in field.entries(findings) {
            match key {
                "period" => period = Some(field.clone()),
                "ref" => reference = field.text(findings),
                "mode" => match field.text(findings) {
                    Some("absolute") => is_relative = false,
                    Some("relative") | None => {}
                    Some(_) => findings.refuse(&field.path, "must be `relative` or `absolute`"),
                },
                _ => findings.remark(&field.path, "this key is unknown and is left out"),
            }
        }
        let Some(period) = period else {
            // The caller was told if the value is no object.
            if matches!(field.value, Value::Object(_)) {
                findings.refuse(&field.path, "the timer has no `period`");
            }
            return;
        };
        // A period of zero is rt-app's way to turn a timer off.
        let Some(period) = period.micros(findings).filter(|period| *period > 0) else { return };
        if self.timer.is_some() {
            findings.refuse(&field.path, "is the second timer of the thread: a task has one release in a period");
            return;
        }
        let shared = reference.filter(|name| !name.starts_with("unique")).map(str::to_owned);
        self.timer = Some(Timer { path: field.path.clone(), period, is_relative, shared });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_events_by_their_beginning() {
        assert_eq!(kind("run_b"), Some(Kind::Run));
        assert_eq!(kind("runtime1"), Some(Kind::Runtime));
        assert_eq!(kind("unlock2"), Some(Kind::Between));
        assert_eq!(kind("memory"), Some(Kind::Work));
        for property in ["membind_nodes", "period", "priority", "policy", "macrotick", "wcet", "cpus", "loop"] {
            assert_eq!(kind(property), None, "{property}");
        }
    }
}
