//! Reports of runs with a known outcome.

#[allow(dead_code)]
mod synthetic;

use macrotick_fixtures::{job, ms, ns, pool_record, segment, sync, table, unsynchronised_clock, us, window};
use macrotick_model::*;
use macrotick_report::*;

/// Returns the small system under the kernel, with changed records.
fn changed(change: impl FnOnce(&mut Observation)) -> (Observation, Report) {
    let mut observation = synthetic::small(Backend::Kernel);
    change(&mut observation);
    let report = Report::new(&observation);
    (observation, report)
}

#[test]
fn a_job_that_ends_at_its_deadline_is_in_time() {
    let deadline = synthetic::small(Backend::Kernel).plan.jobs("control")[0].deadline;
    let (_, report) = changed(|run| run.tasks[0].jobs[0].end = Some(deadline));
    assert!(report.holds());
    assert_eq!(report.task("control").unwrap().least_slack_ns, Some(0));
    let (_, report) = changed(|run| run.tasks[0].jobs[0].end = Some(deadline + ns(1)));
    assert!(!report.holds());
    assert_eq!(report.verdict.missed, 1);
    assert!(report.verdict.reasons.contains(&"control: 1 of 24 jobs missed".to_string()), "{:?}", report.verdict);
}

#[test]
fn a_job_that_never_completed_is_a_miss() {
    let (_, report) = changed(|run| run.tasks[0].jobs[3].end = None);
    let task = report.task("control").unwrap();
    assert_eq!((task.missed, task.never_started, task.completed), (1, 0, 23));
    assert_eq!((task.lateness.unwrap().count, task.response.unwrap().count), (24, 23));
}

#[test]
fn a_job_without_a_record_is_a_miss_and_a_remark() {
    let (_, report) = changed(|run| {
        run.tasks[0].jobs.remove(5);
    });
    let task = report.task("control").unwrap();
    assert_eq!((task.released, task.missed, task.never_started), (24, 1, 1));
    assert!(report.remarks.iter().any(|remark| remark.starts_with("control: 1 jobs of the plan have no record")));
}

#[test]
fn jobs_that_there_was_no_room_for_are_judged_by_the_kernels_counters() {
    let cut = |missed: u64| {
        changed(move |run| {
            run.tasks[0].jobs.truncate(20);
            run.tasks[0].recorded_until = Some(ms(20));
            run.tasks[0].counters.as_mut().unwrap().missed = missed;
        })
    };
    let (_, report) = cut(0);
    let task = report.task("control").unwrap();
    assert!(report.holds(), "{:?}", report.verdict);
    assert_eq!((task.released, task.missed, task.never_started), (20, 0, 0));
    assert!(report.remarks.is_empty(), "{:?}", report.remarks);
    let (_, report) = cut(2);
    assert_eq!(report.verdict.reasons[0], "control: 0 of 20 jobs missed, and 2 after its records end");
    assert!(!report.holds());
}

#[test]
fn records_beyond_the_run_are_not_judged() {
    let beyond = job(24, ms(24), None, None);
    let (_, report) = changed(|run| run.tasks[0].jobs.push(beyond));
    assert!(report.holds());
    assert_eq!(report.task("control").unwrap().released, 24);
}

#[test]
fn the_end_of_the_run_belongs_to_it() {
    // The last control job of a cycle of 4 ms is due 0.2 ms after its release at 3 ms.
    let run_for = |length: i64| changed(move |run| run.duration = ns(length));
    let jobs = |report: &Report| report.task("control").unwrap().released;
    assert_eq!((jobs(&run_for(3_199_999).1), jobs(&run_for(3_200_000).1)), (3, 4));
    let windows = |run: &Observation| trace_json(run).matches("\"name\":\"activate, deadline\"").count();
    assert_eq!((windows(&run_for(3_199_999).0), windows(&run_for(3_200_000).0)), (3, 4));
}

#[test]
fn order_and_repetition_of_records_do_not_matter() {
    let (_, expected) = changed(|_| ());
    let (_, report) = changed(|run| {
        let again = run.tasks[0].jobs[7];
        run.tasks[0].jobs.push(again);
        run.tasks[0].jobs.reverse();
    });
    assert_eq!(report.tasks, expected.tasks);
    assert_eq!(report.remarks, ["control: 1 records repeat a job; the first one counts"]);
}

