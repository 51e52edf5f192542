//! `kernel/cc`, the compiler of the lab's kernels.

use std::fs;
use std::process::Command;

use macrotick_lab::Layout;

/// Whether it compiles a source with a warning at that path of a tree.
fn compiles(path: &str) -> bool {
    let dir = std::env::temp_dir().join(format!("macrotick-cc-{}-{}", path.replace('/', "-"), std::process::id()));
    fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
    fs::write(dir.join(path), "int f(void) { int unused; return 0; }\n").unwrap();
    let mut command = Command::new(Layout::find().unwrap().kernel().join("cc"));
    let output = command.current_dir(&dir).args(["-Wall", "-c", "-o", "f.o", path]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("unused"));
    fs::remove_dir_all(dir).unwrap();
    output.status.success()
}

#[test]
fn a_warning_is_an_error_where_our_code_is() {
    assert!(!compiles("kernel/sched/f.c"));
    assert!(compiles("drivers/f.c"));
}
