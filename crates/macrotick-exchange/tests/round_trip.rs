//! Systems that are written for rt-app and read again.

use macrotick_exchange::rt_app::{export, import, Options};
use macrotick_model::{
    Chain, CpuSet, Duration, ExecutionTime, Load, Periodic, Policy, Process, Program, Reservation, Supply, System,
    Task, Uniform, Workload,
};

fn us(micros: i64) -> Duration {
    Duration::from_micros(micros)
}

fn spin(task: Task, run: i64) -> Task {
    Task { run: Workload::Spin(ExecutionTime::Fixed(us(run))), ..task }
}

/// A system with only those parts that rt-app has, or that an export writes into its own keys.
fn system() -> System {
    let control = Task {
        cpu: Some(1),
        priority: Some(80),
        deadline: us(4000),
        jitter: Some(us(100)),
        offset: Some(us(250)),
        ..spin(Task::named("control", us(5000), us(700)), 500)
    };
    let pair = CpuSet::from_iter([0, 1]);
    let moves =
        Task { cpus: pair.clone(), migrate: true, priority: Some(2), ..Task::named("moves", us(10_000), us(900)) };
    let stays = Task { cpus: pair, priority: Some(1), ..Task::named("stays", us(10_000), us(910)) };
    let free = Task { migrate: true, priority: Some(3), ..Task::named("free", us(20_000), us(1000)) };
    let reserved = Reservation { runtime: us(3000), cpus: CpuSet::from_iter([2]) };
    let camera = Task {
        supply: Supply::Deadline(reserved),
        deadline: us(20_000),
        ..spin(Task::named("camera", us(33_000), us(2500)), 2000)
    };
    let chosen = Reservation { runtime: us(500), cpus: CpuSet::default() };
    let audio = Task { supply: Supply::Deadline(chosen), ..spin(Task::named("audio", us(8000), us(400)), 300) };
    let hog = Process { policy: Policy::Other(5), count: 3, ..Process::named("hog", Load::Hog) };
    let noise = Load::Periodic(Periodic { period: us(20_000), run: us(2000) });
    let noise = Process { policy: Policy::Fifo(10), cpu: Some(3), ..Process::named("noise", noise) };
    let mut system = System::named("whole");
    system.cpus = vec![0, 1, 2];
    system.tasks = vec![control, moves, stays, free, camera, audio];
    system.load = vec![hog, noise];
    system.experiment.duration = Duration::from_secs(20);
    assert_eq!(system.problems(), Vec::<String>::new());
    system
}

#[test]
fn a_system_comes_back_as_it_was() {
    let system = system();
    let (text, remarks) = export(&system).unwrap();
    assert_eq!(remarks, ["load[1].periodic: an import needs `--as-load NAME` to make this thread load again"]);
    let options = Options { load: vec!["noise".into()] };
    let (back, remarks) = import(&text, "whole.json", &options).unwrap();
    assert_eq!(remarks, Vec::<String>::new());
    assert_eq!(back, system);
}

#[test]
fn the_text_is_strict_json_with_one_line_for_each_thread() {
    let (text, _) = export(&system()).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let control = "    \"control\": {\"delay\":250,\"policy\":\"SCHED_FIFO\",\"priority\":80,\"cpus\":[1],\"loop\":-1,\
                   \"run\":500,\"timer\":{\"ref\":\"unique\",\"period\":5000,\"mode\":\"absolute\"},\
                   \"macrotick\":{\"wcet\":700,\"deadline\":4000,\"jitter\":100}},";
    assert!(text.lines().any(|line| line == control), "{text}");
    let hog = "    \"hog\": {\"instance\":3,\"policy\":\"SCHED_OTHER\",\"priority\":5,\"loop\":-1,\"run\":10000},";
    assert!(text.lines().any(|line| line == hog), "{text}");
    let last =
        "  \"global\": {\"duration\":20,\"default_policy\":\"SCHED_OTHER\"},\n  \"macrotick\": {\"cpus\":[0,1,2]}\n}\n";
    assert!(text.ends_with(last), "{text}");
}

#[test]
fn periods_wcets_cpus_and_policies_are_kept() {
    let system = system();
    let (text, _) = export(&system).unwrap();
    let (back, _) = import(&text, "whole.json", &Options { load: vec!["noise".into()] }).unwrap();
    for task in &system.tasks {
        let other = back.task(&task.name).unwrap();
        assert_eq!(
            (other.period, other.wcet, other.deadline),
            (task.period, task.wcet, task.deadline),
            "{}",
            task.name
        );
        assert_eq!((&other.supply, other.priority), (&task.supply, task.priority), "{}", task.name);
        assert_eq!(back.cpus_of(other), system.cpus_of(task), "{}", task.name);
    }
}

