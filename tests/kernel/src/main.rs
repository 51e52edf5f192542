//! The guest's side of the kernel tests.

use std::process::ExitCode;

use macrotick_kernel_tests::check::Check;
use macrotick_kernel_tests::machine::deployed::Deployed;
use macrotick_kernel_tests::machine::Machine;
use macrotick_kernel_tests::scenarios::Scenario;
use macrotick_kernel_tests::{runner, scenarios, sys};
use macrotick_uapi::Device;

const USAGE: &str = "usage: kernel-tests run [NAME ...] | list | guest";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["guest"] => macrotick_lab::agent::main(),
        ["run", names @ ..] => run(names),
        ["list"] => {
            scenarios::all().iter().for_each(|scenario| println!("{}", scenario.name));
            ExitCode::SUCCESS
        }
        ["machine", words @ ..] => machine(Machine::from_words(words).map(|machine| machine.run())),
        ["deployed", words @ ..] => machine(Deployed::from_words(words).map(|machine| machine.run())),
        ["jobs", count] => jobs(count.parse().unwrap_or(0)),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Whether to run a scenario: the named ones, or by default those that this machine can run and that are not long.
fn wanted(scenario: &Scenario, names: &[&str]) -> bool {
    if names.is_empty() {
        return scenario.cpus <= sys::nr_cpus() && !scenario.is_long();
    }
    names.contains(&scenario.name)
}

fn run(names: &[&str]) -> ExitCode {
    let chosen: Vec<_> = scenarios::all().into_iter().filter(|one| wanted(one, names)).collect();
    if names.len() > chosen.len() {
        eprintln!("some of these scenarios do not exist: {names:?}");
        return ExitCode::from(2);
    }
    ExitCode::from(u8::from(!runner::run(&chosen)))
}

/// Serves this many jobs, then succeeds. The scenario of exec(2) runs it.
fn jobs(count: u32) -> ExitCode {
    let Ok(device) = Device::open() else { return ExitCode::from(100) };
    for _ in 0..count {
        if let Err(errno) = device.wait() {
            return ExitCode::from(errno as u8);
        }
    }
    ExitCode::SUCCESS
}

/// Ends one of two machines. Without a result, its words were wrong.
fn machine(result: Option<Check>) -> ExitCode {
    match result {
        Some(Ok(())) => ExitCode::SUCCESS,
        problem => {
            eprintln!("{problem:?}");
            ExitCode::FAILURE
        }
    }
}
