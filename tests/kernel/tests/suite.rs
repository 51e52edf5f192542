//! The scenarios in the lab.
//!
//! `cargo test -p macrotick-kernel-tests -- --ignored --skip full_` runs the short suite on the patched kernel with 1
//! and 2 CPUs. Tests with names that begin with `full_` take long. They use the debug kernel with 1, 2 and 4 CPUs and
//! the kernel without PREEMPT_RT, and run the long scenarios.
//!
//! - `MACROTICK_ONLY=name,name` runs only these scenarios.
//! - `MACROTICK_SEED=n` changes the fuzzers' choices and the order of the scenarios.
//! - `MACROTICK_DELAY_US=n` delays the start of the scenarios, which moves the ticks.
//! - `MACROTICK_CYCLES=n` makes `full_group_cycles` make this many groups, also on slow kernels.
//! - `MACROTICK_TIMERSHIELD=1` makes scenarios start with TimerShield switched on.
//!
//! The guest's variable `MACROTICK_SCX` is not taken from the environment. Two tests set it, on kernels with sched_ext:
//! `loaded` runs each scenario with a scheduler loaded, `changes` while schedulers come and go.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use macrotick_kernel_tests::boot;
use macrotick_kernel_tests::scenarios::{self, Scenario, CALLS_OF};
use macrotick_lab::{Arch, Flavor, GuestJob, GuestOutcome, GuestStatus};
use macrotick_model::Duration;

const GUEST: &str = env!("CARGO_BIN_EXE_macrotick-kernel-tests");
const ONLY: &str = "MACROTICK_ONLY";
const SEED: &str = "MACROTICK_SEED";
const TIMERSHIELD: &str = "MACROTICK_TIMERSHIELD";

/// The use of the scenarios' verdicts. In any case each scenario must end, and the console must be clean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdicts {
    Count,
    /// A failure must not repeat in all of three further guests. On the debug kernel, KASAN sometimes empties its
    /// quarantine for some milliseconds in any thread that allocates. With several CPUs, one of them executes at a
    /// time, and a scenario's result depends on the scenarios before it. Without PREEMPT_RT, a softirq of an earlier
    /// scenario may fall into a window.
    MayRepeat,
    /// The verdicts are printed. This is for the debug kernel and the one without PREEMPT_RT, on several CPUs. One of
    /// these executes at a time, with long paths or softirqs: no event comes in time.
    ArePrinted,
}

/// The choice of scenarios, of those that a number of CPUs allows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chosen {
    All,
    /// The scenarios that need more than one CPU.
    Several,
    /// The same, and storms. This is for slow guests with many CPUs, of which one executes at a time.
    SeveralAndStorms,
}

/// The kernel, the CPUs and the scenarios of a suite.
#[derive(Clone, Copy)]
struct Suite {
    arch: Arch,
    flavor: Flavor,
    cpus: u32,
    long: bool,
    /// Whether to run only the scenarios that suspend the machine.
    suspends: bool,
    /// The use of sched_ext: the scenarios about it, or others with a scheduler loaded.
    scx: Scx,
    chosen: Chosen,
    verdicts: Verdicts,
}

/// The use of sched_ext in a suite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scx {
    Nothing,
    /// Only the scenarios that load schedulers.
    Scenarios,
    /// All other scenarios, each with a scheduler loaded (`loaded`), or while schedulers come and go (`changes`).
    Beside(&'static str),
}

