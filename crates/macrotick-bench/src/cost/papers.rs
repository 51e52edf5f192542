//! The papers' numbers for the same quantities.

use super::windows::Windows;
use super::Footprint;

/// The design's budget for all features together.
const BUDGET_FILES: usize = 20;
const BUDGET_LINES: usize = 600;

/// Returns a table with our numbers, the budget and the papers' numbers.
pub(super) fn markdown(footprint: &Footprint, windows: &Windows) -> String {
    let (handler, pick) = windows.most();
    let (hooks, overlay) = (&footprint.hooks, &footprint.overlay);
    let growth = |before: u64, after: u64| format!("{:+.1} KiB", (after as f64 - before as f64) / 1024.0);
    let (before, after) = (&footprint.pristine, &footprint.patched);
    let (text, data) = (growth(before.text, after.text), growth(before.data, after.data));
    format!(
        "### beside the papers\n\n\
         | | ours | budget | SCHED_TT | LITMUS^RT | TimerShield | SCHED_DS |\n\
         |---|---:|---:|---:|---:|---:|---:|\n\
         | kernel files touched | {} | {BUDGET_FILES} | 19 | 27 | | |\n\
         | lines in them (added and removed) | {} | {BUDGET_LINES} | | | | |\n\
         | all lines of code | {} | | about 3500 | about 20000 | | |\n\
         | table-driven dispatcher, lines of code | {} | | 436 | 426 | | |\n\
         | text of the kernel | {text} | | | | +2 KiB | |\n\
         | data of the kernel | {data} | | | | +35 KiB | |\n\
         | to pick, at most | {pick} instructions | | O(1) | | | 1343 ns |\n\
         | handler of the window or period, at most | {handler} instructions | | | | | 630 ns |\n\n\
         SCHED_TT and LITMUS^RT: RTNS 2023, section 4.2.3; 19 and 27 are all files that they touch. The SCHED_TT \
         paper states that its pick is O(1), and gives no time or memory for it. TimerShield: RTAS 2017, table I, a \
         different feature of another kernel. SCHED_DS: ECRTS 2022, figure 5, on Xenomai and the authors' machine. Its \
         nanoseconds cannot be compared with instructions.\n",
        hooks.files,
        hooks.added + hooks.removed,
        overlay.code + hooks.added,
        overlay.dispatcher,
    )
}
