//! What TimerShield is for: experiments of its paper on the pristine kernel, and on ours with it off and on.

mod aims;
mod operations;
mod papers;
mod paths;
mod responses;
mod run;
mod size;
pub mod task_guest;
pub mod window_guest;
mod windows;
mod workload;

use macrotick_lab::Flavor;
use macrotick_report::{figures, output, write_text};

use self::aims::Aim;
use self::operations::Operations;
use self::responses::Responses;
use self::size::Size;
use self::windows::Windows;
use crate::error::BenchError;
use crate::kit::bench::{kernel, Bench, Results};

const METHOD: &str = "\
The experiments of section IV of the paper (Patel, Vanga, Brandenburg: TimerShield, RTAS 2017) on the pristine kernel, on \
ours with TimerShield off, and with it on (`kernel.timershield`). Everything else is the same: source, configuration, \
the program to the bit, and all choices, which are random but seeded.

**Responses.** The *high* task (SCHED_FIFO 99) does 700 rounds of work every 1 ms; it sleeps with `clock_nanosleep` until an absolute instant. A round is 240 instructions that do nothing and the loop around them, about \
as many as the multiplication of 3 x 3 matrices that the paper's task repeats, and always the same. A response goes from the release to the end of \
the job, as the task reads the clock; the paper measured from the timer's callback to the next sleep. 5000 jobs each. Lower \
tasks (SCHED_FIFO 70) only wake up and sleep again. *Unsynchronised* (figures 5 and 6): periods of 1, 2, 5, 10, 20, 50, 100, \
200 and 1000 ms, drawn with equal chances, and any phase. *Synchronised* (figures 7 and 8): periods of 1, 2, 10, 20, 100, 200 and \
1000 ms, each of which divides the next, all released first at one time zero. *Hostile* (figures 9 and 10): a SCHED_OTHER process of \
another user than root with timerfds of 1 us, 2 us and so on, which it reads as epoll reports them. At one instruction per \
nanosecond it cannot read all that expire; how many it reads is told. With PREEMPT_RT timerfds expire in a thread of low \
priority: there is one interrupt at a time for them all, and with TimerShield none while something more important runs. \
*Lowest* (figures 11 and 12): the high task, SCHED_FIFO 75 tasks with periods and phases as in *unsynchronised*, and the \
measured one (SCHED_FIFO 70, every 0.9 ms, 100 rounds). Time zero is 300 us after a tick, so that jobs of the high \
task have none: it would be the same on all kernels.

**Throughput** (table II). A SCHED_FIFO 99 task works without a pause for 1 ms, 1000 times, on an idle machine and beside the hostile \
process with 1000 timers. In between it sleeps for 1 ms, in which that process reads its timers and so starts them anew; the \
paper's task never sleeps.

**Windows**, which no paper has. A task of SCHED_TT in windows of 2.5 ms every 5.0035 ms, dispatched 40 us early and held until its \
nominal instant (lead), does 7200 rounds, about 1.7 ms; 400 jobs, so that ticks and timers expire at every phase of a job: beside \
nothing, 100 *synchronised* tasks, the hostile process with 1000 timers, and a process that issues system calls without end. A \
response goes from the nominal instant to the end of the job. Interrupts of the timer are counted in runs of their own, with \
`/proc/interrupts` read at the beginning and the end of each job.

**Instructions** (figures 2 to 4). QEMU records every instruction that the kernel executes from a task's call of \
`clock_nanosleep` to the next return to user space, the high task alone and beside 50 unsynchronised lower ones. *enqueue* is \
`enqueue_hrtimer` with what it calls. *expiry* is from the timer's interrupt (`hrtimer_interrupt`) to the wake-up \
(`hrtimer_wakeup`), with the dequeue in between; the aim is for the dequeue \
alone, which the compiler has made a part of its caller in the pristine kernel. *switch* is from the \
beginning of `__schedule` to the switch of stacks; *of it TimerShield's* is its hook there, with what it calls. \
Alone, the task's own sleep is the only one, and the event device stays as it is in a switch. What SCHED_TT adds to a switch is \
in *off* and *on* alike.

**Size** (table I). What `size` says of the objects of `kernel/time` that TimerShield changes or adds, against the pristine \
kernel's. One-line hooks in other objects, which SCHED_TT changes too, are not counted.";

/// The jobs of each run: of those that respond, those in windows, and those whose paths are recorded.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    let scale = bench.scale;
    Ok([responses::extent(scale), windows::extent(scale), operations::extent(scale)].concat())
}

/// Runs it.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let (pristine, patched) = (kernel(Flavor::Pristine)?, kernel(Flavor::Patched)?);
    let size = Size::measure(&pristine, &patched)?;
    let operations = Operations::measure(bench, |variant| kernel(variant.flavor()))?;
    let responses = Responses::measure(bench)?;
    let windows = Windows::measure(bench)?;
    let aims = [responses.aims(), windows.aims().into(), operations.aims(), size.aims()].concat();
    let tables = [
        aims::markdown(&aims, bench.scale),
        responses.markdown(),
        windows.markdown(),
        operations.markdown(),
        size.markdown(),
        papers::markdown(&responses, &operations, &size),
    ]
    .join("\n");
    output::print(&tables);
    let plots = responses.plots();
    for (file, _, svg) in &plots {
        write_text(&bench.folder.join(file), svg)?;
    }
    let aimed = aims.iter().flat_map(Aim::figures).collect();
    let figures =
        [aimed, responses.figures(), windows.figures(), operations.figures(), size.figures(), papers::figures()]
            .concat();
    figures::write(&bench.folder.join("figures.json"), &figures)?;
    Ok(Results {
        title: "TimerShield: timers of less important tasks",
        method: METHOD.into(),
        tables,
        kernels: vec![pristine, patched],
        packages: &["binutils"],
        plots: plots.into_iter().map(|(file, caption, _)| (file, caption)).collect(),
    })
}
