//! Golden files: each input becomes the system and the remarks, or the errors, that are beside it.
//!
//! `MACROTICK_BLESS=1 cargo test -p macrotick-exchange --test golden` writes them again. Read the difference
//! afterwards.

use std::path::{Path, PathBuf};

use macrotick_exchange::amalthea::{self, Source};
use macrotick_exchange::{ctu_iig, rt_app, ImportError};
use macrotick_model::System;

type Imported = Result<(System, Vec<String>), ImportError>;

fn inputs(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = std::fs::read_dir(folder).expect("the folder of inputs");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|other| other == extension));
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// Imports a file by its extension, with default options.
fn import(path: &Path) -> Imported {
    let text = std::fs::read_to_string(path).expect("a readable input");
    import_text(path, &text, &name(path))
}

fn import_text(path: &Path, text: &str, file: &str) -> Imported {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("dat") => ctu_iig::import(text, file, &ctu_iig::Options::default()),
        Some("amxmi") => amalthea::import(&[Source { name: file, text }], &amalthea::Options::default()),
        _ => rt_app::import(text, file, &rt_app::Options::default()),
    }
}

/// Compares a text with its golden file. Returns the difference.
fn differs(golden: &Path, text: &str) -> Option<String> {
    if std::env::var_os("MACROTICK_BLESS").is_some() {
        std::fs::write(golden, text).expect("a writable golden file");
    }
    let expected = std::fs::read_to_string(golden).unwrap_or_default();
    (expected != text).then(|| format!("=== {}: expected\n{expected}--- got\n{text}", name(golden)))
}

fn lines(texts: &[String]) -> String {
    texts.iter().map(|text| format!("{text}\n")).collect()
}

#[test]
fn inputs_become_systems() {
    let (rt_app, ctu_iig, amalthea) = (inputs("rt_app", "json"), inputs("ctu_iig", "dat"), inputs("amalthea", "amxmi"));
    assert!(rt_app.len() >= 8 && ctu_iig.len() >= 2 && amalthea.len() >= 2);
    let mut wrong = Vec::new();
    for path in rt_app.iter().chain(&ctu_iig).chain(&amalthea) {
        wrong.extend(differences(path, import(path)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares a system and its remarks with the golden files beside the input.
fn differences(path: &Path, imported: Imported) -> Vec<String> {
    let (system, remarks) = imported.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(system.problems(), Vec::<String>::new());
    let yaml = system.to_yaml();
    assert_eq!(System::parse(&yaml, "again").expect("its own form"), system);
    let pairs = [("yaml", yaml), ("txt", lines(&remarks))];
    pairs.iter().filter_map(|(extension, text)| differs(&path.with_extension(extension), text)).collect()
}

#[test]
fn several_files_become_one_system() {
    let read = |path: &PathBuf| (name(path), std::fs::read_to_string(path).expect("a readable input"));
    let files: Vec<(String, String)> = inputs("amalthea/split", "amxmi").iter().map(read).collect();
    let sources: Vec<Source> = files.iter().map(|(name, text)| Source { name, text }).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/amalthea/split");
    let wrong = differences(&folder, amalthea::import(&sources, &amalthea::Options::default()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn wrong_inputs_are_refused() {
    let (rt_app, ctu_iig, amalthea) = (inputs("refused", "json"), inputs("refused", "dat"), inputs("refused", "amxmi"));
    assert!(rt_app.len() >= 15 && ctu_iig.len() >= 10 && amalthea.len() >= 20);
    let mut wrong = Vec::new();
    for path in rt_app.iter().chain(&ctu_iig).chain(&amalthea) {
        let error = import(path).expect_err(&name(path));
        // Two inputs may have one stem.
        let golden = PathBuf::from(format!("{}.txt", path.display()));
        wrong.extend(differs(&golden, &format!("{error}\n")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each input, cut at each place or with one byte changed, is imported or refused. The byte comes from the place.
#[test]
fn damaged_inputs_do_no_harm() {
    let folders = [("rt_app", "json"), ("ctu_iig", "dat"), ("refused", "dat")];
    for path in folders.into_iter().flat_map(|(folder, extension)| inputs(folder, extension)) {
        let text = std::fs::read_to_string(&path).unwrap();
        let import = |text: &str| drop(import_text(&path, text, "damaged"));
        for (at, _) in text.char_indices() {
            import(&text[..at]);
            for byte in [b"{}[]\",:0-9/*\\;="[at % 15], b"9x \n"[at % 4]] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = byte;
                if let Ok(text) = String::from_utf8(bytes) {
                    import(&text);
                }
            }
        }
    }
}

/// The same for models. Most damage is wrong XML, so only values are changed, at some places.
#[test]
fn damaged_models_do_no_harm() {
    for path in inputs("amalthea", "amxmi") {
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.char_indices().step_by(53) {
            let _ = import_text(&path, &text[..at], "damaged");
            let start = text[at..].find("=\"").map_or(at, |found| at + found + 2);
            for value in ["-", "9", "999999999999999999", "0.0 ", "e", "?type="] {
                let mut damaged = text.clone();
                damaged.insert_str(start, value);
                let _ = import_text(&path, &damaged, "damaged");
            }
        }
    }
}
