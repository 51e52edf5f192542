//! The memory of a table, its entities and its threads.

use macrotick_lab::{Flavor, Kernel};
use macrotick_model::Duration;
use macrotick_report::Figure;

use super::{table_guest, TableSize};
use crate::error::BenchError;
use crate::kit::footprint;
use crate::kit::lab;

/// Tables that differ in one number. They are small, so the trace has one event for each allocation. With one slot more
/// than entities, their arrays have lengths of a power of two, and the allocator adds the same share to both.
const SMALL: TableSize = TableSize { entities: 63, windows: 64 };
const MORE_WINDOWS: TableSize = TableSize { windows: 128, ..SMALL };
const MORE_ENTITIES: TableSize = TableSize { entities: 127, ..MORE_WINDOWS };
/// Larger tables that differ in one number. They are large enough to be visible in the kernel's total memory.
const LARGE: TableSize = TableSize { entities: 63, windows: 2048 };
const MANY_WINDOWS: TableSize = TableSize { windows: 1 << 18, ..LARGE };
const MANY_ENTITIES: TableSize = TableSize { entities: 2047, ..LARGE };
/// The tables; each run installs one.
const SIZES: [TableSize; 6] = [SMALL, MORE_WINDOWS, MORE_ENTITIES, LARGE, MANY_WINDOWS, MANY_ENTITIES];

/// The memory of one table, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Taken {
    requested: f64,
    allocated: f64,
    grown: f64,
}

/// Bytes per piece.
struct Piece {
    name: &'static str,
    requested: f64,
    /// Bytes that the allocator gave, where it gives more than requested for each piece.
    allocated: Option<f64>,
    /// Growth of the kernel's total memory per piece.
    grown: Option<f64>,
}

/// The memory of each piece.
pub struct Memory {
    pieces: [Piece; 4],
}

/// Returns the entities of each run. They are the same at every scale, because smaller tables would be lost in noise.
pub fn extent() -> Vec<u64> {
    SIZES.map(|size| size.entities.into()).to_vec()
}

impl Memory {
    /// Installs tables of different sizes, and reads the sizes of the kernels' variables.
    pub fn measure(pristine: &Kernel, patched: &Kernel) -> Result<Memory, BenchError> {
        let taken = SIZES.into_iter().map(install).collect::<Result<Vec<Taken>, _>>()?;
        let taken = <[Taken; SIZES.len()]>::try_from(taken).expect("each size is installed");
        let [small, more_windows, more_entities, large, many_windows, many_entities] = taken;
        let per_window =
            |more: f64, less: f64, pair: [TableSize; 2]| (more - less) / f64::from(pair[1].windows - pair[0].windows);
        let per_entity =
            |more: f64, less: f64, pair: [TableSize; 2]| (more - less) / f64::from(pair[1].entities - pair[0].entities);
        let entities = [MORE_WINDOWS, MORE_ENTITIES];
        let [task, cpu] = footprint::variable_sizes(patched, ["init_task", "mt_cpus"])?;
        let [pristine_task] = footprint::variable_sizes(pristine, ["init_task"])?;
        let fixed = |name, bytes: u64| Piece { name, requested: bytes as f64, allocated: None, grown: None };
        Ok(Memory {
            pieces: [
                Piece {
                    name: "window",
                    requested: per_window(more_windows.requested, small.requested, [SMALL, MORE_WINDOWS]),
                    allocated: None,
                    grown: Some(per_window(many_windows.grown, large.grown, [LARGE, MANY_WINDOWS])),
                },
                Piece {
                    name: "entity",
                    requested: per_entity(more_entities.requested, more_windows.requested, entities),
                    allocated: Some(per_entity(more_entities.allocated, more_windows.allocated, entities)),
                    grown: Some(per_entity(many_entities.grown, large.grown, [LARGE, MANY_ENTITIES])),
                },
                fixed("thread of the system", task.saturating_sub(pristine_task)),
                fixed("CPU", cpu),
            ],
        })
    }

    /// Returns a table with a row per piece.
    pub fn markdown(&self) -> String {
        let cell = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
        let mut text = "### memory\n\n| per | asked for [B] | given [B] | check: the kernel's memory grew by [B] |\n\
             |---|---:|---:|---:|\n"
            .to_owned();
        for Piece { name, requested, allocated, grown } in &self.pieces {
            text += &format!("| {name} | {requested:.0} | {} | {} |\n", cell(*allocated), cell(*grown));
        }
        text
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let of = |piece: &Piece| {
            let kinds = [("requested", Some(piece.requested)), ("allocated", piece.allocated), ("grown", piece.grown)];
            let name = piece.name;
            kinds
                .into_iter()
                .filter_map(move |(kind, value)| Some(Figure::new(format!("memory.{kind}"), name, value?, "B")))
        };
        self.pieces.iter().flat_map(of).collect()
    }
}

fn install(size: TableSize) -> Result<Taken, BenchError> {
    let words = [table_guest::INSTALL, &size.entities.to_string(), &size.windows.to_string()];
    let mut job = lab::job(Flavor::Patched, words);
    job.wall_limit = Duration::from_secs(600);
    lab::read(&job, "sizes", parse)
}

/// Parses `requested N`, `allocated N`, `grown N`.
fn parse(output: &str) -> Option<Taken> {
    let value = |key: &str| output.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok();
    Some(Taken { requested: value("requested ")?, allocated: value("allocated ")?, grown: value("grown ")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guest_prints_is_read() {
        let taken = parse("requested 10\nallocated 16\ngrown 4096\n");
        assert_eq!(taken, Some(Taken { requested: 10.0, allocated: 16.0, grown: 4096.0 }));
        assert_eq!(parse("requested 10\n"), None);
    }
}
