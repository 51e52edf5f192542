//! `macrotick hook`

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use macrotick_cli::{HookArgs, HookVerb};
use macrotick_hook::{install, preload};
use macrotick_report::output;

use crate::error::CliError;
use crate::Outcome;

/// Admits a container, or installs the hook.
pub fn execute(args: &HookArgs) -> Result<Outcome, CliError> {
    match &args.verb {
        HookVerb::Run => macrotick_hook::admit(std::io::stdin().lock())?,
        HookVerb::Install { directory, program: other } => {
            let program = other.clone().map_or_else(program, Ok)?;
            output::print_line(install::install(&program, directory)?.display());
        }
        HookVerb::Add { annotations, rt_lib } => add(annotations, rt_lib.as_deref())?,
    }
    Ok(Outcome::Done)
}

fn add(annotations: &[(String, String)], rt_lib: Option<&Path>) -> Result<(), CliError> {
    let failed = |path: &str| {
        let path = PathBuf::from(path);
        move |source| CliError::Read { path, source }
    };
    let mut config = String::new();
    std::io::stdin().read_to_string(&mut config).map_err(failed("standard input"))?;
    let mut config = install::add(&config, &program()?, annotations)?;
    if let Some(library) = rt_lib {
        let library = library.canonicalize().map_err(|source| CliError::Read { path: library.into(), source })?;
        config = preload::add(&config, &library)?;
    }
    let written = std::io::stdout().write_all(config.as_bytes());
    written.map_err(|source| CliError::Write { path: "standard output".into(), source })
}

/// Returns the path of this program, which runtimes call.
fn program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|source| CliError::Read { path: Path::new("/proc/self/exe").into(), source })
}
