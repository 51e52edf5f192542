//! Rules of chains and of tables by hand, which refer to tasks.

use super::{Rules, MAX_CYCLE, PERIODS};
use crate::system::{Chain, GivenWindow};
use crate::time::Duration;

impl Rules<'_> {
    pub(super) fn chain(&mut self, path: &str, chain: &Chain) {
        let at = |key: &str| format!("{path}.{key}");
        if chain.path.len() < 2 {
            self.add(at("path"), &[], format!("a chain needs at least two tasks, this one has {}", chain.path.len()));
        }
        for (index, name) in chain.path.iter().enumerate() {
            let place = format!("{path}.path[{index}]");
            self.known_task(&place, name);
            self.windowed_task(&place, name);
            if index > 0 && chain.path[index - 1] == *name {
                self.add(place, &[], format!("task `{name}` follows itself in the chain"));
            }
        }
        if chain.reaction.is_none() && chain.age.is_none() {
            let text = format!("chain `{}` has no bound", chain.name);
            self.add(path, &[&at("reaction"), &at("age")], text).hint =
                Some("add `reaction: TIME`, `age: TIME`, or both".into());
        }
    }

    pub(super) fn table(&mut self, table: &[GivenWindow]) {
        if table.is_empty() {
            self.add("table", &[], "a table needs at least one window");
        }
        for (index, window) in table.iter().enumerate() {
            self.window(&format!("table[{index}]"), window);
        }
        let mut order: Vec<usize> = (0..table.len()).collect();
        order.sort_by_key(|&index| (table[index].cpu, table[index].offset, index));
        let mut previous: Option<usize> = None;
        for index in order {
            let window = &table[index];
            if let Some(other) = previous.filter(|&other| table[other].cpu == window.cpu) {
                let before = &table[other];
                if window.offset < end(before) {
                    let text = format!(
                        "window [{}, {}) of `{}` overlaps with [{}, {}) of `{}` on CPU {}",
                        window.offset,
                        end(window),
                        window.task,
                        before.offset,
                        end(before),
                        before.task,
                        window.cpu
                    );
                    self.add(format!("table[{index}]"), &[&format!("table[{other}]")], text);
                }
                if end(before) > end(window) {
                    continue;
                }
            }
            previous = Some(index);
        }
    }

    fn window(&mut self, path: &str, window: &GivenWindow) {
        let dot = format!("{path}.");
        self.known_entity(&format!("{path}.task"), &window.task);
        self.flags_of_pool(path, window);
        self.cpu(&format!("{path}.cpu"), window.cpu);
        self.on_grid(&dot, "offset", window.offset);
        self.on_grid(&dot, "length", window.length);
        if window.offset < Duration::ZERO {
            self.add(format!("{path}.offset"), &[], format!("offset {} is before the cycle", window.offset));
        }
        let valid = |cycle: &Duration| *cycle > Duration::ZERO && *cycle <= MAX_CYCLE;
        let cycle = self.system.cycle.or_else(|| self.system.hyperperiod()).filter(valid);
        if let Some(cycle) = cycle.filter(|&cycle| end(window) > cycle) {
            let text = format!("window [{}, {}) reaches beyond the cycle of {cycle}", window.offset, end(window));
            self.add(path, &[PERIODS, "cycle"], text);
        }
    }
}

/// Returns the end of a window. The sum of the two lengths in a description can exceed the range.
fn end(window: &GivenWindow) -> Duration {
    window.offset.checked_add(window.length).unwrap_or(Duration::from_nanos(i64::MAX))
}
