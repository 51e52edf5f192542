//! Tests of the judge: it must find every mutation that breaks a good plan, and report the broken rule.

mod common;

use common::{system, Random, Shape};
use macrotick_check::{check, Violation};
use macrotick_fixtures::{self as fixtures, by_hand, described, ms, tables, us};
use macrotick_model::{Chain, Clock, CpuSet, CpuTable, Duration, Group, Host, Lead, Plan, Window};
use macrotick_plan::{plan, Solver};

/// Makes a good plan of two CPUs with chains, phases and jobs of several windows. Every other seed has a lead.
fn good(seed: u64) -> Plan {
    let macrotick = Duration::from_micros(1);
    let lead = (seed % 2 == 1).then_some(Lead::Fixed(LEAD));
    let shape = Shape { tasks: 16, cpus: 2, utilisation: 70, macrotick, phased: 30, chains: 1, lead, sync: None };
    let plan = plan(&system(seed, &shape), Solver::FoldedOccupancy).expect("seed is solvable");
    assert!(check(&plan).is_feasible());
    plan
}

/// Applies `mutate` to random windows of several good plans. `mutate` returns whether the change matters. After each
/// such change, the judge must report a violation that `expected` accepts.
fn each(mutate: fn(&mut Plan, usize, usize) -> bool, expected: fn(&Violation) -> bool) {
    let mut applied = 0;
    for seed in 0..8 {
        let original = good(seed);
        let random = &mut Random::new(seed);
        for _ in 0..20 {
            let mut plan = original.clone();
            let table = random.below(plan.tables.len() as u64) as usize;
            let window = random.below(plan.tables[table].windows.len() as u64) as usize;
            if !mutate(&mut plan, table, window) {
                continue;
            }
            applied += 1;
            let verdict = check(&plan);
            let caught = verdict.violations.iter().any(expected);
            assert!(caught, "seed {seed}, table {table}, window {window} passed: {verdict}");
        }
    }
    assert!(applied >= 20, "applied only {applied} times");
}

/// The lead of the good plans that have one. It is not a multiple of the macrotick.
const LEAD: Duration = Duration::from_nanos(6_500);

fn at(plan: &mut Plan, table: usize, window: usize) -> &mut Window {
    &mut plan.tables[table].windows[window]
}

/// The kernel keeps 50 of 1000 parts of a cycle, in whole nanoseconds. Of a cycle of 1000999 ns, windows can take
/// 950000 ns.
#[test]
fn windows_have_what_the_kernel_lets_them_have() {
    let planned = |wcet: &str| {
        let task = format!("{{name: t, period: 1000999ns, wcet: {wcet}}}");
        let source = format!("system: s\nmacrotick: 1ns\ntasks: [{task}]\n");
        plan(&described(&source), Solver::FoldedOccupancy)
    };
    let mut full = planned("950000ns").unwrap();
    assert!(check(&full).is_feasible());
    assert!(planned("950001ns").is_err());
    at(&mut full, 0, 0).length += Duration::from_nanos(1);
    let capacity = Duration::from_nanos(950_000);
    let told = check(&full).violations;
    assert!(matches!(told[..], [Violation::Capacity { capacity: most, .. }] if most == capacity), "{told:?}");
}

#[test]
fn a_shorter_window_starves_its_job() {
    // Every window of these plans is necessary: the solver gives exactly the wcet.
    each(
        |plan, table, window| {
            let window = at(plan, table, window);
            window.length -= Duration::from_micros(1);
            window.length >= Duration::from_micros(1)
        },
        |violation| matches!(violation, Violation::Starved { .. }),
    );
}

#[test]
fn a_dropped_window_is_missed() {
    each(
        |plan, table, window| {
            plan.tables[table].windows.remove(window);
            true
        },
        |violation| {
            use Violation::*;
            matches!(
                violation,
                Starved { .. } | NoWindow { .. } | NoJob { .. } | NoDeadline { .. } | JobCount { .. } | Slot { .. }
            )
        },
    );
}

#[test]
fn a_dropped_task_is_missed() {
    each(
        |plan, table, window| {
            let task = at(plan, table, window).task.clone();
            plan.tables[table].windows.retain(|window| window.task != task);
            true
        },
        |violation| matches!(violation, Violation::NoWindow { .. }),
    );
}

#[test]
fn swapped_flags_are_caught() {
    each(
        |plan, table, window| {
            at(plan, table, window).activate ^= true;
            true
        },
        |violation| {
            matches!(violation, Violation::NoJob { .. } | Violation::NoDeadline { .. } | Violation::Slot { .. })
        },
    );
    each(
        |plan, table, window| {
            at(plan, table, window).deadline ^= true;
            true
        },
        |violation| matches!(violation, Violation::NoJob { .. } | Violation::NoDeadline { .. }),
    );
}

