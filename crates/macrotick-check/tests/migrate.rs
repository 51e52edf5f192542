//! The judge on tasks with windows on several CPUs.

use macrotick_check::{check, Violation};
use macrotick_fixtures::{by_hand, described, ms, table, us, window};
use macrotick_model::{Lead, Plan};

/// Makes a plan of task `a` with 2 ms in every 10 ms on two CPUs. Windows are `(cpu, offset, length, flags)` in
/// microseconds.
fn plan(keys: &str, lead: i64, windows: &[(u32, i64, i64, &str)]) -> Plan {
    let text = format!("system: tiny\ncpus: [0, 1]\ntasks:\n  - {{name: a, wcet: 2ms, period: 10ms{keys}}}\n");
    let mut system = described(&text);
    system.lead = (lead > 0).then_some(Lead::Fixed(us(lead)));
    let window = |&(_, offset, length, flags): &(u32, i64, i64, &str)| window("a", us(offset), us(length), flags);
    let table = |cpu| table(cpu, windows.iter().filter(|window| window.0 == cpu).map(window));
    by_hand(system, ms(10), vec![table(0), table(1)])
}

fn violations(plan: &Plan) -> String {
    check(plan).violations.iter().map(|violation| format!("{violation}\n")).collect()
}

const MIGRATE: &str = ", migrate: true";

fn parallel(offset: &str, cpu: u32, begin: &str, end: &str) -> String {
    let other = 1 - cpu;
    format!(
        "task `a`: the window at {offset} on CPU {cpu} starts, including its lead, at {begin}. A window on CPU {other} \
         ends later, at {end}\n"
    )
}

#[test]
fn a_job_goes_on_on_another_cpu_if_it_may() {
    let windows = [(0, 1000, 500, "A"), (1, 1500, 1000, ""), (0, 2500, 500, "D")];
    assert_eq!(violations(&plan(MIGRATE, 0, &windows)), "");
    let verdict = check(&plan(MIGRATE, 0, &windows));
    assert_eq!((verdict.tasks[0].jobs, verdict.tasks[0].response), (1, us(2000)));
    assert_eq!(violations(&plan("", 0, &windows)), "task `a` has windows on CPU 1 and on CPU 0\n");
}

#[test]
fn windows_on_two_cpus_never_overlap() {
    let windows = |second| [(0, 1000, 1000, "A"), (1, second, 1000, "D")];
    assert_eq!(violations(&plan(MIGRATE, 0, &windows(2000))), "");
    assert_eq!(violations(&plan(MIGRATE, 0, &windows(1999))), parallel("1999us", 1, "1999us", "2ms"));
    // The window on one CPU contains the window on the other.
    let within = [(0, 1000, 1000, "A"), (1, 1100, 100, ""), (1, 5000, 1000, "D")];
    assert_eq!(violations(&plan(MIGRATE, 0, &within)), parallel("1100us", 1, "1100us", "2ms"));
}

#[test]
fn a_window_between_hides_no_overlap() {
    let windows = [(0, 1000, 2000, "A"), (1, 1100, 100, ""), (1, 2900, 500, "D")];
    let expected = parallel("1100us", 1, "1100us", "3ms") + &parallel("2900us", 1, "2900us", "3ms");
    assert_eq!(violations(&plan(MIGRATE, 0, &windows)), expected);
}

#[test]
fn a_lead_begins_after_the_window_on_the_other_cpu() {
    // A cycle has two jobs, each on its own CPU.
    let keys = ", migrate: true, offset: 1ms";
    let windows = |second| [(0, 1000, 2000, "AD"), (1, second, 2000, "AD")];
    let mut two = plan(keys, 20, &windows(11_000));
    two.cycle = ms(20);
    assert_eq!(violations(&two), "");
    let job = |first: i64, lead| plan(MIGRATE, lead, &[(0, 0, 1000, "D"), (1, first, 1000, "A")]);
    let late = "task `a`, job 0: ends at 11ms, but its deadline is 10ms\n";
    assert_eq!(violations(&job(1020, 20)), late);
    assert_eq!(violations(&job(1019, 20)), parallel("1019us", 1, "999us", "1ms") + late);
    // A window that continues a job needs no lead.
    assert_eq!(violations(&plan(MIGRATE, 20, &[(0, 1000, 1000, "A"), (1, 2000, 1000, "D")])), "");
}

#[test]
fn the_lead_of_the_first_window_reaches_back_to_the_other_cpu() {
    let windows = |first: i64, end: i64| [(0, first, 1000, "A"), (1, end - 1000, 1000, "D")];
    assert_eq!(violations(&plan(MIGRATE, 20, &windows(20, 10_000))), "");
    assert_eq!(violations(&plan(MIGRATE, 20, &windows(10, 9990))), "");
    assert_eq!(violations(&plan(MIGRATE, 20, &windows(10, 9991))), parallel("10us", 0, "-10us", "-9us"));
}

#[test]
fn the_violation_serialises() {
    let verdict = check(&plan(MIGRATE, 0, &[(0, 1000, 1000, "A"), (1, 1500, 1000, "D")]));
    let json = serde_json::to_string(&verdict.violations).expect("serialisable");
    let expected =
        r#"[{"rule":"parallel","task":"a","cpu":1,"offset":"1500us","begin":"1500us","other":0,"end":"2ms"}]"#;
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_str::<Vec<Violation>>(&json).expect("readable"), verdict.violations);
}
