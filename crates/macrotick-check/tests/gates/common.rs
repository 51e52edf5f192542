//! Systems with a network, and their plans.

use macrotick_check::check;
use macrotick_model::{Duration, Plan, System};
use macrotick_plan::{plan, Solver};

pub fn us(micros: i64) -> Duration {
    Duration::from_micros(micros)
}

pub fn ns(nanos: i64) -> Duration {
    Duration::from_nanos(nanos)
}

pub fn described(text: &str) -> System {
    System::parse(text, "gates.yaml").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

pub fn planned(text: &str) -> Plan {
    let system = described(text);
    plan(&system, Solver::default_for(&system)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The texts of all violations.
pub fn found(plan: &Plan) -> Vec<String> {
    check(plan).violations.iter().map(ToString::to_string).collect()
}