#[test]
fn lateness_is_measured_from_the_table() {
    let (_, report) = changed(|run| run.tasks[0].jobs[0].nominal = ns(1_000_000));
    assert_eq!(report.remarks.len(), 1);
    assert!(report.remarks[0].contains("not the plan's"), "{:?}", report.remarks);
    assert!(report.task("control").unwrap().lateness.unwrap().min_ns > 0);
}

#[test]
fn a_start_before_the_nominal_instant_is_a_remark() {
    let (_, report) = changed(|run| run.tasks[0].jobs[2].start = run.tasks[0].jobs[2].start.map(|at| at - ns(5_000)));
    assert_eq!(report.remarks, ["control: 1 jobs started before their nominal instant"]);
}

#[test]
fn a_deadline_in_the_next_cycle_counts_there() {
    let (_, report) = changed(|run| {
        // One window per cycle of 4 ms: released at 3.9 ms, due at 0.2 ms of the next cycle.
        run.plan.tables[0].windows =
            vec![window("control", us(0), us(200), "D"), window("control", us(3_900), us(100), "A")];
        run.duration = ns(8_150_000);
        run.tasks[0].jobs = vec![job(0, us(3_900), Some(us(3_901)), Some(us(4_200)))];
    });
    let task = report.task("control").unwrap();
    // The job of the second cycle is due at 8.2 ms, after the end.
    assert_eq!((task.released, task.missed, task.deadline_ns), (1, 0, Some(300_000)));
    assert_eq!(task.response.unwrap().max_ns, 300_000);
}

#[test]
fn the_kernels_counters_are_held_against_the_records() {
    let (_, report) = changed(|run| {
        let counters = run.tasks[1].counters.as_mut().unwrap();
        (counters.missed, counters.lost, counters.skipped) = (2, 1, 3);
    });
    assert!(report.holds(), "the records decide");
    assert_eq!(
        report.remarks,
        [
            "vision: the kernel counted 2 misses, the records show 0",
            "vision: the kernel counted 1 activations lost, because an older one was still pending",
            "vision: the kernel counted 3 windows skipped by a late interrupt",
        ]
    );
}

#[test]
fn only_positive_evidence_holds() {
    let (_, report) = changed(|run| run.duration = ns(100_000));
    assert!(!report.holds());
    assert_eq!((report.verdict.released, report.verdict.missed), (0, 0));
    assert_eq!(report.verdict.reasons.len(), 4, "{:?}", report.verdict.reasons);
    let (_, report) = changed(|run| {
        run.plan.system.tasks.clear();
        run.plan.system.chains.clear();
    });
    assert_eq!(report.verdict.reasons, ["the system has no task"]);
}

#[test]
fn a_broken_bound_breaks_the_verdict() {
    let (_, report) = changed(|run| run.plan.system.chains[0].age = Some(Duration::from_micros(4_900)));
    assert!(!report.holds());
    assert_eq!((report.verdict.bounds, report.verdict.bounds_kept, report.verdict.missed), (2, 1, 0));
    assert!(report.verdict.reasons[0].starts_with("chain sense-to-act: data age broken, "), "{:?}", report.verdict);
}

#[test]
fn a_task_that_never_ran_breaks_its_chains() {
    let (_, report) = changed(|run| {
        run.tasks[1].jobs.iter_mut().for_each(|job| (job.start, job.end) = (None, None));
    });
    assert_eq!(report.task("vision").unwrap().never_started, 6);
    assert_eq!(report.task("vision").unwrap().lateness, None);
    assert_eq!(report.chains[0].reaction.verdict, BoundVerdict::Broken);
    assert_eq!(report.chains[0].age.verdict, BoundVerdict::Unobserved);
}

/// Returns observations that leave a renderer little to show.
fn meagre() -> Vec<(Observation, Report)> {
    vec![
        changed(|run| run.tasks.clear()),
        changed(|run| run.tasks.iter_mut().for_each(|task| task.jobs.clear())),
        changed(|run| run.tasks.iter_mut().for_each(|task| task.jobs.truncate(1))),
        changed(|run| run.duration = Duration::ZERO),
        changed(|run| run.plan.tables.clear()),
        changed(|run| run.plan.cycle = Duration::ZERO),
        changed(|run| run.plan.system.tasks.clear()),
        changed(|run| run.plan.system.name = "a <b> & \"c\"".into()),
    ]
}

