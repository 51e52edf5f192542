//! The clock of the tables, and the windows in which they follow it.

use super::context::{similar, Context, Fields};
use super::yaml::Node;
use crate::system::SyncWindow;

const SYNC_KEYS: [&str; 4] = ["period", "offset", "length", "bound"];
const CLOCKS: [&str; 2] = ["monotonic", "tai"];

impl Context {
    /// `clock` and `sync` belong together.
    pub(super) fn sync(&mut self, fields: &Fields) -> Option<SyncWindow> {
        let clock = fields.get("clock").and_then(|node| Some((self.text(node, &fields.path_of("clock"))?, node)));
        match (clock, fields.get("sync")) {
            (Some(("tai", _)), Some(node)) => return self.sync_window(node, &fields.path_of("sync")),
            (Some(("tai", node)), None) => {
                let hint = Some("add `sync: {period: 10ms, length: 200us, bound: 50us}`".into());
                self.report(node.at, "a table on CLOCK_TAI needs sync windows, in which it follows it", hint);
            }
            (Some((other, node)), _) if !CLOCKS.contains(&other) => {
                let hint = similar(other, &CLOCKS);
                self.refuse(&fields.path_of("clock"), node.at, format!("unknown clock `{other}`"), Some(hint));
            }
            (_, Some(node)) if !self.is_broken(&fields.path_of("clock")) => {
                let hint = Some("add `clock: tai`".into());
                self.report(node.at, "sync windows are for a table on CLOCK_TAI only", hint);
            }
            _ => {}
        }
        None
    }

    /// Without an offset it is the last thing in its period.
    fn sync_window(&mut self, node: &Node, path: &str) -> Option<SyncWindow> {
        let fields = self.fields(node, path, "`sync`", &SYNC_KEYS)?;
        let mut length = |key| self.required_duration(&fields, key, "`sync`");
        let (period, length, bound) = (length("period"), length("length"), length("bound"));
        let last = || period.checked_sub(length).unwrap_or(period);
        let offset = self.optional_duration(&fields, "offset").unwrap_or_else(last);
        Some(SyncWindow { period, offset, length, bound })
    }
}
