//! The judge on tasks of SCHED_DEADLINE beside windows and groups.

use macrotick_analysis::assign;
use macrotick_analysis::servers::{Bandwidth, Domain, Host};
use macrotick_check::{check, Deadlines, Verdict};
use macrotick_fixtures::{described, ms, table, window};
use macrotick_model::{Duration, Plan, Supply};
use macrotick_plan::Solver;

/// Makes a plan with windows of 3 ms in each 10 ms on CPU 0, and `rest`.
fn planned(tasks: &str, rest: &str) -> Plan {
    let source = format!(
        "system: s\ncpus: [0, 1, 2]\ntasks:\n  - {{name: w, period: 10ms, wcet: 3ms, deadline: 3ms, cpu: 0}}\n{tasks}{rest}"
    );
    let system = described(&source);
    macrotick_plan::plan(&system, Solver::FoldedOccupancy).expect("a plan")
}

fn judged(tasks: &str, rest: &str) -> Verdict {
    check(&planned(tasks, rest))
}

fn task(name: &str, keys: &str, reservation: &str) -> String {
    format!("  - {{name: {name}, supply: {{deadline: {{{reservation}}}}}, {keys}}}\n")
}

fn faults(verdict: &Verdict) -> Vec<String> {
    verdict.violations.iter().map(ToString::to_string).collect()
}

#[test]
fn demand_is_held_against_what_windows_leave() {
    let of = |deadline: &str| {
        let keys = format!("period: 20ms, wcet: 1ms, deadline: {deadline}");
        judged(&task("d", &keys, "runtime: 2ms, cpus: [0]"), "")
    };
    let met = of("5ms");
    assert_eq!((faults(&met), &met.domains[0].deadlines), (vec![], &Deadlines::Met));
    let missed = of("4999us");
    assert_eq!(
        faults(&missed),
        ["CPU 0: SCHED_DEADLINE, d: in 4999us the tasks may need 2ms, and are sure to get 1999us"]
    );
    assert_eq!(missed.domains[0].deadlines, Deadlines::Missed);
    assert!(missed
        .to_string()
        .contains("deadline tasks on CPU 0: d: 10.0 % of one CPU, at most 61.4 %; a deadline may"));
}

/// Without regard to the deadline task, one window of 20 ms would stand in its way.
#[test]
fn windows_leave_time_before_each_deadline() {
    let of = |deadline_task: &str, rest: &str| {
        let source = format!(
            "system: s\ncpus: [0]\ntasks:\n  - {{name: long, period: 40ms, wcet: 20ms}}\n{deadline_task}{rest}"
        );
        let plan = macrotick_plan::plan(&described(&source), Solver::FoldedOccupancy).expect("a plan");
        let plan = assign(plan).expect("budgets");
        let longest = plan.tables[0].windows.iter().map(|window| window.length).max();
        (faults(&check(&plan)), longest.expect("a window"))
    };
    let d = task("d", "period: 10ms, wcet: 2ms", "runtime: 2100us, cpus: [0]");
    let (found, longest) = of(&d, "");
    assert_eq!(found, Vec::<String>::new());
    assert!(longest <= ms(8), "{longest}");
    // Not one of them has a CPU yet. They have different deadlines.
    let three = ["d: 10ms, wcet: 500us", "e: 5ms, wcet: 300us", "f: 4ms, wcet: 100us, deadline: 2ms"];
    let three: String =
        three.map(|keys| format!("  - {{name: {}, supply: deadline}}\n", keys.replacen(':', ", period:", 1))).concat();
    assert_eq!(of(&three, "").0, Vec::<String>::new());
    // A group takes its budget first.
    let group = "groups:\n  - {name: g, priority: 1, budget: 400us, cpus: [0]}\n";
    assert_eq!(of(&d, group).0, Vec::<String>::new());
    let open = "groups:\n  - {name: g, priority: 1, cpus: [0], tasks: [{name: t, period: 20ms, wcet: 1ms}]}\n";
    assert_eq!(of(&d, open).0, Vec::<String>::new());
}

/// Budgets at the end of one server period and at the start of the next come first, one directly after the other.
#[test]
fn groups_come_first_twice_in_a_row() {
    let group = "groups:\n  - {name: g, priority: 1, budget: 500us, cpus: [1]}\n";
    let of = |deadline: &str| {
        let keys = format!("period: 20ms, wcet: 1ms, deadline: {deadline}");
        faults(&judged(&task("d", &keys, "runtime: 1ms, cpus: [1]"), group))
    };
    assert_eq!(of("2ms"), Vec::<String>::new());
    assert_eq!(of("1999us"), ["CPU 1: SCHED_DEADLINE, d: in 1999us the tasks may need 1ms, and are sure to get 999us"]);
}

