//! How long an experiment takes: about, before it runs here; then as it took the last time.

use std::path::Path;
use std::time::Duration;

use macrotick_report::figures::WriteError;
use macrotick_report::write_text;

/// In the experiment's folder: whole seconds of wall time. It is no figure.
const FILE: &str = "duration";

/// How long the run takes that is going to write to this folder.
pub fn expected(folder: &Path, estimate: &str) -> String {
    match last(folder) {
        Some(time) => format!("{} the last time", told(time)),
        None => estimate.into(),
    }
}

/// Keeps how long a run took, for the next one.
pub fn keep(folder: &Path, time: Duration) -> Result<(), WriteError> {
    write_text(&folder.join(FILE), &format!("{} s\n", time.as_secs().max(1)))
}

fn last(folder: &Path) -> Option<Duration> {
    let text = std::fs::read_to_string(folder.join(FILE)).ok()?;
    text.trim().strip_suffix(" s")?.parse().ok().map(Duration::from_secs)
}

/// In seconds, or in minutes where there are several.
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
