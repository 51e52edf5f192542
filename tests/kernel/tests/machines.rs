//! Two machines that share a table in the lab. Each has its own clock.

use std::collections::BTreeSet;

use macrotick_kernel_tests::machine::{Machine, CYCLE_NS, PROGRAMS};
use macrotick_lab::progress::Terminal;
use macrotick_lab::{libraries, Flavor, GuestJob, GuestOutcome, Lab, Layout};
use macrotick_model::Duration;

const GUEST: &str = env!("CARGO_BIN_EXE_macrotick-kernel-tests");
const SECOND: u64 = 1_000_000_000;
/// The greatest distance of jobs with the same nominal start, in nanoseconds. The time stamp of a message that comes
/// during a job or its lead is 23 us late. linuxptp follows a part of that.
const ALIGNED_NS: i64 = 20_000;

/// The rates that the machines assume for their oscillators, in kHz. In fact both have 1 GHz: one clock gains 45 us in
/// each second, and the other loses 45 us.
const OSCILLATORS_KHZ: [u32; 2] = [999_955, 1_000_045];

fn job(machine: Machine, oscillator_khz: u32) -> GuestJob {
    let words = ["/bin/macrotick".to_owned()].into_iter().chain(machine.words());
    let mut job = GuestJob::new(Flavor::Patched, words);
    job.kernel_args.push(format!("tsc_early_khz={oscillator_khz}"));
    job.wall_limit = Duration::from_secs(600);
    job.files = linuxptp();
    job
}

/// Reads the programs of linuxptp and their libraries.
fn linuxptp() -> Vec<(String, Vec<u8>)> {
    let libraries = PROGRAMS.iter().flat_map(|program| libraries::of(program.as_ref()).expect("`make setup`"));
    let paths: BTreeSet<String> = PROGRAMS.iter().map(|&program| program.to_owned()).chain(libraries).collect();
    let read = |path: String| std::fs::read(&path).map(|content| (path, content));
    paths.into_iter().map(|path| read(path).expect("`make setup`")).collect()
}

/// Returns the virtual instants at which the jobs of both machines started: ascending, on a clock that neither machine
/// has.
fn run(synchronised: bool, wrong_ns: i64, seconds: u64) -> [Vec<u64>; 2] {
    let machine = |leads, wrong_ns| Machine { leads, synchronised, wrong_ns, seconds };
    let machines = [machine(true, 0), machine(false, wrong_ns)];
    let jobs = [0, 1].map(|number| job(machines[number], OSCILLATORS_KHZ[number]));
    let lab = Lab::with_agent(Layout::find().expect("a checkout"), GUEST);
    let outcomes = lab.run_joined(&jobs, &mut Terminal::new()).unwrap_or_else(|error| panic!("{error}"));
    outcomes.map(|outcome| starts(&outcome))
}

fn starts(outcome: &GuestOutcome) -> Vec<u64> {
    let text = outcome.stdout_text();
    let (numbers, words): (Vec<&str>, _) = text.lines().partition(|line| line.starts_with(|c: char| c.is_numeric()));
    println!("{}\n{}", words.join("\n"), outcome.stderr_text());
    assert!(outcome.status.success(), "{}", outcome.status);
    numbers.into_iter().map(|number| number.parse().expect("an instant")).collect()
}

/// Returns how much later the second machine's nearest job starts, for each job of the first machine, with its instant.
fn apart([first, second]: &[Vec<u64>; 2]) -> Vec<(u64, i64)> {
    let nearest = |at: u64| second.iter().map(|&other| other as i64 - at as i64).min_by_key(|apart| apart.abs());
    let end = second.last().copied().unwrap_or_default();
    let common = first.iter().filter(|&&at| at < end);
    common.map(|&at| (at, nearest(at).expect("a last one"))).collect()
}

/// Returns the least and the greatest distance in a part of the run.
fn extremes(apart: &[(u64, i64)], part: impl Fn(u64) -> bool) -> (i64, i64) {
    let part = || apart.iter().filter(|(at, _)| part(*at)).map(|(_, apart)| *apart);
    (part().min().expect("jobs"), part().max().expect("jobs"))
}

/// Checks that linuxptp, with software time stamps over a wire, synchronises the two clocks, and that both tables
/// follow. Their jobs start at the same virtual instants.
#[test]
#[ignore = "needs the lab, takes long"]
fn full_two_machines_keep_one_time() {
    let apart = apart(&run(true, -25_200_000, 35));
    let (begin, end) = (apart[0].0, apart[apart.len() - 1].0);
    let first = extremes(&apart, |at| at < begin + SECOND);
    let last = extremes(&apart, |at| at > end - 18 * SECOND);
    let settled = apart.iter().rfind(|(_, apart)| apart.abs() > ALIGNED_NS).map_or(begin, |(at, _)| *at);
    println!("apart: {first:?} ns in the first second, {last:?} ns in the last 18");
    println!("within {ALIGNED_NS} ns after {} ms", (settled - begin) / 1_000_000);
    assert!(first.0.abs().min(first.1.abs()) > 1_000_000, "{first:?}");
    assert!(last.0.abs().max(last.1.abs()) < ALIGNED_NS, "{last:?}");
}

/// Checks that the same machines without linuxptp drift apart, although their clocks are right at the beginning.
#[test]
#[ignore = "needs the lab, takes long"]
fn full_two_machines_alone_drift_apart() {
    let apart = apart(&run(false, 0, 20));
    let ((begin, before), (end, after)) = (apart[0], apart[apart.len() - 1]);
    let ppm = (after - before) as f64 * 1e6 / (end - begin) as f64;
    println!("apart: {before} ns at the beginning, {after} ns at the end: {ppm:.1} ppm");
    assert!(ppm.abs() > 85.0 && ppm.abs() < 95.0, "{ppm} ppm");
    assert!(after.abs() > 1_500_000 && after.unsigned_abs() < CYCLE_NS / 2, "{after} ns");
}
