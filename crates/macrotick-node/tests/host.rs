//! Runs on this host. These tests check functions only: none of them checks speed or punctuality.
//!
//! The test has its own main, because a run executes the binary again with the verbs `task` and `process`. A test that
//! needs root or a kernel feature is reported as skipped where this is missing.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use macrotick_fixtures::{self as fixtures, by_hand, ms, spin, tables, us, window};
use macrotick_host::{sys, HostFailure};
use macrotick_model::{
    Backend, Duration, ExecutionTime, Experiment, Group, Job, Load, Observation, OnMiss, Periodic, PingFlood, Plan,
    Policy, Process, Program, System, Task, Tier, UdpReceive, UdpSend, Workload,
};
use macrotick_node::{processes, run, task, NodeError, Progress, RunOptions};

/// The result of a test: it ran, or the reason why it could not.
enum Verdict {
    Passed,
    Skipped(&'static str),
}

type Test = (&'static str, fn() -> Verdict);

const TESTS: &[Test] = &[
    ("every_job_is_recorded", every_job_is_recorded),
    ("all_stock_policies_run_the_plan", all_stock_policies_run_the_plan),
    ("the_dispatcher_runs_the_plan", the_dispatcher_runs_the_plan),
    ("the_dispatcher_survives_an_overrun", the_dispatcher_survives_an_overrun),
    ("a_dispatcher_that_is_ended_is_remarked", a_dispatcher_that_is_ended_is_remarked),
    ("a_program_is_a_task", a_program_is_a_task),
    ("a_program_that_leaves_is_remarked", a_program_that_leaves_is_remarked),
    ("without_the_class_nothing_is_begun_anew", without_the_class_nothing_is_begun_anew),
    ("a_program_that_fails_at_the_end_is_remarked", a_program_that_fails_at_the_end_is_remarked),
    ("whoever_spins_is_ended_with_the_run", whoever_spins_is_ended_with_the_run),
    (
        "whoever_spins_with_the_runners_priority_is_ended_with_the_run",
        whoever_spins_with_the_runners_priority_is_ended_with_the_run,
    ),
    ("a_program_that_leaves_and_goes_on_is_remarked", a_program_that_leaves_and_goes_on_is_remarked),
    ("a_program_that_overwrites_its_records_loses_them", a_program_that_overwrites_its_records_loses_them),
    ("whoever_is_too_slow_for_the_epoch_gets_another", whoever_is_too_slow_for_the_epoch_gets_another),
    ("a_program_under_another_name_is_refused", a_program_under_another_name_is_refused),
    ("a_task_that_dies_early_is_named", a_task_that_dies_early_is_named),
    ("a_task_that_is_not_ready_is_named", a_task_that_is_not_ready_is_named),
    ("records_beyond_the_buffer_are_remarked", records_beyond_the_buffer_are_remarked),
    ("datagrams_reach_the_receiver", datagrams_reach_the_receiver),
    ("datagrams_pass_between_namespaces", datagrams_pass_between_namespaces),
    ("every_load_runs", every_load_runs),
    ("more_processes_than_open_files_are_run", more_processes_than_open_files_are_run),
    ("a_program_of_the_load_that_ends_is_remarked", a_program_of_the_load_that_ends_is_remarked),
    ("the_load_of_a_pool_runs_without_the_class", the_load_of_a_pool_runs_without_the_class),
    ("the_dispatcher_refuses_a_pool", the_dispatcher_refuses_a_pool),
    ("a_signal_ends_the_run_early", a_signal_ends_the_run_early),
    ("nothing_outlives_a_killed_runner", nothing_outlives_a_killed_runner),
    ("progress_is_told", progress_is_told),
    ("a_second_run_is_refused", a_second_run_is_refused),
    ("without_the_class_the_kernel_backend_says_so", without_the_class_the_kernel_backend_says_so),
    ("a_trace_shows_the_tasks", a_trace_shows_the_tasks),
    ("the_header_is_clean_c_and_cpp", the_header_is_clean_c_and_cpp),
    ("a_table_removed_in_a_job_ends_the_next_wait", a_table_removed_in_a_job_ends_the_next_wait),
    ("a_job_released_in_a_job_begins_after_it", a_job_released_in_a_job_begins_after_it),
    ("a_task_finds_its_counters_by_its_name", a_task_finds_its_counters_by_its_name),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(task::VERB) => return task::main(),
        Some(processes::VERB) => return processes::main(),
        Some(VICTIM) => return victim(),
        _ => {}
    }
    if arguments.iter().any(|argument| argument == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let choice = Choice::parse(arguments);
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| choice.takes(name)) {
        match catch_unwind(AssertUnwindSafe(|| {
            let verdict = test();
            assert_no_children();
            verdict
        })) {
            Ok(Verdict::Passed) => println!("test {name} ... ok"),
            Ok(Verdict::Skipped(why)) => println!("test {name} ... skipped: {why}"),
            Err(_) => {
                println!("test {name} ... FAILED");
                failed += 1;
            }
        }
    }
    // The system removes the remaining files later.
    let _ = std::fs::remove_dir_all(scratch());
    ExitCode::from(u8::from(failed > 0))
}

/// The selection of tests by parts of their names, as on libtest's command line.
#[derive(Default)]
struct Choice {
    wanted: Vec<String>,
    skipped: Vec<String>,
}

impl Choice {
    fn parse(arguments: Vec<String>) -> Choice {
        let mut choice = Choice::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix("--skip") {
                Some("") => choice.skipped.extend(arguments.next()),
                Some(name) => choice.skipped.push(name.trim_start_matches('=').into()),
                None if argument.starts_with('-') => {}
                None => choice.wanted.push(argument),
            }
        }
        choice
    }

