//! Golden schedules: `golden/NAME.yaml` gives exactly `golden/NAME.txt`, a timeline or an error.
//!
//! `MACROTICK_BLESS=1 cargo test -p macrotick-plan --test golden` writes the texts again. Read the difference
//! afterwards.

use std::path::{Path, PathBuf};

use macrotick_model::timeline::timeline;
use macrotick_model::System;
use macrotick_plan::{plan, Solver};

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = std::fs::read_dir(folder).expect("the folder of golden schedules");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths
}

fn planned(path: &Path) -> String {
    let system = System::load(path).unwrap_or_else(|error| panic!("{error}"));
    match plan(&system, Solver::default_for(&system)) {
        Ok(plan) => timeline(&plan),
        Err(error) => format!("error: {error}\n"),
    }
}

#[test]
fn schedules_read_as_recorded() {
    let cases = cases();
    assert!(cases.len() >= 15, "only {} cases found", cases.len());
    let mut wrong = Vec::new();
    for path in cases {
        let (text, golden) = (planned(&path), path.with_extension("txt"));
        if std::env::var_os("MACROTICK_BLESS").is_some() {
            std::fs::write(&golden, &text).expect("a writable golden text");
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if text != expected {
            wrong.push(format!("=== {}: expected\n{expected}--- got\n{text}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn solvers_are_found_by_name() {
    for solver in Solver::ALL {
        assert_eq!(solver.to_string().parse(), Ok(solver));
    }
    let error = "magic".parse::<Solver>().expect_err("no such solver").to_string();
    assert_eq!(error, "unknown solver `magic`: use folded or null");
}

#[test]
fn the_null_solver_needs_a_table() {
    let source = "system: s\ntasks:\n  - {name: a, period: 1ms, wcet: 1us}\n";
    let system = System::parse(source, "s.yaml").expect("valid");
    let error = plan(&system, Solver::Null).expect_err("no table").to_string();
    assert!(error.contains("the description has none"), "{error}");
}
