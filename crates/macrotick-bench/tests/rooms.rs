//! An experiment imports the kit and never another experiment; the kit imports none.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use macrotick_bench::Experiment;

/// Their modules are called what they are called on the command line.
fn experiments() -> Vec<String> {
    let all = Experiment::value_variants().iter();
    all.filter_map(|one| Some(one.to_possible_value()?.get_name().to_string())).collect()
}

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
    let experiments = experiments();
    for room in experiments.iter().map(String::as_str).chain(["kit"]) {
        let files = files(&source.join(room));
        assert!(!files.is_empty(), "{room} is nowhere");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let other = experiments.iter().find(|other| *other != room && names(&text, other));
            assert_eq!(other, None, "{} imports it", file.display());
        }
    }
}

#[test]
fn the_product_has_no_experiment() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../macrotick/Cargo.toml");
    assert!(!fs::read_to_string(manifest).unwrap().contains("macrotick-bench"));
}
