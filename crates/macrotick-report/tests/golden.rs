//! The terminal text and the JSON of a small observation, compared to the byte. `BLESS=1` writes the expected files
//! again, `BLESS=data` the observations as well.

#[allow(dead_code)]
mod synthetic;

use std::path::{Path, PathBuf};

use macrotick_model::{Backend, Observation};
use macrotick_report::{compare as side_by_side, terminal, Report};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn blessing() -> Option<String> {
    std::env::var("BLESS").ok().filter(|value| !value.is_empty())
}

fn observation(backend: Backend) -> Observation {
    let path = data(&format!("{backend}.observation.json"));
    if blessing().as_deref() == Some("data") {
        let text = serde_json::to_string(&synthetic::small(backend)).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
    }
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn compare(name: &str, actual: &str) {
    let path = data(name);
    if blessing().is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == actual, "{name} differs; expected:\n{expected}\nactual:\n{actual}");
}

#[test]
fn a_run_that_holds() {
    let report = Report::new(&observation(Backend::Kernel));
    assert!(report.holds());
    compare("kernel.terminal.txt", &terminal(&report, false, 100));
    compare("kernel.report.json", &report.to_json());
}

#[test]
fn a_run_with_misses() {
    let report = Report::new(&observation(Backend::Other));
    assert!(!report.holds());
    compare("other.terminal.txt", &terminal(&report, false, 100));
    compare("other.colour.txt", &terminal(&report, true, 100));
}

#[test]
fn two_runs_compared() {
    let reports = [Backend::Other, Backend::Kernel].map(|backend| Report::new(&observation(backend)));
    compare("compared.terminal.txt", &side_by_side(&reports).summary(false, 100));
}
