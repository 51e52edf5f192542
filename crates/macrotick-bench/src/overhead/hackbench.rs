//! hackbench's time for equal work on two kernels.
//!
//! The time of a run depends mostly on the number of switches, 10 to 600 times a loop. That number depends on which
//! process waits for which other one: the same kernel differs by a factor of two from run to run. The costs of a loop
//! and of a switch hardly vary (1 % from run to run). Therefore this module estimates them for each kernel by least
//! squares, and applies them to the same work.

/// One run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Messages per sender (`-l`).
    pub loops: f64,
    /// Context switches of the machine during the run.
    pub switches: f64,
    /// The time that hackbench printed, in seconds.
    pub seconds: f64,
}

/// Parses the lines `Loops: 100`, `Switches: 4711` and hackbench's `Time: 0.123`. The switches are those of the machine
/// since its boot, before and after each run.
pub fn parse(output: &str) -> Option<Vec<Run>> {
    let number = |key: &str, line: &str| line.strip_prefix(key)?.trim().parse::<f64>().ok();
    let (mut runs, mut loops, mut seconds, mut before) = (Vec::new(), None, None, None);
    for line in output.lines() {
        loops = number("Loops:", line).or(loops);
        seconds = number("Time:", line).or(seconds);
        let Some(now) = number("Switches:", line) else { continue };
        if let (Some(before), Some(loops), Some(seconds)) = (before, loops.take(), seconds.take()) {
            runs.push(Run { loops, switches: now - before, seconds });
        }
        before = Some(now);
    }
    (!runs.is_empty()).then_some(runs)
}

/// Returns the seconds of each kernel for the mean work of both: the same number of runs, loops and switches.
///
/// Returns `None` if the runs of a kernel do not determine its costs (too few, or all alike).
pub fn equal_work(first: &[Run], second: &[Run]) -> Option<[f64; 2]> {
    let work = |of: &[Run]| of.iter().map(factors).fold([0.0; 3], |sum, run| [0, 1, 2].map(|i| sum[i] + run[i]));
    let (a, b) = (work(first), work(second));
    // The mean of both kernels. With it the sums remain comparable with the measured ones.
    let both = [0, 1, 2].map(|i| (a[i] + b[i]) / 2.0);
    let seconds = |runs: &[Run]| costs(runs).map(|cost| (0..3).map(|i| cost[i] * both[i]).sum::<f64>());
    Some([seconds(first)?, seconds(second)?])
}

/// Returns the factors of a run's time: the run itself (its processes start and exit), its loops, its switches.
fn factors(run: &Run) -> [f64; 3] {
    [1.0, run.loops, run.switches]
}

/// Returns the seconds per run, per loop and per switch: least squares over the runs, by the normal equations.
fn costs(runs: &[Run]) -> Option<[f64; 3]> {
    let mut rows = [[0.0; 4]; 3];
    for run in runs {
        let factor = factors(run);
        for (row, own) in rows.iter_mut().zip(factor) {
            for (cell, other) in row.iter_mut().zip(factor.into_iter().chain([run.seconds])) {
                *cell += own * other;
            }
        }
    }
    solve(rows)
}

/// Solves a linear system by Gauss-Jordan elimination with pivots. The last column is the right side.
fn solve(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        let scale = rows[pivot][column];
        if scale.abs() < 1e-9 {
            return None;
        }
        rows.swap(column, pivot);
        rows[column] = rows[column].map(|cell| cell / scale);
        let of_pivot = rows[column];
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != column) {
            let times = row[column];
            for (cell, of_pivot) in row.iter_mut().zip(of_pivot) {
                *cell -= times * of_pivot;
            }
        }
    }
    Some([rows[0][3], rows[1][3], rows[2][3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(per_run: f64, per_loop: f64, per_switch: f64, switches: &[f64]) -> Vec<Run> {
        let run = |(i, &switches): (usize, &f64)| {
            let loops = 100.0 + 10.0 * i as f64;
            Run { loops, switches, seconds: per_run + per_loop * loops + per_switch * switches }
        };
        switches.iter().enumerate().map(run).collect()
    }

    #[test]
    fn equal_work_takes_equal_time_however_often_each_switched() {
        let calm = runs(0.01, 2e-3, 4e-6, &[1e4, 2e4, 1.5e4, 3e4]);
        let busy = runs(0.01, 2e-3, 4e-6, &[9e4, 7e4, 6e4, 8e4]);
        let [a, b] = equal_work(&calm, &busy).unwrap();
        assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        let measured = |runs: &[Run]| runs.iter().map(|run| run.seconds).sum::<f64>();
        assert!((a - (measured(&calm) + measured(&busy)) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_dearer_switch_shows() {
        let switches = [1e4, 2e4, 1.5e4, 3e4];
        let [a, b] = equal_work(&runs(0.01, 2e-3, 4e-6, &switches), &runs(0.01, 2e-3, 5e-6, &switches)).unwrap();
        assert!((b - a - 75e3 * 1e-6).abs() < 1e-9, "{a} {b}");
    }

    #[test]
    fn runs_that_are_all_alike_tell_nothing() {
        let one = Run { loops: 100.0, switches: 1e4, seconds: 0.3 };
        assert_eq!(equal_work(&[one; 5], &[one; 5]), None);
    }

    #[test]
    fn reads_what_the_script_prints() {
        let output = "Switches: 100\nLoops: 40\nRunning in process mode\nTime: 0.5\nSwitches: 350\n\
            Loops: 50\nTime: 0.6\nSwitches: 450\n";
        let expected =
            [Run { loops: 40.0, switches: 250.0, seconds: 0.5 }, Run { loops: 50.0, switches: 100.0, seconds: 0.6 }];
        assert_eq!(parse(output).as_deref(), Some(&expected[..]));
        assert_eq!(parse("nothing"), None);
    }
}