    fn takes(&self, name: &str) -> bool {
        let among = |parts: &[String]| parts.iter().any(|part| name.contains(part.as_str()));
        (self.wanted.is_empty() || among(&self.wanted)) && !among(&self.skipped)
    }
}

/// Checks that no process is left after a run, whether the run failed or not.
fn assert_no_children() {
    // SAFETY: only asks; writes nothing.
    let result = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(result, -1, "a process was left behind");
}

fn is_root() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// Marks the victim's processes in their environment, and names the directory of the test's files.
const MARK: &str = "MACROTICK_HOST_TEST";

fn scratch() -> PathBuf {
    let owner = std::env::var(MARK).unwrap_or_else(|_| std::process::id().to_string());
    let directory = std::env::temp_dir().join(format!("macrotick-host-test-{owner}"));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn options(backend: Backend) -> RunOptions {
    let mut options = RunOptions::new(backend);
    options.lock = Some(scratch().join("lock"));
    // Other tests may keep the machine busy.
    options.start_delay = ms(400);
    options
}

/// Options for tests that need every task to run. On a busy machine SCHED_OTHER may get the CPU late.
fn unhurried_options() -> RunOptions {
    RunOptions { duration: Some(ms(1000)), ..options(Backend::Other) }
}

/// A task every 10 ms with one window.
struct Row(&'static str, Workload, i64, i64);

/// Returns a plan with a cycle of 10 ms on the first CPU. A row has name, workload, offset and length in us.
fn plan(rows: Vec<Row>, load: Vec<Process>) -> Plan {
    let mut windows = Vec::new();
    let mut tasks = Vec::new();
    for Row(name, workload, offset, length) in rows {
        windows.push(window(name, us(offset), us(length), "AD"));
        tasks.push(Task { cpu: Some(0), run: workload, ..Task::named(name, ms(10), us(length)) });
    }
    let (macrotick, duration) = (us(10), ms(200));
    let system =
        System { macrotick, experiment: Experiment { duration }, load, ..fixtures::system("host test", tasks) };
    by_hand(system, ms(10), tables(windows))
}

fn two_tasks() -> Plan {
    plan(vec![Row("a", spin(us(100)), 500, 1000), Row("b", spin(us(200)), 2000, 1000)], Vec::new())
}

fn observe(plan: &Plan, options: &RunOptions) -> Result<Observation, NodeError> {
    run(plan, options, &mut |_| {})
}

/// Checks that the list is complete and time goes forward. This holds for every observation, whatever the timing.
fn assert_sound(observation: &Observation) {
    for (task, windows) in observation.tasks.iter().zip(&observation.plan.tables[0].windows) {
        let cycles = observation.duration / observation.plan.cycle;
        assert_eq!(task.jobs.len() as i64, cycles, "{}: {:?}", task.name, observation.remarks);
        for (number, job) in task.jobs.iter().enumerate() {
            assert_eq!(job.job, number as u64);
            assert_eq!(job.nominal, observation.plan.cycle * number as i64 + windows.offset);
            assert!(job.start.is_none_or(|start| start >= job.nominal), "{job:?}");
            assert!(job.end.is_none_or(|end| Some(end) >= job.start && job.start.is_some()), "{job:?}");
        }
        let mut done = task.jobs.iter().filter_map(|job| job.start);
        let first = done.next();
        assert!(first.is_some(), "{} never ran", task.name);
        assert!(done.try_fold(first.unwrap(), |last, start| (start >= last).then_some(start)).is_some());
    }
}

fn completed(jobs: &[Job]) -> usize {
    jobs.iter().filter(|job| job.end.is_some()).count()
}

fn every_job_is_recorded() -> Verdict {
    let observation = observe(&two_tasks(), &unhurried_options()).unwrap();
    assert_sound(&observation);
    assert_eq!(observation.tier, Tier::NotEnforced);
    assert_eq!(observation.remarks, Vec::<String>::new());
    assert!(completed(&observation.tasks[0].jobs) > 0);
    Verdict::Passed
}

fn all_stock_policies_run_the_plan() -> Verdict {
    if !is_root() {
        return Verdict::Skipped("needs root");
    }
    for backend in [Backend::Fifo, Backend::Deadline] {
        let observation = observe(&two_tasks(), &options(backend)).unwrap();
        assert_sound(&observation);
        assert_eq!((observation.backend, observation.tier), (backend, Tier::NotEnforced));
    }
    Verdict::Passed
}

fn the_dispatcher_runs_the_plan() -> Verdict {
    if !is_root() {
        return Verdict::Skipped("needs root");
    }
    let observation = observe(&two_tasks(), &options(Backend::User)).unwrap();
    assert_sound(&observation);
    assert_eq!(observation.tier, Tier::UserSpaceDispatcher);
    Verdict::Passed
}

/// Each job has the work of two jobs. The task falls behind and is demoted at the end of every window, without effect
/// on the other task. Every job that runs keeps its number.
fn the_dispatcher_survives_an_overrun() -> Verdict {
    if !is_root() {
        return Verdict::Skipped("needs root");
    }
    let hog = load("hog", 1, Policy::Other(0), Load::Hog);
    let rows = vec![Row("over", spin(us(1500)), 500, 1000), Row("good", spin(us(100)), 1500, 1000)];
    let observation = observe(&plan(rows, vec![hog]), &options(Backend::User)).unwrap();
    assert_sound(&observation);
    assert_eq!(observation.remarks, Vec::<String>::new());
    Verdict::Passed
}

/// The dispatcher has no handler of the runner, which would keep it alive and the runner awake.
fn a_dispatcher_that_is_ended_is_remarked() -> Verdict {
    if !is_root() {
        return Verdict::Skipped("needs root");
    }
    let options = RunOptions { progress_every: Some(ms(50)), ..options(Backend::User) };
    let mut dispatcher = None;
    let observation = run(&two_tasks(), &options, &mut |progress| {
        if matches!(progress, Progress::Running { .. }) && dispatcher.is_none() {
            dispatcher = child_named("mt-dispatcher");
            // SAFETY: sends a signal to a child of this process.
            dispatcher.iter().for_each(|pid| assert_eq!(unsafe { libc::kill(*pid, libc::SIGTERM) }, 0));
        }
    })
    .unwrap();
    let [remark] = observation.remarks.as_slice() else { panic!("{:?}", observation.remarks) };
    assert!(remark.starts_with("`dispatcher/0` ended during the run (signal: 15"), "{remark}");
    Verdict::Passed
}

/// Returns a process that this one started, by its name.
fn child_named(name: &str) -> Option<i32> {
    let children = format!("/proc/self/task/{}/children", std::process::id());
    let children = std::fs::read_to_string(children).unwrap();
    let mut pids = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    pids.find(|pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|text| text.trim() == name))
}

/// Compiles one of the example tasks.
fn compile(source: &str) -> String {
    compile_in(&root().join("examples/tasks"), source)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn compile_hostile() -> String {
    compile_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"), "hostile.c")
}

fn compile_in(folder: &Path, source: &str) -> String {
    let root = root();
    let program = scratch().join(Path::new(source).file_stem().unwrap());
    let status = Command::new("cc")
        .args(["-O2", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-o"])
        .arg(&program)
        .arg(folder.join(source))
        .arg(format!("-I{}", root.join("include").display()))
        .arg(format!("-I{}", root.join("kernel/overlay/include/uapi").display()))
        .status()
        .unwrap();
    assert!(status.success(), "{source} does not compile");
    program.to_str().unwrap().to_string()
}

fn program(command: &[&str]) -> Workload {
    Workload::Program(Program::new(command.iter().copied()))
}

fn a_program_is_a_task() -> Verdict {
    let rows = vec![
        Row("controller", program(&[&compile("controller.c")]), 500, 1000),
        Row("other", program(&[&compile("minimal.c")]), 2000, 1000),
    ];
    let observation = observe(&plan(rows, Vec::new()), &options(Backend::Other)).unwrap();
    assert_sound(&observation);
    assert_eq!(observation.remarks, Vec::<String>::new());
    Verdict::Passed
}

fn a_program_that_leaves_is_remarked() -> Verdict {
    let rows = vec![Row("short", program(&[&compile("minimal.c"), "3"]), 500, 1000)];
    let observation = observe(&plan(rows, Vec::new()), &options(Backend::Other)).unwrap();
    let [remark] = observation.remarks.as_slice() else { panic!("{:?}", observation.remarks) };
    assert!(remark.starts_with("`short` ended during the run (exit status: 0): 3 jobs"), "{remark}");
    assert_eq!(completed(&observation.tasks[0].jobs), 3);
    assert_eq!(observation.tasks[0].jobs.len(), 20);
    Verdict::Passed
}

fn without_the_class_nothing_is_begun_anew() -> Verdict {
    let mut plan = plan(vec![Row("short", program(&[&compile("minimal.c"), "3"]), 500, 1000)], Vec::new());
    plan.system.tasks[0].on_miss = OnMiss::Restart;
    let observation = observe(&plan, &options(Backend::Other)).unwrap();
    let [remark] = observation.remarks.as_slice() else { panic!("{:?}", observation.remarks) };
    assert!(remark.starts_with("`short` ended during the run (exit status: 0): 3 jobs"), "{remark}");
    assert_eq!(completed(&observation.tasks[0].jobs), 3);
    Verdict::Passed
}

fn a_program_that_fails_at_the_end_is_remarked() -> Verdict {
    // The program ends while the runner waits for the others, which end before it.
    let rows = vec![Row("a", spin(us(100)), 2000, 1000), Row("bad", program(&[&compile_hostile()]), 500, 1000)];
    let observation = observe(&plan(rows, Vec::new()), &options(Backend::Other)).unwrap();
    assert_sound(&observation);
    let [remark] = observation.remarks.as_slice() else { panic!("{:?}", observation.remarks) };
    assert!(remark.starts_with("`bad` failed at the end of the run (exit status: 5): "), "{remark}");
    assert!(remark.ends_with(": no more jobs"), "{remark}");
    Verdict::Passed
}

/// The program spins on the CPU of a task that cannot end before, under every policy. Its child, which left its process
/// group, does the same.
fn whoever_spins_is_ended_with_the_run() -> Verdict {
    let hostile = compile_hostile();
    let policies = [Backend::Other, Backend::Fifo, Backend::User, Backend::Deadline];
    for backend in policies.into_iter().filter(|backend| is_root() || *backend == Backend::Other) {
        let file = scratch().join("child");
        let _ = std::fs::remove_file(&file);
        let rows = vec![
            Row("t", program(&[&hostile, file.to_str().unwrap()]), 500, 1000),
            Row("b", spin(us(100)), 2000, 1000),
        ];
        let mut end = None;
        let options = RunOptions { duration: Some(ms(500)), ..options(backend) };
        let observation = run(&plan(rows, Vec::new()), &options, &mut |progress| {
            if matches!(progress, Progress::Collecting) {
                end = Some(std::time::Instant::now());
            }
        })
        .unwrap();
        let took = end.unwrap().elapsed();
        // The end takes half a second, but the machine may be busy.
        assert!(took < std::time::Duration::from_secs(5), "{backend:?}: the end takes {took:?}");
        let child: i32 = std::fs::read_to_string(&file).unwrap().parse().unwrap();
        let told = format!("process {child} (`hostile`), left behind by a task or a load, was killed at the end");
        assert!(observation.remarks.contains(&told), "{backend:?}: {:?}", observation.remarks);
        // SAFETY: only asks.
        assert_eq!(unsafe { libc::kill(child, 0) }, -1, "{backend:?}: the child is there");
    }
    Verdict::Passed
}

/// The program spins on the runner's only CPU. A thread under SCHED_FIFO does not give way to threads with the same
/// priority.
fn whoever_spins_with_the_runners_priority_is_ended_with_the_run() -> Verdict {
    if !is_root() {
        return Verdict::Skipped("needs root");
    }
    let file = scratch().join("equal");
    let rows = vec![Row("t", program(&[&compile_hostile(), file.to_str().unwrap(), "equal"]), 500, 1000)];
    let options = RunOptions { duration: Some(ms(500)), ..options(Backend::Other) };
    let before = sys::affinity(0).unwrap();
    sys::pin(0, &[0]).unwrap();
    let begin = std::time::Instant::now();
    let observation = run(&plan(rows, Vec::new()), &options, &mut |_| {});
    let took = begin.elapsed();
    sys::pin(0, before.as_slice()).unwrap();
    let remarks = observation.unwrap().remarks;
    // The run takes two seconds, but the machine may be busy.
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
    let told = "(`hostile`) had priority 99 and kept the runner from running: it has SCHED_OTHER now";
    assert!(remarks.iter().any(|remark| remark.ends_with(told)), "{remarks:?}");
    Verdict::Passed
}

fn a_program_that_leaves_and_goes_on_is_remarked() -> Verdict {
    let rows = vec![Row("t", program(&[&compile_hostile(), "leave"]), 500, 1000)];
    let observation = observe(&plan(rows, Vec::new()), &options(Backend::Other)).unwrap();
    let told = "task `t`: its thread has left by macrotick_leave(), which ended its jobs, but its process continues";
    assert_eq!(observation.remarks, [told]);
    assert_eq!(completed(&observation.tasks[0].jobs), 3);
    Verdict::Passed
}

fn a_program_that_overwrites_its_records_loses_them() -> Verdict {
    let rows =
        vec![Row("bad", program(&[&compile_hostile(), "overwrite"]), 500, 1000), Row("b", spin(us(100)), 2000, 1000)];
    let observation = observe(&plan(rows, Vec::new()), &options(Backend::Other)).unwrap();
    let told =
        "task `bad`: its program has overwritten the memory that it shares with the runner: its records are lost";
    assert!(observation.remarks.iter().any(|remark| remark == told), "{:?}", observation.remarks);
    assert_eq!([0, 1].map(|task| completed(&observation.tasks[task].jobs) > 0), [false, true]);
    assert!(!observation.tasks[0].jobs.is_empty());
    Verdict::Passed
}

fn whoever_is_too_slow_for_the_epoch_gets_another() -> Verdict {
    let options = RunOptions { start_delay: ms(-3000), ..unhurried_options() };
    let mut starts = 0;
    let observation =
        run(&two_tasks(), &options, &mut |progress| starts += u32::from(matches!(progress, Progress::Starting)))
            .unwrap();
    assert_sound(&observation);
    assert!(starts > 1, "{starts} starts");
    Verdict::Passed
}

fn a_program_under_another_name_is_refused() -> Verdict {
    let rows = vec![Row("brake", program(&[&compile("controller.c")]), 500, 1000)];
    match observe(&plan(rows, Vec::new()), &options(Backend::Other)) {
        Err(NodeError::Died { name, output, .. }) => {
            assert_eq!((name.as_str(), output.0.as_str()), ("brake", "controller: cannot join: Invalid argument"));
        }
        other => panic!("{other:?}"),
    }
    Verdict::Passed
}

fn a_task_that_dies_early_is_named() -> Verdict {
    let rows = vec![
        Row("good", spin(us(100)), 500, 1000),
        Row("broken", program(&["/bin/sh", "-c", "echo no sensor >&2; exit 7"]), 2000, 1000),
    ];
    let error = observe(&plan(rows, Vec::new()), &options(Backend::Other)).unwrap_err();
    assert_eq!(error.to_string(), "`broken` ended before the run began (exit status: 7)\n  | no sensor");
    Verdict::Passed
}

fn a_task_that_is_not_ready_is_named() -> Verdict {
    let rows = vec![Row("slow", program(&["/bin/sh", "-c", "echo thinking; sleep 1000"]), 500, 1000)];
    let mut options = options(Backend::Other);
    options.ready_limit = ms(300);
    let error = observe(&plan(rows, Vec::new()), &options).unwrap_err();
    assert_eq!(error.to_string(), "`slow` was not ready within 300ms: its process sleeps\n  | thinking");
    let rows = vec![Row("still", program(&["/bin/sh", "-c", "kill -STOP $$"]), 500, 1000)];
    let error = observe(&plan(rows, Vec::new()), &options).unwrap_err();
    assert_eq!(error.to_string(), "`still` was not ready within 300ms: its process is stopped (SIGSTOP)");
    Verdict::Passed
}

fn records_beyond_the_buffer_are_remarked() -> Verdict {
    let mut options = options(Backend::Other);
    options.record_limit = Some(3);
    let observation = observe(&two_tasks(), &options).unwrap();
    // A job that never started has no record, and takes no room.
    for task in &observation.tasks {
        assert_eq!(task.jobs.iter().filter(|job| job.start.is_some()).count(), 3, "{task:?}");
        let until = task.recorded_until.unwrap();
        assert!(task.jobs.iter().all(|job| job.nominal < until), "{task:?}");
        let remark = format!("task `{}`: there was room for the records of the first {until} only", task.name);
        assert!(observation.remarks.contains(&remark), "{:?}", observation.remarks);
    }
    Verdict::Passed
}

fn datagrams_reach_the_receiver() -> Verdict {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let spin = ExecutionTime::Fixed(us(50));
    let rows = vec![
        Row("send", Workload::UdpSend(UdpSend { spin: spin.clone(), to: address.clone() }), 500, 1000),
        Row("receive", Workload::UdpReceive(UdpReceive { spin, at: address }), 2000, 1000),
    ];
    let observation = observe(&plan(rows, Vec::new()), &unhurried_options()).unwrap();
    assert_sound(&observation);
    let (sent, received) = (completed(&observation.tasks[0].jobs), completed(&observation.tasks[1].jobs));
    assert!(received > 0 && received <= sent, "{received} of {sent}");
    Verdict::Passed
}

/// The receiver's namespace answers the flood. Otherwise the flood would end.
fn datagrams_pass_between_namespaces() -> Verdict {
    if !is_root() {
        return Verdict::Skipped("needs root");
    }
    let spin = ExecutionTime::Fixed(us(50));
    let to = "10.213.7.2:5000".to_string();
    let rows = vec![
        Row("send", Workload::UdpSend(UdpSend { spin: spin.clone(), to: to.clone() }), 500, 1000),
        Row("receive", Workload::UdpReceive(UdpReceive { spin, at: to }), 2000, 1000),
    ];
    let flood = Load::PingFlood(PingFlood { to: "10.213.7.2".into(), bytes: 6000 });
    let flood = Process { namespace: Some("left".into()), ..load("flood", 1, Policy::Other(10), flood) };
    let mut plan = plan(rows, vec![flood]);
    for (index, name) in ["left", "right"].into_iter().enumerate() {
        plan.system.namespaces.push(fixtures::namespace(name, &format!("10.213.7.{}/24", index + 1)));
        plan.system.tasks[index].namespace = Some(name.into());
    }
    let observation = match observe(&plan, &unhurried_options()) {
        Err(NodeError::Host(HostFailure::Network(_))) => {
            return Verdict::Skipped("this host cannot make network namespaces")
        }
        result => result.unwrap(),
    };
    assert_sound(&observation);
    let (sent, received) = (completed(&observation.tasks[0].jobs), completed(&observation.tasks[1].jobs));
    assert!(received > 0 && received <= sent, "{received} of {sent}");
    assert_eq!(observation.remarks, Vec::<String>::new());
    assert!(!Path::new("/run/netns/macrotick-left").exists() && !Path::new("/sys/class/net/macrotick").exists());
    Verdict::Passed
}

fn load(name: &str, count: u32, policy: Policy, load: Load) -> Process {
    Process { count, cpu: Some(0), policy, ..Process::named(name, load) }
}

fn every_load_runs() -> Verdict {
    let sleeper = Load::Program(Program::new(["sleep", "1000"]));
    let loads = vec![
        load("hog", 2, Policy::Other(10), Load::Hog),
        load("calls", 1, Policy::Other(10), Load::Syscalls),
        load("periodic", 1, Policy::Other(0), Load::Periodic(Periodic { period: ms(5), run: us(100) })),
        load("sleeper", 1, Policy::Other(0), sleeper),
    ];
    let plan = plan(vec![Row("a", spin(us(100)), 500, 1000)], loads);
    let observation = observe(&plan, &unhurried_options()).unwrap();
    assert_sound(&observation);
    assert_eq!(observation.remarks, Vec::<String>::new());
    Verdict::Passed
}

/// Each process takes files of the runner. The processes have the limit from before.
fn more_processes_than_open_files_are_run() -> Verdict {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one rlimit, and reads another one.
    let limit = |limit: &libc::rlimit| unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) == 0 };
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut before) }, 0);
    if before.rlim_max < 1024 {
        return Verdict::Skipped("needs 1024 open files");
    }
    assert!(limit(&libc::rlimit { rlim_cur: 64, ..before }));
    let program = Load::Program(Program::new(["sh", "-c", "test $(ulimit -n) = 64 || exit 4; exec sleep 99"]));
    let loads = vec![load("many", 60, Policy::Other(10), program)];
    let plan = plan(vec![Row("a", spin(us(100)), 500, 1000)], loads);
    let observation = observe(&plan, &unhurried_options());
    assert!(limit(&before));
    let observation = observation.unwrap_or_else(|error| panic!("{}", error.with_reason()));
    assert_sound(&observation);
    assert_eq!(observation.remarks, Vec::<String>::new());
    Verdict::Passed
}

