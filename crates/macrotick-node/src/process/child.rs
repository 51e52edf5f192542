//! Processes that the runner starts: held until the run begins, killed when it ends, and with it when the runner dies.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use macrotick_host::limits;
use macrotick_host::proc;
use macrotick_host::sys;
use macrotick_host::HostFailure;
use macrotick_model::{Duration, Instant, Program};

use crate::block::abi;
use crate::block::Block;
use crate::deployment::options::Output;
use crate::deployment::user::Owner;
use crate::deployment::{program, urgent};
use crate::error::{NodeError, Tail};
use crate::process::descendants;
use crate::process::output::{self, KeptOutput};
use crate::process::signals::{self, Signals};

/// How long one that was killed may take: one that waits for a device that is gone may take for ever.
const DEATH: Duration = Duration::from_millis(500);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(1);

/// A process with its block. Dropping it kills the process and all of its process group.
pub struct Child {
    /// The task's or process's name.
    pub name: String,
    /// The shared memory.
    pub block: Block,
    process: std::process::Child,
    /// What it writes, where that is kept.
    output: Option<KeptOutput>,
    /// So long it may take to end by itself when it is asked.
    grace: Duration,
    /// What it executed when it was ready, where that is noted.
    program: Option<PathBuf>,
    /// Once it is reaped: how it ended, if that was told.
    reaped: Option<Option<ExitStatus>>,
}

/// What to start.
pub struct Launch<'a> {
    /// The task's or process's name.
    pub name: &'a str,
    /// The program.
    pub program: &'a Program,
    /// The shared memory.
    pub block: Block,
    /// The file of processes of the control group that it is to be in.
    pub group: Option<File>,
    /// The network namespace that it is to be in.
    pub namespace: Option<&'a File>,
    /// Whom it becomes before it executes the program, if that is somebody else.
    pub owner: Option<&'a Owner>,
    /// What becomes of what it writes.
    pub output: Output,
    /// So long it may take to end by itself when it is asked; zero: it is not asked.
    pub grace: Duration,
}

/// This very program, for built-in workloads.
pub const SELF: &str = "/proc/self/exe";

impl Child {
    /// Starts a process in a process group of its own, with its block and nothing else of ours.
    pub fn spawn(launch: Launch) -> Result<Child, NodeError> {
        let output = match launch.output {
            Output::Kept => Some(KeptOutput::new().map_err(NodeError::system("creating a file for output"))?),
            Output::Inherited => None,
        };
        let fd = launch.block.file().as_raw_fd();
        let group = launch.group.as_ref().map(File::as_raw_fd);
        let namespace = launch.namespace.map(File::as_raw_fd);
        let (parent, files) = (std::process::id(), limits::of_a_new_process());
        let program = program::file(launch.program);
        let spawn = || {
            let mut command = program::command(launch.program);
            let owner = launch.owner.cloned();
            command
                .env(abi::ENV_SHM, fd.to_string())
                .env(abi::ENV_TASK, launch.name)
                .stdin(Stdio::null())
                .process_group(0);
            if let Some(output) = &output {
                command.stdout(output.writer()?).stderr(output.writer()?);
            }
            // SAFETY: only async-signal-safe calls between fork and exec.
            unsafe {
                command.pre_exec(move || {
                    if let Some(limit) = &files {
                        limits::set(limit);
                    }
                    prepare_process(fd, group, namespace, parent)?;
                    owner.as_ref().map_or(Ok(()), Owner::become_it)
                })
            };
            urgent::spawn(&mut command)
        };
        let process =
            spawn().map_err(|source| NodeError::Spawn { name: launch.name.into(), program: program.into(), source })?;
        descendants::enter(process.id() as sys::Tid);
        urgent::calm(process.id() as sys::Tid);
        Ok(Child {
            name: launch.name.into(),
            block: launch.block,
            process,
            output,
            grace: launch.grace,
            program: None,
            reaped: None,
        })
    }

    /// Notes what it executes.
    pub fn note_program(&mut self) {
        self.program = proc::program(self.pid());
    }

    /// What was noted.
    pub fn noted_program(&self) -> Option<&PathBuf> {
        self.program.as_ref()
    }

    /// The process's id.
    pub fn pid(&self) -> sys::Tid {
        self.process.id() as sys::Tid
    }

