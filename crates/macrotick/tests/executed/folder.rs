//! The folder in which the commands of a page run.

use std::path::{Path, PathBuf};

use macrotick_fixtures::repository;

/// Makes a folder with the parts of the repository that pages name.
pub fn folder(kind: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(kind).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    for parent in ["build", "kernel"] {
        std::fs::create_dir_all(folder.join(parent)).unwrap();
    }
    // The lab takes a folder with `kernel/apply` for a checkout, and this one is none.
    for part in ["bindings", "examples", "include", "kernel/overlay", "build/tasks"] {
        std::os::unix::fs::symlink(repository(part), folder.join(part)).unwrap();
    }
    folder
}

/// Returns `PATH` with the product first.
pub fn search_path() -> std::ffi::OsString {
    let product = Path::new(env!("CARGO_BIN_EXE_macrotick")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(product).chain(std::env::split_paths(&others))).unwrap()
}
