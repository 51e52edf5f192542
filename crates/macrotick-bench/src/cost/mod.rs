//! The cost of the kernel class: instructions at window boundaries, memory, size.

mod memory;
mod papers;
mod paths;
mod source;
pub mod table_guest;
mod windows;

use macrotick_lab::{Flavor, Kernel};
use macrotick_report::{figures, output, write_text, Figure};

use self::memory::Memory;
use self::source::{Hooks, Overlay};
use self::windows::Windows;
use crate::error::BenchError;
use crate::kit::bench::{kernel, Bench, Results};
use crate::kit::footprint::{self, Segments};
use crate::kit::lab::announce;

const PLOT: &str = "paths.svg";

const METHOD: &str = "\
**Instructions.** A table has one window of 40 us per entity. Four windows follow each other without a gap, then 40 us \
are free. The tables have 1, 10, 100 and 1000 entities with one process each. A SCHED_OTHER process that never sleeps \
runs outside the windows.

QEMU records the address of every instruction that the kernel executes from the timer interrupt to the next return to \
user space. Nothing is traced in the guest, and the recording does not change its clock. Therefore no figure contains \
the cost of measuring it. The bench records 64 consecutive interrupts, around the end of the third cycle.

Each path is split at the entry and the return of the window handler (`mt_timer_fn`). The *pick* starts at the first \
callback of a scheduling class in the switch after the handler (balance, pick, put, set). It ends when the scheduler \
core has reported the next thread to the windows and the groups. The *switch* goes from there to the next process's \
first instruction. Most of a pick is accounting of other classes, and varies with them. The class's own part has a \
column of its own.

Paths are left out when the interrupt comes again before user space, or when kernel threads run. Other timers that \
expire in the same interrupt, such as the tick, count in the whole path.

In *a job is released* jobs end long before their windows. In *a window begins, follows another, ends* the processes \
never wait. They are preempted at the end of their windows. In *a miss* they also have a job with a deadline. In the \
last two cases only one of the entities has a process. The handler skips the other entities' windows, at most 16 at a \
time.

These figures do not contain two costs that are not constant. The kernel releases every thread of an entity. An \
interrupt that comes late handles the windows that have passed one by one, unless the CPU has no threads in the class.

**Memory.** Tables are installed while the kernel's allocator is traced (`kmem:kmalloc`). Allocations that are \
accounted to the caller are kept by the table; the others are temporary. The cost of a window or an entity is the \
difference between two tables that differ in one number. As a check, the bench compares the growth of slabs and \
vmalloc with larger tables. The cost of a thread (of any class) is the growth of `task_struct` in the linked kernels. \
The cost of a CPU is the size of the class's variable per CPU.

**Size.** `size` of both kernels, built from the same tree and configuration; lines of `kernel/hooks` and \
`kernel/overlay`.";

/// The number of windows of the measured tables that follow each other without a gap.
const IN_A_ROW: u32 = 4;

/// The threads of a run, and their behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// One thread per entity; its job ends at once.
    Jobs,
    /// One thread per entity; it never waits.
    Overrun,
    /// One thread per entity. It never waits, and has jobs with deadlines that it misses.
    Misses,
    /// One thread, of the first entity; its job ends at once.
    Sparse,
}

impl Population {
    const ALL: [Population; 4] = [Population::Jobs, Population::Overrun, Population::Misses, Population::Sparse];

    fn name(self) -> &'static str {
        match self {
            Population::Jobs => "jobs",
            Population::Overrun => "overrun",
            Population::Misses => "misses",
            Population::Sparse => "sparse",
        }
    }

    fn from_name(name: &str) -> Option<Population> {
        Population::ALL.into_iter().find(|population| population.name() == name)
    }
}

/// The numbers that decide a table's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSize {
    /// The number of entities.
    pub entities: u32,
    /// The number of windows, at least one per entity.
    pub windows: u32,
}

