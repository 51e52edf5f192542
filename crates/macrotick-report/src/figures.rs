//! `figures.json`: the numbers of a benchmark, one line each, for programs that compare them.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// One number of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The name of the quantity, such as `response.mean`.
    pub figure: String,
    /// The case, such as `kernel`.
    pub case: String,
    /// The number.
    pub value: f64,
    /// Its unit, such as `us` or `jobs`.
    pub unit: String,
}

impl Figure {
    /// Makes a figure.
    pub fn new(figure: impl Into<String>, case: impl Into<String>, value: f64, unit: impl Into<String>) -> Figure {
        Figure { figure: figure.into(), case: case.into(), value, unit: unit.into() }
    }
}

/// The reason why figures could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file or its folder could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A value is not a number, which JSON cannot express.
    #[error("figure `{figure}` of case `{case}` is not a number")]
    NotANumber {
        /// The figure's name.
        figure: String,
        /// The case.
        case: String,
    },
}

/// Returns the figures as JSON: a list with one object per line.
pub fn to_json(figures: &[Figure]) -> Result<String, WriteError> {
    if let Some(bad) = figures.iter().find(|figure| !figure.value.is_finite()) {
        return Err(WriteError::NotANumber { figure: bad.figure.clone(), case: bad.case.clone() });
    }
    let line = |figure| serde_json::to_string(figure).expect("strings and finite numbers always serialise");
    let lines: Vec<String> = figures.iter().map(line).collect();
    Ok(if lines.is_empty() { "[]\n".into() } else { format!("[\n  {}\n]\n", lines.join(",\n  ")) })
}

/// Writes `figures.json`, and makes its folder if necessary.
pub fn write(path: &Path, figures: &[Figure]) -> Result<(), WriteError> {
    write_text(path, &to_json(figures)?)
}

/// Writes a file, and makes its folder if necessary.
pub fn write_text(path: &Path, text: &str) -> Result<(), WriteError> {
    let io = |source| WriteError::Io { path: path.to_path_buf(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(io)?;
    }
    std::fs::write(path, text).map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64) -> Figure {
        Figure { figure: "response.mean".into(), case: "kernel".into(), value, unit: "us".into() }
    }

    #[test]
    fn one_object_per_line() {
        assert_eq!(to_json(&[]).unwrap(), "[]\n");
        let line = r#"{"figure":"response.mean","case":"kernel","value":3.163,"unit":"us"}"#;
        assert_eq!(to_json(&[figure(3.163), figure(3.163)]).unwrap(), format!("[\n  {line},\n  {line}\n]\n"));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let error = to_json(&[figure(f64::NAN)]).unwrap_err();
        assert_eq!(error.to_string(), "figure `response.mean` of case `kernel` is not a number");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = write(Path::new("/dev/null/figures.json"), &[]).unwrap_err();
        assert!(error.to_string().starts_with("cannot write /dev/null/figures.json: "), "{error}");
    }
}
