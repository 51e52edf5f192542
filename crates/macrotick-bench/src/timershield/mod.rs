//! The effect of TimerShield: experiments of its paper on the pristine kernel, and on ours with TimerShield off and on.

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
These are the experiments of section IV of the paper (Patel, Vanga, Brandenburg: TimerShield, RTAS 2017). They run on \
the pristine kernel, on ours with TimerShield off, and with TimerShield on (`kernel.timershield`). Everything else is \
the same: source, configuration, the program to the bit, and all choices, which are random but seeded.

**Responses.** The *high* task (SCHED_FIFO 99) does 700 rounds of work every 1 ms. It sleeps with `clock_nanosleep` \
until an absolute instant. A round is 240 instructions that do nothing and the loop around them. The paper's task \
repeats a multiplication of 3 x 3 matrices, which has about as many instructions. A round always has the same length. \
A response is the time from the release to the end of the job, by the task's clock. The paper measured from the \
timer's callback to the next sleep. Each run has 5000 jobs.

The workloads are:

* *Unsynchronised* (figures 5 and 6): lower tasks (SCHED_FIFO 70) that only wake up and sleep again. Their periods are \
1, 2, 5, 10, 20, 50, 100, 200 and 1000 ms, drawn with equal probability, and their phases are random
* *Synchronised* (figures 7 and 8): lower tasks with periods of 1, 2, 10, 20, 100, 200 and 1000 ms. Each period \
divides the next one, and all first releases are at one time zero
* *Hostile* (figures 9 and 10): a SCHED_OTHER process of an unprivileged user with timerfds of 1 us, 2 us and so on. \
It reads them as epoll reports them. At one instruction per nanosecond it cannot read all expired timers; the tables \
have the number that it reads. With PREEMPT_RT, timerfds expire in a thread of low priority. All of them together then \
have one interrupt at a time, and with TimerShield no interrupt while a more important task runs
* *Lowest* (figures 11 and 12): the measured task has SCHED_FIFO 70, 0.9 ms and 100 rounds. Beside it run the high \
task, and SCHED_FIFO 75 tasks with periods and phases as in *unsynchronised*

Time zero is 300 us after a tick, and the jobs of the high task therefore have no tick. A tick would be the same on \
all kernels.

**Throughput** (table II). A SCHED_FIFO 99 task works without a pause for 1 ms, 1000 times, on an idle machine and \
beside the hostile process with 1000 timers. Between two such times it sleeps for 1 ms. In this time the hostile \
process reads its timers and thereby restarts them. The paper's task never sleeps.

**Windows**, which no paper has. A task of SCHED_TT has windows of 2.5 ms every 5.0035 ms. The kernel dispatches it 40 \
us early and holds it until its nominal instant (lead). A job does 7200 rounds, about 1.7 ms. In 400 jobs, ticks and \
timers expire at every phase of a job. The loads are: none, 100 *synchronised* tasks, the hostile process with 1000 \
timers, and a process that issues system calls without end. A response is the time from the nominal instant to the end \
of the job. Separate runs count the timer interrupts: the task reads `/proc/interrupts` at the start and at the end of \
each job.

**Instructions** (figures 2 to 4). QEMU records every instruction that the kernel executes from a task's call of \
`clock_nanosleep` to the next return to user space. The high task runs alone and beside 50 unsynchronised lower tasks. \
*enqueue* is `enqueue_hrtimer` with the functions that it calls. *expiry* goes from the timer interrupt \
(`hrtimer_interrupt`) to the wake-up (`hrtimer_wakeup`), with the dequeue in between. The paper's limit is for the \
dequeue alone, which the compiler inlined in the pristine kernel. *switch* goes from the start of `__schedule` to the \
switch of stacks. *of it TimerShield's* is TimerShield's hook there, with the functions that it calls.

Without lower tasks, the task's own sleep is the only timer, and a switch leaves the event device as it is. SCHED_TT's \
cost in a switch is the same in *off* and *on*.

**Size** (table I). The bench runs `size` on the objects of `kernel/time` that TimerShield changes or adds, and \
subtracts the pristine kernel's sizes. One-line hooks in other objects, which SCHED_TT also changes, are not counted.";

/// Returns the jobs of each run: runs of responses, runs in windows, and runs with recorded paths.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    let scale = bench.scale;
    Ok([responses::extent(scale), windows::extent(scale), operations::extent(scale)].concat())
}

/// Runs the experiment.
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
