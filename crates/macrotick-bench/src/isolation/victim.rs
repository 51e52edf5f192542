//! The guest's part of a trial: a task with a short period, and its rival.

use std::ffi::CString;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use macrotick_host::cgroup::BOUNDS;
use macrotick_host::settings::{Held, Holder};

use super::rivals::{Program, Rival};
use super::trial::Request;
use super::{alarms, chain, clocks, crowd, offers, operator, pairs, throttle};
use crate::kit::board::{gather, release, Board};
use crate::kit::clock::{now_ns, sleep_until};
use crate::kit::disk;
use crate::kit::group::{self, write, ROOT};
use crate::kit::policy::Policy;
use crate::kit::process::{self, last_error, lock_memory};
use crate::kit::round::{round_ps, work};
use crate::kit::variant::{switch, Variant};

const VICTIM: &str = "victim";
const RIVAL: &str = "rival";
pub const STRESS: &str = "/usr/bin/stress-ng";
/// The priority inside its group, or of SCHED_FIFO.
const PRIORITY: u32 = 90;
/// The time from the common start to the victim's first release. The rivals have started by then.
const HEAD_START_NS: u64 = 500_000_000;
/// The folder of a container's files.
const FILES: &str = "/tmp";
/// The number of an unprivileged user.
const USER: u32 = 65_534;
/// The limits of a container's memory and processes.
const LIMITS: [(&str, &str); 2] = [("memory.max", "67108864"), ("pids.max", "1000")];

/// Runs a trial, and prints the text that [`super::trial::Reading`] parses.
pub fn run(words: &[&str]) -> Result<(), String> {
    let request = Request::from_words(words)?;
    switch(request.variant)?;
    // Takes the host settings, as a deployment does.
    let _held = (request.variant == Variant::On).then(|| Held::take(Holder::this_process("the victim")));
    make_groups(&request)?;
    if request.rival.is_load() {
        disk::mount()?;
    }
    // SAFETY: atomic words.
    let board: &'static Board = unsafe { process::share()? };
    let rounds = request.work_us * 1_000_000 / round_ps();
    let victim = process::fork(|| be(&request, rounds, board))?;
    let rival = match request.rival.program {
        Program::Nothing => None,
        _ => Some(process::fork(|| become_rival(&request.rival, board))?),
    };
    if request.rival.program == Program::TakenBudget {
        let budget_us = operator::budgets(&request.rival.program).rival_us;
        process::fork(|| operator::take_and_give(&format!("{ROOT}/{RIVAL}"), budget_us))?;
    }
    let zero = gather(board, 1 + u32::from(rival.is_some()));
    release(board, zero);
    process::wait(victim)?;
    if let Some(rival) = rival {
        is_alive(rival)?;
    }
    let [jobs, latency, sum, response] = [0, 1, 2, 3].map(|word| board.samples[word].load(Ordering::SeqCst));
    println!("jobs {jobs} latency {latency} sum {sum} response {response} rival {}", usage_us()?);
    Ok(())
}

fn make_groups(request: &Request) -> Result<(), String> {
    let budgets = operator::budgets(&request.rival.program);
    if request.policy == Policy::Ds {
        group::set_period(budgets.period_us)?;
        group::make(VICTIM, budgets.victim_us, 2)?;
        write(&format!("{ROOT}/{VICTIM}/cpu.ds.lead"), &request.lead_us.to_string())?;
    }
    let confined = request.rival.confined;
    write(&format!("{ROOT}/cgroup.subtree_control"), if confined { "+cpu +memory +pids" } else { "+cpu" })?;
    if confined {
        group::make(RIVAL, budgets.rival_us, 1)?;
        write(&format!("{ROOT}/{RIVAL}/cpu.ds.fifo"), "1")?;
        give_away(&format!("{ROOT}/{RIVAL}"))?;
        operator::prepare(&request.rival.program, &format!("{ROOT}/{RIVAL}"))?;
        if request.variant == Variant::On {
            BOUNDS.iter().try_for_each(|(file, most)| write(&format!("{ROOT}/{RIVAL}/{file}"), &most.to_string()))?;
        }
        return LIMITS.iter().try_for_each(|(file, limit)| write(&format!("{ROOT}/{RIVAL}/{file}"), limit));
    }
    group::create(&format!("{ROOT}/{RIVAL}"))
}

