//! The rivals of a task: stressors of stress-ng and programs of our own. They run beside it as loads, or attack from
//! inside a container.

/// The program of a rival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// No program.
    Nothing,
    /// Stressors of stress-ng.
    Stress(&'static [&'static str]),
    /// Threads that are offered locks, see [`super::offers`].
    Offers,
    /// Threads that wake up at the same instants, see [`super::alarms`].
    Alarms,
    /// Threads in a chain of locks, see [`super::chain`].
    Chain,
    /// Control groups below a group that `cpu.max` throttles, see [`super::throttle`].
    Throttle,
    /// Clocks of perf_event_open(2), see [`super::clocks`].
    Clocks,
    /// Lock owners with waiters that have a budget, see [`super::pairs`].
    Pairs,
    /// Many threads with a budget that is removed and given back, see [`super::operator`].
    TakenBudget,
    /// A number of threads in a pool that also gets unused time, see [`super::operator`].
    Pool(usize),
    /// A number of groups that exhaust their budgets, see [`super::operator`].
    Groups(usize),
}

/// A rival: a program with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rival {
    /// The name in tables.
    pub name: &'static str,
    /// The program.
    pub program: Program,
    /// Whether it runs in a container with a budget, memory and processes of its own, as an unprivileged user, under
    /// SCHED_FIFO 99.
    pub confined: bool,
}

const fn load(name: &'static str, stressors: &'static [&'static str]) -> Rival {
    Rival { name, program: Program::Stress(stressors), confined: false }
}

const fn attack(name: &'static str, stressors: &'static [&'static str]) -> Rival {
    Rival { name, program: Program::Stress(stressors), confined: true }
}

const fn own(name: &'static str, program: Program) -> Rival {
    Rival { name, program, confined: true }
}

/// No rival.
pub const NOTHING: Rival = Rival { name: "nothing", program: Program::Nothing, confined: false };

/// The paper's loads (section 5.2), as root under SCHED_OTHER.
pub const LOADS: [Rival; 5] = [
    load("cpu", &["--cpu", "1"]),
    load("io", &["--io", "1"]),
    load("hdd", &["--hdd", "1", "--hdd-bytes", "4m"]),
    load("netdev", &["--netdev", "1"]),
    load("udp", &["--udp", "1"]),
];

/// The attacks of a hostile container.
pub const ATTACKS: [Rival; 18] = [
    attack("a hog", &["--cpu", "2"]),
    attack("fork bomb", &["--fork", "4", "--fork-max", "16"]),
    attack("affinity", &["--affinity", "4"]),
    attack("policies", &["--schedpolicy", "2"]),
    attack("timer flood", &["--timerfd", "2", "--timerfd-freq", "100000", "--itimer", "1", "--hrtimers", "1"]),
    attack("page faults", &["--fault", "2"]),
    attack("memory pressure", &["--vm", "2", "--vm-bytes", "48m"]),
    attack("network flood", &["--udp", "2"]),
    attack("switches", &["--switch", "2", "--pipe", "1"]),
    own("lock offers", Program::Offers),
    own("alarms", Program::Alarms),
    own("lock chain", Program::Chain),
    own("control groups", Program::Throttle),
    own("clocks", Program::Clocks),
    own("lock pairs", Program::Pairs),
    own("budget taken", Program::TakenBudget),
    own("500 groups", Program::Groups(500)),
    own("pool of 900", Program::Pool(900)),
];

/// The rival that [`Program::Pool`] is compared with. Windows delay a budget, however many threads use them.
pub const POOL_OF_ONE: Rival = own("pool of one", Program::Pool(1));

impl Rival {
    /// Returns all rivals.
    pub fn all() -> impl Iterator<Item = Rival> {
        [NOTHING, POOL_OF_ONE].into_iter().chain(LOADS).chain(ATTACKS)
    }

    /// Returns the rival that this one is compared with.
    pub fn without(&self) -> Rival {
        match self.program {
            Program::Pool(_) => POOL_OF_ONE,
            _ => NOTHING,
        }
    }

    /// Returns the rival with this word on a command line.
    pub fn from_word(word: &str) -> Result<Rival, String> {
        Rival::all().find(|one| one.word() == word).ok_or_else(|| format!("no rival `{word}`"))
    }

    /// Whether it is a load. Loads write to a disk; containers write to memory.
    pub fn is_load(&self) -> bool {
        LOADS.contains(self)
    }

    /// Returns its name without spaces.
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
