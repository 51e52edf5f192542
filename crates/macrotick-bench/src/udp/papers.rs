//! Tables I to IV of the UDP paper: round trips of 500 bytes each millisecond, for three hours.

use macrotick_report::Figure;

use super::cells::{Column, Load, Rate};

/// A row: round trips in us, and the missed deadlines of 600 000 packets. No packet was lost.
pub struct Row {
    min: u32,
    mean: u32,
    max: u32,
    missed: u32,
}

const PACKETS: u32 = 600_000;

/// A table of the paper.
pub struct Table {
    /// Its title.
    pub title: &'static str,
    /// Idle, stress, and traffic at 100 Mb/s, sent and received.
    rows: [Row; 4],
}

const fn row(min: u32, mean: u32, max: u32, missed: u32) -> Row {
    Row { min, mean, max, missed }
}

static TABLES: [Table; 4] = [
    Table {
        title: "the paper's table I, no RT, without PREEMPT_RT",
        rows: [
            row(193, 217, 1446, 15),
            row(262, 560, 46742, 20979),
            row(195, 378, 7160, 2298),
            row(192, 217, 1426, 22),
        ],
    },
    Table {
        title: "the paper's table II, RT normal",
        rows: [row(251, 266, 522, 0), row(254, 341, 618, 0), row(265, 320, 25727, 20), row(263, 292, 898, 9)],
    },
    Table {
        title: "the paper's table III, RT with CPU affinity",
        rows: [row(275, 289, 644, 0), row(277, 358, 828, 0), row(277, 322, 568, 0), row(274, 287, 592, 0)],
    },
    Table {
        title: "the paper's table IV, RT with an isolated CPU",
        rows: [row(297, 311, 592, 0), row(298, 355, 766, 0), row(301, 336, 617, 0), row(296, 312, 542, 0)],
    },
];

const LOADS: [Load; 4] = [Load::Idle, Load::Stress, Load::Sent(Rate::Mbps100), Load::Received(Rate::Mbps100)];

/// Returns the paper's table that is nearest to a configuration.
pub fn table(column: Column) -> &'static Table {
    let index = Column::ALL.iter().position(|one| *one == column).expect("all configurations are listed");
    &TABLES[index]
}

impl Table {
    /// Returns the row of a load, if the paper has it.
    pub fn row(&self, load: Load) -> Option<&Row> {
        LOADS.iter().zip(&self.rows).find(|(one, _)| **one == load).map(|(_, row)| row)
    }
}

impl Row {
    /// Returns the cells of the row.
    pub fn cells(&self) -> String {
        format!("{} | {} | {} | {} of {PACKETS} | 0", self.min, self.mean, self.max, self.missed)
    }
}

/// Returns the numbers of the paper as figures.
pub fn figures() -> Vec<Figure> {
    let mut figures = Vec::new();
    for (column, table) in Column::ALL.into_iter().zip(&TABLES) {
        for (load, row) in LOADS.into_iter().zip(&table.rows) {
            let case = format!("{}: {}", load.title(), column.title());
            let values = [("min", row.min, "us"), ("mean", row.mean, "us"), ("max", row.max, "us")];
            for (name, value, unit) in values.into_iter().chain([("misses", row.missed, "packets")]) {
                let (figure, value) = (format!("paper's table.{name}"), f64::from(value));
                figures.push(Figure { figure, case: case.clone(), value, unit: unit.into() });
            }
        }
    }
    figures
}
