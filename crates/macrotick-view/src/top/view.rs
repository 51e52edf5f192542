//! The state of the view, and its keys.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::Duration as WallTime;

use macrotick_node::Status;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::top::events;
use crate::top::sample::{rows, Row};

/// The events that are kept.
const EVENTS: usize = 200;

/// The order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// As in the table of the kernel.
    Table,
    Name,
    Load,
    Bad,
    /// The largest lateness first.
    Late,
    Cpu,
}

impl Sort {
    pub fn name(self) -> &'static str {
        match self {
            Sort::Table => "table",
            Sort::Name => "name",
            Sort::Load => "load",
            Sort::Bad => "missed",
            Sort::Late => "worst lateness",
            Sort::Cpu => "CPU",
        }
    }

    fn next(self) -> Sort {
        match self {
            Sort::Table => Sort::Load,
            Sort::Load => Sort::Bad,
            Sort::Bad => Sort::Late,
            Sort::Late => Sort::Cpu,
            Sort::Cpu => Sort::Name,
            Sort::Name => Sort::Table,
        }
    }
}

/// The view.
pub(crate) struct View {
    pub status: Option<Status>,
    /// The reason why the status could not be read.
    pub failure: Option<String>,
    pub rows: Vec<Row>,
    /// Each event with the time since the start.
    pub events: VecDeque<(WallTime, String)>,
    pub sort: Sort,
    pub is_paused: bool,
    pub selected: usize,
    /// Whether the selected row is open.
    pub is_open: bool,
    pub uptime: WallTime,
    /// The time since the reading that is shown.
    since: WallTime,
    server_period_ns: u64,
}

impl View {
    /// Makes the view. Groups have their budgets in every server period.
    pub fn new(server_period_ns: u64) -> View {
        View {
            status: None,
            failure: None,
            rows: Vec::new(),
            events: VecDeque::new(),
            sort: Sort::Table,
            is_paused: false,
            selected: 0,
            is_open: false,
            uptime: WallTime::ZERO,
            since: WallTime::ZERO,
            server_period_ns,
        }
    }

    /// Takes a reading, unless the view is paused. `elapsed` is the time since the one before.
    pub fn update(&mut self, reading: Result<Status, String>, elapsed: WallTime) {
        self.uptime += elapsed;
        self.since += elapsed;
        if self.is_paused {
            return;
        }
        let status = match reading {
            Ok(status) => status,
            Err(failure) => {
                self.failure = Some(failure);
                return;
            }
        };
        self.failure = None;
        let name = self.rows.get(self.selected).map(|row| (row.kind, row.name.clone()));
        self.rows = rows(&status, self.status.as_ref(), self.since, self.server_period_ns);
        self.since = WallTime::ZERO;
        if let Some(before) = &self.status {
            for event in events::between(&self.rows, &status, before) {
                self.events.push_back((self.uptime, event));
            }
            while self.events.len() > EVENTS {
                self.events.pop_front();
            }
        }
        self.status = Some(status);
        self.order();
        // The same task stays selected, wherever it is now.
        let place = name.and_then(|name| self.rows.iter().position(|row| (row.kind, row.name.clone()) == name));
        self.selected = place.unwrap_or(self.selected).min(self.rows.len().saturating_sub(1));
    }

    fn order(&mut self) {
        let milli = |value: f64| (value * 1000.0) as i64;
        match self.sort {
            Sort::Table => {}
            Sort::Name => self.rows.sort_by(|one, other| one.name.cmp(&other.name)),
            Sort::Load => self.rows.sort_by_key(|row| Reverse(milli(row.load))),
            Sort::Bad => self.rows.sort_by_key(|row| Reverse((row.bad.1, row.bad.0))),
            Sort::Late => self.rows.sort_by_key(|row| Reverse(row.lateness.map(|lateness| lateness.worst_ns))),
            Sort::Cpu => self.rows.sort_by(|one, other| one.cpus.cmp(&other.cpus)),
        }
    }

    /// Handles a key. Returns whether the view ends.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Char('q') => return true,
            KeyCode::Esc if self.is_open => self.is_open = false,
            KeyCode::Esc => return true,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') => {
                self.sort = self.sort.next();
                self.order();
            }
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => {
                self.selected = (self.selected + 1).min(self.rows.len().saturating_sub(1));
            }
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = self.rows.len().saturating_sub(1),
            KeyCode::Enter => self.is_open = !self.is_open && !self.rows.is_empty(),
            _ => {}
        }
        false
    }
}
