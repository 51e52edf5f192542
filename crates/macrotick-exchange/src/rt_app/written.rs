//! The text of an exported file: one line for each thread, so that people can read and compare it.

use std::fmt::Write as _;

use serde::Serialize;

/// A file of rt-app. The order of threads and keys is that of the text.
pub struct Written {
    /// The threads with their names.
    pub threads: Vec<(String, Thread)>,
    /// The settings.
    pub global: Global,
    /// The values that rt-app lacks.
    pub own: Own,
}

/// A thread. Times are in microseconds.
#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Thread {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<i64>,
    pub policy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dl_runtime: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dl_deadline: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dl_period: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
    #[serde(rename = "loop")]
    pub rounds: i32,
    pub run: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<Timer>,
    #[serde(rename = "macrotick", skip_serializing_if = "OfThread::is_empty")]
    pub own: OfThread,
}

/// A timer with a period in microseconds.
#[derive(Serialize)]
pub struct Timer {
    #[serde(rename = "ref")]
    pub name: &'static str,
    pub period: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'static str>,
}

/// The values of a thread that rt-app lacks. Times are in microseconds.
#[derive(Default, PartialEq, Serialize)]
pub struct OfThread {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wcet: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrate: Option<bool>,
}

impl OfThread {
    fn is_empty(&self) -> bool {
        *self == OfThread::default()
    }
}

/// The settings of a run.
#[derive(Serialize)]
pub struct Global {
    /// Its length in seconds.
    pub duration: i64,
    pub default_policy: &'static str,
}

/// The values of a system that rt-app lacks.
#[derive(Serialize)]
pub struct Own {
    pub cpus: Vec<u32>,
}

impl Written {
    /// Returns the text.
    pub fn text(&self) -> String {
        let mut text = String::from("{\n  \"tasks\": {\n");
        for (index, (name, thread)) in self.threads.iter().enumerate() {
            let comma = if index + 1 < self.threads.len() { "," } else { "" };
            let _ = writeln!(text, "    {}: {}{comma}", line(name), line(thread));
        }
        let _ = writeln!(text, "  }},\n  \"global\": {},", line(&self.global));
        let _ = writeln!(text, "  \"{}\": {}\n}}", super::own::KEY, line(&self.own));
        text
    }
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers, texts and lists are always JSON")
}
