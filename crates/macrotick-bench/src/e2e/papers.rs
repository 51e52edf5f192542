//! The numbers of the SCHED_TT paper (RTNS 2023, sections 4.2.1 and 4.2.2) for the same experiment on the authors' machine.

/// A row of the paper in milliseconds; `None` where the paper gives no number.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The load, by our name.
    pub load: &'static str,
    /// The policy, by our name.
    pub policy: &'static str,
    /// Least, mean and greatest time, and standard deviation.
    pub figures: [(&'static str, Option<f64>); 4],
}

const fn row(load: &'static str, policy: &'static str, figures: [Option<f64>; 4]) -> Row {
    let [min, mean, max, std] = figures;
    Row { load, policy, figures: [("min", min), ("mean", mean), ("max", max), ("std", std)] }
}

/// All numbers that the paper gives.
pub const ROWS: [Row; 6] = [
    row(super::ALONE, "fifo", [Some(3.107), Some(4.085), Some(5.102), Some(0.024)]),
    row(super::ALONE, "deadline", [Some(3.296), Some(4.094), Some(14.093), Some(0.314)]),
    row(super::ALONE, "tt", [Some(3.242), Some(3.302), Some(3.486), Some(0.159)]),
    row(super::COMPETING, "fifo", [None, Some(3.545), None, Some(0.161)]),
    row(super::COMPETING, "tt", [None, None, Some(13.306), None]),
    row("ping flood, scheduled egress", "tt", [None, None, Some(63.359), None]),
];

/// Returns the paper's row for one of ours.
pub fn beside(load: &str, policy: &str) -> Option<Row> {
    ROWS.into_iter().find(|row| row.load == load && row.policy == policy)
}
