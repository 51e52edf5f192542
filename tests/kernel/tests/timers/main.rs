//! The kernel's own timer tests, and rt-tests, with TimerShield off and on, in the lab.
//!
//! `cargo test -p macrotick-kernel-tests --test timers -- --ignored --skip full_` runs the short ones on the patched
//! kernel with one CPU. `-- --ignored full_` runs the others, and all of them on the other kernels.
//! `MACROTICK_ONLY=name,name` runs only these programs.

mod compile;
mod program;
mod rttests;
mod selftests;
mod verdict;

use std::path::PathBuf;

use macrotick_kernel_tests::boot;
use macrotick_lab::{Flavor, GuestJob, Layout};

use compile::Compiled;
use program::{Program, Wants};
use verdict::Said;

const GUEST: &str = env!("CARGO_BIN_EXE_macrotick-kernel-tests");
const ONLY: &str = "MACROTICK_ONLY";
const SCRIPTS: [(&str, &str); 3] = [
    ("run.sh", include_str!("run.sh")),
    ("short.sh", include_str!("short.sh")),
    ("beside.sh", include_str!("beside.sh")),
];
/// The clock's shift for programs that compute for seconds: 16 ns per instruction.
const SPINNING_SHIFT: u32 = 4;
/// The same with several CPUs: 4 ns. If ticks are only a few thousand instructions apart, one CPU gets nearly all of
/// them.
const SPINNING_SHIFT_OF_SEVERAL: u32 = 2;

/// The machine on which programs run.
#[derive(Clone, Copy)]
struct Suite {
    flavor: Flavor,
    cpus: u32,
}

impl Suite {
    /// Returns the states of TimerShield; the pristine kernel has none.
    fn shields(self) -> &'static [&'static str] {
        if self.flavor == Flavor::Pristine {
            &["none"]
        } else {
            &["0", "1"]
        }
    }

    /// Whether times are valid: with several CPUs, one executes at a time.
    fn is_exact(self) -> bool {
        self.cpus == 1 && matches!(self.flavor, Flavor::Patched | Flavor::Pristine)
    }

    fn fits(self, program: &Program) -> bool {
        let named = std::env::var(ONLY).map_or(true, |only| only.split(',').any(|name| name == program.name));
        let has_counters = self.flavor != Flavor::Pristine;
        let fits = !self.flavor.is_debug() || !program.slow;
        let is_in_time = self.is_exact() || !program.punctual;
        named && fits && is_in_time && (has_counters || !matches!(program.wants, Wants::Counters))
    }

    /// Runs programs that sleep most of the time.
    fn run(self, tables: &[&[Program]]) {
        self.run_at(boot::job(self.flavor, self.cpus, ["/programs/run.sh"]), tables);
    }

    /// Runs programs that compute for seconds.
    fn spin(self, tables: &[&[Program]]) {
        let mut job = boot::job(self.flavor, self.cpus, ["/programs/run.sh"]);
        job.shift = if self.cpus == 1 { SPINNING_SHIFT } else { SPINNING_SHIFT_OF_SEVERAL };
        self.run_at(job, tables);
    }

    /// Runs the programs of the tables, one after the other, in one guest.
    fn run_at(self, mut job: GuestJob, tables: &[&[Program]]) {
        let programs: Vec<&Program> = tables.iter().copied().flatten().filter(|one| self.fits(one)).collect();
        if programs.is_empty() {
            return;
        }
        let layout = Layout::find().expect("a checkout");
        job.files = files(&compile::selftests(&layout), &programs);
        job.env.push(("SHIELDS".into(), self.shields().join(" ")));
        let outcome = boot::run(GUEST, &job);
        println!("{} programs, {:.1} s", programs.len(), outcome.wall.as_secs_f64());
        let problems = self.problems(&programs, &outcome.stdout_text());
        let complaints = &outcome.complaints;
        assert!(problems.is_empty() && complaints.is_empty(), "{}\n{complaints:?}", problems.join("\n"));
        assert!(outcome.status.success(), "{}: {}", outcome.status, outcome.stderr_text());
        programs.iter().filter_map(|program| program.exceptions()).for_each(|line| println!("{line}"));
    }

    /// Returns the programs' problems. Each program must have run once with each of the states of TimerShield.
    fn problems(self, programs: &[&Program], output: &str) -> Vec<String> {
        let said = verdict::parse(output);
        let mut problems = Vec::new();
        for shield in self.shields() {
            for program in programs {
                let of_it = |one: &&Said| one.shield == *shield && one.name == program.name;
                let problem = match said.iter().filter(of_it).collect::<Vec<_>>().as_slice() {
                    [one] => verdict::judge(program, one, self.is_exact())
                        .map_err(|problem| format!("{problem}; it says:\n{}", one.text)),
                    several => Err(format!("ran {} times", several.len())),
                };
                problems.extend(problem.err().map(|text| format!("{} (TimerShield {shield}): {text}", program.name)));
            }
        }
        problems
    }
}

