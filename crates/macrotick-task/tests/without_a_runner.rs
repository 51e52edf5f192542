//! Tests of a task without a runner; `crates/macrotick/tests/lab.rs` runs one.

use std::io::Write;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::{Command, Stdio};

use macrotick_task::{Job, JoinError, Task};

#[test]
fn a_thread_needs_a_name_and_a_place() {
    assert!(matches!(Task::join_as_named(), Err(JoinError::Name)));
    assert!(matches!(Task::join("a\0b"), Err(JoinError::Name)));
    if !Path::new("/dev/macrotick").exists() {
        assert!(matches!(Task::join("nobody"), Err(JoinError::Nowhere)));
    }
}

#[test]
fn lateness_counts_from_the_nominal_instant() {
    let job = Job { nominal_ns: 1_000, start_ns: 3_500, ..Job::default() };
    assert_eq!(job.lateness().as_nanos(), 2_500);
}

#[test]
fn a_job_has_the_layout_of_the_header() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let fields = [
        ("number", offset_of!(Job, number)),
        ("nominal_ns", offset_of!(Job, nominal_ns)),
        ("start_ns", offset_of!(Job, start_ns)),
        ("lost", offset_of!(Job, lost)),
    ];
    let mut source = String::from("#include <macrotick.h>\n#include <stddef.h>\n");
    source += &format!("_Static_assert(sizeof(struct macrotick_job) == {}, \"size\");\n", size_of::<Job>());
    for (field, offset) in fields {
        source += &format!("_Static_assert(offsetof(struct macrotick_job, {field}) == {offset}, \"{field}\");\n");
    }
    let mut compiler = Command::new("cc")
        .args(["-fsyntax-only", "-x", "c", "-", "-I"])
        .arg(root.join("include"))
        .arg("-I")
        .arg(root.join("kernel/overlay/include/uapi"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    compiler.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    let output = compiler.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
