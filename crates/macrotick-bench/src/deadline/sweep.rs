//! The task sets that play, the kernels and the policies.

use macrotick_lab::Flavor;

use super::papers::{Table, TABLES};
use crate::kit::scale::Scale;

/// The number of CPUs of the pristine kernel's guests. The other tables do not run there, because a guest takes longer
/// to boot than to play its turns.
const PRISTINE_CPUS: u32 = 4;
/// The index of SCHED_DEADLINE among the policies.
pub const DEADLINE: usize = 0;

/// The parts of a run.
#[derive(Clone, Copy)]
pub struct Sweep {
    tables: &'static [Table],
    /// The number of sets of each load.
    pub sets: u32,
    /// The milliseconds that each set plays.
    pub millis: u64,
    /// Whether all loads of a table are played, or only the greatest.
    all_loads: bool,
}

const ALL: Sweep = Sweep { tables: &TABLES, sets: 6, millis: 2000, all_loads: true };
/// A quick run leaves out guests that take long to boot: six CPUs, and the pristine kernel on four.
const QUICK: Sweep = Sweep { tables: &[TABLES[0], TABLES[1]], sets: 1, millis: 300, all_loads: false };

impl Sweep {
    /// Returns the sweep of a scale.
    pub fn at(scale: Scale) -> Sweep {
        scale.of(ALL, QUICK)
    }

    fn loads(&self, table: &Table) -> Vec<u32> {
        match self.all_loads {
            true => table.rows.iter().map(|(load, _)| *load).collect(),
            false => vec![table.most()],
        }
    }

    /// Returns tables, kernels, loads and policies that are played together. Our kernel plays under each policy. The
    /// pristine kernel plays the greatest loads on four CPUs, under SCHED_DEADLINE.
    pub fn parts(&self) -> Vec<(&'static Table, Flavor, Vec<u32>, &'static [usize])> {
        let mut parts = Vec::new();
        for table in self.tables {
            parts.push((table, Flavor::Patched, self.loads(table), &[0, 1, 2][..]));
            if table.cpus == PRISTINE_CPUS && self.all_loads {
                parts.push((table, Flavor::Pristine, vec![table.most()], &[DEADLINE][..]));
            }
        }
        parts
    }
}