fn a_program_of_the_load_that_ends_is_remarked() -> Verdict {
    let user = is_root().then(|| "54321".to_string());
    let own = format!("$(id -u) = {}", user.as_deref().unwrap_or("$(id -u)"));
    let script =
        format!("test -z \"$MACROTICK_SHM\" && test \"$MODE\" = 'a b' && test \"$PWD\" = / && test {own} && exit 4");
    let (env, directory) = (vec!["MODE=a b".into()], Some("/".into()));
    let short = Load::Program(Program { env, directory, user, ..Program::new(["sh", "-c", &script]) });
    let loads = vec![load("short", 1, Policy::Other(0), short)];
    let plan = plan(vec![Row("a", spin(us(100)), 500, 1000)], loads);
    let observation = observe(&plan, &unhurried_options()).unwrap();
    assert_eq!(observation.remarks, ["`short` ended during the run (exit status: 4)"]);
    Verdict::Passed
}

/// A pool with one window, and a process in it.
fn pooled() -> Plan {
    let mut plan = plan(vec![Row("a", spin(us(100)), 500, 1000)], Vec::new());
    plan.system.groups.push(Group { run: vec![fixtures::hog("hog")], ..fixtures::pool("pool", ms(10), ms(1)) });
    plan.tables[0].windows.push(window("pool", ms(3), ms(1), ""));
    plan
}

