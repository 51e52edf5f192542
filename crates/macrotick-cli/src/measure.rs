//! The arguments of `measure`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use macrotick_measure::Target;
use macrotick_model::Duration;

use crate::length;

/// Arguments of `measure`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("own-stdout").args(["pid"])))]
pub struct MeasureArgs {
    /// Measure this running process, with all its threads
    #[arg(long, conflicts_with = "program", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// End after this time; a started program is ended as well [default: when the program ends]
    #[arg(long = "for", value_name = "LENGTH", value_parser = length)]
    pub limit: Option<Duration>,
    /// Write a system description with the periodic threads as tasks of a group
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The CPU of the group in the description
    #[arg(long, value_name = "CPU", default_value_t = 0, requires = "output", value_parser = clap::value_parser!(u32).range(..=1023))]
    pub cpu: u32,
    /// Print the result as JSON; standard output of a started program stays its own
    #[arg(long, requires = "own-stdout")]
    pub json: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "pid")]
    pub program: Vec<OsString>,
}

impl MeasureArgs {
    /// Returns what is measured.
    pub fn target(&self) -> Target {
        self.pid.map_or_else(|| Target::Program(self.program.clone()), Target::Process)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{Cli, Verb};

    #[test]
    fn a_program_or_a_process_is_measured() {
        let parse = |words: &[&str]| {
            let words = [&["macrotick", "measure"], words].concat();
            Cli::try_parse_from(words).map(|cli| match cli.verb {
                Verb::Measure(args) => args,
                verb => panic!("{verb:?}"),
            })
        };
        let args = parse(&["--for", "2s", "--", "ls", "--json", "-o", "x"]).unwrap();
        assert_eq!(args.target(), Target::Program(["ls", "--json", "-o", "x"].map(OsString::from).to_vec()));
        assert_eq!((args.limit, args.output), (Some(Duration::from_secs(2)), None));
        assert_eq!(parse(&["--pid", "7", "--json"]).unwrap().target(), Target::Process(7));
        for wrong in [&["--json", "ls"][..], &[], &["--pid", "0"], &["--pid", "7", "ls"], &["--cpu", "1", "ls"]] {
            assert_eq!(parse(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
    }
}