/// Beside the windows, 70 % remain. 95 % of this is 66.5 %, from which the servers of the fair class take 5 % of a CPU.
#[test]
fn more_than_the_kernel_admits_is_told() {
    // The solver refuses the second system. So the reservation grows in the plan.
    let of = |runtime: i64| {
        let mut plan = planned(&task("d", "period: 1s, wcet: 1ms", "runtime: 10ms, cpus: [0]"), "");
        for task in &mut plan.system.tasks {
            if let Supply::Deadline(reservation) = &mut task.supply {
                reservation.runtime = ms(runtime);
            }
        }
        faults(&check(&plan))
    };
    assert_eq!(of(613), Vec::<String>::new());
    assert_eq!(
        of(615),
        ["CPU 0: SCHED_DEADLINE would promise 61.5 % of one CPU, but the kernel allows 61.4 % beside windows, budgets and \
          its own reserve"]
    );
}

/// The judge counts like the kernel, rounded down, also for the groups on these CPUs.
#[test]
fn a_third_is_349525_parts() {
    let third = |name: &str, cpus: &str| task(name, "period: 3ms, wcet: 100us", &format!("runtime: 1ms, cpus: {cpus}"));
    let plan = planned(&(third("one", "[0]") + &third("two", "[1, 2]") + &third("three", "[1, 2]")), "");
    let promised: Vec<f64> = check(&plan).domains.iter().map(|domain| domain.promised * 1_048_576.0).collect();
    assert_eq!(promised, [349_525.0, 699_050.0]);
    let domain = |cpus: &[u32], parts| Domain { cpus: cpus.iter().copied().collect(), promised: Bandwidth(parts) };
    assert_eq!(Host::of(&plan).unwrap().domains, [domain(&[0], 349_525), domain(&[1, 2], 699_050)]);
}

#[test]
fn a_global_set_has_tests_and_bounds() {
    let set = |of: u32, runtime: &str, keys: &str| -> Verdict {
        let reservation = format!("runtime: {runtime}, cpus: [1, 2]");
        let each =
            (0..of).map(|index| task(&format!("g{index}"), &format!("period: 10ms, wcet: 1ms{keys}"), &reservation));
        judged(&each.collect::<String>(), "")
    };
    let light = set(4, "3ms", "");
    assert_eq!((faults(&light), &light.domains[0].deadlines), (vec![], &Deadlines::Met));
    // Densities of 0.2, 0.5 and 0.7 are too high for the density test, and response times decide.
    let one = |name: &str, runtime: &str, keys: &str| {
        task(name, &format!("{keys}, wcet: 1ms"), &format!("runtime: {runtime}, cpus: [1, 2]"))
    };
    let late = one("a", "8ms", "period: 40ms, deadline: 38ms");
    let others = one("b", "5ms", "period: 10ms") + &one("c", "4ms", "period: 10ms, deadline: 6ms");
    let short = judged(&(late + &others), "");
    assert_eq!((faults(&short), &short.domains[0].deadlines), (vec![], &Deadlines::Met));
    let heavy = set(3, "6ms", "");
    let late = Deadlines::Late(vec![Duration::from_millis(6); 3]);
    assert_eq!((faults(&heavy), &heavy.domains[0].deadlines), (vec![], &late));
    assert!(heavy.to_string().contains("jobs may be late, at most g0 by 6ms"), "{heavy}");
    let early = set(3, "5ms", ", deadline: 6ms");
    assert!(early.is_feasible() && matches!(&early.domains[0].deadlines, Deadlines::Unknown(_)));
    let beside = judged(&task("g", "period: 10ms, wcet: 1ms", "cpus: [0, 1]"), "");
    assert!(matches!(&beside.domains[0].deadlines, Deadlines::Unknown(why) if why.starts_with("CPU 0 has windows")));
}

#[test]
fn what_no_solver_would_do_is_told() {
    let mut unassigned = planned(&task("d", "period: 10ms, wcet: 1ms", ""), "");
    if let macrotick_model::Supply::Deadline(reservation) = &mut unassigned.system.tasks[1].supply {
        reservation.cpus = Default::default();
    }
    assert_eq!(faults(&check(&unassigned)), ["task `d` has `supply: deadline`, but no CPU"]);

    let mover = "  - {name: m, period: 10ms, wcet: 2ms, migrate: true}\n".to_string();
    let mut plan = planned(&(mover + &task("d", "period: 10ms, wcet: 1ms", "cpus: [0]")), "");
    plan.tables.iter_mut().for_each(|table| table.windows.retain(|window| window.task != "m"));
    for (cpu, window) in [(0, window("m", ms(4), ms(1), "A")), (1, window("m", ms(6), ms(1), "D"))] {
        match plan.tables.iter_mut().find(|table| table.cpu == cpu) {
            Some(table) => table.windows.push(window),
            None => plan.tables.push(table(cpu, [window])),
        }
    }
    assert_eq!(
        faults(&check(&plan)),
        ["task `m` has windows on the CPUs 0, 1, but tasks of SCHED_DEADLINE reserve CPU 0: threads do not migrate \
          between them"]
    );
}
