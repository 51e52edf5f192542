//! The programs of rt-tests, with an idle class and with a running table. Their exit codes report their success; the
//! console reports problems of the kernel.

use macrotick_uapi::Device;

use super::{is_slow, unit_ns, Scenario};
use crate::board::Log;
use crate::check::{Check, Explain};
use crate::process::{fork, periodic, Ended};
use crate::table::Table;
use crate::{ensure, ensure_eq, sys};

pub const ALL: &[Scenario] = &[
    Scenario::new("rttests_cyclictest_idle", || idle(CYCLICTEST)),
    Scenario::new("rttests_cyclictest_running", || running(CYCLICTEST)).punctual(),
    Scenario::new("rttests_cyclicdeadline_idle", || idle(CYCLICDEADLINE)),
    Scenario::new("rttests_cyclicdeadline_running", || running(CYCLICDEADLINE)).punctual(),
    Scenario::new("rttests_pi_stress_idle", || idle(PI_STRESS)),
    Scenario::new("rttests_pi_stress_running", || running(PI_STRESS)).punctual(),
    Scenario::new("rttests_ptsematest_idle", || idle(PTSEMATEST)),
    Scenario::new("rttests_ptsematest_running", || running(PTSEMATEST)).punctual(),
];

const CYCLICTEST: &[&str] = &["cyclictest", "-m", "-p", "90", "-t", "3", "-i", "500", "-l", "500", "-q"];
// Shorter intervals mean run times below 2 ms, which SCHED_DEADLINE refuses without HRTICK.
const CYCLICDEADLINE: &[&str] = &["cyclicdeadline", "-i", "10000", "-D", "1", "-q"];
const PI_STRESS: &[&str] = &["pi_stress", "--duration=1", "--groups=1", "--quiet"];
const PTSEMATEST: &[&str] = &["ptsematest", "-p", "80", "-i", "500", "-l", "300", "-q"];

fn run(words: &[&str]) -> Check {
    use std::os::unix::process::CommandExt;
    let path = format!("/usr/bin/{}", words[0]);
    let child = fork(|| {
        let mut command = std::process::Command::new(&path);
        command.args(&words[1..]).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.exec().raw_os_error().unwrap_or(126)
    });
    ensure_eq!(child.wait(15_000_000_000)?, Ended::Exited(0), "the end of {}", words.join(" "));
    Ok(())
}

fn idle(words: &[&str]) -> Check {
    run(words)
}

/// Runs a program beside a table, which leaves 70 % of the CPU.
fn running(words: &[&str]) -> Check {
    let (u, device, log) = (unit_ns(), Device::open()?, Log::new(1));
    Table::single(20 * u, 0, 0, 4 * u).window("u", 0, 8 * u, 2 * u, 3).install(&device)?;
    periodic("t", log, 3 * u)?;
    periodic("u", log, u)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    run(words)?;
    let cycles = (sys::now_ns() - epoch) / (20 * u);
    let stats = device.stats(0).explain("stats")?;
    // Without PREEMPT_RT, softirqs and sections without preemption take time from the windows. On the debug kernel,
    // interrupts do.
    let lateness = if sys::is_preempt_rt() && !is_slow() { 0 } else { cycles / 10 };
    ensure!(stats.completions + 2 + lateness >= cycles, "{} completions in {cycles} cycles", stats.completions);
    ensure!(stats.misses <= lateness, "{} misses in {cycles} cycles", stats.misses);
    Ok(())
}
