//! The arguments of `reserve`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use macrotick_host::sys::DeadlineOptions;
use macrotick_model::{CpuSet, Duration};
use macrotick_reserve::adapt::Adaptive;
use macrotick_reserve::{Mechanism, Request, Target, Times};

use crate::length;

/// The default of `--find-within`.
const FIND_WITHIN: Duration = Duration::from_secs(10);

/// Arguments of `reserve`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("own-output").args(["dry_run", "pid"]).multiple(true)))]
pub struct ReserveArgs {
    /// The CPU time in each period
    #[arg(long, value_name = "LENGTH", value_parser = length, required_unless_present = "adapt")]
    pub runtime: Option<Duration>,
    /// The period
    #[arg(long, value_name = "LENGTH", value_parser = length, required_unless_present = "adapt")]
    pub period: Option<Duration>,
    /// The time from the begin of a period in which the runtime is there [default: the period]
    #[arg(long, value_name = "LENGTH", value_parser = length)]
    pub deadline: Option<Duration>,
    /// The CPUs, such as 0-1,3; a group has its runtime on each of them [default: a group gets one CPU]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<CpuSet>,
    /// All threads and children share the reservation; this needs a group
    #[arg(long)]
    pub all_threads: bool,
    /// The thread may also use time that other reservations leave unused (SCHED_DEADLINE only)
    #[arg(long)]
    pub reclaim: bool,
    /// The kernel sends SIGXCPU to the thread when it has used up its runtime (SCHED_DEADLINE only)
    #[arg(long)]
    pub overrun_signal: bool,
    /// The mechanism [default: the one that fits]
    #[arg(long, value_enum)]
    pub by: Option<MechanismName>,
    /// Reserve for this running process, until it ends or SIGINT ends this command
    #[arg(long, conflicts_with = "program", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// Find the period, and the least runtime that keeps the jobs on time; --runtime is the first one, --period a known one
    #[arg(long, conflicts_with_all = ["dry_run", "json", "overrun_signal"])]
    pub adapt: bool,
    /// The greatest runtime [default: 80 % of the deadline]
    #[arg(long, value_name = "LENGTH", value_parser = length, requires = "adapt")]
    pub at_most: Option<Duration>,
    /// The longest time until a period is found [default: 10s]
    #[arg(long, value_name = "LENGTH", value_parser = length, requires = "adapt")]
    pub find_within: Option<Duration>,
    /// Write a system description with the period and the runtime that were found
    #[arg(short, long, value_name = "FILE", requires = "adapt")]
    pub output: Option<PathBuf>,
    /// Print what would be reserved, or why not, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Print the reservation as JSON; standard output of a started program stays its own
    #[arg(long, requires = "own-output")]
    pub json: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "pid")]
    pub program: Vec<OsString>,
}

impl ReserveArgs {
    /// Returns the request.
    pub fn request(&self) -> Request {
        let &ReserveArgs { reclaim, overrun_signal, all_threads, .. } = self;
        // Only with --adapt they may be missing, and then they do not count.
        let [runtime, period] = [self.runtime, self.period].map(|length| length.unwrap_or(Duration::ZERO));
        Request {
            target: self.pid.map_or_else(|| Target::Program(self.program.clone()), Target::Process),
            times: Times { runtime, period, deadline: self.deadline.unwrap_or(period) },
            cpus: self.cpus.clone(),
            all_threads,
            options: DeadlineOptions { reclaim, overrun_signal },
            by: self.by.map(Mechanism::from),
        }
    }
}

impl ReserveArgs {
    /// Returns the wish of `--adapt`.
    pub fn adaptive(&self) -> Adaptive {
        Adaptive {
            request: self.request(),
            period: self.period,
            runtime: self.runtime,
            at_most: self.at_most,
            deadline: self.deadline,
            find_within: self.find_within.unwrap_or(FIND_WITHIN),
        }
    }
}

/// [`Mechanism`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MechanismName {
    /// SCHED_DEADLINE, for one thread
    Deadline,
    /// A control group with a budget (SCHED_DS), for a process tree; needs the Macrotick kernel
    Group,
}

impl From<MechanismName> for Mechanism {
    fn from(name: MechanismName) -> Mechanism {
        match name {
            MechanismName::Deadline => Mechanism::Deadline,
            MechanismName::Group => Mechanism::Group,
        }
    }
}

/// The highest CPU of a list, as in cpu_set_t.
const LAST: u32 = 1023;

/// Parses a list of CPUs.
fn cpus(text: &str) -> Result<CpuSet, String> {
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|&cpu| cpu <= LAST);
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = number(first)?..=number(last)?;
        (!range.is_empty()).then_some(range)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    ranges
        .map(|ranges| ranges.into_iter().flatten().collect())
        .ok_or_else(|| format!("no list of CPUs from 0 to {LAST}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{Cli, Verb};

    #[test]
    fn cpus_are_a_list_of_ranges() {
        let parse = |text: &str| cpus(text).map(|cpus| cpus.as_slice().to_vec()).ok();
        assert_eq!(parse("0-1,3"), Some(vec![0, 1, 3]));
        assert_eq!(parse("2"), Some(vec![2]));
        for wrong in ["", "1-0", "a", "1,", "1024", "-1", "0-9999999999"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_program_keeps_its_own_options() {
        let parse = |words: &[&str]| {
            let words = [&["macrotick", "reserve", "--runtime", "1ms", "--period", "10ms"], words].concat();
            Cli::try_parse_from(words).map(|cli| match cli.verb {
                Verb::Reserve(args) => args.request(),
                verb => panic!("{verb:?}"),
            })
        };
        let request = parse(&["--reclaim", "--", "ls", "--all-threads", "-l"]).unwrap();
        assert_eq!(request.target, Target::Program(["ls", "--all-threads", "-l"].map(OsString::from).to_vec()));
        assert!(request.options.reclaim && !request.all_threads);
        assert_eq!(request.times.deadline, request.times.period);
        assert_eq!(parse(&["--pid", "7", "--json"]).unwrap().target, Target::Process(7));
        assert!(parse(&["--dry-run", "--json", "ls"]).is_ok());
        let adaptive = |words: &[&str]| {
            let words = [&["macrotick", "reserve"], words].concat();
            Cli::try_parse_from(words).map(|cli| match cli.verb {
                Verb::Reserve(args) => args.adaptive(),
                verb => panic!("{verb:?}"),
            })
        };
        let wish = adaptive(&["--adapt", "--at-most", "9ms", "-o", "x.yaml", "ls", "-o"]).unwrap();
        assert_eq!((wish.period, wish.runtime, wish.at_most), (None, None, Some(Duration::from_millis(9))));
        assert_eq!(wish.request.target, Target::Program(["ls", "-o"].map(OsString::from).to_vec()));
        for wrong in [&["--runtime", "1ms", "ls"][..], &["ls"], &["--adapt", "--dry-run", "ls"], &["--at-most", "1ms"]]
        {
            assert_eq!(adaptive(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
        for wrong in [&["--json", "ls"][..], &[], &["--pid", "0"], &["--pid", "7", "ls"], &["--cpus", "x", "ls"]] {
            assert_eq!(parse(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
    }
}
