//! The policies of the threads that are compared with threads of a group.

/// The policy of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_DS, in a group with a budget.
    Ds,
    /// SCHED_FIFO, without a budget.
    Fifo,
}

impl Policy {
    /// Returns the name on the guest's command line.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Ds => "ds",
            Policy::Fifo => "fifo",
        }
    }

    /// Parses a name of [`Policy::name`].
    pub fn from_name(name: &str) -> Result<Policy, String> {
        let all = [Policy::Ds, Policy::Fifo];
        all.into_iter().find(|one| one.name() == name).ok_or_else(|| format!("no policy `{name}`"))
    }
}
