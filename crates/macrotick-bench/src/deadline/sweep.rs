//! Which task sets play, on which kernel and under which policies.

use macrotick_lab::Flavor;

use super::papers::{Table, TABLES};
use crate::kit::scale::Scale;

/// The machine that the pristine kernel has, too: booting one takes longer than its turns.
const PRISTINE_CPUS: u32 = 4;
/// SCHED_DEADLINE among the policies.
pub const DEADLINE: usize = 0;

/// What is played.
#[derive(Clone, Copy)]
pub struct Sweep {
    tables: &'static [Table],
    /// Of each load.
    pub sets: u32,
    /// How long each set plays.
    pub millis: u64,
    /// Whether all loads of a table are played, or only the greatest.
    all_loads: bool,
}

const ALL: Sweep = Sweep { tables: &TABLES, sets: 6, millis: 2000, all_loads: true };
/// Without machines that take long to boot: that with six CPUs, and the pristine kernel on four.
const QUICK: Sweep = Sweep { tables: &[TABLES[0], TABLES[1]], sets: 1, millis: 300, all_loads: false };

impl Sweep {
    /// As much as the scale says.
    pub fn at(scale: Scale) -> Sweep {
        scale.of(ALL, QUICK)
    }

    fn loads(&self, table: &Table) -> Vec<u32> {
        match self.all_loads {
            true => table.rows.iter().map(|(load, _)| *load).collect(),
            false => vec![table.most()],
        }
    }

    /// Tables, kernels, loads and policies that are played together: on our kernel under each policy, those of the greatest
    /// loads on four CPUs also on the pristine one, under SCHED_DEADLINE.
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
