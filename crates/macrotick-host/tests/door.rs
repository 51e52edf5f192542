//! The files of this host are written here: other crates write only what is theirs.

use std::fs;
use std::path::{Path, PathBuf};

/// What writes a file.
const WRITES: [&str; 4] = ["fs::write(", "OpenOptions", "File::create", "create_dir"];
/// Who writes other files: an engine's bundle, a load's file, podman's own folder, a runtime's log; a guest's disk, and the
/// folder of a build.
const OTHERS: [&str; 7] = [
    "macrotick-node/src/workload/engine.rs",
    "macrotick-node/src/workload/processes.rs",
    "macrotick-hook/src/install.rs",
    "macrotick-hook/src/report.rs",
    "macrotick-bench/src/kit/bench.rs",
    "macrotick-bench/src/kit/disk.rs",
    "macrotick-bench/src/kit/loads.rs",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        files.extend(if path.is_dir() { sources(&path) } else { vec![path] });
    }
    files
}

/// A source without its tests.
fn product(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
}

#[test]
fn other_crates_write_no_file_of_the_host() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for name in ["macrotick-node", "macrotick-hook", "macrotick-bench"] {
        let files = sources(&crates.join(name).join("src"));
        assert!(files.len() > 10, "{name} is nowhere");
        for file in files {
            let text = product(&file);
            if WRITES.iter().any(|way| text.contains(way)) {
                found.push(file.strip_prefix(crates).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    let mut others = OTHERS;
    others.sort();
    assert_eq!(found, others);
}
