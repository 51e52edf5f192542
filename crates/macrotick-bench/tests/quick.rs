//! The command line of quick runs, without a lab.

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_macrotick-bench")).args(arguments).output().unwrap()
}

#[test]
fn a_quick_run_is_not_published() {
    let refused = bench(&["response", "--quick", "--publish"]);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(errors.contains("a quick run are not for publication"), "{errors}");
    assert!(refused.stdout.is_empty());
}
