//! The arguments of `hook` and `rt-lib`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `hook`.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "VERB")]
pub struct HookArgs {
    /// The verb.
    #[command(subcommand)]
    pub verb: HookVerb,
}

/// The verbs of `hook`: the hook itself, and its installation.
#[derive(Debug, Subcommand)]
pub enum HookVerb {
    /// Admit the container of the state on standard input; container runtimes call this
    Run,
    /// Make podman call the hook for containers with an annotation `macrotick.*`
    Install {
        /// The directory that podman reads hooks from
        #[arg(long, value_name = "DIR", default_value = macrotick_hook::install::DIRECTORY)]
        directory: PathBuf,
        /// The absolute path of `macrotick` that podman calls, for a package [default: the path of this program]
        #[arg(long, value_name = "FILE", value_parser = absolute)]
        program: Option<PathBuf>,
    },
    /// Add the hook to an OCI configuration (config.json) from standard input, and print it
    Add {
        /// An annotation to add; may be repeated
        #[arg(long = "annotation", value_name = "NAME=VALUE", value_parser = annotation)]
        annotations: Vec<(String, String)>,
        /// Make the container preload this library, which `macrotick rt-lib` wrote on this host
        #[arg(long, value_name = "FILE")]
        rt_lib: Option<PathBuf>,
    },
}

/// Parses a path that is the same from every directory.
fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err("it does not begin with `/`".into())
    }
}

fn annotation(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has no `=`")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Arguments of `rt-lib`.
#[derive(Debug, Args)]
pub struct RtLibArgs {
    /// The file for the library
    #[arg(value_name = "FILE", default_value = "/usr/local/lib/libmacrotick-rt.so")]
    pub path: PathBuf,
}
