//! The pages of the documentation.

use std::path::{Path, PathBuf};

use crate::repository;

/// Returns the paths of all pages of the tree, sorted and relative to the root: `docs` with its folders, and the pages
/// at the root.
pub fn pages() -> Vec<PathBuf> {
    let root = repository("");
    let mut pages = Vec::new();
    collect(&root, "docs".as_ref(), &mut pages);
    let at_root = std::fs::read_dir(&root).expect("the repository").map(|entry| entry.expect("a file").file_name());
    pages.extend(at_root.map(PathBuf::from).filter(|path| is_page(path)));
    pages.sort();
    pages
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "md")
}

fn collect(root: &Path, folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(root.join(folder)).expect("a folder of the repository") {
        let path = folder.join(entry.expect("a file").file_name());
        if root.join(&path).is_dir() {
            collect(root, &path, pages);
        } else if is_page(&path) {
            pages.push(path);
        }
    }
}
