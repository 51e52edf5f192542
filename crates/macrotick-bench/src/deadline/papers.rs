//! The paper's experiments and its numbers.

use super::sets::{Kind, Placement};

/// A table of the paper: loads in percent of a CPU, and the percentages of missed deadlines.
#[derive(Clone, Copy)]
pub struct Table {
    /// The paper's name of the table.
    pub name: &'static str,
    /// The CPUs on which tasks may run.
    pub placement: Placement,
    /// The number of CPUs.
    pub cpus: u32,
    /// The load, and the paper's percentages under SCHED_DEADLINE, SCHED_FIFO, SCHED_OTHER.
    pub rows: &'static [(u32, Option<[f64; 3]>)],
}

/// Lelli, Scordino, Abeni, Faggioli: Deadline scheduling in the Linux kernel. Software: Practice and Experience 46,
/// 2016, section 4.2. The table III here has every other load of the paper; 200 % is ours.
pub const TABLES: [Table; 3] = [
    Table {
        name: "Table I: tasks with a CPU each, 4 CPUs",
        placement: Placement::Partitioned,
        cpus: 4,
        rows: &[
            (60, Some([0.0, 0.0, 0.58])),
            (70, Some([0.0, 0.0, 1.87])),
            (80, Some([0.0, 0.003, 6.03])),
            (90, Some([0.0, 0.38, 10.20])),
        ],
    },
    Table {
        name: "Table II: tasks that migrate, 4 CPUs",
        placement: Placement::Global,
        cpus: 4,
        rows: &[
            (200, None),
            (340, Some([0.008, 0.010, 3.75])),
            (350, Some([0.012, 0.436, 6.17])),
            (360, Some([0.030, 0.095, 6.92])),
            (370, Some([0.117, 0.231, 8.52])),
            (380, Some([0.186, 0.702, 10.62])),
            (390, Some([0.615, 2.297, 14.15])),
        ],
    },
    Table {
        name: "Table III: tasks that migrate, 6 CPUs",
        placement: Placement::Global,
        cpus: 6,
        rows: &[
            (510, Some([0.023, 0.002, 4.310])),
            (530, Some([0.099, 0.023, 6.046])),
            (550, Some([0.239, 0.271, 8.097])),
            (570, Some([0.351, 0.640, 11.554])),
            (590, Some([1.295, 2.535, 19.774])),
        ],
    },
];

impl Table {
    /// Returns the kind of the sets of a load.
    pub fn kind(&self, load: u32) -> Kind {
        Kind { placement: self.placement, cpus: self.cpus, load }
    }

    /// Returns the greatest load.
    pub fn most(&self) -> u32 {
        self.rows.iter().map(|(load, _)| *load).max().unwrap_or(0)
    }
}
