//! Drawing: all positions in time are percentages, so a page zooms by the width of the picture alone.

use std::fmt::Write;

use macrotick_model::{Duration, Plan};

use super::arrows::Arrow;
use super::rows::{Bar, Row, Rows};
use crate::plot::axis::Axis;
use crate::plot::svg::{escape, number, style};
use crate::words;

pub(super) const STYLE: &str = include_str!("timetable.css");

/// The width of a whole picture in a file.
const WIDTH: f64 = 1400.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 8.0;
/// The height of a row. Arrows between windows of one CPU run below the bars.
const ROW: f64 = 42.0;
const BAR: f64 = 24.0;
const BOTTOM: f64 = 24.0;

pub(super) fn height(rows: &Rows) -> f64 {
    bottom(rows) + BOTTOM
}

/// Returns the lower edge of the rows. The labels of the grid are below it.
pub(super) fn bottom(rows: &Rows) -> f64 {
    TOP + rows.rows.len() as f64 * ROW
}

/// The width of a letter in the name of a bar.
const LETTER: f64 = 7.0;
/// A label has at most this many characters.
const LONGEST: usize = 20;

/// Returns the width of the column of labels.
pub(super) fn labels_width(rows: &Rows) -> f64 {
    const CHARACTER: f64 = 7.5;
    let longest = rows.rows.iter().map(|row| row.label.chars().count().min(LONGEST)).max().unwrap_or(0);
    24.0 + CHARACTER * longest as f64
}

/// Returns the labels of the rows.
pub(super) fn labels(rows: &Rows) -> String {
    let x = number(labels_width(rows) - 10.0);
    let label = |(row, Row { label, .. }): (usize, &Row)| {
        let y = number(top(row) + BAR / 2.0 + 4.0);
        let (whole, short) = (escape(label), escape(&crate::table::cut(label, LONGEST)));
        format!("<text class=\"label\" x=\"{x}\" y=\"{y}\" text-anchor=\"end\"><title>{whole}</title>{short}</text>")
    };
    rows.rows.iter().enumerate().map(label).collect()
}

/// Returns the contents beside the labels, for an element with the width of the shown time.
///
/// A bar has its name if it is long enough for it: `letter` is the time in the width of a letter.
pub(super) fn contents(rows: &Rows, arrows: &[Arrow], letter: Duration) -> String {
    let mut text = String::from(HEAD);
    for row in (0..rows.rows.len()).step_by(2) {
        let y = number(top(row) - 6.0);
        let _ = write!(text, "<rect class=\"stripe\" x=\"0\" y=\"{y}\" width=\"100%\" height=\"{ROW}\"/>");
    }
    text += &ticks(rows);
    for (row, Row { bars, .. }) in rows.rows.iter().enumerate() {
        bars.iter().for_each(|bar| self::bar(&mut text, rows, row, bar, letter));
    }
    arrows.iter().for_each(|arrow| self::arrow(&mut text, rows, arrow));
    text
}

/// The head of an arrow.
const HEAD: &str = "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
                    markerHeight=\"7\" orient=\"auto\"><path class=\"head\" d=\"M0 0.5L8 4L0 7.5z\"/></marker></defs>";

fn top(row: usize) -> f64 {
    TOP + row as f64 * ROW + 6.0
}