#[test]
fn a_longer_window_that_meets_the_next_overlaps() {
    each(
        |plan, table, window| {
            let Some(next) = plan.tables[table].windows.get(window + 1).map(|next| next.offset) else {
                return false;
            };
            let window = at(plan, table, window);
            window.length = next - window.offset + Duration::from_micros(1);
            true
        },
        |violation| matches!(violation, Violation::Overlap { .. }),
    );
}

#[test]
fn a_window_at_another_windows_place_overlaps_and_is_not_sorted() {
    each(
        |plan, table, window| {
            if window == 0 {
                return false;
            }
            let before = plan.tables[table].windows[window - 1].offset;
            at(plan, table, window).offset = before;
            true
        },
        |violation| matches!(violation, Violation::Overlap { .. }),
    );
    each(
        |plan, table, window| {
            if window == 0 {
                return false;
            }
            plan.tables[table].windows.swap(window - 1, window);
            true
        },
        |violation| matches!(violation, Violation::NotSorted { .. }),
    );
}

#[test]
fn windows_off_the_grid_or_outside_the_cycle_are_caught() {
    each(
        |plan, table, window| {
            at(plan, table, window).offset += Duration::from_nanos(1);
            true
        },
        |violation| matches!(violation, Violation::OffGrid { .. }),
    );
    each(
        |plan, table, window| {
            let cycle = plan.cycle;
            at(plan, table, window).offset += cycle;
            true
        },
        |violation| matches!(violation, Violation::OutsideCycle { .. }),
    );
    each(
        |plan, table, window| {
            at(plan, table, window).length = Duration::ZERO;
            true
        },
        |violation| matches!(violation, Violation::TooShort { .. }),
    );
}

#[test]
fn a_job_moved_out_of_its_period_is_caught() {
    // The windows of a job that stands alone move behind its deadline. Other windows there do not matter.
    each(
        |plan, table, window| {
            let moved = at(plan, table, window).clone();
            let task = plan.system.task(&moved.task).expect("a known task").clone();
            if !(moved.activate && moved.deadline) || task.jitter.is_some() || plan.cycle == task.period {
                return false;
            }
            // A window that leaves the cycle breaks another rule.
            if moved.end() + task.deadline > plan.cycle {
                return false;
            }
            at(plan, table, window).offset += task.deadline;
            true
        },
        |violation| matches!(violation, Violation::Late { .. } | Violation::Slot { .. }),
    );
}

#[test]
fn a_start_off_its_phase_breaks_the_jitter_bound() {
    each(
        |plan, table, window| {
            let moved = at(plan, table, window).clone();
            let task = plan.system.task(&moved.task).expect("a known task").clone();
            let Some(jitter) = task.jitter.filter(|_| moved.activate && plan.cycle > task.period) else {
                return false;
            };
            let window = at(plan, table, window);
            window.offset += jitter + Duration::from_micros(1);
            true
        },
        |violation| matches!(violation, Violation::Jitter { .. }),
    );
}

#[test]
fn a_task_on_the_wrong_cpu_or_on_two_is_caught() {
    each(
        |plan, table, window| {
            let moved = plan.tables[table].windows.remove(window);
            let other = &mut plan.tables[1 - table].windows;
            let place = other.partition_point(|window| window.offset <= moved.offset);
            let twice = plan.tables[table].windows.iter().any(|window| window.task == moved.task);
            let other = &mut plan.tables[1 - table].windows;
            other.insert(place, moved);
            twice
        },
        |violation| matches!(violation, Violation::Migrates { .. }),
    );
    each(
        |plan, table, window| {
            let name = at(plan, table, window).task.clone();
            let cpu = 1 - plan.tables[table].cpu;
            let task = plan.system.tasks.iter_mut().find(|task| task.name == name).expect("a known task");
            task.cpu = Some(cpu);
            true
        },
        |violation| matches!(violation, Violation::WrongCpu { .. }),
    );
    // The same for a set of CPUs, and for a host.
    each(
        |plan, table, window| {
            let (name, cpu) = (at(plan, table, window).task.clone(), 1 - plan.tables[table].cpu);
            let task = plan.system.tasks.iter_mut().find(|task| task.name == name).expect("a known task");
            (task.cpu, task.cpus) = (None, CpuSet::from_iter([cpu, 5]));
            true
        },
        |violation| matches!(violation, Violation::WrongCpu { .. }),
    );
    each(
        |plan, table, window| {
            let (name, cpu) = (at(plan, table, window).task.clone(), plan.tables[table].cpu);
            let host = |name: &str, cpu| Host { name: name.into(), cpus: vec![cpu], own: vec![0] };
            plan.system.hosts = vec![host("here", cpu), host("there", 1 - cpu)];
            let task = plan.system.tasks.iter_mut().find(|task| task.name == name).expect("a known task");
            (task.cpu, task.host) = (None, Some("there".into()));
            true
        },
        |violation| matches!(violation, Violation::WrongCpu { .. }),
    );
}

