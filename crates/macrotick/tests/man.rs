//! The manual pages, formatted as `man` formats them.

use std::path::Path;
use std::process::Command;

#[test]
fn every_page_is_written_and_formats_without_a_warning() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    let _ = std::fs::remove_dir_all(&folder);
    let written = Command::new(env!("CARGO_BIN_EXE_macrotick")).arg("man").arg(&folder).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));

    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        // -P: plain text, without overstriking for bold.
        let formatted = Command::new("groff").args(["-man", "-Tutf8", "-wall", "-P-cbu"]).arg(&path).output().unwrap();
        let text = String::from_utf8_lossy(&formatted.stdout);
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert_eq!(String::from_utf8_lossy(&formatted.stderr), "", "{name}");
        assert!(text.contains("Macrotick Manual") && text.contains("EXIT STATUS"), "{text}");
        names.push(name);
    }
    names.sort();
    let verbs = ["admit", "apply", "check", "compare", "doctor", "explain", "export", "export-metrics"];
    let hook = ["export-rt-app", "generate", "grant", "hook", "hook-add", "hook-install", "hook-run"];
    let import = ["import", "import-amalthea", "import-ctu-iig", "import-rt-app"];
    let lab = ["kernel", "kernel-build", "lab", "lab-exec", "lab-kernel", "measure"];
    let rest = [
        "observe",
        "plan",
        "probe",
        "probe-run",
        "probe-serve",
        "report",
        "reserve",
        "rt-lib",
        "run",
        "soak",
        "soak-report",
        "soak-run",
        "status",
        "stop",
        "top",
    ];
    let pages =
        verbs.iter().chain(&hook).chain(&import).chain(&lab).chain(&rest).map(|verb| format!("macrotick-{verb}"));
    assert_eq!(names, std::iter::once("macrotick".to_owned()).chain(pages).collect::<Vec<_>>());
}
