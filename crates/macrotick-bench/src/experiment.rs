//! All experiments.

use std::path::PathBuf;
use std::time::Instant;

use clap::builder::PossibleValue;
use clap::ValueEnum;
use macrotick_lab::Layout;
use macrotick_report::output;

use crate::error::BenchError;
use crate::kit::bench::{Bench, Results};
use crate::kit::scale::Scale;
use crate::published::{self, Page};
use crate::{
    containers, cost, deadline, e2e, isolation, jitter, lead, network, overhead, overrun, plan, response, timershield,
    tsnkit, udp, wall,
};

/// The longest time of a quick run.
const QUICK: &str = "at most 2 min";

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// The name on the command line and in paths.
    name: &'static str,
    about: &'static str,
    /// The approximate wall time of a full run on two processors. A kept duration of a previous run replaces it.
    minutes: u32,
    /// Whether it takes times of this machine. All others take the virtual time of the lab, which no load changes.
    is_timed_here: bool,
    run: Run,
    extent: Extent,
}

type Run = fn(&Bench) -> Result<Results, BenchError>;
/// Returns the size of each run in a guest before anything runs: jobs, milliseconds, loops, or another number.
type Extent = fn(&Bench) -> Result<Vec<u64>, BenchError>;

const ALL: [Experiment; 15] = [
    Experiment {
        name: "response",
        about: "Figure 3 of the SCHED_TT paper: one periodic task over a CPU hog, under every backend",
        minutes: 7,
        is_timed_here: false,
        run: response::run,
        extent: response::extent,
    },
    Experiment {
        name: "lead",
        about: "How much the start of a job varies under three loads: SCHED_FIFO, SCHED_TT, and SCHED_TT with a lead",
        minutes: 6,
        is_timed_here: false,
        run: lead::run,
        extent: lead::extent,
    },
    Experiment {
        name: "overhead",
        about: "The patched kernel with no table against the pristine one: cyclictest and hackbench",
        minutes: 10,
        is_timed_here: false,
        run: overhead::run,
        extent: overhead::extent,
    },
    Experiment {
        name: "overrun",
        about: "One task overruns its WCET: misses and starts of 14 others, under each way to dispatch the same plan",
        minutes: 3,
        is_timed_here: false,
        run: overrun::run,
        extent: overrun::extent,
    },
    Experiment {
        name: "cost",
        about:
            "Instructions of a window's boundary with 1 to 1000 entities, memory, and size, beside the papers' numbers",
        minutes: 2,
        is_timed_here: false,
        run: cost::run,
        extent: cost::extent,
    },
    Experiment {
        name: "e2e",
        about:
            "Section 4.2 of the SCHED_TT paper: a datagram from task to task, over a bridge with and without gates",
        minutes: 30,
        is_timed_here: false,
        run: e2e::run,
        extent: e2e::extent,
    },
    Experiment {
        name: "network",
        about: "Frames at the gates of taprio beside loads, bursts, and the slots of section 5.4 of the paper on containers",
        minutes: 25,
        is_timed_here: false,
        run: network::run,
        extent: network::extent,
    },
    Experiment {
        name: "udp",
        about: "Tables I to IV of the UDP paper: round trips over network cards beside loads, in four configurations",
        minutes: 20,
        is_timed_here: false,
        run: udp::run,
        extent: udp::extent,
    },
    Experiment {
        name: "timershield",
        about:
            "Section IV of the TimerShield paper: responses beside less important tasks and timers, on three kernels",
        minutes: 20,
        is_timed_here: false,
        run: timershield::run,
        extent: timershield::extent,
    },
    Experiment {
        name: "containers",
        about: "Figures 5 and 6 of the paper on real-time containers: cost of picks, refills and budgets of SCHED_DS",
        minutes: 12,
        is_timed_here: false,
        run: containers::run,
        extent: containers::extent,
    },
    Experiment {
        name: "isolation",
        about: "Figure 7 and table 2 of the paper on containers, and attacks: whether one container can hurt another",
        minutes: 60,
        is_timed_here: false,
        run: isolation::run,
        extent: isolation::extent,
    },
    Experiment {
        name: "deadline",
        about: "Figure 3 and tables I to III of the SCHED_DEADLINE paper: greedy tasks, and misses of random task sets",
        minutes: 50,
        is_timed_here: false,
        run: deadline::run,
        extent: deadline::extent,
    },
    Experiment {
        name: "jitter",
        about:
            "Equations 1 and 3 of the paper on containers: responses of bound and unbound tasks, computed and measured",
        minutes: 1,
        is_timed_here: false,
        run: jitter::run,
        extent: jitter::extent,
    },
    Experiment {
        name: "plan",
        about: "The planner on random systems: plans, proofs, wall time and memory; it needs no lab",
        minutes: 30,
        is_timed_here: true,
        run: plan::run,
        extent: plan::extent,
    },
    Experiment {
        name: "tsnkit",
        about: "Flows of tsnkit's generator: its planners and ours, judged by its simulator; it needs no lab",
        minutes: 12,
        is_timed_here: true,
        run: tsnkit::run,
        extent: tsnkit::extent,
    },
];