#[test]
fn tables_and_names_the_system_does_not_have_are_caught() {
    each(
        |plan, table, _| {
            plan.tables[table].cpu += 7;
            true
        },
        |violation| matches!(violation, Violation::UnknownCpu { .. }),
    );
    each(
        |plan, _, _| {
            plan.tables.swap(0, 1);
            true
        },
        |violation| matches!(violation, Violation::TableOrder { .. }),
    );
    each(
        |plan, table, window| {
            at(plan, table, window).task.push('x');
            true
        },
        |violation| matches!(violation, Violation::UnknownTask { .. }),
    );
}

#[test]
fn a_demand_beyond_what_was_planned_is_caught() {
    each(
        |plan, table, window| {
            let name = at(plan, table, window).task.clone();
            let task = plan.system.tasks.iter_mut().find(|task| task.name == name).expect("a known task");
            task.wcet += Duration::from_micros(1);
            true
        },
        |violation| matches!(violation, Violation::Starved { .. }),
    );
    each(
        |plan, _, _| {
            let chain = &mut plan.system.chains[0];
            chain.reaction = Some(Duration::from_micros(1));
            chain.age = None;
            true
        },
        |violation| matches!(violation, Violation::Reaction { .. }),
    );
    each(
        |plan, _, _| {
            plan.system.chains[0].age = Some(Duration::from_micros(1));
            true
        },
        |violation| matches!(violation, Violation::Age { .. }),
    );
}

/// Returns the index of the previous window, around the start of the cycle.
fn before(plan: &Plan, table: usize, window: usize) -> usize {
    let count = plan.tables[table].windows.len();
    (window + count - 1) % count
}

#[test]
fn a_lead_that_is_not_free_is_caught() {
    // The previous window reaches into the lead.
    each(
        |plan, table, window| {
            let other = before(plan, table, window);
            let activates = at(plan, table, window).activate;
            let start = at(plan, table, window).offset;
            if plan.system.lead.is_none() || !activates || other > window {
                return false;
            }
            let window = at(plan, table, other);
            window.length = start - window.offset - Duration::from_micros(6);
            window.length > Duration::ZERO
        },
        |violation| matches!(violation, Violation::Lead { .. }),
    );
    // A window that continued a job releases another one.
    each(
        |plan, table, window| {
            let windows = &mut plan.tables[table].windows;
            let abuts = |&index: &usize| windows[index].offset == windows[index - 1].end() && !windows[index].activate;
            let Some(found) = (window + 1..windows.len()).find(abuts) else {
                return false;
            };
            windows[found].activate = true;
            plan.system.lead.is_some()
        },
        |violation| matches!(violation, Violation::Lead { gap: Duration::ZERO, .. }),
    );
    // The system asks for a longer lead than the one in the plan.
    each(
        |plan, _, _| {
            plan.system.lead = Some(Lead::Auto(Duration::from_millis(1)));
            true
        },
        |violation| matches!(violation, Violation::Lead { .. }),
    );
}

/// Makes a plan as [`tiny`] does, with a lead.
fn led(lead: i64, tasks: &[&str], windows: &[(&str, i64, i64, &str)]) -> Plan {
    let mut plan = tiny(tasks, windows);
    plan.system.lead = Some(Lead::Fixed(Duration::from_micros(lead)));
    plan
}

#[test]
fn a_lead_is_kept_before_each_activation_and_only_there() {
    let tasks = ["a 1ms", "b 1ms"];
    let windows = |gap: i64| [("a", 20, 500, "A"), ("b", 520 + gap, 1000, "AD"), ("a", 1520 + gap, 505, "D")];
    assert_eq!(violations(&led(20, &tasks, &windows(20))), "");
    let expected = "CPU 0, window 1: activates a job 19us after the end of window 0, but the lead is 20us\n";
    assert_eq!(violations(&led(20, &tasks, &windows(19))), expected);
    let expected = "CPU 0, window 1: activates a job 0ns after the end of window 0, but the lead is 20us\n";
    assert_eq!(violations(&led(20, &tasks, &windows(0))), expected);
    // Windows that overlap are reported as such, not as a negative distance.
    assert_eq!(violations(&led(20, &tasks, &windows(-1))), "CPU 0: windows 0 and 1 overlap\n");
}

