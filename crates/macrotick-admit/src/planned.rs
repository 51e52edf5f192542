//! A description to its whole plan.
//!
//! Some values of groups that a description leaves open depend on the windows. The analysis finds them after the
//! solver, and the plan contains them. So later stages, and the judge, see values only.

use std::path::Path;

use macrotick_check::check;
use macrotick_model::{Group, Plan, Supply, System, Task};
use macrotick_plan::{plan_changed, plan_watched, Change, Options, PlanError, Solver, Watch};

use crate::nearest::nearest;
use crate::AdmitError;

/// Plans a description and fills in the values that the description at `path` leaves open.
///
/// # Errors
///
/// [`AdmitError::Infeasible`] if there is no plan, [`AdmitError::Load`] if none was searched for; both with the place in
/// the description. The former names up to two small changes of the description with which there is a plan.
pub fn planned(
    path: &Path,
    system: &System,
    solver: Solver,
    options: Options,
    watch: &dyn Watch,
) -> Result<Plan, AdmitError> {
    let plan = plan_watched(system, solver, options, watch).map_err(|error| {
        let nearest = nearest(system, &error, options, watch);
        unplanned(path, system, &error, &nearest)
    });
    assigned(path, plan?)
}

/// Plans a description like [`planned`], and names no changes.
pub(crate) fn planned_or_not(
    path: &Path,
    system: &System,
    solver: Solver,
    options: Options,
    watch: &dyn Watch,
) -> Result<Plan, AdmitError> {
    let plan = plan_watched(system, solver, options, watch).map_err(|error| unplanned(path, system, &error, &[]));
    assigned(path, plan?)
}

fn assigned(path: &Path, plan: Plan) -> Result<Plan, AdmitError> {
    let system = plan.system.clone();
    macrotick_analysis::assign(plan)
        .map_err(|error| AdmitError::Infeasible(System::refuse_file(path, error.findings(&system))))
}

/// Returns the error with the changes that give a plan.
fn unplanned(path: &Path, system: &System, error: &PlanError, nearest: &[String]) -> AdmitError {
    let mut finding = error.finding(system);
    if !nearest.is_empty() {
        let nearest = format!("there is a plan with {}", nearest.join(", or with "));
        finding.hint = Some(finding.hint.map_or(nearest.clone(), |hint| format!("{hint}; {nearest}")));
    }
    let refused = System::refuse_file(path, vec![finding]);
    if error.is_infeasible() {
        AdmitError::Infeasible(refused)
    } else {
        AdmitError::Load(refused)
    }
}

/// Plans a description like [`planned`], so that as little as possible differs from a former plan: windows stay where
/// they can. Groups keep the values that their description leaves open, and tasks of SCHED_DEADLINE their CPUs, unless
/// there is no plan with them. Windows of `frozen` stay in any case, and those of `free` may move.
///
/// # Errors
///
/// Those of [`planned`], and [`AdmitError::Change`] for a name in `frozen` or `free` without windows in the former plan.
pub fn planned_from(
    path: &Path,
    system: &System,
    former: &Plan,
    (frozen, free): (&[String], &[String]),
    options: Options,
    watch: &dyn Watch,
) -> Result<Plan, AdmitError> {
    let mut kept = system.clone();
    keep_groups(&mut kept, &former.system.groups);
    keep_reservations(&mut kept, &former.system.tasks);
    let planned = |system: &System| {
        let change = Change::new(former, system, frozen.iter().cloned(), free.iter().cloned())?;
        let plan = plan_changed(system, &change, options, watch);
        assigned(path, plan.map_err(|error| unplanned(path, system, &error, &[]))?)
    };
    let holds = |plan: &Result<Plan, AdmitError>| plan.as_ref().is_ok_and(|plan| check(plan).is_feasible());
    let first = planned(&kept);
    if holds(&first) {
        return first;
    }
    let second = if kept == *system { first } else { planned(system) };
    if holds(&second) || !frozen.is_empty() {
        return second;
    }
    // The windows that stay leave too little to something that only the judge knows.
    let new = self::planned(path, system, Solver::default_for(system), options, watch);
    // Only a plan for which nothing must stay comes with changes that give one.
    if holds(&new) || second.is_err() {
        new
    } else {
        second
    }
}

/// Gives groups the values of the former plan that their description leaves open.
fn keep_groups(system: &mut System, former: &[Group]) {
    for group in system.servers_mut() {
        let Some(found) = former.iter().find(|other| other.name == group.name) else { continue };
        group.priority = group.priority.or(found.priority);
        group.budget = group.budget.or(found.budget);
        for task in &mut group.tasks {
            let found = found.tasks.iter().find(|other| other.name == task.name);
            task.priority = task.priority.or_else(|| found?.priority);
        }
    }
}

