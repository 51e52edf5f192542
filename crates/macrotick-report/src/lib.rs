//! Judges an observation and renders it: statistics, verdict, terminal tables, HTML, plots and trace export.
//!
//! [`Report::new`] turns raw records into numbers and a verdict; everything else renders a report. [`compare()`] puts
//! several runs of one plan side by side. Definitions are in `docs/reference/report.md`.

mod chains;
mod compare;
pub mod figures;
mod group_report;
mod html;
mod jobs;
pub mod output;
mod plot;
mod pools;
mod report;
pub mod stats;
pub mod table;
mod terminal;
mod timeline;
mod timetable;
mod trace;
mod words;

pub use chains::{BoundVerdict, ChainLatency, ChainReport};
pub use compare::{
    check_comparable, compare, compare_labelled, ChainComparison, ChainRow, Comparison, Mismatch, Reference, Row, Run,
    TaskComparison,
};
pub use figures::{write_text, Figure};
pub use group_report::{GroupReport, GroupUse};
pub use html::html;
pub use jobs::Outcome;
pub use plot::bars::{paired_bars, BarPair};
pub use plot::curves::{cumulative_curves, Curve};
pub use plot::lines::{lines, Line};
pub use plot::overlay::{overlaid_histogram, Distribution};
pub use plot::stacked::{stacked_bars, StackedBar};
pub use pools::{Had, PoolReport};
pub use report::{Metric, Report, TaskReport, Verdict};
pub use stats::Statistics;
pub use terminal::{colour_wanted, terminal};
pub use timetable::{timetable_page, timetable_picture};
pub use trace::trace_json;
pub use words::gates as describe_gates;
