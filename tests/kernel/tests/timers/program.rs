//! A program of another project, and its expected result.

/// A line of a table.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    /// The command line. The compiled programs are in the working directory.
    pub words: &'static str,
    /// The time limit, in seconds of the guest.
    pub seconds: u32,
    pub wants: Wants,
    pub slow: bool,
    pub punctual: bool,
}

/// The expected result of a program.
#[derive(Clone, Copy, Debug)]
pub enum Wants {
    /// A selftest: its exit status, and the parts that fail or are skipped. No other part may.
    Parts { status: i32, failed: &'static [&'static str], skipped: &'static [&'static str] },
    /// Results in JSON of cyclictest and similar programs: this many cycles of the first thread.
    Cycles { cycles: u64, latency: Latency },
    /// Results in JSON of programs with senders and receivers: this many samples.
    Samples { samples: u64, latency: Latency },
    /// Exit status 0 and this text.
    Says(&'static str),
    /// TimerShield's own counters: it has served timers if and only if it was on.
    Counters,
}

/// The accepted latencies, in microseconds.
#[derive(Clone, Copy, Debug)]
pub enum Latency {
    /// The greatest latency on the patched kernel with one CPU, where the clock counts instructions.
    AtMost(i64),
    /// Any latency: the program's own result is wrong if it misses a period.
    Any,
}

impl Program {
    /// Describes a selftest that passes.
    pub const fn selftest(name: &'static str, words: &'static str, seconds: u32) -> Program {
        let wants = Wants::Parts { status: 0, failed: &[], skipped: &[] };
        Program { name, words, seconds, wants, slow: false, punctual: false }
    }

    /// Describes a program of rt-tests.
    pub const fn rttest(name: &'static str, words: &'static str, wants: Wants) -> Program {
        Program { name, words, seconds: 30, wants, slow: false, punctual: false }
    }

    /// Makes some parts skipped.
    pub const fn skips(self, skipped: &'static [&'static str]) -> Program {
        let Wants::Parts { status, failed, .. } = self.wants else { panic!("only selftests have parts") };
        Program { wants: Wants::Parts { status, failed, skipped }, ..self }
    }

    /// Makes some parts fail; they also fail on the pristine kernel.
    pub const fn fails(self, failed: &'static [&'static str]) -> Program {
        let Wants::Parts { skipped, .. } = self.wants else { panic!("only selftests have parts") };
        Program { wants: Wants::Parts { status: 1, failed, skipped }, ..self }
    }

    /// Makes the program need a CPU that executes without delay.
    pub const fn punctual(self) -> Program {
        Program { punctual: true, ..self }
    }

    /// Excludes the program on the debug kernel, where it takes too long.
    pub const fn slow(self) -> Program {
        Program { slow: true, ..self }
    }

    /// Describes the parts that correctly do not pass.
    pub fn exceptions(&self) -> Option<String> {
        match self.wants {
            Wants::Parts { status: 0, skipped: [], .. } => None,
            Wants::Parts { status: 0, skipped, .. } => Some(format!("{}: skipped: {}", self.name, skipped.join(", "))),
            Wants::Parts { failed: [], .. } => Some(format!("{}: fails, also on the pristine kernel", self.name)),
            Wants::Parts { failed, .. } => {
                Some(format!("{}: fails, also on the pristine kernel: {}", self.name, failed.join(", ")))
            }
            _ => None,
        }
    }
}
