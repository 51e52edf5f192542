//! `macrotick rt-lib`: the preload library. The command contains it, so no other file is needed.

use std::path::Path;

use macrotick_cli::RtLibArgs;
use macrotick_model::whole;
use macrotick_report::output;

use crate::error::CliError;
use crate::verbs::create;
use crate::Outcome;

/// `bindings/macrotick-rt.c`, compiled.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmacrotick-rt.so"));

/// Writes the library and prints its absolute path for `LD_PRELOAD`.
pub fn execute(args: &RtLibArgs) -> Result<Outcome, CliError> {
    let path = std::path::absolute(&args.path).map_err(failed(&args.path))?;
    path.parent().map_or(Ok(()), create)?;
    whole::write(&path, LIBRARY).map_err(failed(&path))?;
    output::print_line(path.display());
    Ok(Outcome::Done)
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> CliError {
    let path = path.to_owned();
    move |source| CliError::Write { path, source }
}
