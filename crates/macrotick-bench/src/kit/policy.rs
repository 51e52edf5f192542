//! What threads are under that are compared with those in a group.

/// What the threads are under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// In a group with a budget.
    Ds,
    /// Without one.
    Fifo,
}

impl Policy {
    /// What the guest calls it.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Ds => "ds",
            Policy::Fifo => "fifo",
        }
    }

    /// The reverse of [`Policy::name`].
    pub fn from_name(name: &str) -> Result<Policy, String> {
        let all = [Policy::Ds, Policy::Fifo];
        all.into_iter().find(|one| one.name() == name).ok_or_else(|| format!("no policy `{name}`"))
    }
}
