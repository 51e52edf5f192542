//! The objects named `macrotick`, which rt-app ignores. An export writes into them the values that rt-app lacks.

use super::fields::Field;
use crate::findings::Findings;

/// The key of the objects, at the top of a file and in threads.
pub const KEY: &str = "macrotick";

/// The values of a thread that rt-app lacks. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    /// The WCET.
    pub wcet: Option<i64>,
    /// The deadline of a task with windows.
    pub deadline: Option<i64>,
    /// The bound on the variation of starts.
    pub jitter: Option<i64>,
    /// Whether the table can move a task with several CPUs between them. rt-app always can.
    pub migrate: Option<bool>,
}

impl Own {
    /// Reads the object of a thread.
    pub fn read(field: &Field, findings: &mut Findings) -> Own {
        let mut own = Own::default();
        for (key, field) in field.entries(findings) {
            match key {
                "wcet" => own.wcet = field.micros(findings),
                "deadline" => own.deadline = field.micros(findings),
                "jitter" => own.jitter = field.micros(findings),
                "migrate" => own.migrate = field.flag(findings),
                _ => findings.refuse(&field.path, "this key is unknown"),
            }
        }
        own
    }
}

/// Reads the object at the top of a file: the CPUs of the system.
pub fn system_cpus(field: &Field, findings: &mut Findings) -> Option<Vec<u32>> {
    let mut cpus = None;
    for (key, field) in field.entries(findings) {
        match key {
            "cpus" => cpus = field.cpus(findings),
            _ => findings.refuse(&field.path, "this key is unknown"),
        }
    }
    cpus
}
