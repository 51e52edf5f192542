//! The command line of quick runs, and the printed durations, without a lab.

use std::process::{Command, Output};

use clap::ValueEnum;
use macrotick_bench::Experiment;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_macrotick-bench")).args(arguments).output().unwrap()
}

#[test]
fn a_quick_run_is_not_published() {
    let refused = bench(&["response", "--quick", "--publish"]);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(errors.contains("a quick run cannot be published"), "{errors}");
    assert!(refused.stdout.is_empty());
}

#[test]
fn the_help_tells_how_long_each_takes() {
    let help = String::from_utf8(bench(&["--help"]).stdout).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let count = |text: &str| help.matches(text).count();
    let experiments = Experiment::value_variants().len();
    assert_eq!((count("(about "), count(" min on 2 cores)")), (experiments, experiments), "{help}");
    assert!(count("--quick") > 0, "{help}");
}

#[test]
fn wrong_combinations_are_refused() {
    for arguments in [&["cost", "--all"][..], &["--all", "--output", "x"], &["--outdated", "cost"], &[]] {
        assert_eq!(bench(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let two = bench(&["cost", "jitter", "--output", "x"]);
    let errors = String::from_utf8_lossy(&two.stderr).into_owned();
    assert!(two.status.code() == Some(2) && errors.contains("folder of one experiment"), "{errors}");
}