/// Makes a plan as [`tiny`] does, with sync windows. Times are in microseconds.
fn synced(period: i64, offset: i64, length: i64, bound: i64, windows: &[(&str, i64, i64, &str)]) -> Plan {
    let mut plan = tiny(&["a 1ms", "b 1ms"], windows);
    plan.system.clock = Clock::Tai(fixtures::sync(us(period), us(offset), us(length), us(bound)));
    plan
}

#[test]
fn no_window_and_no_lead_lies_in_a_sync_window() {
    let windows = |first: i64| [("a", first, 1000, "AD"), ("b", 6000, 1000, "AD")];
    let good = synced(5000, 2000, 500, 100, &windows(1000));
    assert_eq!(violations(&good), "");
    assert_eq!(violations(&synced(5000, 2000, 500, 100, &windows(2500))), "");
    let expected = |begin: &str, end: &str, sync: &str| {
        format!("CPU 0, window 0: [{begin}, {end}) including its lead overlaps with the sync window at {sync}\n")
    };
    let early = violations(&synced(5000, 2000, 500, 100, &windows(1001)));
    assert_eq!(early, expected("1001us", "2001us", "2ms"));
    let late = violations(&synced(5000, 2000, 500, 100, &windows(2499)));
    assert_eq!(late, expected("2499us", "3499us", "2ms"));
    // The last sync window of the previous cycle overlaps with the lead.
    let mut led = synced(5000, 4500, 500, 100, &windows(20));
    led.system.lead = Some(Lead::Fixed(Duration::from_micros(20)));
    assert_eq!(violations(&led), "");
    led.system.lead = Some(Lead::Fixed(Duration::from_micros(21)));
    assert_eq!(violations(&led), expected("-1us", "1020us", "-500us"));
}

#[test]
fn sync_windows_have_a_period_of_the_cycle_and_a_bound() {
    let windows = [("a", 1000, 1000, "AD"), ("b", 6000, 1000, "AD")];
    let said = |period, offset, length, bound| violations(&synced(period, offset, length, bound, &windows));
    assert_eq!(said(3000, 0, 500, 100), "the cycle 10ms is not a multiple of the period 3ms of the sync windows\n");
    assert_eq!(
        said(5000, 4501, 500, 100),
        "the sync windows at 4501us with a length of 500us are not within their period of 5ms\n"
    );
    assert_eq!(said(5000, 4500, 500, 499), "");
    assert_eq!(said(5000, 4500, 500, 500), "sync windows of 500us with a bound of 500us can become shorter than 1us\n");
    assert_eq!(said(5000, 4500, 500, 0), "sync windows of 500us with a bound of 0ns can become shorter than 1us\n");
}

#[test]
fn sync_windows_at_their_shortest_shorten_the_cycle() {
    let windows = [("a", 0, 4600, "AD"), ("b", 5000, 4600, "AD")];
    let mut plan = synced(5000, 4600, 400, 300, &windows);
    for task in &mut plan.system.tasks {
        task.wcet = Duration::from_micros(4600);
    }
    // 95 % of 9.4 ms.
    let expected = "CPU 0: windows take 9200us of a cycle, but at most 8930us are allowed\n";
    assert_eq!(violations(&plan), expected);
}

#[test]
fn the_lead_of_the_first_window_reaches_back_over_the_cycle() {
    let tasks = ["a 1ms offset 0us", "b 1ms"];
    let windows = |end: i64| [("a", 0, 1000, "AD"), ("b", end - 1000, 1000, "AD")];
    assert_eq!(violations(&led(20, &tasks, &windows(9980))), "");
    let expected = "CPU 0, window 0: activates a job 19us after the end of window 1, but the lead is 20us\n";
    assert_eq!(violations(&led(20, &tasks, &windows(9981))), expected);
    // With one window on a CPU, the same window of the previous cycle comes before it. The lead may lie around the
    // start of the cycle.
    let alone = |offset| [("a", offset, 9000, "AD")];
    assert_eq!(violations(&led(500, &["a 9ms offset 20us jitter 0us"], &alone(20))), "");
    let expected = "CPU 0, window 0: activates a job 1ms after the end of window 0, but the lead is 1001us\n\
                    CPU 0: windows take 9ms of a cycle and leads 1001us, but at most 9500us are allowed together\n";
    assert_eq!(violations(&led(1001, &["a 9ms"], &alone(0))), expected);
}

