//! Runs a plan file, or a tiny built-in plan, and prints the observation:
//! `cargo run -p macrotick-node --example run -- BACKEND [DURATION [PLAN.json]]`.

use std::error::Error;
use std::process::ExitCode;

use macrotick_model::{
    Backend, CpuTable, Duration, ExecutionTime, Experiment, Load, Plan, Process, System, Task, Window, Workload,
};
use macrotick_node::{processes, run, task, RunOptions};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(task::VERB) => return task::main(),
        Some(processes::VERB) => return processes::main(),
        _ => {}
    }
    match observe() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprint!(": {cause}");
                source = cause.source();
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}

fn observe() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("other", String::as_str);
    let backend = Backend::ALL.into_iter().find(|backend| backend.name() == name).ok_or("no such backend")?;
    let mut options = RunOptions::new(backend);
    options.duration = arguments.get(1).map(|text| text.parse()).transpose()?;
    options.trace = std::env::var("TRACE").ok().map(|text| text.parse()).transpose()?;
    let plan = match arguments.get(2) {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path)?)?,
        None => tiny_plan(),
    };
    let observation = run(&plan, &options, &mut |progress| eprintln!("{progress:?}"))?;
    for task in &observation.tasks {
        let done = task.jobs.iter().filter(|job| job.end.is_some()).count();
        let lateness: Vec<i64> =
            task.jobs.iter().filter_map(|job| Some((job.start? - job.nominal).as_nanos())).collect();
        let mean = lateness.iter().sum::<i64>() / lateness.len().max(1) as i64;
        let (min, max) = (lateness.iter().min().unwrap_or(&0), lateness.iter().max().unwrap_or(&0));
        eprintln!("{}: {done} of {} jobs, lateness {min}/{mean}/{max} ns", task.name, task.jobs.len());
    }
    println!("{}", serde_json::to_string(&observation)?);
    Ok(())
}

/// Returns a plan with two tasks on CPU 0, and a hog beside them.
fn tiny_plan() -> Plan {
    let us = Duration::from_micros;
    let task = |name: &str, period: i64, work: i64| Task {
        cpu: Some(0),
        run: Workload::Spin(ExecutionTime::Fixed(us(work))),
        ..Task::named(name, us(period), us(work + 100))
    };
    let window = |task: &str, offset: i64, length: i64| Window {
        activate: true,
        deadline: true,
        ..Window::new(task, us(offset), us(length))
    };
    let hog = Process { cpu: Some(0), ..Process::named("hog", Load::Hog) };
    let system = System {
        macrotick: us(10),
        experiment: Experiment { duration: Duration::from_secs(1) },
        tasks: vec![task("fast", 5_000, 100), task("slow", 10_000, 1_000)],
        load: vec![hog],
        ..System::named("tiny")
    };
    let windows = vec![window("fast", 20, 300), window("slow", 500, 1500), window("fast", 5_020, 300)];
    Plan::new("hand", us(10_000), vec![CpuTable::new(0, windows)], system)
}
