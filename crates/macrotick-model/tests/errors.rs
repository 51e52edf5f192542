//! Golden texts of the parser's errors: `errors/NAME.yaml` must fail with exactly the text `errors/NAME.txt`.
//!
//! `MACROTICK_BLESS=1 cargo test -p macrotick-model --test errors` writes the texts again. Read the difference
//! afterwards.

use std::path::{Path, PathBuf};

use macrotick_model::System;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let entries = std::fs::read_dir(folder).expect("the folder of golden errors");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths
}

#[test]
fn errors_read_as_recorded() {
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 15, "only {} cases found", cases.len());
    for path in cases {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).expect("a readable case");
        let text = match System::parse(&source, &name) {
            Ok(_) => panic!("{name} was accepted"),
            Err(diagnostics) => diagnostics.to_string(),
        };
        let golden = path.with_extension("txt");
        if std::env::var_os("MACROTICK_BLESS").is_some() {
            std::fs::write(&golden, &text).expect("a writable golden text");
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if text != expected {
            wrong.push(format!("=== {name}: expected\n{expected}--- got\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