#[test]
fn leads_count_as_load() {
    let windows = [("a", 0, 4000, "AD"), ("b", 5000, 4000, "AD")];
    let plan = led(750, &["a 4ms", "b 4ms"], &windows);
    assert_eq!(violations(&plan), "");
    assert!(check(&plan).to_string().contains("cpu 0: windows take 80.0 %, leads 15.0 %\n"), "{}", check(&plan));
    let expected = "CPU 0: windows take 8ms of a cycle and leads 1502us, but at most 9500us are allowed together\n";
    assert_eq!(violations(&led(751, &["a 4ms", "b 4ms"], &windows)), expected);
}

/// Makes a system of one CPU and 10 ms from short texts: `name wcet [key value]...`.
fn tiny(tasks: &[&str], windows: &[(&str, i64, i64, &str)]) -> Plan {
    let task = |text: &&str| {
        let mut words = text.split(' ');
        let (name, wcet) = (words.next().expect("a name"), words.next().expect("a wcet"));
        let rest: Vec<&str> = words.collect();
        let rest: String = rest.chunks(2).map(|pair| format!(", {}: {}", pair[0], pair[1])).collect();
        let period = if rest.contains("period") { "" } else { ", period: 10ms" };
        format!("  - {{name: {name}, wcet: {wcet}{period}{rest}}}\n")
    };
    let text = format!("system: tiny\ntasks:\n{}", tasks.iter().map(task).collect::<String>());
    let system = described(&text);
    let window =
        |&(task, offset, length, flags): &(&str, i64, i64, &str)| fixtures::window(task, us(offset), us(length), flags);
    let cycle = system.hyperperiod().expect("short periods");
    by_hand(system, cycle, tables(windows.iter().map(window)))
}

fn violations(plan: &Plan) -> String {
    check(plan).violations.iter().map(|violation| format!("{violation}\n")).collect()
}

#[test]
fn abutting_windows_do_not_overlap() {
    let plan = tiny(&["a 1ms", "b 1ms"], &[("a", 0, 1000, "AD"), ("b", 1000, 1000, "AD")]);
    assert_eq!(violations(&plan), "");
    let plan = tiny(&["a 1ms", "b 1ms"], &[("a", 0, 1001, "AD"), ("b", 1000, 1000, "AD")]);
    assert_eq!(violations(&plan), "CPU 0: windows 0 and 1 overlap\n");
}

#[test]
fn a_job_may_wrap_around_the_cycle_if_its_offset_says_so() {
    let windows = [("a", 0, 500, "D"), ("a", 9500, 500, "A")];
    assert_eq!(violations(&tiny(&["a 1ms offset 9500us"], &windows)), "");
    assert_eq!(violations(&tiny(&["a 1ms"], &windows)), "task `a`, job 0: ends at 10500us, but its deadline is 10ms\n");
}

#[test]
fn a_chosen_phase_moves_the_deadline_with_it() {
    let windows = [("a", 9000, 1000, "AD")];
    assert_eq!(violations(&tiny(&["a 1ms jitter 0us deadline 2ms"], &windows)), "");
    let late = "task `a`, job 0: ends at 10ms, but its deadline is 2ms\n";
    assert_eq!(violations(&tiny(&["a 1ms deadline 2ms"], &windows)), late);
}

#[test]
fn an_offset_bounds_the_start_from_below_and_with_jitter_from_above() {
    let task = "a 1ms offset 2ms jitter 500us";
    assert_eq!(violations(&tiny(&[task], &[("a", 2500, 1000, "AD")])), "");
    let late = "task `a`: starts vary by 501us, but the bound is 500us\n";
    assert_eq!(violations(&tiny(&[task], &[("a", 2501, 1000, "AD")])), late);
    // One microsecond earlier, the job belongs to the previous period.
    let early = violations(&tiny(&[task], &[("a", 1999, 1000, "AD")]));
    assert!(early.contains("starts vary by 9999us"), "{early}");
}

#[test]
fn windows_that_take_too_much_of_a_cpu_are_refused() {
    let plan = tiny(&["a 9500us"], &[("a", 0, 9500, "AD")]);
    assert_eq!(violations(&plan), "");
    let plan = tiny(&["a 9500us"], &[("a", 0, 9501, "AD")]);
    assert_eq!(violations(&plan), "CPU 0: windows take 9501us of a cycle, but at most 9500us are allowed\n");
}

#[test]
fn two_jobs_in_one_period_and_none_in_the_next_are_caught() {
    let tasks = ["a 1ms period 5ms", "b 1ms"];
    let plan = tiny(&tasks, &[("a", 0, 1000, "AD"), ("a", 2000, 1000, "AD"), ("b", 4000, 1000, "AD")]);
    let expected = "task `a`: 2 jobs start in period 0 instead of one\n\
                    task `a`: 0 jobs start in period 1 instead of one\n";
    assert_eq!(violations(&plan), expected);
}