fn the_load_of_a_pool_runs_without_the_class() -> Verdict {
    let observation = observe(&pooled(), &unhurried_options()).unwrap();
    assert_sound(&observation);
    assert_eq!((observation.pools, observation.remarks), (Vec::new(), Vec::new()));
    Verdict::Passed
}

fn the_dispatcher_refuses_a_pool() -> Verdict {
    let error = observe(&pooled(), &options(Backend::User)).unwrap_err();
    assert!(matches!(&error, NodeError::PoolBackend { pool, .. } if pool == "pool"), "{error}");
    assert!(error.to_string().starts_with("pool `pool` needs the backend `kernel`: `user` cannot"), "{error}");
    Verdict::Passed
}

fn a_signal_ends_the_run_early() -> Verdict {
    let signals =
        [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP"), (libc::SIGQUIT, "SIGQUIT")];
    signals.into_iter().for_each(|(signal, name)| ends_the_run_early(signal, name));
    Verdict::Passed
}

fn ends_the_run_early(signal: i32, name: &str) {
    // The run leaves the signal ignored under nohup(1), or in a script's background.
    // SAFETY: a disposition without a handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    let mut options = options(Backend::Other);
    options.duration = Some(Duration::from_secs(600));
    options.progress_every = Some(ms(50));
    let mut told = 0;
    let observation = run(&two_tasks(), &options, &mut |progress| {
        if matches!(progress, Progress::Running { .. }) {
            told += 1;
        }
        if told == 2 {
            // SAFETY: the run has caught this signal.
            unsafe { libc::kill(std::process::id() as i32, signal) };
        }
    })
    .unwrap();
    assert!(observation.duration >= ms(100) && observation.duration < Duration::from_secs(600));
    let told = format!("{name} ended the run after ");
    assert!(observation.remarks[0].starts_with(&told), "{:?}", observation.remarks);
    assert_sound(&observation);
}

/// The verb of the process that `nothing_outlives_a_killed_runner` kills.
const VICTIM: &str = "victim";

/// Makes a long run, and prints a line when it has started.
fn victim() -> ExitCode {
    let backend = if is_root() { Backend::User } else { Backend::Other };
    let mut options = options(backend);
    options.duration = Some(Duration::from_secs(600));
    options.progress_every = Some(ms(50));
    let loads = vec![load("hog", 1, Policy::Other(10), Load::Hog)];
    let plan = plan(vec![Row("a", spin(us(100)), 500, 1000)], loads);
    let mut told = false;
    let result = run(&plan, &options, &mut |progress| {
        if matches!(progress, Progress::Running { .. }) && !std::mem::replace(&mut told, true) {
            println!("{VICTIM} runs");
        }
    });
    ExitCode::from(u8::from(result.is_err()))
}

/// Returns the number of living processes with `mark` in their environment.
fn marked(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let environments = processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
    environments.filter(|environment| String::from_utf8_lossy(environment).contains(mark)).count()
}

fn nothing_outlives_a_killed_runner() -> Verdict {
    use std::io::BufRead;
    let mark = format!("{MARK}={}", std::process::id());
    let mut victim = Command::new("/proc/self/exe")
        .arg(VICTIM)
        .env(MARK, std::process::id().to_string())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(victim.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "victim runs");
    // The runner, a task and a hog; with root, a dispatcher.
    assert_eq!(marked(&mark), if is_root() { 4 } else { 3 });
    victim.kill().unwrap();
    victim.wait().unwrap();
    let gone = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        marked(&mark) == 0
    });
    assert!(gone, "{} processes are left", marked(&mark));
    Verdict::Passed
}

