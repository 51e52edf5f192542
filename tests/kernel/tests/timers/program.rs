//! A program that somebody else has written, and what is wanted of it.

/// A line of a table.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    /// Its command line. What was compiled is in the working directory.
    pub words: &'static str,
    /// When it is ended, in seconds of the guest.
    pub seconds: u32,
    pub wants: Wants,
    pub slow: bool,
    pub punctual: bool,
}

/// What a program must do.
#[derive(Clone, Copy, Debug)]
pub enum Wants {
    /// A selftest: its exit status, and the parts of it that fail or are skipped. No others may.
    Parts { status: i32, failed: &'static [&'static str], skipped: &'static [&'static str] },
    /// What cyclictest and its like measure in JSON: so many cycles of the first thread.
    Cycles { cycles: u64, latency: Latency },
    /// What the tests that have senders and receivers measure in JSON: so many samples.
    Samples { samples: u64, latency: Latency },
    /// Exit status 0 and this text.
    Says(&'static str),
    /// TimerShield's own counters: it has served timers if it was on, and only then.
    Counters,
}

/// What latencies may be, in microseconds.
#[derive(Clone, Copy, Debug)]
pub enum Latency {
    /// On the patched kernel with one CPU, where the clock counts instructions.
    AtMost(i64),
    /// Whatever: the program's own account is wrong where a period is missed.
    Any,
}

impl Program {
    /// A selftest that passes.
    pub const fn selftest(name: &'static str, words: &'static str, seconds: u32) -> Program {
        let wants = Wants::Parts { status: 0, failed: &[], skipped: &[] };
        Program { name, words, seconds, wants, slow: false, punctual: false }
    }

    /// A program of rt-tests.
    pub const fn rttest(name: &'static str, words: &'static str, wants: Wants) -> Program {
        Program { name, words, seconds: 30, wants, slow: false, punctual: false }
    }

    /// Some parts are skipped.
    pub const fn skips(self, skipped: &'static [&'static str]) -> Program {
        let Wants::Parts { status, failed, .. } = self.wants else { panic!("only selftests have parts") };
        Program { wants: Wants::Parts { status, failed, skipped }, ..self }
    }

    /// It fails on the pristine kernel as well.
    pub const fn fails(self, failed: &'static [&'static str]) -> Program {
        let Wants::Parts { skipped, .. } = self.wants else { panic!("only selftests have parts") };
        Program { wants: Wants::Parts { status: 1, failed, skipped }, ..self }
    }

    /// It is content only with a CPU that runs when it should.
    pub const fn punctual(self) -> Program {
        Program { punctual: true, ..self }
    }

    /// It takes too long on the debug kernel.
    pub const fn slow(self) -> Program {
        Program { slow: true, ..self }
    }

    /// Which of its parts do not pass, where that is right.
    pub fn exceptions(&self) -> Option<String> {
        match self.wants {
            Wants::Parts { status: 0, skipped: [], .. } => None,
            Wants::Parts { status: 0, skipped, .. } => Some(format!("{}: skipped: {}", self.name, skipped.join(", "))),
            Wants::Parts { failed: [], .. } => Some(format!("{}: fails, on the pristine kernel as well", self.name)),
            Wants::Parts { failed, .. } => {
                Some(format!("{}: fails, on the pristine kernel as well: {}", self.name, failed.join(", ")))
            }
            _ => None,
        }
    }
}