/// Returns the files of the guest: programs with their libraries, scripts, and the list of programs to run.
fn files(compiled: &Compiled, programs: &[&Program]) -> Vec<(String, Vec<u8>)> {
    let libraries = compiled.libraries.iter().map(|path| (path.clone(), path.into()));
    let in_programs = |name: &str| format!("/programs/{name}");
    let named = |path: &PathBuf| (in_programs(&path.file_name().expect("a name").to_string_lossy()), path.clone());
    let from_host = compiled.programs.iter().map(named).chain(libraries);
    let read = |(to, from): (String, PathBuf)| (to, std::fs::read(&from).expect("a program or a library"));
    let line = |program: &&Program| format!("{} {} {}\n", program.name, program.seconds, program.words);
    let list: String = programs.iter().map(line).collect();
    let texts = SCRIPTS.iter().map(|(name, text)| (in_programs(name), text.as_bytes().to_vec()));
    from_host.map(read).chain(texts).chain([(in_programs("list"), list.into_bytes())]).collect()
}

const PATCHED: Suite = Suite { flavor: Flavor::Patched, cpus: 1 };

#[test]
#[ignore = "needs the lab"]
fn timers_on_one_cpu() {
    PATCHED.run(&[selftests::SLEEPING, rttests::ALL]);
}

#[test]
#[ignore = "needs the lab"]
fn spinning_timers_on_one_cpu() {
    PATCHED.spin(&[selftests::SPINNING]);
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_long_timers_on_one_cpu() {
    PATCHED.spin(&[selftests::LONG]);
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_timers_on_two_cpus() {
    Suite { cpus: 2, ..PATCHED }.run(&[selftests::SLEEPING, rttests::ALL]);
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_long_timers_on_two_cpus() {
    Suite { cpus: 2, ..PATCHED }.spin(&[selftests::SPINNING, selftests::LONG]);
}

/// Failures of these programs do not come from the patches.
#[test]
#[ignore = "needs the lab, takes long"]
fn full_timers_on_pristine() {
    let pristine = Suite { flavor: Flavor::Pristine, ..PATCHED };
    pristine.run(&[selftests::SLEEPING, rttests::ALL]);
    pristine.spin(&[selftests::SPINNING, selftests::LONG]);
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_timers_on_nonrt() {
    let nonrt = Suite { flavor: Flavor::NonRt, ..PATCHED };
    nonrt.run(&[selftests::SLEEPING, rttests::ALL]);
    nonrt.spin(&[selftests::SPINNING]);
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_timers_on_debug() {
    Suite { flavor: Flavor::Debug, ..PATCHED }.run(&[selftests::SLEEPING, rttests::ALL]);
}

#[test]
#[ignore = "needs the kernel's source"]
fn every_selftest_is_run_or_has_a_reason() {
    let tables = [selftests::SLEEPING, selftests::SPINNING, selftests::LONG];
    let words = || tables.iter().copied().flatten().flat_map(|program| program.words.split([' ', '/']));
    let has_reason = |name: &str| selftests::NOT_RUN.iter().any(|(other, _)| *other == name);
    let compiled = compile::selftests(&Layout::find().expect("a checkout")).programs;
    let names = compiled.iter().map(|path| path.file_name().expect("a name").to_string_lossy());
    let left: Vec<_> = names.filter(|name| !has_reason(name) && !words().any(|word| word == *name)).collect();
    assert!(left.is_empty(), "{left:?}");
}
