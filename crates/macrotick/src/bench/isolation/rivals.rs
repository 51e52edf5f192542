//! What disturbs a task: stressors of stress-ng and some of our own, beside it as loads, or as attacks from inside a
//! container.

/// What a rival executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Nothing runs.
    Nothing,
    /// Stressors of stress-ng.
    Stress(&'static [&'static str]),
    /// Threads that are offered locks, see [`super::offers`].
    Offers,
    /// Threads whose sleeps end at the same instants, see [`super::alarms`].
    Alarms,
}

/// Programs that run beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rival {
    /// What a table calls it.
    pub name: &'static str,
    /// What it executes.
    pub program: Program,
    /// In a container with a budget, memory and processes of its own, as an ordinary user, under SCHED_FIFO 99.
    pub confined: bool,
}

const fn load(name: &'static str, stressors: &'static [&'static str]) -> Rival {
    Rival { name, program: Program::Stress(stressors), confined: false }
}

const fn attack(name: &'static str, stressors: &'static [&'static str]) -> Rival {
    Rival { name, program: Program::Stress(stressors), confined: true }
}

/// Nothing.
pub const NOTHING: Rival = Rival { name: "nothing", program: Program::Nothing, confined: false };

/// Those of the paper (section 5.2), as root under SCHED_OTHER.
pub const LOADS: [Rival; 5] = [
    load("cpu", &["--cpu", "1"]),
    load("io", &["--io", "1"]),
    load("hdd", &["--hdd", "1", "--hdd-bytes", "4m"]),
    load("netdev", &["--netdev", "1"]),
    load("udp", &["--udp", "1"]),
];

/// What a hostile container may try.
pub const ATTACKS: [Rival; 11] = [
    attack("a hog", &["--cpu", "2"]),
    attack("fork bomb", &["--fork", "4", "--fork-max", "16"]),
    attack("affinity", &["--affinity", "4"]),
    attack("policies", &["--schedpolicy", "2"]),
    attack("timer flood", &["--timerfd", "2", "--timerfd-freq", "100000", "--itimer", "1", "--hrtimers", "1"]),
    attack("page faults", &["--fault", "2"]),
    attack("memory pressure", &["--vm", "2", "--vm-bytes", "48m"]),
    attack("network flood", &["--udp", "2"]),
    attack("switches", &["--switch", "2", "--pipe", "1"]),
    Rival { name: "lock offers", program: Program::Offers, confined: true },
    Rival { name: "alarms", program: Program::Alarms, confined: true },
];

impl Rival {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Rival> {
        [NOTHING].into_iter().chain(LOADS).chain(ATTACKS)
    }

    /// By its name, as a word of a command line.
    pub fn from_word(word: &str) -> Result<Rival, String> {
        Rival::all().find(|one| one.word() == word).ok_or_else(|| format!("no rival `{word}`"))
    }

    /// Whether it writes to a disk. Nothing does not, and containers have their memory.
    pub fn is_load(&self) -> bool {
        LOADS.contains(self)
    }

    /// Its name without spaces.
    pub fn word(&self) -> String {
        self.name.replace(' ', "-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        for rival in Rival::all() {
            assert_eq!(Rival::from_word(&rival.word()), Ok(rival));
        }
        assert!(Rival::from_word("meteor").is_err());
    }
}
