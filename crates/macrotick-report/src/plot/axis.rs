//! Axes over times: linear, or logarithmic if a linear one would hide most samples in its first bin.

/// An axis over nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    lo: f64,
    hi: f64,
    /// The distance of ticks; `None` on a logarithmic axis.
    step: Option<f64>,
}

/// The axis is logarithmic if the largest time is at least this many times the smallest.
const LOG_FROM: i64 = 30;
/// The approximate number of ticks of a linear axis.
const TICKS: f64 = 5.0;

impl Axis {
    /// Returns an axis that suits times from `min` to `max`.
    pub fn over(min: i64, max: i64) -> Axis {
        if min > 0 && max / min >= LOG_FROM {
            return Axis { lo: below(min as f64), hi: above(max as f64), step: None };
        }
        Axis::linear(min as f64, max as f64)
    }

    /// Returns a linear axis from `min` to `max`, widened to its ticks.
    pub fn linear(min: f64, max: f64) -> Axis {
        let max = if max > min { max } else { min + 1.0 };
        let step = above((max - min) / TICKS).max(1.0);
        Axis { lo: (min / step).floor() * step, hi: (max / step).ceil() * step, step: Some(step) }
    }

    /// Returns a linear axis exactly from `min` to `max`.
    pub fn exactly(min: f64, max: f64) -> Axis {
        let step = above((max - min) / (2.0 * TICKS)).max(1.0);
        Axis { lo: min, hi: max.max(min + 1.0), step: Some(step) }
    }

    /// Returns the position of a time: 0 at the start of the axis, 1 at its end.
    pub fn position(&self, ns: f64) -> f64 {
        match self.step {
            Some(_) => (ns - self.lo) / (self.hi - self.lo),
            None => (ns.max(self.lo) / self.lo).ln() / (self.hi / self.lo).ln(),
        }
    }

    /// Returns the time at a position.
    pub fn value(&self, position: f64) -> f64 {
        match self.step {
            Some(_) => self.lo + position * (self.hi - self.lo),
            None => self.lo * (self.hi / self.lo).powf(position),
        }
    }

    /// Returns the ticks: time and label.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        match self.step {
            Some(step) => {
                let first = (self.lo / step).ceil() as i64;
                let last = (self.hi / step + 1e-9).floor() as i64;
                (first..=last).map(|n| n as f64 * step).map(|ns| (ns, label(ns, self.hi, step))).collect()
            }
            None => self.log_ticks().into_iter().map(|ns| (ns, label(ns, ns, ns))).collect(),
        }
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.hi / self.lo).log10();
        let digits: &[f64] = if decades <= 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let first = self.lo.log10().floor() as i32;
        let inside = |ns: &f64| *ns >= self.lo * 0.999 && *ns <= self.hi * 1.001;
        (first..=first + decades as i32 + 1)
            .flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)))
            .filter(inside)
            .collect()
    }

    /// Returns the number of samples in each of `bins` equal parts of the axis.
    pub fn bin(&self, samples: &[i64], bins: usize) -> Vec<u64> {
        let mut counts = vec![0; bins];
        for &sample in samples {
            let bin = self.position(sample as f64) * bins as f64;
            counts[(bin.max(0.0) as usize).min(bins - 1)] += 1;
        }
        counts
    }
}

/// Returns the smallest of 1, 2, 5 times a power of ten that is not below a positive value.
pub(super) fn above(value: f64) -> f64 {
    let power = 10f64.powi(value.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|&x| x >= value * 0.999_999).unwrap_or(value)
}

/// Returns the largest of 1, 2, 5 times a power of ten that is not above a positive value.
fn below(value: f64) -> f64 {
    let power = 10f64.powi(value.log10().floor() as i32);
    [5.0, 2.0, 1.0].into_iter().map(|digit| digit * power).find(|&x| x <= value * 1.000_001).unwrap_or(power)
}

/// Formats a time in the unit that suits `scale`, with enough decimals to distinguish steps of `step`.
fn label(ns: f64, scale: f64, step: f64) -> String {
    let (unit, name) = match scale.abs() {
        scale if scale < 1e3 => (1.0, "ns"),
        scale if scale < 1e6 => (1e3, "µs"),
        scale if scale < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let decimals = (-(step / unit).log10() - 1e-9).ceil().max(0.0) as usize;
    format!("{:.decimals$} {name}", ns / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn a_narrow_range_is_linear() {
        let axis = Axis::over(2_300, 3_150);
        assert!(axis.step.is_some());
        assert_eq!(labels(axis), ["2.2 µs", "2.4 µs", "2.6 µs", "2.8 µs", "3.0 µs", "3.2 µs"]);
        assert_eq!(axis.bin(&[2_200, 2_299, 2_300, 3_199, 3_200], 10), [2, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn a_wide_range_is_logarithmic() {
        let axis = Axis::over(55_000, 4_900_000);
        assert!(axis.step.is_none());
        assert_eq!(labels(axis), ["50 µs", "100 µs", "200 µs", "500 µs", "1 ms", "2 ms", "5 ms"]);
        assert_eq!(axis.position(50_000.0), 0.0);
        assert!((axis.position(5_000_000.0) - 1.0).abs() < 1e-9);
        assert!((axis.value(axis.position(123_456.0)) - 123_456.0).abs() < 1e-6);
    }

    #[test]
    fn one_value_and_negative_values_have_an_axis() {
        assert_eq!(Axis::over(5, 5).bin(&[5], 3).iter().sum::<u64>(), 1);
        assert_eq!(labels(Axis::over(-20, 30)), ["-20 ns", "-10 ns", "0 ns", "10 ns", "20 ns", "30 ns"]);
        assert_eq!(Axis::over(0, 0).position(0.0), 0.0);
    }
}