/// Makes the unprivileged user the owner of a group, as services and containers own their control groups.
pub fn give_away(group: &str) -> Result<(), String> {
    ["", "/cgroup.procs", "/cgroup.threads", "/cgroup.subtree_control"].iter().try_for_each(|file| {
        let path = format!("{group}{file}");
        std::os::unix::fs::chown(&path, Some(USER), Some(USER)).map_err(|error| format!("{path}: {error}"))
    })
}

/// Becomes the task. Each job measures its latency and its response.
fn be(request: &Request, rounds: u64, board: &Board) -> Result<(), String> {
    lock_memory()?;
    match request.policy {
        Policy::Ds => group::enter(VICTIM, PRIORITY)?,
        Policy::Fifo => process::set_policy(libc::SCHED_FIFO as u32, PRIORITY)?,
    }
    let [jobs, latency, sum, response, ..] = &board.samples;
    let zero = board.join() + HEAD_START_NS + u64::from(request.phase_ns);
    let life = request.millis * 1_000_000;
    for release in (zero..zero + life).step_by(request.period_ns as usize) {
        sleep_until(release);
        let late = now_ns() - release;
        work(rounds);
        count(jobs, latency, sum, late);
        response.fetch_max(now_ns() - release, Ordering::Relaxed);
    }
    Ok(())
}

fn count(jobs: &AtomicU64, latency: &AtomicU64, sum: &AtomicU64, late: u64) {
    jobs.fetch_add(1, Ordering::Relaxed);
    latency.fetch_max(late, Ordering::Relaxed);
    sum.fetch_add(late, Ordering::Relaxed);
}

fn become_rival(rival: &Rival, board: &Board) -> Result<(), String> {
    write(&format!("{ROOT}/{RIVAL}/cgroup.procs"), "0")?;
    // SAFETY: reads a string.
    if unsafe { libc::chmod(c"/tmp".as_ptr(), 0o1777) } != 0 {
        return Err(last_error("/tmp"));
    }
    if rival.confined {
        confine()?;
    }
    board.join();
    execute(&rival.program, if rival.is_load() { disk::PATH } else { FILES })
}

/// Attacks from inside a container that the caller has made.
pub fn attack(word: &str) -> Result<(), String> {
    let rival = Rival::from_word(word)?;
    process::set_policy(libc::SCHED_FIFO as u32, 99)?;
    execute(&rival.program, FILES)
}

/// Executes a program. It returns only if there is nothing to do.
fn execute(program: &Program, files: &str) -> Result<(), String> {
    match program {
        Program::Nothing => Ok(()),
        Program::Offers => offers::run(),
        Program::Alarms => alarms::run(),
        Program::Chain => chain::run(),
        Program::Throttle => throttle::run(&format!("{ROOT}/{RIVAL}")),
        Program::Clocks => clocks::run(),
        Program::Pairs => pairs::run(),
        Program::TakenBudget => crowd::run(None),
        Program::Pool(threads) => crowd::run(Some(*threads)),
        Program::Groups(groups) => crowd::run_in_groups(&format!("{ROOT}/{RIVAL}"), *groups),
        Program::Stress(stressors) => stress(files, stressors),
    }
}

fn stress(files: &str, stressors: &[&str]) -> Result<(), String> {
    let words = [STRESS, "--no-rand-seed", "--temp-path", files, "--quiet"];
    let words = words.iter().chain(stressors);
    let words: Vec<CString> = words.map(|word| CString::new(*word).expect("no zero byte")).collect();
    let mut pointers: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: strings, and a null pointer behind the last.
    unsafe { libc::execv(pointers[0], pointers.as_ptr()) };
    Err(last_error(STRESS))
}

/// Becomes an unprivileged user that may request any real-time priority.
fn confine() -> Result<(), String> {
    process::set_policy(libc::SCHED_FIFO as u32, 99)?;
    let limit = libc::rlimit { rlim_cur: 99, rlim_max: 99 };
    // SAFETY: reads one structure; passes numbers.
    let done = unsafe {
        libc::setrlimit(libc::RLIMIT_RTPRIO, &limit) == 0 && libc::setgid(USER) == 0 && libc::setuid(USER) == 0
    };
    done.then_some(()).ok_or_else(|| last_error("becoming an ordinary user"))
}

fn is_alive(child: i32) -> Result<(), String> {
    let mut status = 0;
    // SAFETY: writes one number.
    match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } {
        0 => Ok(()),
        _ => Err(format!("the rival ended with status {status:#x}")),
    }
}

/// Returns the processor time of the rivals.
fn usage_us() -> Result<u64, String> {
    let path = format!("{ROOT}/{RIVAL}/cpu.stat");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap_or_default();
    process::number(line)
}