/// Gives tasks of SCHED_DEADLINE the CPUs of the former plan that their description leaves to the solver.
fn keep_reservations(system: &mut System, former: &[Task]) {
    let cpus = system.cpus.clone();
    for task in &mut system.tasks {
        let found = former.iter().find(|other| other.name == task.name).and_then(Task::reservation);
        let found = found.filter(|found| found.cpus.as_slice().iter().all(|cpu| cpus.contains(cpu)));
        if let (Supply::Deadline(reservation), Some(found)) = (&mut task.supply, found) {
            if reservation.cpus.is_empty() {
                reservation.cpus = found.cpus.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use macrotick_model::Duration;
    use macrotick_plan::Unwatched;

    use super::*;

    #[test]
    fn what_the_description_leaves_open_is_that_of_the_former_plan() {
        let group = "groups:\n  - {name: g, priority: 10, cpus: [0], tasks: [{name: t, period: 20ms, wcet: 1ms}]}\n";
        let text = |more: &str| {
            format!("system: s\ncpus: [0, 1]\ntasks:\n  - {{name: a, period: 10ms, wcet: 1ms}}\n{more}{group}")
        };
        let parsed = |text: &str| System::parse(text, "s.yaml").unwrap();
        let path = Path::new("s.yaml");
        let system = parsed(&text(""));
        let former = planned(path, &system, Solver::default_for(&system), Options::default(), &Unwatched).unwrap();
        let more = parsed(&text("  - {name: b, period: 20ms, wcet: 5ms}\n"));
        let plan = planned_from(path, &more, &former, (&[], &[]), Options::default(), &Unwatched).unwrap();
        assert_eq!(plan.system.groups, former.system.groups);
        assert!(former.system.groups[0].budget.is_some());
        let windows = |plan: &Plan, name: &str| -> Vec<(u32, Duration)> {
            let each = plan.tables.iter().flat_map(|table| table.windows.iter().map(move |window| (table.cpu, window)));
            each.filter(|(_, window)| window.task == name).map(|(cpu, window)| (cpu, window.offset)).collect()
        };
        assert_eq!(windows(&plan, "a")[..1], windows(&former, "a")[..1]);
        let unknown =
            planned_from(path, &system, &former, (&["x".into()], &[]), Options::default(), &Unwatched).unwrap_err();
        assert_eq!(unknown.to_string(), "`x` has no windows in the former plan");
    }

    /// A refusal names a change that gives a plan, also if there is a former plan. A frozen task keeps it from doing so.
    #[test]
    fn a_refusal_names_a_change() {
        let path = std::env::temp_dir().join(format!("macrotick-nearest-{}.yaml", std::process::id()));
        let load = |wcet: &str| {
            let tasks = "  - {name: a, period: 10ms, wcet: 4ms}\n";
            std::fs::write(&path, format!("system: s\ntasks:\n{tasks}  - {{name: b, period: 10ms, wcet: {wcet}}}\n"))
                .unwrap();
            System::load(&path).unwrap()
        };
        let former = load("5ms");
        let former = planned(&path, &former, Solver::FoldedOccupancy, Options::default(), &Unwatched).unwrap();
        let system = load("6ms");
        let new = planned(&path, &system, Solver::FoldedOccupancy, Options::default(), &Unwatched).unwrap_err();
        let from = |frozen: &[String]| {
            planned_from(&path, &system, &former, (frozen, &[]), Options::default(), &Unwatched)
                .unwrap_err()
                .to_string()
        };
        let words =
            "there is a plan with `wcet: 5500us` for task `b` (6ms now), or with `wcet: 3500us` for task `a` (4ms now)";
        for refused in [new.to_string(), from(&[])] {
            assert!(refused.contains(words), "{refused}");
        }
        let frozen = from(&["a".into()]);
        assert!(frozen.contains("proved impossible") && !frozen.contains("there is a plan"), "{frozen}");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_no_longer_suffices_is_given_up() {
        let path = Path::new("s.yaml");
        let parsed = |text: &str| System::parse(text, "s.yaml").unwrap();
        let changed = |before: &str, after: &str| {
            let system = parsed(before);
            let former = planned(path, &system, Solver::default_for(&system), Options::default(), &Unwatched).unwrap();
            let plan = planned_from(path, &parsed(after), &former, (&[], &[]), Options::default(), &Unwatched).unwrap();
            assert!(check(&plan).is_feasible(), "{after}");
        };
        let group = "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\ngroups:\n  \
                     - {name: x, criticality: 1, tasks: [{name: f, period: 20ms, wcet: 900us}]}\n";
        changed(group, &group.replace("900us", "1900us"));
        let reserved = "system: s\ncpus: [0, 1]\ntasks:\n  - {name: w, period: 10ms, wcet: 5ms, cpu: 0}\n  \
                        - {name: d, period: 10ms, wcet: 3ms, supply: deadline}\n";
        let new = "  - {name: e, period: 10ms, wcet: 8ms, supply: {deadline: {cpus: [1]}}}\n";
        changed(reserved, &format!("{reserved}{new}"));
        // Refills of budgets lie anywhere in this cycle.
        let leads = "system: s\nmacrotick: 10us\nlead: 20us\ncpus: [0, 1, 2]\ntasks:\n  \
                     - {name: t0, period: 1000us, wcet: 50us, jitter: 0us}\n  \
                     - {name: t1, period: 1000us, wcet: 40us, deadline: 870us, offset: 570us}\n  \
                     - {name: t2, period: 4000us, wcet: 300us}\n  \
                     - {name: t3, period: 8000us, wcet: 1410us, offset: 5280us}\n  \
                     - {name: t4, period: 1000us, wcet: 200us, jitter: 0us}\n  \
                     - {name: t5, period: 2000us, wcet: 400us, cpu: 2}\n  \
                     - {name: t6, period: 2000us, wcet: 80us, jitter: 0us, cpu: 2}\n  \
                     - {name: t7, period: 8000us, wcet: 530us, jitter: 0us, preemptible: false}\n  \
                     - {name: t8, period: 1000us, wcet: 200us, after: [t0]}\n  \
                     - {name: t9, period: 4000us, wcet: 880us, deadline: 2240us, jitter: 380us}\ngroups:\n  \
                     - {name: b0, priority: 20, budget: 100us, cpus: [0], tasks: [{name: x, period: 20ms, wcet: 50us}]}\n";
        changed(leads, &leads.replace("lead: 20us", "lead: 100us"));
    }
}
