//! Processes of tasks that left the deployment: programs get the chance to end by themselves, while all others go on.

use macrotick_host::sys;
use macrotick_model::{Duration, Instant};

use crate::process::child::Child;
use crate::run::collect::GRACE;

/// How often it is looked whether one has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Those that have not ended yet. Dropping it kills them.
#[derive(Default)]
pub struct Leaving {
    programs: Vec<Program>,
}

struct Program {
    child: Child,
    /// It was asked by a signal, too.
    asked: bool,
    until: Instant,
}

impl Leaving {
    /// Ends a task's process, which is in no table any more. A built-in workload has nothing left to do.
    pub fn add(&mut self, mut child: Child, is_program: bool) {
        match is_program {
            true => {
                child.block.stop();
                self.programs.push(Program { child, asked: false, until: sys::now() + GRACE });
            }
            false => child.kill(),
        }
    }

    /// When to look again; `None`: all have ended.
    pub fn next_look(&self) -> Option<Instant> {
        (!self.programs.is_empty()).then(|| sys::now() + LOOK)
    }

    /// Asks and kills those whose time is over.
    pub fn look(&mut self) {
        self.programs.retain_mut(Program::is_to_stay);
    }
}

impl Program {
    /// Whether it gets more time. Dropping it kills what is left of its group.
    fn is_to_stay(&mut self) -> bool {
        if self.child.exited().is_some() {
            return false;
        }
        if sys::now() < self.until {
            return true;
        }
        if self.asked {
            return false;
        }
        self.child.terminate();
        (self.asked, self.until) = (true, sys::now() + GRACE);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::child::tests::spawn;

    #[test]
    fn a_program_is_asked_and_then_killed() {
        let mut leaving = Leaving::default();
        assert!(leaving.next_look().is_none());
        // One ends when it is asked, the other does not listen.
        for script in ["sleep 1000", "trap '' TERM; while :; do sleep 1; done"] {
            leaving.add(spawn(&["/bin/sh", "-c", script]).unwrap(), true);
        }
        let begin = sys::now();
        while let Some(at) = leaving.next_look() {
            sys::sleep_until(at);
            leaving.look();
        }
        assert!(sys::now() - begin >= GRACE * 2);
    }
}
