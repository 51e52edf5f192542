//! Writing SVG: elements of a picture, classes for colours (`plot.css`), text that is always escaped.

use std::fmt::Write;

const STYLE: &str = include_str!("plot.css");

/// A picture in progress, in units of its view box.
pub(crate) struct Picture {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

/// The point of a text that is at its position.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Picture {
    /// Returns an empty picture. Screen readers read the title.
    pub fn new(width: f64, height: f64, title: &str) -> Picture {
        Picture { width, height, title: title.into(), body: String::new() }
    }

    /// Adds a rectangle, with a text that appears under the pointer (no text when empty).
    pub fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), hover: &str) {
        let (x, y, w, h) = (number(at.0), number(at.1), number(size.0.max(0.0)), number(size.1.max(0.0)));
        let _ = write!(self.body, r#"<rect class="{class}" x="{x}" y="{y}" width="{w}" height="{h}""#);
        self.close("rect", hover);
    }

    /// Adds a straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (number(from.0), number(from.1), number(to.0), number(to.1));
        let _ = write!(self.body, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    /// Adds a path, in SVG's syntax.
    pub fn path(&mut self, class: &str, data: &str, hover: &str) {
        let _ = write!(self.body, r#"<path class="{class}" d="{data}""#);
        self.close("path", hover);
    }

    /// Adds a text.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (number(at.0), number(at.1), escape(text));
        let _ = write!(self.body, r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>"#);
    }

    fn close(&mut self, element: &str, hover: &str) {
        if hover.is_empty() {
            self.body.push_str("/>");
        } else {
            let _ = write!(self.body, "><title>{}</title></{element}>", escape(hover));
        }
    }

    fn write(&self, attributes: &str, style: &str) -> String {
        let (w, h, title) = (number(self.width), number(self.height), escape(&self.title));
        format!(
            r#"<svg class="plot" viewBox="0 0 {w} {h}" role="img" aria-label="{title}"{attributes}>{style}{}</svg>"#,
            self.body
        )
    }

    /// Returns an element for a page that has the styles.
    pub fn inline(&self) -> String {
        self.write("", "")
    }

    /// Returns a file of its own.
    pub fn file(&self) -> String {
        let (w, h) = (number(self.width), number(self.height));
        let attributes = format!(r#" xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}""#);
        let ground = r#"<rect class="ground" width="100%" height="100%"/>"#;
        self.write(&attributes, &format!("<style>{STYLE}</style>{ground}")) + "\n"
    }
}

/// Returns the styles of plots, for a page.
pub(crate) fn style() -> &'static str {
    STYLE
}

/// Formats a coordinate with at most two decimals.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_string()
}

/// Escapes a text for an element or an attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML 1.0 has no representation for most control characters.
            character if character.is_control() && !matches!(character, '\n' | '\t') => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_numbers_short() {
        let mut picture = Picture::new(10.0, 5.5, "a \"b\"");
        picture.rect("bar", (1.0, 1.0 / 3.0), (2.0, -1.0), "<x> & \u{1}");
        assert_eq!(
            picture.inline(),
            "<svg class=\"plot\" viewBox=\"0 0 10 5.5\" role=\"img\" aria-label=\"a &quot;b&quot;\"><rect \
             class=\"bar\" x=\"1\" y=\"0.33\" width=\"2\" height=\"0\"><title>&lt;x&gt; &amp; \u{fffd}</title></rect>\
             </svg>"
        );
        assert_eq!([number(-0.001), number(100.0), number(1.5)], ["0", "100", "1.5"]);
    }
}
