//! The timetable of a plan as a picture: a row for each CPU and each gate, windows as bars, arrows along the chains.
//!
//! [`timetable_page`] returns a page in which it can be zoomed and searched, [`timetable_picture`] an SVG file.

mod arrows;
mod draw;
mod page;
mod rows;

pub use page::page as timetable_page;

use macrotick_model::Plan;

use rows::Rows;

/// Returns the timetable as an SVG file of its own. A plan with very many windows is shown up to an instant, which the
/// picture names.
pub fn timetable_picture(plan: &Plan) -> String {
    let rows = Rows::of(plan);
    draw::file(plan, &rows, &arrows::of(plan, &rows))
}