/// The size of the kernel part at rest.
struct Footprint {
    pristine: Segments,
    patched: Segments,
    hooks: Hooks,
    overlay: Overlay,
}

/// Returns the entities of each run's table.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok([windows::extent(bench.scale), memory::extent()].concat())
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let (pristine, patched) = (kernel(Flavor::Pristine)?, kernel(Flavor::Patched)?);
    let windows = Windows::measure(bench, &patched)?;
    announce(&format!("{}: memory", bench.name));
    let memory = Memory::measure(&pristine, &patched)?;
    let footprint = Footprint::measure(bench, &pristine, &patched)?;
    let tables = [
        windows.markdown(bench.scale),
        memory.markdown(),
        footprint.markdown(),
        papers::markdown(&footprint, &windows),
    ]
    .join("\n");
    output::print(&tables);
    write_text(&bench.folder.join(PLOT), &windows.plot())?;
    let figures = [windows.figures(), memory.figures(), footprint.figures()].concat();
    figures::write(&bench.folder.join("figures.json"), &figures)?;
    Ok(Results {
        title: "Cost: instructions, memory, size",
        method: METHOD.into(),
        tables,
        kernels: vec![pristine, patched],
        packages: &["binutils"],
        plots: vec![(PLOT.into(), "Mean lengths of the paths and of their parts, in instructions".into())],
    })
}

impl Footprint {
    fn measure(bench: &Bench, pristine: &Kernel, patched: &Kernel) -> Result<Footprint, BenchError> {
        Ok(Footprint {
            pristine: footprint::segments(pristine)?,
            patched: footprint::segments(patched)?,
            hooks: source::hooks(&bench.root)?,
            overlay: source::overlay(&bench.root)?,
        })
    }

    /// Returns name, pristine and patched size of each segment.
    fn segments(&self) -> [(&'static str, u64, u64); 4] {
        let (before, after) = (&self.pristine, &self.patched);
        [
            ("text", before.text, after.text),
            ("data", before.data, after.data),
            ("bss", before.bss, after.bss),
            ("all", before.total(), after.total()),
        ]
    }

    fn source_lines(&self) -> [(&'static str, usize, &'static str); 7] {
        let Footprint { hooks, overlay, .. } = self;
        [
            ("existing files touched", hooks.files, "files"),
            ("hook lines added", hooks.added, "lines"),
            ("hook lines removed", hooks.removed, "lines"),
            ("overlay files", overlay.files, "files"),
            ("overlay lines", overlay.lines, "lines"),
            ("overlay code lines", overlay.code, "lines"),
            ("dispatcher code lines", overlay.dispatcher, "lines"),
        ]
    }

    fn markdown(&self) -> String {
        let mut text =
            "### size\n\n| `size vmlinux` | pristine [B] | patched [B] | difference [B] |\n|---|---:|---:|---:|\n"
                .to_owned();
        for (name, before, after) in self.segments() {
            text += &format!("| {name} | {before} | {after} | {:+} |\n", after as i64 - before as i64);
        }
        text += "\n| source | |\n|---|---:|\n";
        for (name, value, _) in self.source_lines() {
            text += &format!("| {name} | {value} |\n");
        }
        text
    }

    fn figures(&self) -> Vec<Figure> {
        let mut all = Vec::new();
        for (name, before, after) in self.segments() {
            let name = format!("size.{name}");
            all.push(Figure::new(&name, "pristine", before as f64, "B"));
            all.push(Figure::new(&name, "patched", after as f64, "B"));
            all.push(Figure::new(&name, "difference", after as f64 - before as f64, "B"));
        }
        all.extend(self.source_lines().map(|(name, value, unit)| Figure::new(name, "source", value as f64, unit)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn populations_have_names_of_their_own() {
        for population in Population::ALL {
            assert_eq!(Population::from_name(population.name()), Some(population));
        }
        assert_eq!(Population::from_name("none"), None);
    }
}
