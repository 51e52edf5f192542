//! The view as text of 80 columns.

use std::time::Duration as WallTime;

use macrotick_model::Duration;
use macrotick_node::{EntityStatus, GroupStatus, LatenessStatus, Status, TableStatus};
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;

use crate::top::draw::draw;
use crate::top::view::View;

fn status(second: u64, missed: u64) -> Status {
    let entity = |name: &str, pool: bool, cpu: u32, used: u64| EntityStatus {
        name: name.into(),
        pool,
        cpus: [cpu].into_iter().collect(),
        windows: 2,
        window_ns: 2_000_000,
        threads: 1,
        released: 100 * second,
        completed: 100 * second - missed,
        missed,
        never_ran: 0,
        lost: 0,
        overrun: 3,
        skipped: 0,
        late: 0,
        runtime_ns: used * second,
        missed_in_row: 0,
        stopped: false,
        lateness: None,
    };
    let mut control = entity("control", false, 0, 150_000_000);
    control.missed = 0;
    control.lateness = Some(LatenessStatus { latest_ns: 3_149, worst_ns: 999_949 });
    let mut vision = entity("vision\u{1b}[2J", false, 1, 300_000_000);
    vision.lateness = Some(LatenessStatus { latest_ns: -250, worst_ns: 12_345_678 });
    let entities = vec![control, vision, entity("web", true, 1, 50_000_000)];
    let (clock, cycle_ns, epoch_ns, lead_ns) = ("CLOCK_MONOTONIC", 10_000_000, 0, 0);
    let table = TableStatus { running: true, clock, cycle_ns, epoch_ns, lead_ns, grid: None, entities };
    let group = GroupStatus {
        name: "vendor".into(),
        path: "/sys/fs/cgroup/vendor".into(),
        priority: 9,
        budgets: vec![(0, Duration::from_micros(500))],
        cpus: [0].into_iter().collect(),
        threads: 5,
        usage_ns: 120_000_000 * second,
        exhaustions: 2 * second,
        throttled_ns: 1_000_000,
        astray: None,
    };
    let problems = if missed > 0 { vec![format!("task `vision` missed {missed} deadlines")] } else { Vec::new() };
    let (owner, deployment, settings) = (None, None, Vec::new());
    Status { version: Status::VERSION, table: Some(table), owner, deployment, groups: vec![group], settings, problems }
}

fn view() -> View {
    let mut view = View::new(2_500_000);
    view.update(Ok(status(1, 0)), WallTime::ZERO);
    view.update(Ok(status(2, 3)), WallTime::from_secs(1));
    view
}

fn lines(view: &View, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(80, height)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    let buffer = terminal.backend().buffer();
    let cell = |x, y| buffer[(x, y)].symbol().to_owned();
    let line = |y| (0..80).map(|x| cell(x, y)).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn press(view: &mut View, code: KeyCode) -> bool {
    view.press(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn the_view_fits_80_columns() {
    assert_eq!(
        lines(&view(), 19),
        [
            "macrotick top - no deployment: table runs, cycle 10ms, sorted by table",
            "2 tasks, 2 groups and pools, 62.0 % of a CPU used, 3 jobs missed or lost",
            "task `vision` missed 3 deadlines",
            "      name             CPU    share  load   jobs/s missed new    late    worst",
            "task  control          0      20.0%  15.0%  100    0             3.1us   999.9us",
            "task  vision\u{fffd}[2J       1      20.0%  30.0%  100    3      +3     -0.2us  12.3ms",
            "pool  web              1      20.0%  5.0%   -      -             -       -",
            "group vendor           0      20.0%  12.0%  -      4      +2     -       -",
            "",
            "",
            "",
            " events since the start of this view ───────────────────────────────────────────",
            "     1.0 s  task vision\u{fffd}[2J missed 3 jobs",
            "     1.0 s  group vendor used up a budget 2 times",
            "",
            "",
            "",
            "────────────────────────────────────────────────────────────────────────────────",
            "q quit  s sort  p pause  up/down select  enter open",
        ]
    );
}

#[test]
fn keys_sort_open_pause_and_quit() {
    let mut view = view();
    assert!(!press(&mut view, KeyCode::Char('s')));
    let names = |view: &View| view.rows.iter().map(|row| row.name.chars().take(7).collect()).collect::<Vec<String>>();
    assert_eq!(names(&view), ["vision\u{1b}", "control", "vendor", "web"]);
    press(&mut view, KeyCode::Down);
    press(&mut view, KeyCode::Enter);
    let open = lines(&view, 19).join("\n");
    assert!(open.contains(" task control ") && open.contains("missed without a start  0"), "{open}");
    assert!(!press(&mut view, KeyCode::Esc), "it closes the row");
    press(&mut view, KeyCode::Char('p'));
    view.update(Ok(status(9, 90)), WallTime::from_secs(1));
    assert!(lines(&view, 19)[0].ends_with("PAUSED") && view.rows.iter().all(|row| row.bad.0 < 90));
    press(&mut view, KeyCode::Char('p'));
    // After a pause, the load is that of the whole time.
    view.update(Ok(status(4, 90)), WallTime::from_secs(1));
    assert!((view.rows.iter().find(|row| row.name == "control").unwrap().load - 15.0).abs() < 0.1);
    view.update(Err("the class is gone".into()), WallTime::from_secs(1));
    assert!(lines(&view, 19).iter().any(|line| line == "the class is gone"));
    assert!(press(&mut view, KeyCode::Char('q')) && press(&mut view, KeyCode::Esc));
}

#[test]
fn a_small_or_empty_view_is_drawn() {
    for height in 1..20 {
        lines(&view(), height);
        let mut empty = View::new(2_500_000);
        assert!(!press(&mut empty, KeyCode::Enter) && !press(&mut empty, KeyCode::Down));
        lines(&empty, height);
        empty.update(Err("no class".into()), WallTime::ZERO);
        lines(&empty, height);
    }
}

#[test]
fn rows_are_sorted_by_their_worst_lateness() {
    let mut view = view();
    (0..3).for_each(|_| _ = press(&mut view, KeyCode::Char('s')));
    assert!(lines(&view, 19)[0].ends_with("sorted by worst lateness"));
    let names: Vec<&str> = view.rows.iter().map(|row| row.name.as_str()).collect();
    // Rows without a lateness keep their order.
    assert_eq!(names, ["vision\u{1b}[2J", "control", "vendor", "web"]);
    press(&mut view, KeyCode::Enter);
    let open = lines(&view, 24).join("\n");
    assert!(
        open.contains("lateness now            -0.2us") && open.contains("worst lateness          12.3ms"),
        "{open}"
    );
}

/// The selected task stays selected when the order changes.
#[test]
fn the_selection_follows_its_task() {
    let mut view = view();
    press(&mut view, KeyCode::End);
    press(&mut view, KeyCode::Char('s'));
    view.selected = view.rows.iter().position(|row| row.name == "vendor").unwrap();
    view.update(Ok(status(3, 3)), WallTime::from_secs(1));
    assert_eq!(view.rows[view.selected].name, "vendor");
}