#[test]
fn everything_can_be_rendered_however_little_there_is() {
    for (observation, report) in meagre() {
        let renderings = [terminal(&report, true, 1), terminal(&report, false, 500), html(&report, &observation)];
        for text in renderings {
            assert!(!text.contains("NaN") && !text.contains("inf\""), "{text}");
        }
        serde_json::from_str::<serde_json::Value>(&report.to_json()).unwrap();
        serde_json::from_str::<serde_json::Value>(&trace_json(&observation)).unwrap();
        let comparison = compare(&[report]);
        assert!(comparison.html().ends_with("</html>\n"));
    }
}

#[test]
fn the_page_stands_alone_and_is_small() {
    for backend in Backend::ALL {
        let observation = synthetic::robot_arm(backend, Duration::from_secs(10));
        let page = html(&Report::new(&observation), &observation);
        assert!(page.len() < 1_000_000, "{backend}: {} bytes", page.len());
        for foreign in ["http:", "https:", "<script", "<link", "@import", "url(", "src="] {
            assert!(!page.contains(foreign), "{backend}: {foreign}");
        }
    }
}

#[test]
fn names_are_escaped() {
    let (observation, report) = changed(|run| run.plan.system.name = "a <b> & \"c\"".into());
    let page = html(&report, &observation);
    assert!(page.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
    assert!(!page.contains("<b> & "));
}

#[test]
fn text_without_colour_has_no_escapes_and_keeps_to_its_width() {
    for backend in Backend::ALL {
        let report = Report::new(&synthetic::robot_arm(backend, Duration::from_secs(1)));
        let text = terminal(&report, false, 100);
        assert!(!text.contains('\x1b'));
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{backend}: {line}");
        }
        assert!(terminal(&report, true, 100).contains('\x1b'));
    }
}

#[test]
fn the_same_observation_gives_the_same_bytes() {
    let observation = synthetic::robot_arm(Backend::Other, Duration::from_secs(1));
    let again = synthetic::robot_arm(Backend::Other, Duration::from_secs(1));
    let (one, two) = (Report::new(&observation), Report::new(&again));
    assert_eq!(one.to_json(), two.to_json());
    assert_eq!(html(&one, &observation), html(&two, &again));
}

#[test]
fn the_clock_says_who_synchronises_it_and_what_it_took() {
    let followed = |clock: ClockInForce| {
        let (observation, report) = changed(|run| run.clock = Some(clock));
        (terminal(&report, false, 200), html(&report, &observation), report)
    };
    let free = unsynchronised_clock();
    let (text, page, report) = followed(free);
    assert!(
        text.contains("clock   table on an unsynchronised clock, CLOCK_TAI without its offset; never corrected\n"),
        "{text}"
    );
    assert!(
        page.contains("<br>Clock: table on an unsynchronised clock, CLOCK_TAI without its offset; never corrected.")
    );
    assert!(report.to_json().contains("\"synchronised\": false"));
    assert!(report.caveats.iter().any(|caveat| caveat.contains("no program synchronises that clock")));
    assert!(report.caveats.iter().any(|caveat| caveat.contains("No program has set the offset of CLOCK_TAI")));

    let mut held = free;
    (held.synchronised, held.estimated_error, held.tai_offset_s) = (true, Some(ns(12_000)), 37);
    (held.stretched, held.shrunk, held.corrections, held.rest) = (ns(700), ns(50), 3, ns(-40));
    let (text, _, report) = followed(held);
    let expected = "CLOCK_TAI, synchronised, estimated error 12us, 37 s ahead of UTC; \
                    corrected 3 times, +700ns -50ns, -40ns off";
    assert!(text.contains(expected), "{text}");
    assert!(!report.caveats.iter().any(|caveat| caveat.contains("CLOCK_TAI")));

    held.estimated_error = None;
    let (text, _, report) = followed(held);
    assert!(text.contains("CLOCK_TAI, synchronised, error not estimated, 37 s ahead of UTC; corrected"), "{text}");
    assert!(!report.caveats.iter().any(|caveat| caveat.contains("CLOCK_TAI")));
}

#[test]
fn a_clock_that_nobody_followed_is_a_caveat() {
    let sync = sync(ns(1000), ns(0), ns(100), ns(10));
    let (_, report) = changed(|run| run.plan.system.clock = Clock::Tai(sync));
    assert!(report.caveats.iter().any(|caveat| caveat.contains("This run was on CLOCK_MONOTONIC")));
}

