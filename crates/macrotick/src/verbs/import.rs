//! `macrotick import`: files of other tools as system descriptions.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

use macrotick_cli::{ImportArgs, ImportTool};
use macrotick_exchange::{amalthea, ctu_iig, rt_app, ImportError, MAX_BYTES};
use macrotick_model::files::FileError;
use macrotick_model::System;
use macrotick_report::output;

use crate::error::CliError;
use crate::files::Files;
use crate::Outcome;

/// Reads a file of another tool, and writes its system. Remarks go to standard error.
pub fn execute(args: &ImportArgs) -> Result<Outcome, CliError> {
    match &args.tool {
        ImportTool::RtApp { file, as_load, output } => {
            let options = rt_app::Options { load: as_load.clone() };
            import(file, &output.output, |text, name| rt_app::import(text, name, &options))
        }
        ImportTool::CtuIig { file, cpus, load, latency, output } => {
            let options = ctu_iig::Options { cpus: *cpus, load: *load, latency: *latency };
            import(file, &output.output, |text, name| ctu_iig::import(text, name, &options))
        }
        ImportTool::Amalthea { files, leave_out, output } => {
            let options = amalthea::Options { leave_out: leave_out.clone() };
            import_model(files, &output.output, &options)
        }
    }
}

type Imported = Result<(System, Vec<String>), ImportError>;

fn import(
    file: &PathBuf,
    to: &Option<PathBuf>,
    import: impl FnOnce(&str, &str) -> Imported,
) -> Result<Outcome, CliError> {
    Files::default().reads([file]).writes(to).check()?;
    let (system, remarks) = import(&read(file, MAX_BYTES)?, &file.display().to_string())?;
    written(to, &system.to_yaml(), &remarks)
}

/// Imports a model of several files. Its limit holds for all of them together.
fn import_model(files: &[PathBuf], to: &Option<PathBuf>, options: &amalthea::Options) -> Result<Outcome, CliError> {
    Files::default().reads(files).writes(to).check()?;
    let mut texts = Vec::new();
    let mut length = 0;
    for file in files {
        let text = read(file, amalthea::MAX_BYTES)?;
        length += text.len();
        if length > amalthea::MAX_BYTES {
            let file = file.display().to_string();
            return Err(ImportError::Long { file, most: amalthea::MAX_BYTES }.into());
        }
        texts.push((file.display().to_string(), text));
    }
    let sources: Vec<_> = texts.iter().map(|(name, text)| amalthea::Source { name, text }).collect();
    let (system, remarks) = amalthea::import(&sources, options)?;
    written(to, &system.to_yaml(), &remarks)
}

/// Reads a text of at most this many bytes.
fn read(path: &Path, most: usize) -> Result<String, CliError> {
    let shown = path.display().to_string();
    let failed = |source| CliError::File(FileError::Read { path: shown.clone(), source });
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > most {
        return Err(ImportError::Long { file: shown, most }.into());
    }
    String::from_utf8(bytes).map_err(|error| failed(Error::new(ErrorKind::InvalidData, error.utf8_error())))
}

/// Writes the text of an import or export to a file or to standard output, and its remarks to standard error.
pub fn written(to: &Option<PathBuf>, text: &str, remarks: &[String]) -> Result<Outcome, CliError> {
    match to {
        Some(path) => super::write(path, text)?,
        None => output::print(text),
    }
    remarks.iter().for_each(|remark| output::tell(format_args!("remark: {remark}")));
    Ok(Outcome::Done)
}
