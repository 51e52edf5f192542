//! An experiment imports the kit and never another experiment; the kit imports none.

use std::fs;
use std::path::{Path, PathBuf};

const EXPERIMENTS: [&str; 11] = [
    "containers",
    "cost",
    "deadline",
    "e2e",
    "isolation",
    "jitter",
    "lead",
    "overhead",
    "overrun",
    "response",
    "timershield",
];

/// The files of a module: `NAME.rs`, and all below the folder `NAME`.
fn files(module: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Some(module.with_extension("rs")).filter(|file| file.is_file()).into_iter().collect();
    for entry in fs::read_dir(module).into_iter().flatten() {
        let path = entry.unwrap().path();
        files.extend(if path.is_dir() { self::files(&path) } else { vec![path] });
    }
    files
}

/// Whether a text names a module by one of the ways that lead out of a room.
fn names(text: &str, module: &str) -> bool {
    ["crate::", "crate::{", "super::super::"].iter().any(|way| {
        let found = format!("{way}{module}");
        text.split(&found).skip(1).any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

#[test]
fn no_bench_imports_another() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for room in EXPERIMENTS.into_iter().chain(["kit"]) {
        let files = files(&source.join(room));
        assert!(!files.is_empty(), "{room} is nowhere");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let other = EXPERIMENTS.into_iter().find(|other| *other != room && names(&text, other));
            assert_eq!(other, None, "{} imports it", file.display());
        }
    }
}

#[test]
fn the_product_has_no_experiment() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../macrotick/Cargo.toml");
    assert!(!fs::read_to_string(manifest).unwrap().contains("macrotick-bench"));
}
