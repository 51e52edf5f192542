//! `macrotick generate`

use macrotick_cli::GenerateArgs;
use macrotick_generate::{drawn, Jitter, Recipe, Size};
use macrotick_report::output;

use crate::error::CliError;
use crate::files::Files;
use crate::Outcome;

/// Writes a random system.
pub fn execute(args: &GenerateArgs) -> Result<Outcome, CliError> {
    Files::default().writes(&args.output).check()?;
    let jitter = match args.jitter {
        None => Jitter::Free,
        Some(0) => Jitter::Zero,
        Some(part) => Jitter::Part(part.into()),
    };
    let recipe = Recipe {
        size: Size { tasks: args.tasks.into(), cpus: args.cpus.into(), load: args.load.into() },
        periods: args.periods.into(),
        draw: args.draw.into(),
        jitter,
        chains: args.chains,
    };
    let text = drawn(args.seed, &recipe)?.to_yaml();
    match &args.output {
        Some(path) => super::write(path, &text)?,
        None => output::print(text),
    }
    Ok(Outcome::Done)
}