    /// What the process does, by the state of its first thread.
    pub fn doing(&self) -> &'static str {
        describe_state(proc::state(self.pid()))
    }

    /// The thread that joined, if it is one of the process or of one that it has started: it may write there what it likes.
    pub fn thread(&self) -> Option<sys::Tid> {
        let thread = self.block.tid();
        proc::is_of(thread, self.pid()).then_some(thread)
    }

    /// The same, which is there as long as the process does what a task does.
    pub fn joined_thread(&self) -> Result<sys::Tid, HostFailure> {
        let what = || format!("find the thread of `{}`", self.name);
        let none = || HostFailure::Call { what: what(), source: io::Error::from_raw_os_error(libc::ESRCH) };
        self.thread().ok_or_else(none)
    }

    /// How it ended, if it did. It is not reaped by that, so that its process group's number stays taken.
    pub fn exited(&self) -> Option<ExitStatus> {
        self.reaped.unwrap_or_else(|| sys::exited(self.pid()))
    }

    /// A descriptor that becomes readable when it ends.
    pub fn pidfd(&self) -> io::Result<OwnedFd> {
        sys::pidfd_open(self.pid(), self.pid())
    }

    /// The last lines it wrote, where that is kept.
    fn tail(&self) -> Tail {
        self.output.as_ref().map_or_else(Tail::default, KeptOutput::tail)
    }

    /// What it wrote, where that is kept; of a lot, its beginning and its end.
    pub fn output(&self) -> String {
        self.output.as_ref().map_or_else(String::new, KeptOutput::text)
    }

    /// A remark where it wrote more than is kept.
    pub fn describe_output(&self) -> Option<String> {
        let full = self.output.as_ref().is_some_and(KeptOutput::is_full);
        let most = output::MOST >> 20;
        full.then(|| {
            format!("`{}` wrote more than {most} MiB: what it wrote beyond that failed and is lost", self.name)
        })
    }

    /// The last line it wrote, to be put behind a remark.
    pub fn last_words(&self) -> String {
        self.tail().0.lines().last().map_or_else(String::new, |line| format!(": {line}"))
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.signal(libc::SIGTERM);
    }

    /// Ends it and all of its process group, and reaps it; a second time does nothing.
    pub fn kill(&mut self) {
        Child::kill_all([self]);
    }

    /// Ends several, which none of them can keep the others from. Those that have something to put away are asked, all at
    /// once, and have their time beside each other.
    pub fn kill_all<'a>(children: impl IntoIterator<Item = &'a mut Child>) {
        let (asked, others): (Vec<&mut Child>, Vec<&mut Child>) =
            children.into_iter().filter(|child| child.reaped.is_none()).partition(|child| child.grace > Duration::ZERO);
        let asked_at = sys::now();
        asked.iter().for_each(|child| child.terminate());
        Child::kill_now(others);
        for child in &asked {
            child.await_exit(asked_at + child.grace);
        }
        Child::kill_now(asked);
    }

    fn kill_now(children: Vec<&mut Child>) {
        children.iter().for_each(|child| child.signal(libc::SIGKILL));
        let give_up = sys::now() + DEATH;
        for child in children {
            child.await_exit(give_up);
            child.reaped = Some(child.process.try_wait().ok().flatten());
            descendants::leave(child.pid());
        }
    }

    fn await_exit(&self, give_up: Instant) {
        while self.exited().is_none() && sys::now() < give_up {
            sys::sleep(LOOK);
        }
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: no memory is passed. The group's number is not reused before we have reaped its leader.
        unsafe { libc::kill(-self.pid(), signal) };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In the new process, before exec: dies with the runner, inherits its own block only, and enters its group and its
/// network namespace, so that all that it starts is there, too.
fn prepare_process(fd: i32, group: Option<i32>, namespace: Option<i32>, parent: u32) -> io::Result<()> {
    signals::unblock();
    // SAFETY: system calls without memory, but for one constant byte.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 || libc::fcntl(fd, libc::F_SETFD, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        // The runner may have died before the request was made.
        if libc::getppid() as u32 != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if group.is_some_and(|group| libc::write(group, c"0".as_ptr().cast(), 1) < 0) {
            return Err(io::Error::last_os_error());
        }
        if namespace.is_some_and(|namespace| libc::setns(namespace, libc::CLONE_NEWNET) < 0) {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A state of `/proc`, in words.
pub fn describe_state(state: Option<char>) -> &'static str {
    match state {
        Some('T') => "is stopped (SIGSTOP)",
        Some('t') => "is stopped by a tracer",
        Some('R') => "runs, or would if it could",
        Some('D') => "waits for a device",
        Some('Z' | 'X') | None => "has ended",
        Some(_) => "sleeps",
    }
}

/// Waits until all have got to a phase.
pub fn await_phase(children: &[Child], phase: u32, limit: Duration, signals: &Signals) -> Result<(), NodeError> {
    let give_up = sys::now() + limit;
    while let Some(late) = find_late(children, phase)? {
        if sys::now() > give_up {
            return Err(not_ready(late, phase, limit));
        }
        if let Some(signal) = signals.sleep_until(sys::now() + Duration::from_millis(1)) {
            return Err(NodeError::Interrupted(signal));
        }
    }
    Ok(())
}

/// One that has not got to a phase, if there is any; that one has ended is an error.
pub fn find_late(children: &[Child], phase: u32) -> Result<Option<&Child>, NodeError> {
    let mut late = None;
    for child in children {
        if let Some(status) = child.exited() {
            return Err(NodeError::Died { name: child.name.clone(), status, output: child.tail() });
        }
        if child.block.phase() < phase {
            late.get_or_insert(child);
        }
    }
    Ok(late)
}

/// Why nobody waits any longer for one that has not got to a phase.
pub fn not_ready(child: &Child, phase: u32, limit: Duration) -> NodeError {
    let stage = if phase == abi::PHASE_WAITING { "waiting for its first job" } else { "ready" };
    NodeError::NotReady { name: child.name.clone(), stage, limit, doing: child.doing(), output: child.tail() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::block::BlockSpec;

    pub fn spawn(command: &[&str]) -> Result<Child, NodeError> {
        spawn_with_grace(command, Duration::ZERO)
    }

    fn spawn_with_grace(command: &[&str], grace: Duration) -> Result<Child, NodeError> {
        let spec = BlockSpec { backend: 3, cycle: Duration::from_millis(1), offsets: &[], capacity: 0 };
        let block = Block::new(&spec).unwrap();
        let program = Program::new(command.iter().copied());
        Child::spawn(Launch {
            name: "x",
            program: &program,
            block,
            group: None,
            namespace: None,
            owner: None,
            output: Output::Kept,
            grace,
        })
    }

    #[test]
    fn the_tail_is_what_was_written_last() {
        let child = spawn(&["/bin/sh", "-c", "seq 100; echo bad >&2; exit 3"]).unwrap();
        let status = (0..2000).find_map(|_| {
            sys::sleep(Duration::from_millis(5));
            child.exited()
        });
        assert_eq!(status.and_then(|status| status.code()), Some(3));
        let tail = child.tail().0;
        assert_eq!(tail.lines().count(), 10);
        assert!(tail.starts_with("92\n") && tail.ends_with("100\nbad"), "{tail}");
        assert!(child.output().starts_with("1\n2\n") && child.output().ends_with("100\nbad\n"));
    }

    #[test]
    fn dropping_kills_the_whole_group() {
        let child = spawn(&["/bin/sh", "-c", "sleep 1000 & wait"]).unwrap();
        let group = child.pid();
        drop(child);
        // SAFETY: asks only whether the group exists. Orphans are reaped by init, which may take a moment.
        let gone = (0..1000).any(|_| {
            sys::sleep(Duration::from_millis(5));
            unsafe { libc::kill(-group, 0) < 0 }
        });
        assert!(gone);
    }

    /// However many do not listen.
    #[test]
    fn all_that_are_asked_to_end_have_their_time_together() {
        let grace = Duration::from_millis(300);
        let deaf = ["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"];
        let mut children: Vec<Child> = (0..5).map(|_| spawn_with_grace(&deaf, grace).unwrap()).collect();
        while children.iter().any(|child| child.output().is_empty()) {
            sys::sleep(LOOK);
        }
        let begin = sys::now();
        Child::kill_all(&mut children);
        let took = sys::now() - begin;
        assert!(took >= grace && took < grace * 3, "{took}");
        assert!(children.iter().all(|child| child.exited().is_some()));
    }

    /// Its number may be another process's by then.
    #[test]
    fn how_it_ended_is_known_after_it_was_reaped() {
        use std::os::unix::process::ExitStatusExt;
        let mut child = spawn(&["/bin/sh", "-c", "sleep 1000"]).unwrap();
        assert_eq!(child.exited(), None);
        child.kill();
        assert_eq!(child.exited().and_then(|status| status.signal()), Some(libc::SIGKILL));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        assert!(matches!(spawn(&["/no/such"]), Err(NodeError::Spawn { program, .. }) if program == "/no/such"));
    }
}
