//! The timetable of a plan, as a page and as a picture.

use macrotick_check::check;
use macrotick_fixtures::{by_hand, described, table, tables, window};
use macrotick_model::{Duration, GateEntry, GateList, Plan};
use macrotick_report::{timetable_page, timetable_picture};

fn us(us: i64) -> Duration {
    Duration::from_micros(us)
}

/// Two tasks of a chain and a group, on two CPUs.
fn plan() -> Plan {
    let system = described(
        "system: arm
cpus: [0, 1]
lead: 20us
tasks:
  - {name: sense, period: 1ms, wcet: 200us}
  - {name: act, period: 2ms, wcet: 300us}
chains:
  - {name: sense-to-act, path: [sense, act], reaction: 4ms}
groups:
  - {name: vendor, windows: {period: 2ms, length: 100us}}
",
    );
    let first = [("sense", 100, 200, "AD"), ("sense", 1100, 200, "AD"), ("vendor", 1500, 100, "")];
    let second = [("act", 400, 200, "A"), ("act", 700, 105, "D")];
    let windows = |windows: &[(&str, i64, i64, &str)]| {
        windows.iter().map(|(task, at, length, flags)| window(task, us(*at), us(*length), flags)).collect::<Vec<_>>()
    };
    by_hand(system, us(2000), vec![table(0, windows(&first)), table(1, windows(&second))])
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn every_window_is_a_bar_at_its_share_of_the_cycle() {
    let plan = plan();
    for text in [timetable_picture(&plan), timetable_page(&plan, &check(&plan))] {
        assert_eq!(count(&text, "data-name=\"sense\"><rect class=\"series s0\""), 2);
        assert!(text.contains("<rect class=\"series s0\" x=\"55%\" y=\"14\" width=\"10%\""), "{text}");
        assert!(text.contains("<title>sense, job 1\n1100us to 1300us: 200us</title>"), "{text}");
        assert!(text.contains("<title>act, job 0, window 2 of 2\n700us to 805us: 105us</title>"), "{text}");
        assert!(text.contains("<title>vendor, window 1\n1500us to 1600us: 100us</title>"), "{text}");
        assert!(text.contains("<rect class=\"lead\" x=\"4%\" y=\"14\" width=\"1%\""), "{text}");
        assert!(text.contains(">CPU 1</text>"), "{text}");
        assert!(text.contains("One cycle of 2 ms"), "{text}");
        // From the end of the first job of `sense`, in the row above, to the start of the job of `act`.
        assert_eq!(count(&text, "<line class=\"arrow\""), 1);
        assert!(text.contains("data-chain=\"0\" x1=\"15%\" y1=\"38\" x2=\"20%\" y2=\"56\""), "{text}");
    }
}

#[test]
fn a_page_tells_the_verdict_and_the_times() {
    let mut plan = plan();
    let page = timetable_page(&plan, &check(&plan));
    for part in
        ["<h1>arm</h1>", "✓ Feasible", "<td class=\"left \">act</td>", "<td class=\" \">2.00</td>", "reaction of"]
    {
        assert!(page.contains(part), "{part} in\n{page}");
    }
    plan.tables[0].windows[0].length = us(150);
    let page = timetable_page(&plan, &check(&plan));
    assert!(page.contains("✗ Not feasible") && page.contains("sense"), "{page}");
    assert!(!page.contains("✓ Feasible"));
}

#[test]
fn names_are_text_and_nothing_else() {
    let mut plan = plan();
    let name = "a\"><script>\u{202e}\u{1b}";
    plan.system.name = name.into();
    plan.system.tasks[0].name = name.into();
    plan.system.chains[0].path[0] = name.into();
    plan.tables[0]
        .windows
        .iter_mut()
        .filter(|window| window.task == "sense")
        .for_each(|window| window.task = name.into());
    plan.solver = name.into();
    for text in [timetable_picture(&plan), timetable_page(&plan, &check(&plan))] {
        assert_eq!(count(&text, "<script>"), usize::from(text.contains("<!doctype html>")), "{text}");
        assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text}");
        assert!(text.contains("data-name=\"a&quot;&gt;&lt;script&gt;"), "{text}");
    }
}

/// A plan can have a million windows, a browser draws some thousand.
#[test]
fn a_long_table_is_shown_in_part() {
    let system = described("system: long\ncpus: [0]\ntasks:\n  - {name: fast, period: 100us, wcet: 20us}\n");
    let windows = (0..20_000).map(|number| window("fast", us(100 * number), us(20), "AD"));
    let plan = by_hand(system, us(2_000_000), tables(windows));
    let picture = timetable_picture(&plan);
    assert!(picture.contains("The first 500 ms of a cycle of 2 s"), "{}", &picture[..400]);
    assert_eq!(count(&picture, "data-name="), 5000);
}

#[test]
fn gates_have_a_row_for_each_class() {
    let mut plan = plan();
    let entry = |length, open: &[&str]| GateEntry {
        length: us(length),
        open: open.iter().map(|class| class.to_string()).collect(),
    };
    let entries = vec![entry(100, &["rest"]), entry(50, &[]), entry(100, &["control"]), entry(750, &["rest"])];
    plan.gates = vec![GateList { interface: "port".into(), cycle: us(1000), entries }];
    let picture = timetable_picture(&plan);
    for part in [
        ">port: control</text>",
        ">port: rest</text>",
        "<title>gate of class control on port is open\n1150us to 1250us: 100us</title>",
        // The last interval of one round and the first of the next one are one.
        "<title>gate of class rest on port is open\n250us to 1100us: 850us</title>",
    ] {
        assert!(picture.contains(part), "{part} in\n{picture}");
    }
    assert_eq!(count(&picture, "class=\"gate\""), 2 + 3);
}

#[test]
fn a_plan_without_windows_has_a_page() {
    let system = described(
        "system: reserved\ncpus: [0]\ntasks:\n  - {name: alone, period: 10ms, wcet: 1ms, supply: deadline}\n",
    );
    let plan = by_hand(system, us(10_000), Vec::new());
    let page = timetable_page(&plan, &check(&plan));
    assert!(page.contains("The plan has no windows and no gates.") && page.contains("SCHED_DEADLINE"), "{page}");
    assert!(timetable_picture(&plan).starts_with("<svg"));
}