fn progress_is_told() -> Verdict {
    let mut options = options(Backend::Other);
    options.progress_every = Some(ms(80));
    let mut told = Vec::new();
    run(&two_tasks(), &options, &mut |progress| told.push(progress)).unwrap();
    let total = ms(200);
    let running = |elapsed| Progress::Running { elapsed: ms(elapsed), total };
    assert_eq!(told, [Progress::Preparing, Progress::Starting, running(80), running(160), Progress::Collecting]);
    Verdict::Passed
}

fn a_second_run_is_refused() -> Verdict {
    let options = options(Backend::Other);
    let mut inner = None;
    run(&two_tasks(), &options, &mut |progress| {
        if progress == Progress::Starting {
            inner = Some(observe(&two_tasks(), &options));
        }
    })
    .unwrap();
    assert!(matches!(inner, Some(Err(NodeError::Host(HostFailure::Busy { .. })))));
    Verdict::Passed
}

fn without_the_class_the_kernel_backend_says_so() -> Verdict {
    if Path::new("/dev/macrotick").exists() {
        return Verdict::Skipped("this kernel has the class");
    }
    let error = observe(&two_tasks(), &options(Backend::Kernel)).unwrap_err();
    assert!(
        matches!(error, NodeError::Host(HostFailure::NoKernelClass)) && error.to_string().contains("--backend user"),
        "{error}"
    );
    Verdict::Passed
}

