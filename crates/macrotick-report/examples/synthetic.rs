//! Prints the report of a synthetic run and writes its renderings: `cargo run --example synthetic -- FOLDER`.

#[allow(dead_code)]
#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::path::PathBuf;

use macrotick_model::{Backend, Duration};
use macrotick_report::{compare, html, terminal, trace_json, Reference, Report};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "build/synthetic".into()));
    std::fs::create_dir_all(&folder)?;
    let mut reports = Vec::new();
    for backend in Backend::ALL {
        let observation = synthetic::robot_arm(backend, Duration::from_secs(10));
        let report = Report::new(&observation);
        if matches!(backend, Backend::Other | Backend::Kernel) {
            println!("{}", terminal(&report, true, 100));
        }
        std::fs::write(folder.join(format!("{backend}.json")), report.to_json())?;
        std::fs::write(folder.join(format!("{backend}.html")), html(&report, &observation))?;
        std::fs::write(folder.join(format!("{backend}.trace.json")), trace_json(&observation))?;
        reports.push(report);
    }
    let comparison = compare(&reports).with_references(Reference::sched_tt_figure_3());
    println!("{}", comparison.terminal(true, 100));
    comparison.write(&folder.join("comparison")).map_err(std::io::Error::other)?;
    Ok(())
}
