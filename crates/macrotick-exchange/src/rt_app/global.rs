//! The object `global`.

use macrotick_model::{Duration, Experiment};

use super::fields::Field;
use super::policy::Class;
use crate::findings::Findings;

/// The values of `global` that have a counterpart.
pub struct Global {
    /// The length of a run.
    pub duration: Option<Duration>,
    /// The policy of threads without one.
    pub policy: Class,
}

impl Default for Global {
    fn default() -> Self {
        Global { duration: None, policy: Class::Other }
    }
}

/// The settings of rt-app's own measurement.
const OWN: [&str; 11] = [
    "calibration",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
];

impl Global {
    /// Reads the object.
    pub fn read(field: &Field, findings: &mut Findings) -> Global {
        let mut global = Global::default();
        for (key, field) in field.entries(findings) {
            match key {
                "duration" => global.duration = duration(&field, findings),
                "default_policy" => global.policy = Class::read(&field, findings).unwrap_or(global.policy),
                key if OWN.contains(&key) => {
                    findings.remark(&field.path, "settings of rt-app's own log and work need no counterpart");
                }
                _ => findings.remark(&field.path, "this key is unknown and is left out"),
            }
        }
        global
    }
}

/// Returns the length of a run; `None` for one without an end.
fn duration(field: &Field, findings: &mut Findings) -> Option<Duration> {
    let seconds = field.whole((-1, i64::from(i32::MAX)), findings)?;
    if seconds <= 0 {
        findings.remark(&field.path, "a run has an end: deploy the description with `macrotick apply`");
        return None;
    }
    let duration = Duration::from_secs(seconds);
    if duration > Experiment::MAX_DURATION {
        findings.remark(&field.path, format!("a run has at most {}", Experiment::MAX_DURATION));
    }
    Some(duration.min(Experiment::MAX_DURATION))
}