fn a_trace_shows_the_tasks() -> Verdict {
    let has_tracefs = std::fs::read_to_string("/proc/filesystems").is_ok_and(|text| text.contains("tracefs"));
    if !is_root() || !has_tracefs {
        return Verdict::Skipped("needs root and tracefs");
    }
    let mut options = options(Backend::Fifo);
    options.trace = Some(ms(50));
    let observation = match observe(&two_tasks(), &options) {
        Err(NodeError::Trace(_)) => return Verdict::Skipped("tracefs cannot be used here"),
        result => result.unwrap(),
    };
    let of = |who: &str| observation.segments.iter().filter(|segment| segment.who == who).count();
    assert!(of("a") > 0 && of("b") > 0, "{:?}", observation.segments);
    assert!(observation.segments.iter().all(|segment| segment.start_ns < segment.end_ns));
    assert!(observation.segments.iter().all(|segment| segment.end_ns <= ms(50).as_nanos()));
    assert!(!Path::new("/sys/kernel/tracing/instances/macrotick").exists());
    Verdict::Passed
}

fn the_header_is_clean_c_and_cpp() -> Verdict {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Two source files, one program: there must be one context.
    let unit = "#include <macrotick-express.h>\n#include <assert.h>\n";
    let first = "int other(void);\nint main(void) { struct macrotick_job job; struct macrotick_entity_stats stats; \
                 macrotick_context_.joined = 7; macrotick_context_.device = -1; return !(other() == 7 && macrotick_join(\"a\") == -EALREADY && macrotick_ready() == 0 && \
                 macrotick_stats(&stats) == -ENOTSUP && macrotick_leave() == 0 && macrotick_wait(&job) == -ENOTCONN && \
                 macrotick_stats(&stats) == -ENOTCONN && macrotick_join(NULL) == -EINVAL); }\n";
    let second = "int other(void);\nint other(void) { return macrotick_context_.joined; }\n";
    let standards = ["c11", "gnu11", "gnu17"].map(|standard| ("cc", standard, "c"));
    let standards_cpp = ["c++11", "c++20"].map(|standard| ("c++", standard, "cc"));
    for (compiler, standard, suffix) in standards.into_iter().chain(standards_cpp) {
        let file = |name: &str| scratch().join(format!("{name}.{suffix}"));
        std::fs::write(file("first"), format!("{unit}{first}")).unwrap();
        std::fs::write(file("second"), format!("{unit}{second}")).unwrap();
        let program = scratch().join("units");
        let status = Command::new(compiler)
            .args(["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"])
            .arg(format!("-std={standard}"))
            .arg("-o")
            .arg(&program)
            .args([file("first"), file("second")])
            .arg(format!("-I{}", root.join("include").display()))
            .arg(format!("-I{}", root.join("kernel/overlay/include/uapi").display()))
            .status()
            .unwrap();
        assert!(status.success(), "{compiler} -std={standard}");
        let status = Command::new(&program).status().unwrap();
        assert_eq!(status.code(), Some(0), "{compiler} -std={standard}");
    }
    Verdict::Passed
}

