//! The length of an experiment: an estimate, or the length of the previous run on this machine.

use std::path::Path;
use std::time::Duration;

use macrotick_report::figures::WriteError;
use macrotick_report::write_text;

/// A file in the experiment's folder with whole seconds of wall time. It is not a figure.
const FILE: &str = "duration";

/// Returns the expected length of a run that writes to this folder.
pub fn expected(folder: &Path, estimate: &str) -> String {
    match last(folder) {
        Some(time) => format!("{} the last time", told(time)),
        None => estimate.into(),
    }
}

/// Keeps the length of a run for the next one.
pub fn keep(folder: &Path, time: Duration) -> Result<(), WriteError> {
    write_text(&folder.join(FILE), &format!("{} s\n", time.as_secs().max(1)))
}

fn last(folder: &Path) -> Option<Duration> {
    let text = std::fs::read_to_string(folder.join(FILE)).ok()?;
    text.trim().strip_suffix(" s")?.parse().ok().map(Duration::from_secs)
}

/// Formats a time in seconds, or in minutes from 180 s on.
pub fn told(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 180 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_is_told_rather_than_an_estimate() {
        let folder = std::env::temp_dir().join(format!("macrotick-wall-{}", std::process::id()));
        assert_eq!(expected(&folder, "about 50 min"), "about 50 min");
        keep(&folder, Duration::from_secs(3000)).unwrap();
        assert_eq!(expected(&folder, "about 1 min"), "50 min the last time");
        std::fs::write(folder.join(FILE), "long").unwrap();
        assert_eq!(expected(&folder, "about 50 min"), "about 50 min", "what is not understood is not told");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn short_times_are_in_seconds() {
        assert_eq!([179, 180, 3569].map(|seconds| told(Duration::from_secs(seconds))), ["179 s", "3 min", "59 min"]);
    }
}
