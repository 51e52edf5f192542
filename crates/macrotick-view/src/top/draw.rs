//! The picture: a head, the rows, the events, the keys. It fits 80 columns.

use macrotick_model::visible::visible_in_place;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row as Line80, Table, TableState};
use ratatui::Frame;

use crate::top::sample::Row;
use crate::top::view::View;

const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const HEAD: Style = Style::new().add_modifier(Modifier::REVERSED);
/// The lines of the part for events, with its border.
const EVENTS: u16 = 7;

/// Draws the view.
pub(crate) fn draw(frame: &mut Frame, view: &View) {
    let area = frame.area();
    let head = head(view);
    let lines = head.len() as u16;
    let open = view.rows.get(view.selected).filter(|_| view.is_open);
    let events = if area.height >= 16 && open.is_none() { EVENTS } else { 0 };
    let parts = [Constraint::Length(lines), Constraint::Min(3), Constraint::Length(events), Constraint::Length(1)];
    let [top, middle, bottom, last] = Layout::vertical(parts).areas(area);
    frame.render_widget(Paragraph::new(head), top);
    match open {
        Some(row) => details(frame, middle, row),
        None => rows(frame, middle, view),
    }
    happened(frame, bottom, view);
    let keys = "q quit  s sort  p pause  up/down select  enter open";
    frame.render_widget(Paragraph::new(keys).style(FAINT).alignment(Alignment::Left), last);
}

fn head(view: &View) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let Some(status) = &view.status else {
        let reason = view.failure.clone().unwrap_or_else(|| "reading ...".into());
        return vec![Line::styled(visible_in_place(&reason), BAD)];
    };
    let system =
        status.deployment.as_ref().map_or("no deployment".into(), |deployed| visible_in_place(&deployed.system));
    let table = match &status.table {
        None => "no table".into(),
        Some(table) if table.running => format!("table runs, cycle {}", table.cycle()),
        Some(_) => "table does not run".into(),
    };
    let paused = if view.is_paused { "  PAUSED" } else { "" };
    lines.push(Line::from(format!("macrotick top - {system}: {table}, sorted by {}{paused}", view.sort.name())));
    let used: f64 = view.rows.iter().map(|row| row.load).sum();
    let tasks = view.rows.iter().filter(|row| row.kind == "task").count();
    let groups = view.rows.len() - tasks;
    let bad: u64 = view.rows.iter().filter(|row| row.kind == "task").map(|row| row.bad.0).sum();
    let style = if bad > 0 { BAD } else { Style::new() };
    lines.push(Line::styled(
        format!("{tasks} tasks, {groups} groups and pools, {used:.1} % of a CPU used, {bad} jobs missed or lost"),
        style,
    ));
    if let Some(failure) = &view.failure {
        lines.push(Line::styled(visible_in_place(failure), BAD));
    }
    let problems = status.problems.len();
    for problem in status.problems.iter().take(2) {
        lines.push(Line::styled(visible_in_place(problem), BAD));
    }
    if problems > 2 {
        lines.push(Line::styled(format!("{} more problems: `macrotick status` lists them", problems - 2), BAD));
    }
    lines
}

fn rows(frame: &mut Frame, area: Rect, view: &View) {
    // Of a group, the last columns count budgets that were used up.
    let head = ["", "name", "CPU", "share", "load", "jobs/s", "missed", "new", "late", "worst"];
    let head = Line80::new(head.map(Cell::from)).style(HEAD);
    let table = view.rows.iter().map(|row| {
        let rate = row.rate.map_or("-".into(), |rate| format!("{rate:.0}"));
        let is_bad = row.bad.1 > 0 && row.kind != "group" || row.threads == 0 && row.kind == "task";
        let cells = [
            row.kind.to_owned(),
            visible_in_place(&row.name),
            row.cpus.clone(),
            format!("{:.1}%", row.share),
            format!("{:.1}%", row.load),
            rate,
            if row.kind == "pool" { "-".into() } else { row.bad.0.to_string() },
            if row.bad.1 > 0 { format!("+{}", row.bad.1) } else { String::new() },
            row.lateness.map_or("-".into(), |lateness| length(lateness.latest_ns)),
            row.lateness.map_or("-".into(), |lateness| length(lateness.worst_ns)),
        ];
        Line80::new(cells).style(if is_bad { BAD } else { Style::new() })
    });
    let widths = [5, 16, 6, 6, 6, 6, 6, 6, 7, 7].map(Constraint::Length);
    let table =
        Table::new(table, widths).header(head).row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected(Some(view.selected).filter(|_| !view.rows.is_empty()));
    frame.render_stateful_widget(table, area, &mut state);
}

/// Returns a time with at most seven characters, as long as it is below 1000 s.
fn length(ns: i64) -> String {
    match ns as f64 {
        ns if ns.abs() < 999_950.0 => format!("{:.1}us", ns / 1e3),
        ns if ns.abs() < 999_950_000.0 => format!("{:.1}ms", ns / 1e6),
        ns => format!("{:.1}s", ns / 1e9),
    }
}

fn details(frame: &mut Frame, area: Rect, row: &Row) {
    let first = [
        ("CPU", row.cpus.clone()),
        ("threads", row.threads.to_string()),
        ("share by the plan", format!("{:.1} %", row.share)),
        ("load now", format!("{:.1} %", row.load)),
        ("lateness now", row.lateness.map_or("unknown".into(), |lateness| length(lateness.latest_ns))),
        ("worst lateness", row.lateness.map_or("unknown".into(), |lateness| length(lateness.worst_ns))),
    ];
    let lines = first.iter().chain(&row.details).map(|(key, value)| Line::from(format!("{key:<24}{value}")));
    let title = format!(" {} {} ", row.kind, visible_in_place(&row.name));
    let block = Block::new().borders(Borders::ALL).title(title);
    frame.render_widget(Paragraph::new(Text::from_iter(lines)).block(block), area);
}

fn happened(frame: &mut Frame, area: Rect, view: &View) {
    let fits = area.height.saturating_sub(2) as usize;
    let first = view.events.len().saturating_sub(fits);
    let line = |(at, event): &(std::time::Duration, String)| {
        Line::from(format!("{:>8.1} s  {}", at.as_secs_f64(), visible_in_place(event)))
    };
    let lines = view.events.iter().skip(first).map(line);
    let block = Block::new().borders(Borders::TOP | Borders::BOTTOM).title(" events since the start of this view ");
    frame.render_widget(Paragraph::new(Text::from_iter(lines)).block(block), area);
}