/// Compiles a program that uses the header, and runs it.
fn execute(name: &str, text: &str) -> Option<i32> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (source, program) = (scratch().join(format!("{name}.c")), scratch().join(name));
    std::fs::write(&source, text).unwrap();
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&program, &source])
        .arg(format!("-I{}", root.join("include").display()))
        .arg(format!("-I{}", root.join("kernel/overlay/include/uapi").display()))
        .status()
        .unwrap();
    assert!(status.success(), "{name} does not compile");
    Command::new(&program).status().unwrap().code()
}

/// The device does not know the thread any more. This stands for a table that was removed while the thread ran a job.
fn a_table_removed_in_a_job_ends_the_next_wait() -> Verdict {
    let text = "#define _GNU_SOURCE\n#include <errno.h>\n#include <unistd.h>\nstatic int reason;\n\
                static long refuse(long number, ...) { (void)number; errno = reason; return -1; }\n\
                #define syscall refuse\n#include <macrotick.h>\n\
                static int told(int error) { struct macrotick_job job; reason = error; macrotick_context_.joined = 1; \
                macrotick_context_.device = 0; return -macrotick_wait(&job); }\n\
                int main(void) { return !(told(ENOTCONN) == ESHUTDOWN && told(ESHUTDOWN) == ESHUTDOWN && \
                told(EINTR) == EINTR); }\n";
    assert_eq!(execute("removed", text), Some(0));
    Verdict::Passed
}

