//! The planner on random systems: how many it plans or proves impossible, how fast, and with how much memory.

mod cells;
mod changes;
mod flows;
mod highest;
mod large;
mod measure;
mod memory;

use macrotick_report::{figures, output, write_text, Figure};

use self::cells::Cell;
use self::measure::Outcome;
use crate::error::BenchError;
use crate::kit::bench::{Bench, Results};

const METHOD: &str = "\
Each row has random systems of one kind and size, made by `macrotick-generate` from the seeds 0, 1, 2 and so on. The \
planner runs in this process, on one core of the machine that runs the bench. The judge, which shares no code with the \
planner, accepted every plan that is counted here. A refused plan ends the bench.

**Planned** counts the systems with a plan, **impossible** those with a proof that there is none. **Not found** are the \
others, after the time limit of the row. Times are on the wall clock. Memory is the largest resident set of the process \
while it plans and judges the systems of the row. It includes the systems and the plans.

The kinds are:

* **chains**: tasks with the periods of the automotive benchmark (WATERS 2015), in chains that share tasks. A value \
passes each chain within its period: the reaction time is at most twice the period, the data age at most the period. \
Jobs can be preempted. With *zero jitter*, starts are exactly periodic.
* **jitter p/5, p/10**: independent tasks with periods that do not divide each other. Each start varies by at most a \
fifth or a tenth of the period. Jobs can be preempted.
* **zero jitter**: the same without any variation of the starts.
* **at the cap**: tasks that fill their CPUs to 95 %, which is all that the kernel gives to windows. The description \
does not tell which task belongs to which CPU.
* **harmonic**: tasks without jitter that were cut out of a full table of one CPU. A plan without preemption exists.
* **engine control unit**: about 4300 tasks on three cores that send messages to each other, 10 900 activities with \
107 700 jobs in a second, without preemption. Each message takes a window on the port of the receiver's core. The load \
is that of each core. The data age of a chain is at most two periods. Published for a system of this size: 43 minutes \
(Minaeva and others 2018).
* **harmonic and full**: tasks on one CPU, without jitter and without preemption. Each period is a multiple of the next \
shorter one. The systems are cut out of a table without gaps, then shortened to the load. The load is that of the time \
beside sync windows, which take the part that the kernel keeps for itself. Published for such periods: the load at which a \
constraint solver succeeds within 60 s is 100 % on average with a factor of 2 or 3, 98.6 % with 5 and 99.7 % with 20 (Grus \
and others 2024). Their systems were drawn in another way.
* **infeasible**: easy systems with one conflict. None has a plan.

The second table has the highest loads of **control units**: like the engine control unit, with the data age of a chain \
of at most one period. Set 5 has 500 tasks and about 2000 activities. Each system is tried at loads of 50 to 95 %, by \
bisection, with 2 seconds for each plan. The systems have the shape of those of Minaeva and others (2018), but are drawn \
here. Their planner takes 109 s without jitter and 1004 s with jitter for a system of 500 tasks. It reaches the \
published mean over all sets.

The third table has **large** systems of independent tasks on 8 CPUs at 60 %, with automotive periods and without jitter \
bounds. Jobs can be preempted. Times are medians.

The fourth table has **changes**. A system of one kind has a plan, and then gets more tasks with the periods of others \
and nine tenths of their wcets. `plan --from` plans the new system from the former plan. **Moved** is the share of the \
former windows that are elsewhere afterwards: its median and its maximum over the systems.

The last table has **flows** between random hosts of a switched network at 1 Gb/s. A flow sends a frame of 46 to 1500 \
bytes every 1 to 8 ms, which must arrive within the period. A switch forwards it 2 us after it has arrived, and the frame \
never waits there. Published for networks of this size: 2000 nodes with 10 000 flows (Vlk and others 2022), and 9000 \
flows (Geppert and others 2024). **One more flow** is planned beside all others, which keep their instants.";

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let mut rows = Vec::new();
    for cell in cells::cells(bench.scale) {
        output::tell(format_args!("{}: {}", bench.name, cell.name));
        let outcome = measure::measure(&cell)?;
        rows.push((cell, outcome));
    }
    let mut all: Vec<Figure> = rows.iter().flat_map(|(cell, outcome)| outcome.figures(&cell.name)).collect();
    let mut tables = table(&rows) + "\n" + highest::HEAD;
    for cell in highest::cells(bench.scale) {
        output::tell(format_args!("{}: {}", bench.name, cell.name));
        let outcome = cell.measure()?;
        tables += &outcome.row(&cell);
        all.extend(outcome.figures(&cell));
    }
    tables += &format!("\n{}", large::HEAD);
    let mut large = Vec::new();
    for cell in large::cells(bench.scale) {
        output::tell(format_args!("{}: {}", bench.name, cell.name()));
        let outcome = cell.measure()?;
        tables += &outcome.row();
        all.extend(outcome.figures(&cell.name()));
        large.push(outcome);
    }
    write_text(&bench.folder.join(large::PLOT), &large::plot(&large))?;
    tables += &format!("\n{}", changes::HEAD);
    for cell in changes::cells(bench.scale) {
        output::tell(format_args!("{}: {}", bench.name, cell.name()));
        let outcome = cell.measure()?;
        tables += &outcome.row(cell.name());
        all.extend(outcome.figures(cell.name()));
    }
    tables += &format!("\n{}", flows::HEAD);
    for cell in flows::cells(bench.scale) {
        output::tell(format_args!("{}: {}", bench.name, cell.name()));
        let outcome = cell.measure()?;
        tables += &outcome.row(&cell);
        all.extend(outcome.figures(&cell.name()));
    }
    figures::write(&bench.folder.join("figures.json"), &all)?;
    output::print(&tables);
    Ok(Results {
        title: "Planning random systems",
        method: METHOD.into(),
        tables,
        kernels: Vec::new(),
        packages: &[],
        plots: vec![(large::PLOT.into(), large::CAPTION.into())],
    })
}

/// Returns the number of systems in each row.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    let scale = bench.scale;
    let counts = cells::cells(scale).into_iter().map(|cell| cell.count);
    let highest = highest::cells(scale).into_iter().map(|cell| cell.count);
    let large = large::cells(scale).into_iter().map(|cell| cell.count);
    let changes = changes::cells(scale).into_iter().map(|cell| cell.count());
    let flows = flows::cells(scale).into_iter().map(|cell| cell.count);
    Ok(counts.chain(highest).chain(large).chain(changes).chain(flows).collect())
}

fn table(rows: &[(Cell, Outcome)]) -> String {
    let mut text = "| systems | number | planned | impossible | not found | median [ms] | longest [ms] | limit [s] | \
                    memory [MB] |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_string();
    for (cell, outcome) in rows {
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        text += &format!(
            "| {} | {} | {} | {} | {} | {:.1} | {:.1} | {} | {:.0} |\n",
            cell.name,
            cell.count,
            outcome.planned,
            outcome.impossible,
            outcome.not_found(),
            ms(outcome.median()),
            ms(outcome.longest()),
            cell.limit.as_secs(),
            outcome.memory as f64 / 1e6,
        );
    }
    text
}
