//! Pools.

use super::context::{similar, Context, Fields};
use super::yaml::Node;
use super::UNREAD;
use crate::system::{KernelThread, Pool, PoolOrder};
use crate::validate::CPU_RANGE;

const POOL_KEYS: [&str; 9] = ["name", "period", "budget", "cpu", "order", "slice", "slack", "cgroup", "kernel-threads"];

impl Context {
    pub(super) fn pool(&mut self, node: &Node, path: &str) -> Pool {
        let Some(fields) = self.fields(node, path, "a pool", &POOL_KEYS) else {
            return Pool::named("unread", UNREAD, UNREAD);
        };
        let name = self.required_text(&fields, "name", "the pool");
        let what = format!("pool `{name}`");
        let period = self.required_duration(&fields, "period", &what);
        let budget = self.required_duration(&fields, "budget", &what);
        Pool {
            cpu: fields.get("cpu").and_then(|node| self.integer(node, &fields.path_of("cpu"), CPU_RANGE)),
            order: self.order(&fields, &what),
            slack: self.flag(&fields, "slack"),
            cgroup: self.optional_text(&fields, "cgroup"),
            kernel_threads: self.optional_items(&fields, "kernel-threads", Self::pool_thread),
            ..Pool::named(name, period, budget)
        }
    }

    fn pool_thread(&mut self, node: &Node, path: &str) -> KernelThread {
        self.kernel_thread(node, path, &[])
    }

    /// `others` is what else may stand there.
    pub(super) fn kernel_thread(&mut self, node: &Node, path: &str, others: &[&str]) -> KernelThread {
        let text = self.text(node, path).unwrap_or(KernelThread::Ksoftirqd.name());
        KernelThread::ALL.into_iter().find(|thread| thread.name() == text).unwrap_or_else(|| {
            let hint = similar(text, &[&KernelThread::ALL.map(KernelThread::name), others].concat());
            self.refuse(path, node.at, format!("unknown kernel thread `{text}`"), Some(hint));
            KernelThread::Ksoftirqd
        })
    }

    fn order(&mut self, fields: &Fields, what: &str) -> PoolOrder {
        let slice = self.optional_duration(fields, "slice");
        let turn = slice.unwrap_or(PoolOrder::DEFAULT_SLICE);
        let path = fields.path_of("order");
        let word = fields.get("order").and_then(|node| Some((self.text(node, &path)?, node)));
        match word {
            None | Some(("round-robin", _)) => PoolOrder::RoundRobin { slice: turn },
            Some(("priority", _)) => PoolOrder::Priority { slice: turn },
            Some(("fifo", _)) => {
                if let Some(node) = fields.get("slice") {
                    let hint = Some("with `order: fifo` nobody takes turns: leave `slice` out".into());
                    self.report(node.at, format!("{what} has a `slice`, but its order is `fifo`"), hint);
                }
                PoolOrder::Fifo
            }
            Some((other, node)) => {
                let hint = similar(other, &PoolOrder::NAMES);
                self.refuse(&path, node.at, format!("unknown order `{other}`"), Some(hint));
                PoolOrder::Fifo
            }
        }
    }
}
