//! Booting the guests that the tests share: the same machine is booted once.

use macrotick_lab::progress::Terminal;
use macrotick_lab::{Flavor, GuestJob, GuestOutcome, Lab, Layout};
use macrotick_model::Duration;

/// A job for a guest on one of the kernels.
pub fn job<S: Into<String>>(flavor: Flavor, cpus: u32, words: impl IntoIterator<Item = S>) -> GuestJob {
    let mut job = GuestJob::new(flavor, words);
    job.cpus = cpus;
    // Lockdep and KASAN make every path so long that a slow clock would leave no time for it.
    job.shift = if flavor.is_debug() { 0 } else { 2 };
    job.live = true;
    job.allow_complaints = true; // so that the results come back, too
    job.wall_limit = Duration::from_secs(if flavor == Flavor::Patched { 1800 } else { 3600 });
    // The storms leave much behind for RCU to free, and KASAN keeps what is freed.
    job.memory_mib = 1536;
    if flavor.is_debug() {
        // Calibrated against it, the local APIC's timer fails its verification.
        job.kernel_args.push("hpet=disable".into());
    }
    if cpus > 1 {
        // A CPU that waits for its turn is no stall.
        job.kernel_args.push("rcupdate.rcu_cpu_stall_timeout=120".into());
    }
    job
}

/// Runs a job with this agent in the image. It panics where there is no outcome, and says how far the job had come.
pub fn run(agent: &str, job: &GuestJob) -> GuestOutcome {
    let layout = Layout::find().expect("a checkout");
    let lab = Lab::with_agent(layout, agent);
    let mut last = String::new();
    let outcome = lab.run(job, &mut Terminal::new(), &mut |line| line.clone_into(&mut last));
    outcome.unwrap_or_else(|error| panic!("in {last}: {error}"))
}
