//! The guest's side of the tests of network deployments.

use std::process::{Command, ExitCode};

use macrotick_net_tests::scenarios;

const USAGE: &str = "usage: net-tests run [NAME ...] | one NAME | list | guest";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["guest"] => macrotick_lab::agent::main(),
        ["list"] => {
            scenarios::ALL.iter().for_each(|(name, _)| println!("{name}"));
            ExitCode::SUCCESS
        }
        ["one", name] => match scenarios::ALL.iter().find(|(other, _)| other == name) {
            Some((_, scenario)) => {
                scenario();
                ExitCode::SUCCESS
            }
            None => ExitCode::from(2),
        },
        ["run", names @ ..] => run(names),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Runs scenarios, by default all, each in its own process.
fn run(names: &[&str]) -> ExitCode {
    let mut failed = false;
    for (name, _) in scenarios::ALL.iter().filter(|(name, _)| names.is_empty() || names.contains(name)) {
        let status = std::env::current_exe().and_then(|program| Command::new(program).args(["one", name]).status());
        let ok = status.is_ok_and(|status| status.success());
        failed |= !ok;
        println!("{name}: {}", if ok { "ok" } else { "FAILED" });
    }
    ExitCode::from(u8::from(failed))
}