/// Returns an instant as a percentage of the shown time.
fn percent(rows: &Rows, at: Duration) -> String {
    let share = at.as_nanos() as f64 * 100.0 / rows.until.as_nanos() as f64;
    let text = format!("{share:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned() + "%"
}

/// Returns the grid. A page replaces it when it zooms.
fn ticks(rows: &Rows) -> String {
    let bottom = bottom(rows);
    let axis = Axis::exactly(0.0, rows.until.as_nanos() as f64);
    let mut text = String::from("<g class=\"ticks\">");
    for (ns, label) in axis.ticks() {
        let x = percent(rows, Duration::from_nanos(ns as i64));
        let (end, below) = (number(bottom + 4.0), number(bottom + 17.0));
        let side = if ns == 0.0 { "start" } else { "middle" };
        let _ = write!(
            text,
            "<line class=\"grid\" x1=\"{x}\" x2=\"{x}\" y1=\"{TOP}\" y2=\"{end}\"/><text class=\"tick\" x=\"{x}\" \
             y=\"{below}\" text-anchor=\"{side}\">{}</text>",
            escape(&label)
        );
    }
    text + "</g>"
}

/// Draws a bar. Its name is in an element of its width, which cuts it.
fn bar(text: &mut String, rows: &Rows, row: usize, bar: &Bar, letter: Duration) {
    let (x, width) = (percent(rows, bar.from), percent(rows, bar.to - bar.from));
    let (y, name) = (number(top(row)), escape(&bar.name));
    let owner = if name.is_empty() { String::new() } else { format!(" data-name=\"{name}\"") };
    let _ = write!(
        text,
        "<g{owner}><rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BAR}\"><title>{}</title></rect>",
        bar.class,
        escape(&bar.hover)
    );
    if !name.is_empty() && bar.to - bar.from >= letter * (bar.name.chars().count() as i64 + 1) {
        let _ = write!(
            text,
            "<svg x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BAR}\"><text class=\"name\" x=\"4\" y=\"16\">{name}\
             </text></svg>"
        );
    }
    text.push_str("</g>");
}

/// Draws an arrow: from the lower or upper edge of a bar to that of another one, or below bars of one row.
fn arrow(text: &mut String, rows: &Rows, arrow: &Arrow) {
    let (from, to) = (top(arrow.from.0), top(arrow.to.0));
    let (y1, y2) = match from.total_cmp(&to) {
        std::cmp::Ordering::Less => (from + BAR, to),
        std::cmp::Ordering::Greater => (from, to + BAR),
        std::cmp::Ordering::Equal => (from + BAR + 6.0, to + BAR + 6.0),
    };
    let (x1, x2) = (percent(rows, arrow.from.1.min(rows.until)), percent(rows, arrow.to.1));
    let (y1, y2) = (number(y1), number(y2));
    let chain = arrow.chain;
    let _ = write!(
        text,
        "<line class=\"arrow\" data-chain=\"{chain}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" \
         marker-end=\"url(#head)\"/>"
    );
}

/// Returns the sentence about the part of the cycle that is shown.
pub(super) fn shown(plan: &Plan, rows: &Rows) -> String {
    let cycle = words::short_time(plan.cycle.as_nanos());
    match rows.until == plan.cycle {
        true => format!("One cycle of {cycle}"),
        false => format!("The first {} of a cycle of {cycle}", words::short_time(rows.until.as_nanos())),
    }
}

/// Returns a picture with a title, as a file.
pub(super) fn file(plan: &Plan, rows: &Rows, arrows: &[Arrow]) -> String {
    const TITLE: f64 = 26.0;
    let height = height(rows);
    let whole = number(height + TITLE);
    let system = macrotick_model::visible::visible(&plan.system.name);
    let title = escape(&format!("{system}. {}", shown(plan, rows)));
    let labels_width = labels_width(rows);
    let width = WIDTH - labels_width - RIGHT;
    let letter = Duration::from_nanos((rows.until.as_nanos() as f64 * LETTER / width) as i64);
    format!(
        "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {whole}\" width=\"{WIDTH}\" \
         height=\"{whole}\" role=\"img\" aria-label=\"{title}\"><style>{}{STYLE}</style><rect class=\"ground\" \
         width=\"100%\" height=\"100%\"/><text class=\"plot-title\" x=\"10\" y=\"18\">{title}</text><svg y=\"{TITLE}\" \
         width=\"{labels_width}\" height=\"{height}\">{}</svg><svg class=\"time\" x=\"{labels_width}\" y=\"{TITLE}\" \
         width=\"{width}\" height=\"{height}\">{}</svg></svg>\n",
        style(),
        labels(rows),
        contents(rows, arrows, letter)
    )
}
