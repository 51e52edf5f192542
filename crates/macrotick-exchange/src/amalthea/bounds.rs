//! The upper bound of a deviation of whole numbers or of times.

use super::element::{Element, Refusal};
use super::units::{time, whole, Picoseconds};

/// Returns the largest number that a deviation allows. Newer files write bounds as attributes, older ones as elements
/// within `deviation`.
pub fn most(deviation: Element) -> Result<i64, Refusal> {
    let within = deviation.child("deviation").unwrap_or(deviation);
    let most = match deviation.kind() {
        kind if kind.ends_with("Constant") => Some(whole(deviation, "value")?.unwrap_or(0)),
        kind if kind.ends_with("Histogram") => {
            let entries = deviation.children("entries").map(|entry| whole(entry, "upperBound"));
            entries.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().max()
        }
        _ => match within.child("upperBound") {
            Some(bound) => whole(bound, "value")?,
            None => whole(within, "upperBound")?,
        },
    };
    match most {
        Some(most) if most < 0 => Err(deviation.refusal(format!("{most} is below zero"))),
        Some(most) => Ok(most),
        None => Err(deviation.refusal("there is no upper bound")),
    }
}

/// Returns the shortest time that a deviation allows, if it has a lower bound.
pub fn least_time(deviation: Element) -> Result<Option<Picoseconds>, Refusal> {
    let constant = deviation.child("value").filter(|_| deviation.kind() == "TimeConstant");
    if let Some(bound) = constant.or(deviation.child("lowerBound")) {
        return time(bound).map(Some);
    }
    let entries = deviation.children("entries").filter_map(|entry| entry.child("lowerBound")).map(time);
    Ok(entries.collect::<Result<Vec<_>, _>>()?.into_iter().min())
}
