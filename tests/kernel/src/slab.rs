//! The objects that the kernel's allocator has handed out (`CONFIG_SLUB_DEBUG`, only in the debug kernel).

use std::collections::BTreeMap;

use crate::process;

/// The number of objects in use, by cache.
#[derive(Clone, Debug, Default)]
pub struct Slabs(BTreeMap<String, u64>);

impl Slabs {
    /// Counts the current objects. The result is empty if the kernel does not report them.
    pub fn now() -> Slabs {
        // This frees names and nodes of unused files, for example those of ended processes.
        let _ = std::fs::write("/proc/sys/vm/drop_caches", "2");
        let text = std::fs::read_to_string("/proc/slabinfo").unwrap_or_default();
        let caches: Vec<&str> = text.lines().skip(2).filter_map(|line| line.split(' ').next()).collect();
        for cache in caches {
            // This makes KASAN release the freed objects that it keeps.
            let _ = std::fs::write(format!("/sys/kernel/slab/{cache}/shrink"), "1");
        }
        Slabs::parse(&std::fs::read_to_string("/proc/slabinfo").unwrap_or_default()).beside(&living())
    }

    /// Subtracts the objects of living threads. The number of kernel threads may vary.
    fn beside(mut self, living: &[(&str, u64)]) -> Slabs {
        for (cache, count) in living {
            if let Some(objects) = self.0.get_mut(*cache) {
                *objects = objects.saturating_sub(*count);
            }
        }
        self
    }

    /// Whether the kernel reports no objects.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn parse(text: &str) -> Slabs {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        };
        Slabs(text.lines().skip(2).filter_map(line).collect())
    }

    /// Lists the caches that have grown by more than the usual amount.
    pub fn since(&self, before: &Slabs) -> String {
        let grown = self.0.iter().filter_map(|(name, count)| {
            let before = before.0.get(name).copied().unwrap_or(0);
            (*count > before + slack(name)).then(|| format!("{name} {before} -> {count}"))
        });
        grown.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the number of objects that belong to existing threads, by cache. This includes kernel threads.
fn living() -> [(&'static str, u64); 3] {
    let processes = process::numbers_in("/proc");
    let threads = processes.iter().map(|&pid| process::threads_of(pid).len() as u64).sum();
    [("task_struct", threads), ("pid", threads), ("signal_cache", processes.len() as u64)]
}

/// Returns the growth of a cache that is no leak. All allocations of the class are accounted to a control group.
fn slack(cache: &str) -> u64 {
    match cache {
        // Objects of the debug code itself. Their number only grows.
        "debug_objects_cache" => u64::MAX / 2,
        _ if cache.starts_with("kmalloc-cg-") => 4,
        // The kernel frees ended threads late.
        "task_struct" | "signal_cache" | "pid" => 4,
        // Among others, the kernel's lists of control groups that pay for the objects of a page (kmalloc-192).
        _ => 200,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "slabinfo - version: 2.1\n# name <active_objs> <num_objs> ...\n";

    #[test]
    fn a_table_that_stays_is_seen() {
        let slabs = |tables, tasks| {
            Slabs::parse(&format!("{HEAD}kmalloc-cg-512 {tables} 64 512 8 1\ntask_struct {tasks} 99 9 9 9\n"))
        };
        assert_eq!(slabs(30, 40).since(&slabs(30, 41)), "");
        assert_eq!(slabs(41, 60).since(&slabs(30, 41)), "kmalloc-cg-512 30 -> 41, task_struct 41 -> 60");
    }

    #[test]
    fn threads_that_live_are_not_left_behind() {
        let slabs = |tasks| Slabs::parse(&format!("{HEAD}task_struct {tasks} 99 9 9 9\n"));
        assert_eq!(
            slabs(60).beside(&[("task_struct", 50), ("pid", 50)]).since(&slabs(41).beside(&[("task_struct", 35)])),
            ""
        );
        assert_ne!(slabs(60).beside(&[("task_struct", 46)]).since(&slabs(41).beside(&[("task_struct", 35)])), "");
    }
}
