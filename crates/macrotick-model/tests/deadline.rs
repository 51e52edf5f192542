//! Tasks of SCHED_DEADLINE, in a description and in a plan file.

use macrotick_fixtures::{by_hand, reserved};
use macrotick_model::{Duration, Plan, Reservation, System};

fn described(task: &str) -> System {
    let source = format!(
        "system: s\ncpus: [0, 1]\ntasks:\n  - {{name: w, period: 10ms, wcet: 1ms}}\n  - {{name: d, period: 33ms, wcet: 5ms, \
         {task}}}\n"
    );
    System::parse(&source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn reservation(system: &System) -> &Reservation {
    system.tasks[1].reservation().expect("a reservation")
}

#[test]
fn what_is_left_out_has_its_default() {
    let system = described("supply: deadline");
    let runtime = Duration::from_micros(5110);
    assert_eq!(system.tasks[1].supply, reserved(runtime, &[]));
    assert_eq!(reservation(&described("deadline: 5ms, supply: deadline")).runtime, Duration::from_millis(5));
    assert_eq!(Reservation::default_runtime(Duration::from_nanos(1), runtime), Duration::from_nanos(10_001));
    assert_eq!(system.windowed().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["w"]);
    assert_eq!(system.hyperperiod(), Some(Duration::from_millis(10)), "it is no part of the table");
}

#[test]
fn one_cpu_and_several_are_sets() {
    let cpus = |cpus| reservation(&described(&format!("supply: {{deadline: {{cpus: {cpus}}}}}"))).cpus.to_string();
    assert_eq!([cpus("[1]"), cpus("[1, 0]")], ["1", "0, 1"]);
}

#[test]
fn the_normal_form_is_read_back() {
    for keys in [
        "supply: deadline",
        "supply: {deadline: {cpus: [1]}}",
        "supply: {deadline: {cpus: [0, 1], runtime: 6ms}}, deadline: 20ms, priority: 3",
    ] {
        let system = described(keys);
        let text = system.to_yaml();
        let again = System::parse(&text, "again.yaml").unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        assert_eq!(again, system, "{text}");
    }
    let source = "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms, supply: windows}\n";
    let text = System::parse(source, "s.yaml").expect("valid").to_yaml();
    assert!(text.contains("supply: windows") && !text.contains("runtime"), "{text}");
}

#[test]
fn a_plan_has_its_jobs_and_cpus_without_windows() {
    let system = described("supply: {deadline: {cpus: [0, 1]}}, deadline: 20ms");
    let cycle = Duration::from_millis(10);
    let plan = by_hand(system, cycle, Vec::new());
    let jobs = plan.jobs("d");
    assert_eq!(jobs.len(), 1);
    assert_eq!((jobs[0].nominal, jobs[0].deadline), (Duration::ZERO, Duration::from_millis(20)));
    assert_eq!([plan.repetition("d"), plan.repetition("w")], [Duration::from_millis(33), cycle]);
    assert_eq!(plan.cpus("d").as_slice(), [0, 1]);
    let text = plan.to_json();
    assert_eq!(Plan::from_json(&text, "plan.json").expect("a valid plan"), plan);
    let long = text.replace("\"runtime\": \"5110us\"", "\"runtime\": \"21ms\"");
    assert_ne!(long, text);
    let error = Plan::from_json(&long, "plan.json").expect_err("too long").to_string();
    assert_eq!(
        error,
        "plan.json: system.tasks[1].supply.deadline.runtime: runtime 21ms is longer than the deadline 20ms"
    );
}
