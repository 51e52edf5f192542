//! Pieces of HTML that several pages share.

use macrotick_model::visible::visible;

use crate::plot::svg::{escape, style};
use crate::table::{Table, Tone};

const STYLE: &str = include_str!("page.css");

/// Returns a whole page.
pub(crate) fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{}{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
         <footer>Written by Macrotick {}. Times are in microseconds unless a unit is given.</footer>\n</main>\n\
         </body>\n</html>\n",
        style(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Returns an entry of the keys below a heading: a shape in a box of 26 x 14, and its meaning.
pub(crate) fn key(shape: &str, text: &str) -> String {
    format!(
        "<span class=\"key\"><svg class=\"plot\" viewBox=\"0 0 26 14\" aria-hidden=\"true\">{shape}</svg>{text}</span>"
    )
}

/// Returns an entry with a bar of this class as its shape.
pub(crate) fn bar_key(class: &str, text: &str) -> String {
    key(&format!("<rect class=\"{class}\" x=\"1\" y=\"2\" width=\"24\" height=\"10\"/>"), text)
}

/// Returns the line of all keys. There is none without keys.
pub(crate) fn keys(keys: &[String]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    format!("<p class=\"keys\">{}</p>\n", keys.concat())
}

/// Returns a section with a heading and a note below it (no note when empty).
pub(crate) fn section(title: &str, note: &str, body: &str) -> String {
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{}</p>\n", escape(note)) };
    format!("<section>\n<h2>{}</h2>\n{note}{body}</section>\n", escape(title))
}

/// Returns a card with a value, its name above and its subject below.
pub(crate) fn card(name: &str, value: &str, of: &str, bad: bool) -> String {
    let class = if bad { "value bad-text" } else { "value" };
    format!(
        "<div class=\"card\"><div class=\"name\">{}</div><div class=\"{class}\">{}</div>\
         <div class=\"of\">{}</div></div>\n",
        escape(name),
        escape(value),
        escape(of)
    )
}

/// Returns a list of sentences.
pub(crate) fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("<li>{}</li>\n", escape(&visible(item)))).collect();
    format!("<ul>\n{}</ul>\n", items.concat())
}

/// Returns a list of names with their definitions.
pub(crate) fn definitions<'a>(items: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let items: Vec<String> = items
        .into_iter()
        .map(|(name, meaning)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(meaning)))
        .collect();
    format!("<dl>\n{}</dl>\n", items.concat())
}

/// Returns the class of a tone.
pub(crate) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Strong => "",
        Tone::Good => "good",
        Tone::Bad => "bad-text",
        Tone::Faint => "faint",
    }
}

/// Returns a text table as an HTML table.
pub(crate) fn table(table: &Table) -> String {
    let side = |column: usize| if column < table.left { "left" } else { "" };
    let row = |cells: &Vec<crate::table::Cell>| {
        let cells: Vec<String> = (cells.iter().enumerate())
            .map(|(column, cell)| {
                format!("<td class=\"{} {}\">{}</td>", side(column), class(cell.tone), escape(&cell.text))
            })
            .collect();
        format!("<tr>{}</tr>\n", cells.concat())
    };
    let rows: Vec<String> = table.rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead>{}</thead>\n<tbody>\n{}</tbody>\n</table></div>\n",
        head(table),
        rows.concat()
    )
}

/// Returns the head of a table: one row of names, or two where some columns have a common name.
fn head(table: &Table) -> String {
    let above = |column: usize| table.above.iter().find(|(first, count, _)| (*first..first + count).contains(&column));
    let rows = if table.above.is_empty() { "" } else { " rowspan=\"2\"" };
    let (mut first, mut second) = (String::new(), String::new());
    for (column, name) in table.head.iter().enumerate() {
        let side = if column < table.left { "left" } else { "" };
        match above(column) {
            None => first += &format!("<th class=\"{side}\"{rows}>{}</th>", escape(name)),
            Some((from, count, text)) => {
                if *from == column {
                    first += &format!("<th class=\"group\" colspan=\"{count}\">{}</th>", escape(text));
                }
                second += &format!("<th class=\"{side}\">{}</th>", escape(name));
            }
        }
    }
    let second = if second.is_empty() { second } else { format!("\n<tr>{second}</tr>") };
    format!("<tr>{first}</tr>{second}")
}
