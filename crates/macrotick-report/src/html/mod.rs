//! The report as one HTML file without external parts: no script, no font, no network.

mod glossary;
mod sections;
pub(crate) mod write;

use macrotick_model::Observation;

use crate::report::Report;
use write::page;

/// Returns the report as a page. The observation has the trace (for preemption in the Gantt) and the processes beside
/// the tasks.
pub fn html(report: &Report, observation: &Observation) -> String {
    let sections = [
        sections::header(report),
        sections::banner(report),
        sections::cards(report),
        sections::tasks(report),
        sections::pools(report),
        sections::groups(report),
        sections::gantts(report, observation),
        sections::distributions(report),
        sections::chains(report),
        sections::remarks(report),
        sections::output(observation),
        sections::surroundings(report, observation),
        glossary::section(),
    ];
    let title = format!("{} under {}", report.system, report.backend);
    page(&title, &sections.concat())
}
