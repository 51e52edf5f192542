//! Aims and their verdicts.

use std::fmt::Write as _;

use macrotick_report::Figure;

use crate::kit::scale::Scale;
use crate::kit::variant::Variant;

/// A quantity on the kernels. Its value with TimerShield on has a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// The name of the quantity.
    pub what: String,
    /// The unit.
    pub unit: &'static str,
    /// The values in the order of [`Variant::ALL`]; `None` where there is none.
    pub values: [Option<f64>; 3],
    /// The greatest last value that meets the aim.
    pub limit: f64,
}

impl Aim {
    /// Returns an aim of our kernel as it is built.
    pub fn of_ours(what: impl Into<String>, unit: &'static str, value: f64, limit: f64) -> Aim {
        Aim { what: what.into(), unit, values: [None, None, Some(value)], limit }
    }

    fn is_met(&self) -> bool {
        self.values[2].is_some_and(|value| value <= self.limit)
    }

    /// Returns the existing values as figures.
    pub fn figures(&self) -> impl Iterator<Item = Figure> + '_ {
        Variant::ALL.iter().zip(self.values).filter_map(|(variant, value)| {
            Some(Figure {
                figure: self.what.clone(),
                case: variant.name().into(),
                value: value?,
                unit: self.unit.into(),
            })
        })
    }
}

/// Returns a table with a row for each aim, and a line with the number of aims that are met, if the scale judges them.
pub fn markdown(aims: &[Aim], scale: Scale) -> String {
    let mut text =
        "| | unit | pristine | off | on | aim, with it on | |\n|---|---|---:|---:|---:|---|---|\n".to_owned();
    for aim in aims {
        let [pristine, off, on] = aim.values.map(|value| value.map_or(String::new(), decimal));
        let Aim { what, unit, limit, .. } = aim;
        let met = scale.verdict(aim.is_met());
        let _ = writeln!(text, "| {what} | {unit} | {pristine} | {off} | {on} | at most {limit} | {met} |");
    }
    let met = aims.iter().filter(|aim| aim.is_met()).count();
    format!("{text}\n{}\n", scale.summary(met, aims.len()))
}

/// Formats a value with at most three decimals.
fn decimal(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernel_with_it_on_is_judged() {
        let aim = |on| Aim { what: "more".into(), unit: "us", values: [Some(17.25), None, Some(on)], limit: 1.0 };
        let text = markdown(&[aim(1.0), aim(1.001)], Scale::Full);
        assert!(text.contains("| more | us | 17.25 |  | 1 | at most 1 | met |\n"), "{text}");
        assert!(text.contains("| more | us | 17.25 |  | 1.001 | at most 1 | **not met** |\n"), "{text}");
        assert!(text.ends_with("\n1 of 2 aims are met.\n"), "{text}");
        assert_eq!(aim(1.0).figures().count(), 2);
    }

    #[test]
    fn what_concerns_the_build_is_judged() {
        let aim = Aim::of_ours("text", "B", 4097.0, 4096.0);
        assert!(!aim.is_met() && Aim { limit: 4097.0, ..aim }.is_met());
    }
}
