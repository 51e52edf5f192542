//! The policy of a thread.

use super::fields::Field;
use crate::findings::{cut, Findings};

/// The policies of rt-app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// SCHED_OTHER.
    Other,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_RR.
    RoundRobin,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_DEADLINE.
    Deadline,
}

/// The priority that rt-app gives to threads of SCHED_FIFO and SCHED_RR without one.
const DEFAULT_PRIORITY: i64 = 10;

/// A policy with its priority: 1 to 99 for SCHED_FIFO and SCHED_RR, a nice value for SCHED_OTHER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The policy.
    pub class: Class,
    /// The priority or nice value. It has no meaning for the other policies.
    pub priority: i8,
}

impl Class {
    /// Reads the name of a policy. Any other text is refused.
    pub fn read(field: &Field, findings: &mut Findings) -> Option<Class> {
        let name = field.text(findings)?;
        let class = match name {
            "SCHED_OTHER" => Class::Other,
            "SCHED_IDLE" => Class::Idle,
            "SCHED_RR" => Class::RoundRobin,
            "SCHED_FIFO" => Class::Fifo,
            "SCHED_DEADLINE" => Class::Deadline,
            _ => {
                findings.refuse(&field.path, format!("`{}` is no policy of rt-app", cut(name)));
                return None;
            }
        };
        Some(class)
    }

    /// Whether threads have a priority of their own, before those of SCHED_OTHER.
    pub fn is_real_time(self) -> bool {
        matches!(self, Class::Fifo | Class::RoundRobin)
    }
}

impl Policy {
    /// Reads the priority of a policy, or takes the default of rt-app.
    pub fn read(class: Class, priority: Option<&Field>, findings: &mut Findings) -> Option<Policy> {
        let range = match class {
            Class::Fifo | Class::RoundRobin => (1, 99),
            Class::Other => (-20, 19),
            Class::Idle | Class::Deadline => (i64::from(i32::MIN), i64::from(i32::MAX)),
        };
        let default = if class.is_real_time() { DEFAULT_PRIORITY } else { 0 };
        let priority = priority.map_or(Some(default), |field| field.whole(range, findings))?;
        let priority = if range.1 < 100 { priority as i8 } else { 0 };
        Some(Policy { class, priority })
    }
}
