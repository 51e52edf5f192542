//! The settings that there are.

use std::path::{Path, PathBuf};

const SYSCTL: &str = "/proc/sys/";
/// The switch of TimerShield.
pub const TIMERSHIELD: &str = "/proc/sys/kernel/timershield";

/// Who may use perf_event_open(2).
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// A number of sysctl(8) that has to be at least so much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) path: PathBuf,
    pub(super) least: i64,
    /// What is told where the kernel has none. `None`: nothing is lacking then.
    pub(super) lacking: Option<&'static str>,
}

impl Setting {
    /// What everything needs that relies on the kernel class, whatever runs beside it.
    pub(super) fn all() -> [Setting; 2] {
        let setting = |path: &str, least, lacking| Setting { path: path.into(), least, lacking };
        let no_shield =
            "this kernel has no TimerShield: sleeps of many threads that end at once delay what is deployed";
        // Without the latter there is no perf_event_open(2).
        [setting(TIMERSHIELD, 1, Some(no_shield)), setting(PARANOID, 3, None)]
    }

    pub(super) fn name(&self) -> String {
        name_of(&self.path)
    }
}

/// As sysctl(8) has it.
pub(super) fn name_of(path: &Path) -> String {
    path.strip_prefix(SYSCTL).unwrap_or(path).display().to_string().replace('/', ".")
}
