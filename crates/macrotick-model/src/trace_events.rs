//! The Chrome trace event format, which Perfetto reads: tracks in groups, with events from one instant to another.
//!
//! It has times in microseconds; three decimals keep the nanosecond.

use std::fmt::Write;

use crate::time::us;

/// The events of a trace, one per line.
#[derive(Debug, Default)]
pub struct TraceEvents(Vec<String>);

impl TraceEvents {
    /// Names a group of tracks, or a track in it.
    pub fn name(&mut self, group: u32, track: Option<u32>, name: &str) {
        let (kind, track) = match track {
            Some(track) => ("thread_name", track),
            None => ("process_name", 0),
        };
        let name = quote(name);
        self.0.push(format!(r#"{{"ph":"M","name":"{kind}","pid":{group},"tid":{track},"args":{{"name":{name}}}}}"#));
    }

    /// Adds an event from `start` to `end`, in nanoseconds.
    pub fn span(&mut self, (group, track): (u32, u32), name: &str, (start, end): (i64, i64), arguments: &str) {
        let (name, ts, dur) = (quote(name), us(start), us((end - start).max(0)));
        self.0.push(format!(
            r#"{{"ph":"X","name":{name},"pid":{group},"tid":{track},"ts":{ts},"dur":{dur},"args":{{{arguments}}}}}"#
        ));
    }

    /// Adds an event at an instant, in nanoseconds.
    pub fn mark(&mut self, (group, track): (u32, u32), name: &str, at: i64) {
        let (name, ts) = (quote(name), us(at));
        self.0.push(format!(r#"{{"ph":"i","s":"t","name":{name},"pid":{group},"tid":{track},"ts":{ts}}}"#));
    }

    /// Returns the trace as JSON, with texts about the whole.
    pub fn json(&self, about: &[(&str, &str)]) -> String {
        let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        text.push_str(&self.0.join(",\n"));
        let about: Vec<String> = about.iter().map(|(key, value)| format!("{}:{}", quote(key), quote(value))).collect();
        let _ = writeln!(text, "\n],\"otherData\":{{{}}}}}", about.join(","));
        text
    }
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}