#[test]
fn chain_times_follow_the_definitions() {
    // a reads at 0 and writes at 1 ms, every 5 ms; b reads at 4 ms and writes at 5 ms, every 10 ms.
    let mut plan =
        tiny(&["a 1ms period 5ms", "b 1ms"], &[("a", 0, 1000, "AD"), ("b", 4000, 1000, "AD"), ("a", 5000, 1000, "AD")]);
    let bound = Some(Duration::from_secs(1));
    let path = vec!["a".to_string(), "b".to_string()];
    plan.system.chains = vec![Chain { reaction: bound, age: bound, ..Chain::named("c", path) }];
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{verdict}");
    // An input just after 0 is read by a at 5 and by b at 14. The output is at 15.
    assert_eq!(verdict.chains[0].reaction, Some(Duration::from_millis(15)));
    // The output of b at 5 depends on the value that a read at 0.
    assert_eq!(verdict.chains[0].age, Some(Duration::from_millis(5)));
}

#[test]
fn nonsense_is_refused_without_a_panic() {
    let mut plan = tiny(&["a 1ms"], &[("a", 0, 1000, "AD")]);
    plan.cycle = Duration::from_millis(15);
    assert_eq!(violations(&plan), "cycle 15ms is not a positive multiple of the period 10ms of `a`\n");
    plan.cycle = Duration::ZERO;
    assert!(!check(&plan).is_feasible());
    plan = tiny(&["a 1ms"], &[("a", 0, 1000, "AD")]);
    plan.system.macrotick = Duration::ZERO;
    assert_eq!(violations(&plan), "macrotick 0ns is not positive\n");
    plan = tiny(&["a 1ms"], &[("a", 0, 1000, "D")]);
    assert_eq!(violations(&plan), "task `a`: the window at 0ns belongs to no job\n");
    plan = tiny(&["a 1ms"], &[]);
    assert_eq!(violations(&plan), "task `a` has no window\n");
}