#[test]
fn the_lab_and_the_tier_have_their_caveats() {
    let (_, report) = changed(|_| ());
    assert!(report.caveats[0].contains("Neither caches nor the speed of devices are modelled"));
    let (_, report) = changed(|run| {
        run.environment.lab = None;
        run.tier = Tier::NotEnforced;
        run.backend = Backend::Fifo;
    });
    assert!(!report.caveats.iter().any(|caveat| caveat.contains("lab")));
    assert!(report.caveats[0].starts_with("No table was enforced."));
}

#[test]
fn a_trace_tells_of_windows_jobs_misses_and_cpus() {
    let (observation, _) = changed(|run| run.tasks[0].jobs[3].end = None);
    let trace: serde_json::Value = serde_json::from_str(&trace_json(&observation)).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let count =
        |phase: &str, group: u64| events.iter().filter(|event| event["ph"] == phase && event["pid"] == group).count();
    let windows: usize = observation.plan.tables.iter().map(|table| table.windows.len()).sum();
    assert_eq!((count("X", 1), count("X", 2), count("i", 2)), (6 * windows, 30, 1));
    assert_eq!(count("X", 3), observation.segments.len());
    let first = events.iter().find(|event| event["name"] == "job 0").unwrap();
    let start = observation.tasks[0].jobs[0].start.unwrap();
    assert_eq!(first["ts"].as_f64().unwrap(), start.as_nanos() as f64 / 1000.0);
}

