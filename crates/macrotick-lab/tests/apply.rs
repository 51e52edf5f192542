//! Tests `kernel/apply` on a very small tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use macrotick_lab::Layout;

const CORE: &str = "int one;\nint two;\nint three;\nint four;\nint five;\nint six;\nint seven;\n";
const HOOK: &str =
    "Subject: [PATCH] sched: call us\n\nWhy.\n---\n--- a/kernel/core.c\n+++ b/kernel/core.c\n@@ -2,5 +2,6 @@\n \
                    int two;\n int three;\n+int hook;\n int four;\n int five;\n int six;\n";

const MAINTAINERS: &str =
    "Subject: [PATCH] tt: its maintainer\n---\n--- a/MAINTAINERS\n+++ b/MAINTAINERS\n@@ -1 +1,3 @@\n+TT\n\
                           +M:\tMacrotick <nobody@example.org>\n THE REST\n";

/// A kernel part with two overlay files and two hooks, and a tree, in one directory.
struct Bench {
    dir: PathBuf,
}

impl Bench {
    fn new(name: &str, core: &str) -> Bench {
        let bench = Bench { dir: std::env::temp_dir().join(format!("macrotick-apply-{name}-{}", std::process::id())) };
        let script = fs::read_to_string(Layout::find().unwrap().kernel().join("apply")).unwrap();
        bench.write("part/apply", &script);
        bench.write("part/overlay/kernel/tt.c", "int tt;\n");
        bench.write("part/overlay/include/tt.h", "extern int tt;\n");
        bench.write("part/hooks/6.12/0001-call-us.patch", HOOK);
        bench.write("part/hooks/6.12/0002-document.patch", MAINTAINERS);
        bench.write("part/series", "# words\n\ninclude/*\t0001\nkernel/tt.c 0002\nkernel/* 0001\n");
        bench.write("part/cover-letter", "sched: tt\n\nAll of it.\n");
        bench.write("tree/MAINTAINERS", "THE REST\n");
        bench.write("tree/Makefile", "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\n");
        bench.write("tree/kernel/core.c", core);
        bench
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(path)).ok()
    }

    fn apply(&self, options: &[&str]) -> Output {
        let script = self.dir.join("part/apply");
        let options = options.iter().map(|word| match word.strip_prefix('@') {
            Some(path) => self.dir.join(path),
            None => Path::new(word).to_owned(),
        });
        let mut command = Command::new("sh");
        command.arg(script).arg(self.dir.join("tree")).args(options);
        command.output().unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn overlay_and_hooks_are_applied_once() {
    let bench = Bench::new("once", CORE);
    let first = bench.apply(&[]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    assert_eq!(bench.read("tree/kernel/tt.c").as_deref(), Some("int tt;\n"));
    assert!(bench.read("tree/kernel/core.c").unwrap().contains("int three;\nint hook;\nint four;\n"));
    assert!(complaint(&bench.apply(&[])).contains("already patched"));
}

#[test]
fn moved_lines_are_fine_and_changed_lines_are_not() {
    let moved = Bench::new("moved", &format!("int zero;\nint more;\n{CORE}"));
    assert!(moved.apply(&[]).status.success());

    let other = CORE.replace("int four", "long four");
    let changed = Bench::new("changed", &other);
    let text = complaint(&changed.apply(&[]));
    assert!(text.contains("0001-call-us.patch does not apply to Linux 6.12.117"), "{text}");
    assert_eq!(changed.read("tree/kernel/core.c").unwrap(), other);
    assert_eq!(changed.read("tree/kernel/tt.c"), None);
}

#[test]
fn a_stage_holds_what_would_change_and_leaves_the_tree_alone() {
    let bench = Bench::new("stage", CORE);
    assert!(bench.apply(&["--stage", "@stage"]).status.success());
    assert!(bench.read("stage/kernel/core.c").unwrap().contains("int hook;"));
    assert!(bench.read("stage/kernel/tt.c").is_some());
    assert!(bench.read("stage/Makefile").is_none());
    assert_eq!(bench.read("tree/kernel/core.c").as_deref(), Some(CORE));
}

#[test]
fn a_series_has_a_patch_per_hook_with_the_files_that_belong_to_it() {
    let bench = Bench::new("series", CORE);
    let output = bench.apply(&["--series", "@series"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cover = bench.read("series/0000-cover-letter.patch").unwrap();
    assert!(cover.contains("Subject: [PATCH 0/2] sched: tt\n") && cover.contains("\nAll of it.\n"), "{cover}");
    let hook = bench.read("series/0001-sched-call-us.patch").unwrap();
    assert!(hook.contains("Subject: [PATCH 1/2] sched: call us"), "{hook}");
    assert!(hook.contains("\nWhy.\n") && hook.contains("Signed-off-by: ") && hook.contains("+int hook;"), "{hook}");
    assert!(hook.contains("+extern int tt;") && !hook.contains("+int tt;"), "{hook}");
    let last = bench.read("series/0002-tt-its-maintainer.patch").unwrap();
    let signed = last.lines().find_map(|line| line.strip_prefix("Signed-off-by: ")).unwrap();
    assert!(last.contains("+int tt;") && last.contains(&format!("+M:\t{signed}\n")), "{last}");
    assert_eq!(bench.read("tree/kernel/core.c").as_deref(), Some(CORE));
}

#[test]
fn a_series_needs_a_patch_for_every_file() {
    let bench = Bench::new("nowhere", CORE);
    bench.write("part/overlay/lib/tt.c", "int lib;\n");
    let text = complaint(&bench.apply(&["--series", "@series"]));
    assert!(text.contains("kernel/series names no patch for lib/tt.c"), "{text}");
    bench.write("part/series", "* 0003\n");
    let text = complaint(&bench.apply(&["--series", "@series"]));
    assert!(text.contains("in hook 0003, which does not exist"), "{text}");
    assert_eq!(bench.read("series/0000-cover-letter.patch"), None);
}

#[test]
fn an_unknown_version_names_those_with_hooks() {
    let bench = Bench::new("version", CORE);
    bench.write("tree/Makefile", "VERSION = 7\nPATCHLEVEL = 1\nSUBLEVEL = 0\n");
    let text = complaint(&bench.apply(&[]));
    assert!(text.contains("no hooks for Linux 7.1 (available: 6.12)"), "{text}");
}