impl ValueEnum for Experiment {
    fn value_variants<'a>() -> &'a [Experiment] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(format!("{} ({})", self.about, self.estimate())))
    }
}

impl Experiment {
    fn estimate(&self) -> String {
        format!("about {} min on 2 cores", self.minutes)
    }

    /// Runs all of the experiment or a little of each part, and writes its results to `folder`. The default is
    /// `build/bench/NAME` or `build/bench/NAME-quick`. A published run also renews the page in the documents.
    pub fn run(&self, folder: Option<PathBuf>, scale: Scale, is_published: bool) -> Result<(), BenchError> {
        if is_published && scale == Scale::Quick {
            return Err(BenchError::QuickPublished);
        }
        let name = self.name;
        let root = Layout::find()?.root().to_owned();
        if is_published {
            published::check_commit(&root)?;
        }
        let folder = folder.unwrap_or_else(|| PathBuf::from(format!("build/bench/{name}{}", scale.of("", "-quick"))));
        let bench = Bench::new(name, &root, folder, scale);
        self.foretell(&bench)?;
        let begin = Instant::now();
        let results = (self.run)(&bench)?;
        bench.keep(&results)?;
        let time = begin.elapsed();
        wall::keep(&bench.folder, time)?;
        output::print_line(format_args!("\nfigures: {}", bench.folder.join("figures.json").display()));
        if is_published {
            output::print_line(format_args!("results: {}", bench.publish(&results)?.display()));
        }
        output::tell(format_args!("{name} took {}", wall::told(time)));
        Ok(())
    }

    /// Returns the name on the command line and in paths.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the approximate minutes of a full run.
    pub fn minutes(&self) -> u32 {
        self.minutes
    }

    /// Returns whether the experiment takes times of this machine, and so runs alone.
    pub fn is_timed_here(&self) -> bool {
        self.is_timed_here
    }

    /// Returns all experiments, in the order of their help.
    pub fn all() -> &'static [Experiment] {
        &ALL
    }

    /// Returns whether the published page was made by the present commit.
    pub fn is_published(&self) -> Result<bool, BenchError> {
        Ok(published::page(Layout::find()?.root(), self.name) == Page::Present)
    }

    /// Prints each page in `docs/results` that does not describe the present kernel, and why. Returns their number.
    pub fn print_outdated() -> Result<usize, BenchError> {
        let root = Layout::find()?.root().to_owned();
        let mut outdated = 0;
        for Experiment { name, .. } in &ALL {
            if let Page::Outdated(reason) = published::page(&root, name) {
                output::print_line(format_args!("docs/results/{name}.md: {reason}"));
                outdated += 1;
            }
        }
        Ok(outdated)
    }

    /// Prints the kind and the expected length of a run before it starts.
    fn foretell(&self, bench: &Bench) -> Result<(), BenchError> {
        if let Some(note) = bench.scale.note() {
            output::print_line(format_args!("{note}\n"));
        }
        let estimate = bench.scale.of(self.estimate(), QUICK.into());
        let (runs, time) = ((self.extent)(bench)?.len(), wall::expected(&bench.folder, &estimate));
        output::tell(format_args!("{}: {runs} run{}, {time}", self.name, if runs == 1 { "" } else { "s" }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Counts the runs without running anything.
    #[test]
    fn every_experiment_has_a_quick_run_that_is_far_smaller() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for experiment in ALL {
            let extent = |scale| {
                let bench = Bench::new(experiment.name, &root, PathBuf::new(), scale);
                (experiment.extent)(&bench).unwrap()
            };
            let (full, quick) = (extent(Scale::Full), extent(Scale::Quick));
            let samples = |runs: &[u64]| runs.iter().sum::<u64>();
            let told = format!("{}: {full:?}, quick {quick:?}", experiment.name);
            assert!(!quick.is_empty() && quick.iter().all(|&samples| samples > 0), "{told}");
            assert!(quick.len() <= full.len() && samples(&quick) * 2 <= samples(&full), "{told}");
        }
    }
}