/// The dispatcher releases a job while the one before it runs. The new job starts when its wait returns. It must not
/// start at the end of the job before, which is earlier than its nominal instant.
fn a_job_released_in_a_job_begins_after_it() -> Verdict {
    let text = "#define _GNU_SOURCE\n#include <macrotick.h>\n\
                int main(void) { struct macrotick_block block; struct macrotick_context context; struct macrotick_job job;\n\
                memset(&block, 0, sizeof(block)); memset(&context, 0, sizeof(context)); memset(&job, 0, sizeof(job));\n\
                context.block = &block; block.released = 1; job.start_ns = 1;\n\
                uint64_t before = macrotick_now_();\n\
                return !(macrotick_await_user_(&context, &job) == 0 && job.start_ns >= before); }\n";
    assert_eq!(execute("released", text), Some(0));
    Verdict::Passed
}

/// The table has two entities. Another table with the entities in the other order replaces it.
fn a_task_finds_its_counters_by_its_name() -> Verdict {
    let text = "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdarg.h>\n#include <string.h>\n\
                #include <unistd.h>\n#include <linux/macrotick.h>\nstatic const char *table[2];\n\
                static long device(long number, int fd, unsigned long request, void *argument) {\n\
                struct macrotick_entity_stats *stats = (struct macrotick_entity_stats *)argument;\n\
                (void)number, (void)fd;\n\
                if (request != MACROTICK_IOC_STATS || stats->size != sizeof(*stats)) { errno = EINVAL; return -1; }\n\
                if (stats->entity > 1 || !table[stats->entity]) { errno = ENOENT; return -1; }\n\
                strcpy(stats->name, table[stats->entity]); stats->misses = 7; return 0; }\n\
                static long any(long number, ...) { va_list list; va_start(list, number); int fd = va_arg(list, int);\n\
                unsigned long request = va_arg(list, unsigned long); void *argument = va_arg(list, void *);\n\
                va_end(list); return device(number, fd, request, argument); }\n\
                #define syscall any\n#include <macrotick.h>\n\
                static int found(const char *first, const char *second) { struct macrotick_entity_stats stats;\n\
                table[0] = first; table[1] = second; int err = macrotick_stats(&stats);\n\
                return err == 0 && strcmp(stats.name, \"me\") == 0 && stats.misses == 7 ? 0 : err; }\n\
                int main(void) { macrotick_context_.joined = 1; strcpy(macrotick_context_.name, \"me\");\n\
                return !(found(\"other\", \"me\") == 0 && found(\"me\", \"other\") == 0 && \
                found(\"other\", NULL) == -ENOENT && found(NULL, NULL) == -ENOENT); }\n";
    assert_eq!(execute("counters", text), Some(0));
    Verdict::Passed
}
