//! Aims and their verdicts.

use std::fmt::Write as _;

use macrotick_report::Figure;

use super::scale::Scale;

/// A quantity with an upper limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// The name of the quantity.
    pub what: String,
    /// The unit.
    pub unit: &'static str,
    /// The measured value.
    pub value: f64,
    /// The greatest value that meets the aim.
    pub limit: f64,
}

impl Aim {
    /// Whether the value meets the aim.
    pub fn is_met(&self) -> bool {
        self.value <= self.limit
    }

    /// Returns the value as a figure.
    pub fn figure(&self) -> Figure {
        Figure { figure: self.what.clone(), case: "aim".into(), value: self.value, unit: self.unit.into() }
    }
}

/// Returns a table with a row for each aim, and a line with the number of aims that are met, if the scale judges them.
pub fn markdown(aims: &[Aim], scale: Scale) -> String {
    let mut text = "### aims\n\n| | unit | measured | aim | |\n|---|---|---:|---|---|\n".to_owned();
    for aim in aims {
        let Aim { what, unit, value, limit } = aim;
        let met = scale.verdict(aim.is_met());
        let value = (value * 1e4).round() / 1e4;
        let _ = writeln!(text, "| {what} | {unit} | {value} | at most {limit} | {met} |");
    }
    let met = aims.iter().filter(|aim| aim.is_met()).count();
    format!("{text}\n{}\n", scale.summary(met, aims.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_met() {
        let aim = |value| Aim { what: "a".into(), unit: "u", value, limit: 2.0 };
        let text = markdown(&[aim(2.0), aim(2.00012)], Scale::Full);
        assert!(text.contains("| a | u | 2 | at most 2 | met |\n"), "{text}");
        assert!(text.ends_with("| a | u | 2.0001 | at most 2 | **not met** |\n\n1 of 2 aims are met.\n"), "{text}");
    }
}
