//! `macrotick measure`

use std::path::Path;

use macrotick_cli::MeasureArgs;
use macrotick_host::proc;
use macrotick_measure::{describe, measure, Target};
use macrotick_report::output;

use crate::error::CliError;
use crate::files::Files;
use crate::Outcome;

/// Measures a program or a running process from outside.
pub fn execute(args: &MeasureArgs) -> Result<Outcome, CliError> {
    Files::default().writes(&args.output).check()?;
    let target = args.target();
    let name = name_of(&target);
    let measurement = measure(&target, args.limit)?;
    match (args.json, &target) {
        (true, _) => {
            let text = serde_json::to_string_pretty(&measurement).expect("a measurement is always JSON");
            output::print_json(&(text + "\n"));
        }
        (false, Target::Process(_)) => output::print(&measurement),
        // Standard output belongs to the program.
        (false, Target::Program(_)) => output::tell(measurement.to_string().trim_end()),
    }
    if let Some(path) = &args.output {
        let system = describe(&measurement, &name, args.cpu)?;
        super::write(path, &system.to_yaml())?;
    }
    Ok(Outcome::Done)
}

/// Returns the name of the program, or of the process.
pub(super) fn name_of(target: &Target) -> String {
    match target {
        Target::Program(words) => {
            let program = words.first().map(Path::new).and_then(Path::file_name);
            program.unwrap_or_default().to_string_lossy().into_owned()
        }
        Target::Process(process) => proc::name(*process).unwrap_or_default(),
    }
}
