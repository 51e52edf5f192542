//! Reading a plan, or a description that is planned on the way, perhaps beside what runs already.

use std::path::Path;

use macrotick_model::{Plan, System};
use macrotick_plan::Solver;

use crate::error::CliError;

/// A plan from a `.json` file, or from a description with its default solver.
pub fn plan_from(path: &Path) -> Result<Plan, CliError> {
    if path.extension().is_some_and(|extension| extension == "json") {
        return Ok(Plan::load(path)?);
    }
    let system = System::load(path)?;
    Ok(macrotick_plan::plan(&system, Solver::default_for(&system))?)
}

/// The same for a change of what runs. Running tasks and pools keep their CPUs, so the solver leaves them there if it can.
pub fn plan_beside(path: &Path, running: &[(String, u32)]) -> Result<Plan, CliError> {
    if running.is_empty() || path.extension().is_some_and(|extension| extension == "json") {
        return plan_from(path);
    }
    let system = System::load(path)?;
    let solver = Solver::default_for(&system);
    let kept = macrotick_plan::plan(&keep_cpus(system.clone(), running), solver);
    Ok(kept.or_else(|_| macrotick_plan::plan(&system, solver))?)
}

/// The system with the CPUs of those that it leaves to the solver and that run on one of its CPUs.
fn keep_cpus(mut system: System, running: &[(String, u32)]) -> System {
    let cpus = system.cpus.clone();
    let found =
        |name: &str| running.iter().find(|(other, cpu)| other == name && cpus.contains(cpu)).map(|(_, cpu)| *cpu);
    for task in &mut system.tasks {
        task.cpu = task.cpu.or_else(|| found(&task.name));
    }
    for pool in &mut system.pools {
        pool.cpu = pool.cpu.or_else(|| found(&pool.name));
    }
    system
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_keeps_its_cpu_unless_the_description_says_another() {
        let text = "system: s\ncpus: [0, 1]\ntasks:\n  - {name: a, period: 1ms, wcet: 100us}\n  \
                    - {name: b, period: 1ms, wcet: 100us, cpu: 0}\n  - {name: c, period: 1ms, wcet: 100us}\n";
        let system = System::parse(text, "s.yaml").unwrap();
        let running = [("a".to_owned(), 1), ("b".to_owned(), 1), ("c".to_owned(), 7)];
        let cpus: Vec<Option<u32>> = keep_cpus(system, &running).tasks.iter().map(|task| task.cpu).collect();
        assert_eq!(cpus, [Some(1), Some(0), None]);
    }
}
