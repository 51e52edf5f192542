//! Two machines that share a table in the lab. Each has its own clock.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use macrotick_kernel_tests::machine::deployed::{self, Departure, Deployed, RUN_S};
use macrotick_kernel_tests::machine::ptp::PROGRAMS;
use macrotick_kernel_tests::machine::{Machine, CYCLE_NS};
use macrotick_lab::progress::Terminal;
use macrotick_lab::{libraries, Flavor, GuestJob, GuestOutcome, Lab, Layout};
use macrotick_model::{Duration, GateTier, Observation, Plan, System};
use macrotick_plan::Solver;

const GUEST: &str = env!("CARGO_BIN_EXE_macrotick-kernel-tests");
const SECOND: u64 = 1_000_000_000;
/// The greatest distance of jobs with the same nominal start, in nanoseconds. The time stamp of a message that comes
/// during a job or its lead is 23 us late. linuxptp follows a part of that.
const ALIGNED_NS: i64 = 20_000;

/// The rates that the machines assume for their oscillators, in kHz. In fact both have 1 GHz: one clock gains 45 us in
/// each second, and the other loses 45 us.
const OSCILLATORS_KHZ: [u32; 2] = [999_955, 1_000_045];

fn guest(words: Vec<String>, oscillator_khz: u32) -> GuestJob {
    let words = ["/bin/macrotick".to_owned()].into_iter().chain(words);
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
    let jobs = [0, 1].map(|number| guest(machines[number].words(), OSCILLATORS_KHZ[number]));
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

/// The window of a receiver, in nanoseconds.
const HEARD_NS: i64 = 500_000;

/// Returns the plan of both machines.
fn plan() -> Plan {
    let system = System::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("machines.yaml")).unwrap();
    let plan = macrotick_plan::plan(&system, Solver::default_for(&system)).unwrap();
    assert!(macrotick_check::check(&plan).is_feasible());
    plan
}

/// The product's program, which `make product` builds beside this test's.
fn runner() -> Vec<u8> {
    let path = Path::new(GUEST).with_file_name("macrotick");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}: `make product`", path.display()))
}

/// Runs both parts of a plan. Returns the departures of the messages of each machine, and its observation.
fn deploy(plan: &Plan, wrong_ns: i64) -> [(Vec<Departure>, Observation); 2] {
    let machines = [Deployed { leads: true, wrong_ns: 0 }, Deployed { leads: false, wrong_ns }];
    let jobs = [0, 1].map(|number| {
        let machine = machines[number];
        let part = plan.part(Some(if machine.leads { "leads" } else { "follows" })).unwrap();
        let mut job = guest(machine.words(), OSCILLATORS_KHZ[number]);
        job.files.push((deployed::RUNNER.into(), runner()));
        job.files.push((deployed::PLAN.into(), part.to_json().into_bytes()));
        job.collect.push(deployed::OBSERVATION.into());
        job
    });
    let lab = Lab::with_agent(Layout::find().expect("a checkout"), GUEST);
    let outcomes = lab.run_joined(&jobs, &mut Terminal::new()).unwrap_or_else(|error| panic!("{error}"));
    outcomes.map(|outcome| {
        println!("{}", outcome.stderr_text());
        assert!(outcome.status.success(), "{}", outcome.status);
        let departures = outcome.stdout_text().lines().filter_map(Departure::from_line).collect();
        let observation = String::from_utf8_lossy(&outcome.files[deployed::OBSERVATION]).into_owned();
        (departures, Observation::from_json(&observation, deployed::OBSERVATION).unwrap())
    })
}

/// Returns the interval of the gate for messages in the cycle of an interface, in nanoseconds.
fn gate(plan: &Plan, interface: &str) -> Range<i64> {
    let list = plan.gates.iter().find(|list| list.interface == interface).unwrap();
    let mut start = 0;
    for entry in &list.entries {
        let end = start + entry.length.as_nanos();
        if entry.open.iter().any(|class| class == "control") {
            return start..end;
        }
        start = end;
    }
    panic!("no gate in {list:?}")
}

/// Checks that the tables and gates of two machines follow one clock, which linuxptp keeps on both. A message of each
/// machine leaves when its gate opens on `CLOCK_TAI`. That is at the same virtual instant as the message of the other
/// machine. It is there before its receiver's window.
#[test]
#[ignore = "needs the lab, takes long"]
fn full_two_machines_open_their_gates_at_one_time() {
    let plan = plan();
    let cycle = plan.cycle.as_nanos();
    let cycles = RUN_S as i64 * SECOND as i64 / cycle;
    let both = deploy(&plan, -25_200_000);
    for ((departures, observation), (host, receiver)) in both.iter().zip([("leads", "learn"), ("follows", "hear")]) {
        let gate = gate(&plan, host);
        let phases = || departures.iter().map(|one| one.tai_ns.rem_euclid(cycle));
        let (first, last) = (phases().min().expect("messages"), phases().max().expect("messages"));
        println!("{host}: messages left {} to {} ns after their gate opened", first - gate.start, last - gate.start);
        assert!(gate.contains(&first) && gate.contains(&last), "{host}: {first} to {last} in {gate:?}");
        assert_eq!(departures.len() as i64, cycles, "{host}");

        let clock = observation.clock.expect("a table on CLOCK_TAI");
        println!("{host}: {clock:?}");
        assert_eq!((clock.tai_offset_s, clock.synchronised), (37, host == "follows"));
        assert_eq!(observation.gates[0].tier, GateTier::Exact);
        let received = observation.tasks.iter().find(|task| task.name == receiver).expect("the receiver");
        // The machines do not start in the same cycle. A job that waited for the first message ends a cycle late, and so
        // do all after it. Each one ends in a window that begins after its message is there.
        let ends: Vec<Duration> = received.jobs.iter().filter_map(|job| Some(job.end? - job.nominal)).collect();
        assert!(ends.len() + 10 > received.jobs.len(), "{host}: {} jobs of `{receiver}` have ended", ends.len());
        assert!(ends.iter().all(|end| end.as_nanos() % cycle < HEARD_NS), "{host}: {ends:?}");
    }
    let leave = both.map(|(departures, _)| departures.iter().map(|one| one.virtual_ns as u64).collect());
    let (least, most) = extremes(&apart(&leave), |_| true);
    println!("apart: {least} to {most} ns");
    assert!(least.abs().max(most.abs()) < ALIGNED_NS, "{least} to {most} ns");
}
