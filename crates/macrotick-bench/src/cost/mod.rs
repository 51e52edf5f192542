//! What the kernel class costs: instructions of a window's boundary, memory, size.

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
**Instructions.** A table with one window of 40 us per entity, over a SCHED_OTHER process that never sleeps, with \
1, 10, 100 and 1000 entities of one process each; four windows follow each other, then 40 us are free. QEMU records \
the address of every instruction that the kernel executes from the timer's interrupt to the next return to user \
space. Nothing is traced in the guest and its clock does not notice, so that no figure contains the cost of \
measuring it. 64 interrupts in a row are recorded, around the end of the third cycle. A path is cut where the \
window handler (`mt_timer_fn`) is entered and has returned; the pick goes from the first question to a \
scheduling class in the switch after it (balance, pick, put, set) to where windows and groups have been told what is \
going to run, and the switch from there to the next process's first instruction. The pick is mostly other classes' \
accounting, which varies with them; what windows add is told apart. Paths into which the interrupt comes again, or \
in which kernel threads run, are left out. Whatever else expires in the same interrupt, such as the tick, is in the \
whole path. In *a job is released* jobs are done long before their windows end. In *a window begins, follows another, ends* the processes never wait and are \
preempted at the end of their windows; in *a miss* they have a job with a deadline, too. In the last two cases only \
one of the entities has a process: the handler passes over the others' windows, at most 16 at a time.

Not constant, and not in these figures: every thread of an entity is released, and an interrupt that comes late takes \
the windows that have passed one by one, unless the CPU has no threads in the class.

**Memory.** Tables are installed with the kernel's allocator traced (`kmem:kmalloc`); what is accounted to the \
caller stays. Two tables that differ in one number tell what it costs. The check is by how much slabs and vmalloc \
grow with larger tables. What a thread (of any class) and a CPU cost is told by the sizes of `task_struct` and of \
the class's variable per CPU in the linked kernels.

**Size.** `size` of both kernels, built from the same tree and configuration; lines of `kernel/hooks` and \
`kernel/overlay`.";

/// So many windows of the measured tables follow each other.
const IN_A_ROW: u32 = 4;

/// Which threads there are, and what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// One per entity, whose job is done at once.
    Jobs,
    /// One per entity, which never waits.
    Overrun,
    /// The same, with jobs and deadlines that all of them miss.
    Misses,
    /// One, of the first entity, whose job is done at once.
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
    /// Entities.
    pub entities: u32,
    /// Windows, at least one per entity.
    pub windows: u32,
}

/// What the kernel part adds at rest.
struct Footprint {
    pristine: Segments,
    patched: Segments,
    hooks: Hooks,
    overlay: Overlay,
}

/// The entities of each run's table.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok([windows::extent(bench.scale), memory::extent()].concat())
}

/// Runs it.
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

fn figure(figure: impl Into<String>, case: impl Into<String>, value: f64, unit: &str) -> Figure {
    Figure { figure: figure.into(), case: case.into(), value, unit: unit.into() }
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

    /// Name, pristine, patched.
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
            all.push(figure(&name, "pristine", before as f64, "B"));
            all.push(figure(&name, "patched", after as f64, "B"));
            all.push(figure(&name, "difference", after as f64 - before as f64, "B"));
        }
        all.extend(self.source_lines().map(|(name, value, unit)| figure(name, "source", value as f64, unit)));
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
