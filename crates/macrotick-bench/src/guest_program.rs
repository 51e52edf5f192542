//! The program of the benches' guests. Its first word selects the part that runs.

use std::path::Path;
use std::process::ExitCode;

use macrotick_lab::observe::{self, Dispatch};
use macrotick_model::Plan;
use macrotick_node::{processes, task, HostSettings, RunOptions};

use crate::kit::process;
use crate::{containers, cost, deadline, isolation, jitter, network, timershield, udp};

/// Runs the part that the first word selects: the program's main function.
pub fn main() -> ExitCode {
    let first = std::env::args().nth(1).unwrap_or_default();
    match first.as_str() {
        "guest" => macrotick_lab::agent::main(),
        task::VERB => task::main(),
        processes::VERB => processes::main(),
        observe::VERB => process::main(observe),
        verb @ (cost::table_guest::CROSS | cost::table_guest::INSTALL) => cost::table_guest::main(verb),
        verb @ (containers::thread_guest::LOAD | containers::thread_guest::COUNT) => {
            containers::thread_guest::main(verb)
        }
        verb @ (isolation::set_guest::PLAY | isolation::set_guest::VICTIM | isolation::set_guest::ATTACK) => {
            isolation::set_guest::main(verb)
        }
        deadline::player_guest::PLAY => deadline::player_guest::main(),
        jitter::group_guest::RUN => jitter::group_guest::main(),
        network::gates_guest::RUN => network::gates_guest::main(),
        network::bursts_guest::RUN => network::bursts_guest::main(),
        network::slots_guest::RUN => network::slots_guest::main(),
        udp::udp_guest::RUN => udp::udp_guest::main(),
        timershield::task_guest::RUN => timershield::task_guest::main(),
        timershield::window_guest::RUN => timershield::window_guest::main(),
        _ => {
            eprintln!("this program runs only in guests of the lab, which macrotick-bench boots");
            ExitCode::from(2)
        }
    }
}

/// Runs a plan, as `macrotick observe` does.
fn observe(words: &[&str]) -> Result<(), String> {
    let &[plan, "--output", output, ref options @ ..] = words else { return Err("a plan, and --output".into()) };
    let plan = Plan::load(Path::new(plan)).map_err(|error| error.to_string())?;
    let dispatch = Dispatch::from_words(options)?;
    let host_settings = if dispatch.leaves_host_settings { HostSettings::Leave } else { HostSettings::Hold };
    let options = RunOptions {
        duration: dispatch.duration,
        trace: dispatch.trace,
        seed: dispatch.seed,
        host_settings,
        ..RunOptions::new(dispatch.backend)
    };
    let observation = macrotick_node::run(&plan, &options, &mut |_| {}).map_err(|error| error.with_reason())?;
    observation.save(Path::new(output)).map_err(|error| error.to_string())
}
