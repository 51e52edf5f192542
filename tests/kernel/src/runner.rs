//! Runs scenarios, each in its own session, and cleans up after them.

use std::io::Write;
use std::os::fd::RawFd;

use macrotick_uapi::Device;

use crate::check::Check;
use crate::group;
use crate::process::{self, Child};
use crate::scenarios::{Scenario, DELAY_US, SCX};
use crate::scx::{self, Beside};
use crate::sys::{self, SchedAttr};

/// Runs the scenarios in order, and prints a line for each. Returns whether all held.
pub fn run(scenarios: &[Scenario]) -> bool {
    adopt();
    if let Some(us) = std::env::var(DELAY_US).ok().and_then(|text| text.parse::<u64>().ok()) {
        sys::sleep(us * 1000);
    }
    let mut good = true;
    for scenario in scenarios {
        macrotick_lab::agent::live(scenario.name); // tells the host the last scenario, if the guest crashes
        let begin = sys::now_ns();
        if std::env::var_os("MACROTICK_TIMERSHIELD").is_some() {
            sys::set_timershield(true).expect("a kernel with TimerShield");
        }
        let mut verdict = match std::env::var(SCX) {
            Ok(how) => Beside::start(&how).and_then(|beside| run_beside(scenario, beside)),
            Err(_) => run_one(scenario),
        };
        if let Err(left) = clean_up() {
            verdict = verdict.and(Err(left));
        }
        let took = (sys::now_ns() - begin) / 1_000_000;
        match &verdict {
            Ok(()) => println!("{}: ok", scenario.name),
            Err(reason) => println!("{}: FAILED {}", scenario.name, reason.replace('\n', " | ")),
        }
        println!("# {} took {took} ms of virtual time", scenario.name);
        let _ = std::io::stdout().flush();
        good &= verdict.is_ok();
    }
    good
}

/// Makes the orphaned processes of scenarios children of this process. Thus it can reap them, even if they are busy.
pub fn adopt() {
    process::adopt();
    sys::are_several_cpus();
    begin();
}

/// Runs one scenario in its own session, to find all its processes afterwards.
fn run_one(scenario: &Scenario) -> Check {
    let mut pipe = [0; 2];
    // SAFETY: writes two descriptors.
    unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) };
    let child = process::fork(|| {
        // SAFETY: takes nothing.
        unsafe { libc::setsid() };
        begin();
        let verdict = (scenario.run)();
        if verdict.is_err() {
            eprintln!("what {} leaves:\n{}", scenario.name, remains());
        }
        let text = match &verdict {
            Ok(()) => "ok",
            Err(reason) => reason,
        };
        // SAFETY: reads the text.
        unsafe { libc::write(pipe[1], text.as_ptr().cast(), text.len().min(4000)) };
        0
    });
    // SAFETY: our copy; the scenario's processes have their own.
    unsafe { libc::close(pipe[1]) };
    let verdict = verdict(scenario, child, pipe[0]);
    // SAFETY: our descriptor.
    unsafe { libc::close(pipe[0]) };
    verdict
}

/// Gives a scenario's own process SCHED_FIFO, to read counters and clocks in time beside busy processes. Its children
/// start under SCHED_OTHER.
pub fn begin() {
    let attr = SchedAttr { flags: sys::RESET_ON_FORK, ..SchedAttr::fifo(90) };
    sys::set_sched(0, attr).expect("root may use SCHED_FIFO");
}

fn verdict(scenario: &Scenario, child: Child, pipe: RawFd) -> Check {
    let mut poll = libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry.
    let ready = unsafe { libc::poll(&mut poll, 1, scenario.limit_ms as i32) };
    if ready == 0 {
        eprintln!("what {} does:\n{}", scenario.name, remains());
        return Err(format!("no verdict after {} ms of virtual time: {}", scenario.limit_ms, survivors().join("; ")));
    }
    if poll.revents & libc::POLLIN == 0 {
        return Err(format!("ended without a verdict: {:?}", child.wait(1_000_000_000)?));
    }
    let mut text = [0u8; 4096];
    // SAFETY: writes at most the buffer's length.
    let length = unsafe { libc::read(pipe, text.as_mut_ptr().cast(), text.len()) }.max(0) as usize;
    match &text[..length] {
        b"ok" => Ok(()),
        reason => Err(String::from_utf8_lossy(reason).into_owned()),
    }
}

/// Runs a scenario beside a sched_ext scheduler. The scenario's processes end first: under SCHED_FIFO they could delay
/// the kernel thread that exchanges the scheduler.
fn run_beside(scenario: &Scenario, beside: Beside) -> Check {
    let verdict = run_one(scenario);
    let ended = end_processes(beside.pid());
    verdict.and(ended).and(beside.end())
}

/// Ends every process that the scenario left, except for one.
fn end_processes(but: Option<i32>) -> Check {
    // The debug kernel with six CPUs that take turns needs more than 5 s for the processes of pools and storms.
    match sys::eventually(30_000_000_000, || process::end_all_but(but)) {
        true => Ok(()),
        false => Err(format!("processes survive SIGKILL: {}", survivors().join("; "))),
    }
}

/// Ends every process that the scenario left, and removes its scheduler and its table. Then brings CPUs online and
/// switches TimerShield off.
pub fn clean_up() -> Check {
    end_processes(None)?;
    if scx::is_loaded() {
        scx::disable()?;
    }
    match Device::open().map(|device| device.remove()) {
        Ok(Ok(()) | Err(libc::ENOENT)) => {}
        Ok(Err(errno)) => return Err(format!("the table cannot be removed: errno {errno}")),
        Err(error) => return Err(error.into()),
    }
    group::remove_all()?;
    sys::set_timershield(false).map_err(|errno| format!("TimerShield cannot be switched off: errno {errno}"))?;
    for cpu in 1..16 {
        // Most of these CPUs do not exist, and the others are already online.
        let _ = sys::set_online(cpu, true);
    }
    Ok(())
}

/// Returns the entities' counters, and the processes of a failed scenario with their kernel stacks, if available.
fn remains() -> String {
    let mut text = String::new();
    let device = Device::open().ok();
    for stats in (0..8).map_while(|entity| device.as_ref()?.stats(entity).ok()) {
        text += &format!("{stats:?}\n");
    }
    for (pid, stat) in process::descendants() {
        let stack = std::fs::read_to_string(format!("/proc/{pid}/stack")).unwrap_or_default();
        text += &format!("{stat}\n{stack}");
    }
    text
}

fn survivors() -> Vec<String> {
    process::descendants()
        .into_iter()
        .map(|(pid, stat)| format!("{pid} {}", stat.chars().take(60).collect::<String>()))
        .collect()
}
