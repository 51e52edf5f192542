//! The processes that the runner starts. They wait until the run starts, and end when the run or the runner ends.

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

/// The time limit for the death of a killed process: a process that waits for a lost device may never die.
const DEATH: Duration = Duration::from_millis(500);
/// The interval at which the runner checks for the death.
const LOOK: Duration = Duration::from_millis(1);

/// A process with its block. Dropping it kills the process and its whole process group.
pub struct Child {
    /// The task's or process's name.
    pub name: String,
    /// The shared memory.
    pub block: Block,
    process: std::process::Child,
    /// The output of the process, if the runner keeps it.
    output: Option<KeptOutput>,
    /// The time that the process has to end by itself after SIGTERM.
    grace: Duration,
    /// The program that the process executed when it was ready, if noted.
    program: Option<PathBuf>,
    /// Set when the process is reaped: how it ended, if that is known.
    reaped: Option<Option<ExitStatus>>,
}

/// The parameters of a new process.
pub struct Launch<'a> {
    /// The task's or process's name.
    pub name: &'a str,
    /// The program.
    pub program: &'a Program,
    /// The shared memory.
    pub block: Block,
    /// The file `cgroup.procs` of its control group.
    pub group: Option<File>,
    /// The network namespace that it enters.
    pub namespace: Option<&'a File>,
    /// The user that it becomes before it executes the program, if that is another user.
    pub owner: Option<&'a Owner>,
    /// The destination of its output.
    pub output: Output,
    /// The time that it has to end by itself after SIGTERM. Zero: it gets SIGKILL at once.
    pub grace: Duration,
}

/// This program, for built-in workloads.
pub const SELF: &str = "/proc/self/exe";

impl Child {
    /// Starts a process in its own process group. It inherits its block and no other descriptor of the runner.
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

    /// Notes the program that the process executes.
    pub fn note_program(&mut self) {
        self.program = proc::program(self.pid());
    }

    /// Returns the noted program.
    pub fn noted_program(&self) -> Option<&PathBuf> {
        self.program.as_ref()
    }

    /// Returns the process's id.
    pub fn pid(&self) -> sys::Tid {
        self.process.id() as sys::Tid
    }

    /// Describes the state of the process's first thread.
    pub fn doing(&self) -> &'static str {
        describe_state(proc::state(self.pid()))
    }

    /// Returns the thread that joined. The process can write any number there. Therefore the thread must be one of the
    /// process, or of a process below it.
    pub fn thread(&self) -> Option<sys::Tid> {
        let thread = self.block.tid();
        proc::is_of(thread, self.pid()).then_some(thread)
    }

    /// Returns the same thread, or an error. A process that works as a task has this thread.
    pub fn joined_thread(&self) -> Result<sys::Tid, HostFailure> {
        let what = || format!("find the thread of `{}`", self.name);
        let none = || HostFailure::Call { what: what(), source: io::Error::from_raw_os_error(libc::ESRCH) };
        self.thread().ok_or_else(none)
    }

    /// Returns how the process ended, if it ended. It is not reaped here, and the number of its process group stays in
    /// use.
    pub fn exited(&self) -> Option<ExitStatus> {
        self.reaped.unwrap_or_else(|| sys::exited(self.pid()))
    }

    /// Returns a descriptor that becomes readable when the process ends.
    pub fn pidfd(&self) -> io::Result<OwnedFd> {
        sys::pidfd_open(self.pid(), self.pid())
    }

    /// Returns the last lines that it wrote, if the runner keeps its output.
    fn tail(&self) -> Tail {
        self.output.as_ref().map_or_else(Tail::default, KeptOutput::tail)
    }

    /// Returns its output, if the runner keeps it. Of a long output, it returns the start and the end.
    pub fn output(&self) -> String {
        self.output.as_ref().map_or_else(String::new, KeptOutput::text)
    }

    /// Returns a remark if it wrote more than the runner keeps.
    pub fn describe_output(&self) -> Option<String> {
        let full = self.output.as_ref().is_some_and(KeptOutput::is_full);
        let most = output::MOST >> 20;
        full.then(|| format!("`{}` wrote more than {most} MiB: later writes failed and their text is lost", self.name))
    }

    /// Returns the last line that it wrote, as the end of a remark.
    pub fn last_words(&self) -> String {
        self.tail().0.lines().last().map_or_else(String::new, |line| format!(": {line}"))
    }

    /// Sends SIGTERM to the process group.
    pub fn terminate(&self) {
        self.signal(libc::SIGTERM);
    }

    /// Ends the process and its whole process group, and reaps it. A second call does nothing.
    pub fn kill(&mut self) {
        Child::kill_all([self]);
    }

    /// Ends several processes, and no process can delay the others. Those with a grace time get SIGTERM at the same
    /// instant, and their grace times run in parallel.
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
        // SAFETY: no memory is passed. The kernel does not reuse the group's number before we have reaped its leader.
        unsafe { libc::kill(-self.pid(), signal) };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Prepares the new process before exec: it ends with the runner and inherits its own block only. It enters its control
/// group and its network namespace, and all processes that it starts are there, too.
fn prepare_process(fd: i32, group: Option<i32>, namespace: Option<i32>, parent: u32) -> io::Result<()> {
    signals::unblock();
    // SAFETY: system calls without memory, except one constant byte.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 || libc::fcntl(fd, libc::F_SETFD, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        // The runner may have ended before the request took effect.
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

/// Describes a state of `/proc` in words.
pub fn describe_state(state: Option<char>) -> &'static str {
    match state {
        Some('T') => "is stopped (SIGSTOP)",
        Some('t') => "is stopped by a tracer",
        Some('R') => "runs, or waits for a CPU",
        Some('D') => "waits for a device",
        Some('Z' | 'X') | None => "has ended",
        Some(_) => "sleeps",
    }
}

/// Waits until all processes have reached a phase.
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

/// Returns a process that has not reached a phase, if there is any. Fails if a process has ended.
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

/// Returns the error for a process that did not reach a phase within the limit.
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
        // SAFETY: asks only whether the group exists. Init reaps orphans, which may take a moment.
        let gone = (0..1000).any(|_| {
            sys::sleep(Duration::from_millis(5));
            unsafe { libc::kill(-group, 0) < 0 }
        });
        assert!(gone);
    }

    /// The number of processes that ignore SIGTERM does not matter.
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

    /// Another process may have its number by then.
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
