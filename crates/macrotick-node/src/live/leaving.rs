//! The processes of tasks that left the deployment. Programs get time to end by themselves, while all others continue.

use macrotick_host::sys;
use macrotick_model::{Duration, Instant};

use crate::process::child::Child;
use crate::run::collect::GRACE;

/// The interval between two checks for an ended process.
const LOOK: Duration = Duration::from_millis(5);

/// The programs that have not ended yet. Dropping it kills them.
#[derive(Default)]
pub struct Leaving {
    programs: Vec<Program>,
}

struct Program {
    child: Child,
    /// Whether it got SIGTERM.
    asked: bool,
    until: Instant,
}

impl Leaving {
    /// Ends a task's process. The process is in no table. A built-in workload is killed at once.
    pub fn add(&mut self, mut child: Child, is_program: bool) {
        match is_program {
            true => {
                child.block.stop();
                self.programs.push(Program { child, asked: false, until: sys::now() + GRACE });
            }
            false => child.kill(),
        }
    }

    /// Returns the instant of the next check. `None`: all have ended.
    pub fn next_look(&self) -> Option<Instant> {
        (!self.programs.is_empty()).then(|| sys::now() + LOOK)
    }

    /// Sends SIGTERM to the programs with an expired time limit, and kills them after a second limit.
    pub fn look(&mut self) {
        self.programs.retain_mut(Program::is_to_stay);
    }
}

impl Program {
    /// Returns whether it gets more time. Dropping it kills the rest of its group.
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
        // One program ends at SIGTERM; the other ignores it.
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