#[test]
fn priorities_are_rate_monotonic_where_none_is_given() {
    let mut system = System::named("s");
    system.tasks = vec![Task::named("slow", us(9000), us(100)), Task::named("fast", us(1000), us(100))];
    let (text, _) = export(&system).unwrap();
    let (back, _) = import(&text, "s.json", &Options::default()).unwrap();
    assert_eq!(back.tasks.iter().map(|task| task.priority).collect::<Vec<_>>(), [Some(89), Some(90)]);
}

#[test]
fn remarks_name_the_parts_that_rt_app_lacks() {
    let mut system = System::named("s");
    let uniform = ExecutionTime::Uniform(Uniform { min: us(10), max: Duration::from_nanos(50_500) });
    let program = Workload::Program(Program::new(["/bin/true"]));
    system.tasks = vec![
        Task { run: Workload::Spin(uniform), max_misses: Some(3), ..Task::named("a", us(1000), us(100)) },
        Task { run: program, after: vec!["a".into()], ..Task::named("b", us(1000), Duration::from_nanos(100_500)) },
    ];
    let path = vec!["a".into(), "b".into()];
    system.chains = vec![Chain { reaction: Some(us(2000)), ..Chain::named("c", path) }];
    system.load = vec![Process::named("calls", Load::Syscalls)];
    system.experiment.duration = Duration::from_millis(1500);
    assert_eq!(system.problems(), Vec::<String>::new());
    let (text, remarks) = export(&system).unwrap();
    assert!(
        text.contains("\"run\":50,") && text.contains("\"wcet\":101") && text.contains("\"duration\":2,"),
        "{text}"
    );
    let expected = [
        "tasks[0].run: rt-app draws no times: the thread computes for the longest one",
        "tasks[0].run, tasks[1].run, tasks[1].wcet: rt-app counts whole microseconds: the time is rounded",
        "tasks[0].max-misses, tasks[1].after, chains: rt-app has no counterpart, and it is left out",
        "tasks[1].run: rt-app runs no programs: the thread computes for a little less than the WCET",
        "load[0]: rt-app has no such load, and it is left out",
        "experiment.duration: rt-app counts seconds: the run becomes longer",
    ];
    assert_eq!(remarks, expected);
}

#[test]
fn cpus_of_one_host_get_its_own_numbers() {
    let text = "system: s\nhosts:\n  - {name: arm, cpus: [4, 5], own: [2, 6]}\n\
                tasks:\n  - {name: a, period: 1ms, wcet: 100us, cpu: 4}\n";
    let system = System::parse(text, "s.yaml").unwrap();
    let (text, _) = export(&system).unwrap();
    assert!(text.contains("\"cpus\":[2],") && text.contains("\"macrotick\": {\"cpus\":[2,6]}"), "{text}");
    let second = macrotick_model::Host { name: "leg".into(), cpus: vec![6], own: vec![0] };
    let system = System { hosts: [system.hosts, vec![second]].concat(), ..system };
    let error = export(&system).unwrap_err().to_string();
    assert_eq!(error, "hosts: rt-app runs on one host: export the part of one");
}

#[test]
fn what_would_change_its_meaning_is_refused() {
    let mut system = System::named("s");
    system.macrotick = Duration::from_nanos(500);
    let odd = Duration::from_nanos(1_000_500);
    system.tasks = vec![Task::named("a", odd, us(100)), Task::named("b", Duration::from_secs(3600), us(100))];
    let error = export(&system).unwrap_err().to_string();
    let expected = "tasks[0].period: 1000500ns is no whole number of microseconds, the unit of rt-app\n\
                    tasks[0].deadline: 1000500ns is no whole number of microseconds, the unit of rt-app\n\
                    tasks[1].period: 3600s is out of the range of rt-app: 0us to 2147483647us\n\
                    tasks[1].deadline: 3600s is out of the range of rt-app: 0us to 2147483647us";
    assert_eq!(error, expected);
    system.tasks.clear();
    let error = export(&system).unwrap_err().to_string();
    assert_eq!(error, "tasks: there is neither a task nor a load that rt-app can run");
}