#[test]
fn a_task_on_two_cpus_is_shown_with_both() {
    let (observation, report) = changed(|run| {
        run.plan.system.tasks[1].migrate = true;
        let windows = &mut run.plan.tables[0].windows;
        let last = windows.iter().rposition(|window| window.task == "vision").unwrap();
        let windows = vec![windows.remove(last)];
        run.plan.tables.push(table(1, windows));
    });
    assert!(report.holds());
    assert_eq!(report.task("vision").unwrap().cpus.to_string(), "0, 1");
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!((&json["tasks"][0]["cpu"], &json["tasks"][1]["cpu"]), (&0.into(), &vec![0, 1].into()));
    let row = |text: String| text.lines().find(|line| line.starts_with("vision ")).unwrap_or_default().to_string();
    assert!(row(terminal(&report, false, 200)).contains(" 0, 1 "), "{}", terminal(&report, false, 200));
    let page = html(&report, &observation);
    assert!(page.contains("<td>0, 1</td>") && page.contains("vision on CPU 0") && page.contains("vision on CPU 1"));
    assert!(!page.contains("control on CPU"));
    let trace = trace_json(&observation);
    assert_eq!((trace.matches(r#""args":{"cpu":1}"#).count(), trace.matches(r#""args":{"cpu":0}"#).count()), (6, 6));
}

/// A task that is killed at its first miss: the kernel counts nothing after that.
#[test]
fn jobs_that_nobody_was_there_for_are_no_disagreement() {
    let (observation, report) = changed(|run| {
        run.plan.system.tasks[1].on_miss = OnMiss::Kill;
        run.remarks = vec!["task `vision`: killed after a miss".into()];
        run.tasks[1].counters.as_mut().unwrap().missed = 1;
        run.tasks[1].jobs[0].end = None;
        run.tasks[1].jobs[1..].iter_mut().for_each(|job| (job.start, job.end) = (None, None));
    });
    let vision = report.task("vision").unwrap();
    assert_eq!((vision.missed, vision.never_started), (vision.released, vision.released - 1));
    let counted = format!(
        "vision: the kernel counted 1 misses, the records show {}: it counts none of a task that is stopped or has no \
         process",
        vision.missed
    );
    assert_eq!(report.remarks, ["task `vision`: killed after a miss", &counted]);
    for text in [terminal(&report, false, 100), report.to_json(), html(&report, &observation)] {
        assert!(text.contains("killed after a miss"), "{text}");
    }
}

#[test]
fn other_backends_say_that_they_do_not_act_on_misses() {
    let says = |backend, on_miss| {
        let mut run = synthetic::small(backend);
        run.plan.system.tasks[0].on_miss = on_miss;
        Report::new(&run).caveats.iter().any(|caveat| caveat.starts_with("Only the kernel class reacts to misses"))
    };
    assert!(says(Backend::Fifo, OnMiss::Restart) && says(Backend::User, OnMiss::Signal));
    assert!(!says(Backend::Kernel, OnMiss::Restart) && !says(Backend::Fifo, OnMiss::Resume));
}

/// Returns the text between two marks of a page.
fn between<'a>(page: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = page.split_once(before).unwrap_or_else(|| panic!("no {before} in {page}"));
    rest.split_once(after).expect("an end").0
}

#[test]
fn the_job_that_is_shown_is_the_one_of_the_least_slack() {
    let told = |change: &dyn Fn(&mut Observation)| {
        let (observation, report) = changed(|run| change(run));
        let page = html(&report, &observation);
        let card = between(&page, "Least slack to a deadline", "</div></div>");
        let (_, task) = card.rsplit_once('>').expect("a task");
        let mut titles = page.split("<h3>").filter_map(|part| part.split("</h3>").next());
        (task.to_owned(), titles.find(|title| title.contains(", job ")).unwrap_or_default().to_owned())
    };
    // The response of a control job is the larger share of its time, a vision job is later.
    let late = |run: &mut Observation, task: usize, job: usize, by: Duration| {
        let deadline = run.plan.jobs(&run.plan.system.tasks[task].name)[0].deadline;
        let period = run.plan.system.tasks[task].period;
        run.tasks[task].jobs[job].end = Some(deadline + period * job as i64 + by);
    };
    let both = |run: &mut Observation| {
        late(run, 0, 3, us(300));
        late(run, 1, 2, us(400));
    };
    assert_eq!(told(&both), ("vision".into(), "The worst miss: vision, job 2".into()));
    let unended = |run: &mut Observation| run.tasks[0].jobs[5].end = None;
    assert_eq!(told(&unended).1, "A job that did not end: control, job 5");
    let and_late = |run: &mut Observation| {
        unended(run);
        late(run, 1, 2, us(1));
    };
    assert_eq!(told(&and_late), ("vision".into(), "The worst miss: vision, job 2".into()));
}

#[test]
fn several_virtual_cpus_are_told_beside_the_verdict() {
    let several = |cpus| {
        let (observation, report) = changed(|run| run.environment.lab.as_mut().unwrap().cpus = cpus);
        let page = html(&report, &observation);
        let banner = between(&page, "class=\"banner", "class=\"cards\"").to_owned();
        [terminal(&report, false, 100), banner].map(|text| text.contains("Latencies mean nothing here"))
    };
    assert_eq!((several(2), several(1)), ([true; 2], [false; 2]));
}

#[test]
fn tasks_without_windows_are_told_apart() {
    let told = |deadline: bool| {
        let (observation, report) = changed(|run| {
            let reservation = Reservation { runtime: ms(1), cpus: [0].into_iter().collect() };
            if deadline {
                run.plan.system.tasks[1].supply = Supply::Deadline(reservation);
                run.plan.tables[0].windows.retain(|window| window.task == "control");
            }
        });
        (terminal(&report, false, 100), html(&report, &observation))
    };
    let (text, page) = told(true);
    assert!(text.contains("every window; SCHED_DEADLINE ran 1 of 2 tasks\n"), "{text}");
    assert!(text.contains("\nvision   planned no windows: SCHED_DEADLINE\n"), "{text}");
    assert!(page.contains("control (of the tasks with windows)") && page.contains("SCHED_DEADLINE ran 1 of 2 tasks."));
    let (text, page) = told(false);
    assert!(!text.contains("SCHED_DEADLINE") && !page.contains("of the tasks with windows"), "{text}");
}

#[test]
fn without_a_trace_the_terminal_says_what_a_bar_is() {
    let note = "no trace: from the first to the last instruction";
    let (_, traced) = changed(|_| ());
    assert!(!terminal(&traced, false, 100).contains(note));
    let (_, report) = changed(|run| run.segments.clear());
    assert!(terminal(&report, false, 100).contains(note), "{}", terminal(&report, false, 100));
}

#[test]
fn long_times_have_one_decimal_on_the_page_as_well() {
    let (observation, report) = changed(|run| run.tasks[1].jobs[0].end = Some(ms(12)));
    let page = html(&report, &observation);
    assert!(page.contains("<td>11800.0</td>") && page.contains("% missed</td>"), "{page}");
}

/// Adds a pool with 300 us of every 2 ms to the small system, in two windows per cycle of 4 ms.
fn pooled(slack: bool, had: Option<(u64, u64)>) -> (Observation, Report) {
    changed(|run| {
        let cycle = run.plan.cycle;
        let order = PoolOrder::RoundRobin(us(100));
        let windows = Windows { order, slack, ..Windows::new(us(2000), us(300)) };
        let process = run.plan.system.load.remove(0);
        let group = Group::named("third-party", Vec::new());
        run.plan.system.groups = vec![Group { windows: Some(windows), run: vec![process], ..group }];
        for offset in [us(1600), cycle - us(300)] {
            run.plan.tables[0].windows.push(window("third-party", offset, us(300), ""));
        }
        run.pools.extend(had.map(|(runtime_ns, usage_ns)| PoolObservation {
            overrun: 5,
            skipped: 2,
            threads: 3,
            ..pool_record("third-party", runtime_ns, usage_ns)
        }));
    })
}

#[test]
fn a_pool_is_held_against_its_budgets() {
    // 24 ms: 12 periods of 300 us.
    let (_, report) = pooled(false, Some((3_000_000, 3_001_000)));
    let pool = &report.pools[0];
    assert_eq!((pool.cpu, pool.windows, pool.window_ns, pool.budget_ns), (Some(0), 2, 3_600_000, 300_000));
    let had = Had { runtime_ns: 3_000_000, permille_of_budget: 833, outside_ns: 1_000, overrun: 5, threads: 3 };
    assert_eq!(pool.had, Some(had));
    assert!(report.holds());
    let remark = "third-party: the kernel counted 2 windows skipped by a late interrupt";
    assert!(report.remarks.iter().any(|text| text == remark), "{:?}", report.remarks);
    assert!(report.to_json().contains("\"outside_ns\": 1000"));
}

#[test]
fn windows_beyond_the_end_of_a_run_do_not_count() {
    let (mut observation, _) = pooled(false, None);
    observation.duration = Duration::from_micros(5_700);
    assert_eq!(Report::new(&observation).pools[0].window_ns, 2 * 300_000 + 100_000);
}

#[test]
fn a_pool_is_shown_with_its_windows_and_what_it_had() {
    let (mut observation, _) = pooled(true, Some((3_600_000, 9_600_000)));
    let ran = Segment { pool: Some("third-party".into()), ..segment("sort", 3_700_000, 4_000_000) };
    observation.segments.push(ran);
    let report = Report::new(&observation);
    let text = terminal(&report, false, 120);
    let lines: Vec<&str> = text.lines().collect();
    let row = lines.iter().find(|line| line.starts_with("third-party  ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().skip(1).collect();
    assert_eq!(cells, ["0", "2000.000", "300.000", "3600.0", "3600.0", "100.0", "%", "6000.0", "3", "yes"]);
    let lane = lines.iter().position(|line| line.starts_with("third-party  planned")).expect("a lane");
    assert!(lines[lane + 1].trim_start().starts_with("actual") && lines[lane + 1].ends_with('█'), "{text}");
    let page = html(&report, &observation);
    assert!(page.contains("<h2>Pools [µs]</h2>") && page.contains("in group third-party"));
    assert!(page.contains("sort on CPU 0: 300.000 µs"));
    assert!(trace_json(&observation).contains("\"args\":{\"name\":\"third-party\"}"));
}

#[test]
fn a_backend_that_serves_no_pool_says_so() {
    let (mut observation, _) = pooled(false, None);
    (observation.backend, observation.tier) = (Backend::Other, Tier::NotEnforced);
    let report = Report::new(&observation);
    assert_eq!(report.pools[0].had, None);
    assert!(report.caveats.iter().any(|caveat| caveat.starts_with("Only the kernel class serves groups in windows")));
}

#[test]
fn a_group_is_held_against_the_budgets_of_the_time_that_is_charged() {
    let (_, report) = changed(|run| {
        run.plan.system.server_period = ms(1);
        let group = Group { budget: Some(us(100)), priority: Some(3), ..Group::named("g", vec![0]) };
        run.plan.system.groups = vec![group];
        // 24 ms, and the 5 ms before the epoch.
        run.groups = vec![macrotick_fixtures::group_record("g", 29 * 100_000)];
    });
    assert_eq!(report.groups[0].had.unwrap().permille_of_budget, 1000);
}
