//! No program depends on the fixtures.

use std::path::{Path, PathBuf};

/// Returns the manifests of all crates of the workspace.
fn manifests() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["crates", "tests"].map(|folder| std::fs::read_dir(root.join(folder)).expect("a folder"));
    let manifest = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").path().join("Cargo.toml");
    folders.into_iter().flatten().map(manifest).filter(|path| path.exists()).collect()
}

/// Returns the sections of a manifest that name the fixtures.
fn sections(manifest: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(manifest).expect("a manifest");
    let (mut section, mut found) = (String::new(), Vec::new());
    for line in text.lines() {
        if line.starts_with('[') {
            section = line.to_owned();
        }
        if line.starts_with("macrotick-fixtures") || line.contains(".macrotick-fixtures]") {
            found.push(section.clone());
        }
    }
    found
}

#[test]
fn fixtures_are_for_tests_only() {
    let all: Vec<String> = manifests().iter().flat_map(|manifest| sections(manifest)).collect();
    assert!(all.len() > 4, "few take them: {all:?}");
    assert!(all.iter().all(|section| section.starts_with("[dev-dependencies")), "{all:?}");
}