#[test]
fn the_verdict_reads_well_and_serialises() {
    let plan = tiny(&["a 1ms"], &[("a", 0, 900, "AD")]);
    let verdict = check(&plan);
    let expected = "not feasible: 1 violation\n  task `a`, job 0: windows of 900us for a wcet of 1ms\n\
                    cpu 0: windows take 9.0 %\n\
                    task   jobs     response       jitter        slack\n\
                    a         1        900us          0ns       9100us\n";
    assert_eq!(verdict.to_string(), expected);
    let json = serde_json::to_string(&verdict.violations).expect("serialisable");
    assert_eq!(json, r#"[{"rule":"starved","task":"a","job":0,"given":"900us","wcet":"1ms","pieces":1,"lost":"0ns"}]"#);
    let whole = serde_json::to_string(&verdict).expect("serialisable");
    let read: macrotick_check::Verdict = serde_json::from_str(&whole).expect("readable");
    assert_eq!(read, verdict);
}

/// Makes a plan of two CPUs with a pool in the gaps of a task with many windows.
fn good_with_pool() -> Plan {
    let mut plan = good(0);
    plan.system.groups = vec![Group { cpus: vec![1], ..fixtures::pool("pool", ms(5), us(700)) }];
    plan.system.chains.clear();
    plan.system.tasks.retain(|task| task.period.is_multiple_of(ms(5)) && task.cpu.is_none());
    plan.system.tasks.truncate(3);
    let plan = macrotick_plan::plan(&plan.system, Solver::FoldedOccupancy).expect("solvable");
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{verdict}");
    assert_eq!((verdict.pools[0].given, verdict.pools[0].cpu), (us(700), 1));
    let text = verdict.to_string();
    assert!(text.contains(" on CPU 1, 700us of every 5ms, at most ") && text.contains(" without a window\n"), "{text}");
    plan
}

/// Returns the violations after a change of one window of the pool.
fn pool_changed(change: impl Fn(&mut Plan, usize, usize)) -> Vec<Violation> {
    let mut plan = good_with_pool();
    let places = |(table, found): (usize, &CpuTable)| {
        found.windows.iter().position(|window| window.task == "pool").map(|window| (table, window))
    };
    let (table, window) = plan.tables.iter().enumerate().find_map(places).expect("a window of the pool");
    change(&mut plan, table, window);
    check(&plan).violations
}

#[test]
fn a_shorter_window_leaves_a_period_of_its_pool_too_little() {
    let violations = pool_changed(|plan, table, window| at(plan, table, window).length -= Duration::from_micros(1));
    let (given, budget) = (Duration::from_micros(699), Duration::from_micros(700));
    assert_eq!(violations, [Violation::PoolBudget { pool: "pool".into(), number: 0, given, budget }]);
    assert_eq!(violations[0].to_string(), "pool `pool`, period 0: windows of 699us for a budget of 700us");
}

#[test]
fn a_window_gives_each_period_of_a_pool_what_lies_in_it() {
    // One window lies around the end of period 0 and is as long as both budgets together. The rest of period 1 has
    // none.
    let around = |plan: &mut Plan, before: i64| {
        let cpu = plan.tables.iter().position(|table| table.cpu == 1).expect("a table");
        plan.tables[cpu].windows.retain(|window| window.task == "pool" && window.offset >= Duration::from_millis(10));
        plan.tables[cpu].windows.insert(0, fixtures::window("pool", us(5000 - before), us(1400), ""));
    };
    let of_pool = |before: i64| {
        let mut violations = pool_changed(|plan, _, _| around(plan, before));
        violations.retain(|violation| matches!(violation, Violation::PoolBudget { .. }));
        violations
    };
    assert_eq!(of_pool(700), []);
    let budget = Duration::from_micros(700);
    let short = |number, given| Violation::PoolBudget {
        pool: "pool".into(),
        number,
        given: Duration::from_micros(given),
        budget,
    };
    assert_eq!(of_pool(699), [short(0, 699)]);
    assert_eq!(of_pool(701), [short(1, 699)]);
}

#[test]
fn a_window_of_a_pool_with_a_flag_is_told() {
    for flag in [|window: &mut Window| window.activate = true, |window: &mut Window| window.deadline = true] {
        let violations = pool_changed(|plan, table, window| flag(at(plan, table, window)));
        assert!(matches!(violations[..], [Violation::PoolFlags { cpu: 1, .. }]), "{violations:?}");
    }
}

#[test]
fn a_pool_stays_on_its_cpu() {
    let violations = pool_changed(|plan, table, window| {
        let moved = plan.tables[table].windows.remove(window);
        let other = plan.tables.iter_mut().find(|table| table.cpu == 0).expect("a table");
        other.windows.retain(|window| window.offset >= moved.end());
        other.windows.insert(0, moved);
    });
    let migrates = Violation::PoolMigrates { pool: "pool".into(), cpu: 1, other: 0 };
    let wrong = Violation::PoolWrongCpu { pool: "pool".into(), cpu: 0, allowed: CpuSet::from_iter([1]) };
    assert!(violations.contains(&migrates) && violations.contains(&wrong), "{violations:?}");
}

#[test]
fn a_pool_without_windows_is_told() {
    let violations = pool_changed(|plan, _, _| {
        plan.tables.iter_mut().for_each(|table| table.windows.retain(|window| window.task != "pool"));
        plan.tables.retain(|table| !table.windows.is_empty());
    });
    assert_eq!(violations, [Violation::PoolNoWindow { pool: "pool".into() }]);
}

#[test]
fn a_pools_period_divides_the_cycle() {
    let violations =
        pool_changed(|plan, _, _| plan.system.groups[0].windows.as_mut().unwrap().period = Duration::from_micros(4999));
    assert!(matches!(&violations[..], [Violation::Cycle { task, .. }] if task == "pool"), "{violations:?}");
}

/// Each piece of a job loses the time from the start of a window to the first instruction.
#[test]
fn a_job_is_only_cut_where_its_pieces_are_worth_what_they_cost() {
    let tasks = ["a 1ms", "b 1ms"];
    let cut = |first, last| [("a", 20, first, "A"), ("b", 1020, 1000, "AD"), ("a", 2020, last, "D")];
    assert_eq!(violations(&tiny(&tasks, &cut(500, 505))), "");
    let expected = "task `a`, job 0: windows of 1004us in 2 pieces, which cost 5us, for a wcet of 1ms\n";
    assert_eq!(violations(&tiny(&tasks, &cut(500, 504))), expected);
    let expected =
        "task `a`, job 0: a piece of 9us is too short: each piece of a job that is cut needs at least 10us\n";
    assert_eq!(violations(&tiny(&tasks, &cut(1000, 9))), expected);
    assert_eq!(violations(&tiny(&tasks, &cut(9, 1000))), expected);
    assert_eq!(violations(&tiny(&tasks, &cut(995, 10))), "");
    // Adjacent windows are one piece.
    assert_eq!(violations(&tiny(&["a 1ms"], &[("a", 20, 500, "A"), ("a", 520, 500, "D")])), "");
}

#[test]
fn a_window_is_not_over_before_its_job_begins() {
    assert_eq!(violations(&tiny(&["a 6us"], &[("a", 20, 6, "AD")])), "");
    let expected = "task `a`, job 0: its window of 5us ends before the kernel runs it: at least 6us are necessary\n";
    assert_eq!(violations(&tiny(&["a 5us"], &[("a", 20, 5, "AD")])), expected);
    assert_eq!(violations(&led(20, &["a 6us"], &[("a", 20, 6, "AD")])), "");
    assert_eq!(violations(&led(20, &["a 5us"], &[("a", 20, 5, "AD")])), expected);
}

#[test]
fn a_window_of_a_pool_is_not_over_before_its_threads_run() {
    let short = |length: i64| {
        let mut violations = pool_changed(|plan, table, _| {
            plan.system.groups[0].windows.as_mut().unwrap().length = us(length);
            let windows = &mut plan.tables[table].windows;
            let first = windows.iter().position(|window| window.task == "pool").expect("a window");
            windows[first].length = us(length);
        });
        violations.retain(|violation| matches!(violation, Violation::PoolShort { .. }));
        violations.iter().map(Violation::to_string).collect::<Vec<_>>()
    };
    assert_eq!(short(6), [""; 0]);
    let told = short(5);
    assert!(told.len() == 1 && told[0].starts_with("pool `pool`: the window of 5us at "), "{told:?}");
    assert!(told[0].ends_with(" ends before the kernel runs its threads: at least 6us are necessary"), "{told:?}");
}

/// Makes a plan of one CPU without preemption.
fn good_without_preemption() -> Plan {
    let mut system = system(
        3,
        &Shape {
            tasks: 12,
            cpus: 1,
            utilisation: 40,
            macrotick: Duration::from_micros(1),
            phased: 0,
            chains: 1,
            lead: None,
            sync: None,
        },
    );
    system.preemptible = Some(false);
    // No job is too long for the time between two jobs of the fastest tasks.
    system.tasks.iter_mut().for_each(|task| task.wcet = task.wcet.min(us(200)));
    let plan = plan(&system, Solver::FoldedOccupancy).unwrap_or_else(|error| panic!("{error}"));
    let verdict = check(&plan);
    assert!(verdict.is_feasible(), "{verdict}");
    assert!(plan.tables.iter().flat_map(|table| &table.windows).all(|window| window.activate && window.deadline));
    plan
}

#[test]
fn a_job_without_preemption_has_one_window() {
    let original = good_without_preemption();
    let mut cut = 0;
    for index in 0..original.tables[0].windows.len() {
        let mut plan = original.clone();
        let window = at(&mut plan, 0, index);
        if window.length < us(40) {
            continue;
        }
        // The job is whole again behind a cut of nothing: its two windows touch.
        let (task, end) = (window.task.clone(), window.end());
        window.length -= us(20);
        window.deadline = false;
        let rest = fixtures::window(&task, end - us(20), us(20), "D");
        plan.tables[0].windows.insert(index + 1, rest);
        let expected = Violation::Preempted { task, cpu: 0, end: end - us(20), other: 0, next: end - us(20) };
        let found = check(&plan).violations;
        assert!(found.contains(&expected), "{found:?}");
        cut += 1;
    }
    assert!(cut >= 10, "only {cut} windows were cut");
}

#[test]
fn the_rule_of_preemption_names_task_cpus_and_times() {
    let plan = |keys: &str, windows: &[(&str, i64, i64, &str)]| {
        let mut plan = tiny(&["a 1ms", "b 1ms"], windows);
        plan.system.preemptible = keys.contains("all").then_some(false);
        plan.system.tasks[0].preemptible = keys.contains("one").then_some(keys.contains("true"));
        plan
    };
    let cut = [("a", 20, 500, "A"), ("b", 1020, 1000, "AD"), ("a", 2020, 505, "D")];
    let expected =
        "task `a` is not preemptible: its window on CPU 0 ends at 520us, but the job continues at 2020us on \
                    CPU 0\n";
    for (keys, expected) in [("", ""), ("all", expected), ("one false", expected), ("all, one true", "")] {
        assert_eq!(violations(&plan(keys, &cut)), expected, "{keys}");
    }
    // The job continues in the next cycle.
    let around = [("a", 0, 505, "D"), ("b", 1020, 1000, "AD"), ("a", 9500, 500, "A")];
    let found = violations(&plan("all", &around));
    assert!(found.contains("ends at 10ms, but the job continues at 10ms on CPU 0\n"), "{found}");
}