fn job<S: Into<String>>(flavor: Flavor, cpus: u32, words: impl IntoIterator<Item = S>) -> GuestJob {
    let words = ["/bin/macrotick".to_owned()].into_iter().chain(words.into_iter().map(Into::into));
    let mut job = boot::job(flavor, cpus, words);
    // KASAN and lockdep make every path ten times as long.
    let unit_us = if flavor.is_debug() { "1000" } else { "100" };
    job.env.push(("MACROTICK_UNIT_US".into(), unit_us.into()));
    for name in [SEED, TIMERSHIELD, scenarios::DELAY_US, scenarios::CYCLES] {
        job.env.extend(std::env::var(name).map(|value| (name.into(), value)));
    }
    // A cycle takes a third of a second on the debug kernel.
    let cycles = std::env::var(scenarios::CYCLES).ok().and_then(|text| text.parse().ok());
    job.wall_limit = job.wall_limit.max(Duration::from_secs(cycles.unwrap_or(0)));
    job
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Returns the kernel's complaints.
fn complaints(outcome: &GuestOutcome) -> String {
    outcome.complaints.iter().map(|finding| format!("{:?}: {}\n", finding.kind, finding.excerpt)).collect()
}

/// Whether a scenario gets its own guest.
fn is_storm(name: &str) -> bool {
    let storms = [
        "kernel_locks",
        "fuzz",
        "inherit_storm",
        "migrate_storm",
        "group_storm",
        "gates_storm",
        "full_group_cycles",
        "scx_storm",
    ];
    storms.iter().any(|part| name.contains(part))
}

impl Suite {
    fn scenarios(&self) -> Vec<Scenario> {
        let only = std::env::var(ONLY).ok();
        let named = |one: &Scenario| only.as_ref().is_none_or(|only| only.split(',').any(|name| name == one.name));
        let fits = |one: &Scenario| one.cpus <= self.cpus && (self.cpus == 1 || !one.punctual);
        let chosen = |one: &Scenario| match self.chosen {
            Chosen::All => true,
            Chosen::Several => one.cpus > 1,
            Chosen::SeveralAndStorms => one.cpus > 1 || is_storm(one.name),
        };
        let kind = |one: &Scenario| one.is_long() == self.long && one.suspends() == self.suspends;
        let beside = matches!(self.scx, Scx::Beside(_));
        let scx = |one: &Scenario| one.takes_scx() == (self.scx == Scx::Scenarios) && !(beside && one.fair);
        let wanted = |one: &Scenario| fits(one) && chosen(one) && kind(one) && scx(one) && named(one);
        let mut all: Vec<Scenario> = scenarios::all().into_iter().filter(wanted).collect();
        if let Ok(seed) = std::env::var(SEED) {
            all.sort_by_cached_key(|one| hash(&(&seed, one.name)));
        }
        all
    }

    /// Runs the scenarios. Each storm gets its own guest, and the others share one. On the debug kernel they share
    /// several, because all of them take an hour.
    fn run(&self) {
        let names: Vec<&str> = self.scenarios().iter().map(|one| one.name).collect();
        assert!(!names.is_empty(), "none of these scenarios is called what {ONLY} says");
        let (storms, others): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| is_storm(name));
        let together = if self.flavor.is_debug() { 40 } else { others.len().max(1) };
        let guests = others.chunks(together).chain(storms.chunks(1));
        let failures: Vec<String> = guests.filter_map(|names| self.judge(names).err()).collect();
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    fn judge(&self, names: &[&str]) -> Result<(), String> {
        let report = |failed: &[String]| match failed {
            [] => Ok(()),
            _ => Err(format!("{} of {} scenarios fail:\n{}", failed.len(), names.len(), failed.join("\n"))),
        };
        let (failed, _) = self.play(names)?;
        if let (Err(text), true) = (report(&failed), self.verdicts != Verdicts::Count) {
            println!("{text}");
        }
        match self.verdicts {
            Verdicts::MayRepeat => report(&self.repeat(failed)?),
            Verdicts::ArePrinted => Ok(()),
            Verdicts::Count => report(&failed),
        }
    }

    /// Returns the scenarios that still fail with other ticks. A guest with the same ticks would repeat the run
    /// exactly.
    fn repeat(&self, mut failed: Vec<String>) -> Result<Vec<String>, String> {
        for delay_us in ["0", "330", "670"] {
            if failed.is_empty() {
                break;
            }
            let again: Vec<&str> = failed.iter().filter_map(|one| Some(one.split_once(": ")?.0)).collect();
            let mut job = self.job(&again);
            job.env.retain(|(name, _)| name != scenarios::DELAY_US);
            job.env.push((scenarios::DELAY_US.into(), delay_us.into()));
            failed = self.play_job(&again, &job)?.0;
        }
        Ok(failed)
    }

    /// Returns the scenarios' failures and their output. Fails if a scenario has no result, or if the kernel complains.
    fn play(&self, names: &[&str]) -> Result<(Vec<String>, String), String> {
        self.play_job(names, &self.job(names))
    }

    fn job(&self, names: &[&str]) -> GuestJob {
        let mut job = job(self.flavor, self.cpus, ["run"].into_iter().chain(names.iter().copied()));
        if self.arch == Arch::Arm64 {
            // Paths have more instructions there. At 4 ns for each, a look that should take a tenth of a unit takes half.
            job.shift = 0;
        }
        if let Scx::Beside(how) = self.scx {
            job.env.push((scenarios::SCX.into(), how.into()));
        }
        job
    }

    fn play_job(&self, names: &[&str], job: &GuestJob) -> Result<(Vec<String>, String), String> {
        let outcome = boot::run_on(self.arch, GUEST, job);
        println!("{} scenarios, {:.1} s", names.len(), outcome.wall.as_secs_f64());
        let output = outcome.stdout_text();
        output.lines().filter(|line| line.starts_with("# the latest")).for_each(|line| println!("{line}"));
        let problems = problems(names, &output);
        let complaints = complaints(&outcome);
        let expected = if problems.is_empty() { GuestStatus::Exited(0) } else { GuestStatus::Exited(1) };
        if !complaints.is_empty() || outcome.status != expected || problems.iter().any(|one| one.ends_with(NO_RESULT)) {
            let status = format!("the guest ended with {:?}", outcome.status);
            return Err(format!("{}\n{complaints}{status}\n{}", problems.join("\n"), outcome.stderr_text()));
        }
        if !problems.is_empty() {
            println!("{}", outcome.stderr_text());
        }
        Ok((problems, output))
    }

    /// Runs a fuzzer. The kernel must be silent, keep no memory, and work afterwards. Returns the number of calls.
    fn fuzz(&self, name: &str) -> u64 {
        self.fuzz_job(name, &self.job(&[name]))
    }

    /// Does the same with another seed.
    fn fuzz_with(&self, name: &str, seed: u64) -> u64 {
        let mut job = self.job(&[name]);
        job.env.retain(|(name, _)| name != SEED);
        job.env.push((SEED.into(), seed.to_string()));
        self.fuzz_job(name, &job)
    }

    fn fuzz_job(&self, name: &str, job: &GuestJob) -> u64 {
        let (problems, output) = self.play_job(&[name], job).unwrap_or_else(|reason| panic!("{name}: {reason}"));
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        let (_, rest) = output.split_once(CALLS_OF).unwrap_or_else(|| panic!("{name} tells no calls:\n{output}"));
        println!("{name} on {} CPUs, {CALLS_OF}{rest}", self.cpus);
        let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{name}: no number in {rest}"))
    }
}

const NO_RESULT: &str = ": no result";

/// Returns the scenarios without exactly one line that says ok.
fn problems(names: &[&str], output: &str) -> Vec<String> {
    let mut lines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in output.lines().filter(|line| !line.starts_with('#')) {
        if let Some((name, verdict)) = line.split_once(": ") {
            lines.entry(name).or_default().push(verdict);
        }
    }
    let problem = |name: &&str| match lines.get(name).map(Vec::as_slice) {
        Some(["ok"]) => None,
        Some(verdicts) => Some(format!("{name}: {}", verdicts.join(" and "))),
        None => Some(format!("{name}{NO_RESULT}")),
    };
    names.iter().filter_map(problem).collect()
}

const SHORT: Suite = Suite {
    arch: Arch::X86_64,
    flavor: Flavor::Patched,
    cpus: 1,
    long: false,
    suspends: false,
    scx: Scx::Nothing,
    chosen: Chosen::All,
    verdicts: Verdicts::Count,
};

#[test]
#[ignore = "needs the lab"]
fn scenarios_on_one_cpu() {
    SHORT.run();
}

#[test]
#[ignore = "needs the lab"]
fn scenarios_on_two_cpus() {
    Suite { cpus: 2, chosen: Chosen::Several, verdicts: Verdicts::MayRepeat, ..SHORT }.run();
}

const ARM64: Suite = Suite { arch: Arch::Arm64, ..SHORT };

#[test]
#[ignore = "needs the lab, takes long"]
fn full_arm64_on_one_cpu() {
    ARM64.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_arm64_on_two_cpus() {
    Suite { cpus: 2, verdicts: Verdicts::MayRepeat, ..ARM64 }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_scenarios_on_two_cpus() {
    Suite { cpus: 2, verdicts: Verdicts::MayRepeat, ..SHORT }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_long_scenarios_on_one_cpu() {
    Suite { long: true, ..SHORT }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_long_scenarios_on_two_cpus() {
    Suite { long: true, cpus: 2, ..SHORT }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_debug_on_one_cpu() {
    Suite { flavor: Flavor::Debug, verdicts: Verdicts::MayRepeat, ..SHORT }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_debug_on_two_cpus() {
    let chosen = Chosen::SeveralAndStorms;
    Suite { flavor: Flavor::Debug, cpus: 2, chosen, verdicts: Verdicts::ArePrinted, ..SHORT }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_debug_on_four_cpus() {
    let chosen = Chosen::SeveralAndStorms;
    Suite { flavor: Flavor::Debug, cpus: 4, chosen, verdicts: Verdicts::ArePrinted, ..SHORT }.run();
}

/// The number of device and control group file calls that the debug kernel must survive in one run.
const FUZZED_CALLS: u64 = 200_000;

#[test]
#[ignore = "needs the lab, takes long"]
fn full_fuzz_on_debug() {
    let debug = |cpus| Suite { flavor: Flavor::Debug, cpus, ..SHORT };
    let calls: u64 = std::thread::scope(|scope| {
        // A guest has one CPU of the host.
        let still = scope.spawn(|| debug(1).fuzz("full_fuzz_3") + debug(2).fuzz("full_fuzz_4"));
        let hotplug = scope.spawn(|| debug(4).fuzz("full_fuzz_hotplug_long"));
        still.join().expect("guests without hotplug") + hotplug.join().expect("guest with hotplug")
    });
    println!("{calls} calls");
    assert!(calls >= FUZZED_CALLS, "{calls} calls of {FUZZED_CALLS}");
}

/// The number of calls with a comparison. If a call is refused, the host's state before and after it must be equal.
const COMPARED_CALLS: u64 = 400_000;

#[test]
#[ignore = "needs the lab, takes long"]
fn full_fuzz_of_refused_calls() {
    let calls: u64 = std::thread::scope(|scope| {
        // A guest has one CPU of the host.
        let seeds = |seeds: [u64; 2]| seeds.map(|seed| SHORT.fuzz_with("full_fuzz_refused", seed)).iter().sum::<u64>();
        let others = scope.spawn(move || seeds([103, 104]));
        seeds([101, 102]) + others.join().expect("the other guests")
    });
    assert!(calls >= COMPARED_CALLS, "{calls} calls of {COMPARED_CALLS}");
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_groups_come_and_go_on_debug() {
    let suite = Suite { flavor: Flavor::Debug, ..SHORT };
    let (problems, output) = suite.play(&["full_group_cycles"]).unwrap_or_else(|reason| panic!("{reason}"));
    print!("{output}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_suspend_on_debug() {
    let debug = Suite { flavor: Flavor::Debug, long: true, suspends: true, verdicts: Verdicts::MayRepeat, ..SHORT };
    std::thread::scope(|scope| {
        // A guest has one CPU of the host.
        let odd = scope.spawn(|| [1, 4].into_iter().for_each(|cpus| Suite { cpus, ..debug }.run()));
        Suite { cpus: 2, ..debug }.run();
        odd.join().expect("guests with 1 and with 4 CPUs");
    });
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_nonrt_on_one_cpu() {
    Suite { flavor: Flavor::NonRt, verdicts: Verdicts::MayRepeat, ..SHORT }.run();
}

/// Checks timers on 1, 2 and 4 CPUs. All of them expire in the interrupt.
#[test]
#[ignore = "needs the lab, takes long"]
fn full_debug_without_rt() {
    for (cpus, names) in [(1, ["shield_storm", "shield_switching"].as_slice()), (2, &STORMS), (4, &STORMS)] {
        let suite = Suite { flavor: Flavor::DebugNonRt, cpus, verdicts: Verdicts::MayRepeat, ..SHORT };
        suite.judge(names).unwrap_or_else(|reason| panic!("{cpus} CPUs: {reason}"));
    }
}

const STORMS: [&str; 4] = ["shield_storm_2", "shield_switching_2", "shield_affinity", "shield_hotplug"];

#[test]
#[ignore = "needs the lab, takes long"]
fn full_nonrt_on_two_cpus() {
    Suite { flavor: Flavor::NonRt, cpus: 2, verdicts: Verdicts::ArePrinted, ..SHORT }.run();
}

const SCX: Suite = Suite { flavor: Flavor::Scx, scx: Scx::Scenarios, ..SHORT };

/// Times are long then, so only what the kernel says counts.
const CHANGING: Suite = Suite { scx: Scx::Beside("changes"), verdicts: Verdicts::ArePrinted, ..SCX };

#[test]
#[ignore = "needs the lab, takes long"]
fn full_scx_on_one_cpu() {
    SCX.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_scx_on_two_cpus() {
    Suite { cpus: 2, verdicts: Verdicts::MayRepeat, ..SCX }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_scx_long_on_one_cpu() {
    Suite { long: true, ..SCX }.run();
}

const DEBUG_SCX: Suite = Suite { flavor: Flavor::DebugScx, verdicts: Verdicts::MayRepeat, ..SCX };

#[test]
#[ignore = "needs the lab, takes long"]
fn full_scx_on_debug_with_one_cpu() {
    Suite { cpus: 1, ..DEBUG_SCX }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_scx_on_debug_with_two_cpus() {
    Suite { cpus: 2, ..DEBUG_SCX }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_scx_on_debug_with_four_cpus() {
    Suite { cpus: 4, ..DEBUG_SCX }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_scx_beside_a_scheduler() {
    Suite { scx: Scx::Beside("loaded"), verdicts: Verdicts::MayRepeat, ..SCX }.run();
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_scx_while_schedulers_change() {
    for cpus in [1, 2] {
        Suite { cpus, ..CHANGING }.run();
    }
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_scx_while_schedulers_change_on_debug() {
    Suite { flavor: Flavor::DebugScx, ..CHANGING }.run();
}

#[test]
fn missing_and_repeated_results_are_problems() {
    let output = "a: ok\n# a took 3 ms\nb: FAILED because: of this\nd: ok\nd: ok\n";
    let wanted = ["b: FAILED because: of this", "c: no result", "d: ok and ok"];
    assert_eq!(problems(&["a", "b", "c", "d"], output), wanted);
}
