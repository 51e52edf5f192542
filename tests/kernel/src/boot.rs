//! Starts the guests that several tests use. Guests with the same parameters start only once.

use macrotick_lab::progress::Terminal;
use macrotick_lab::{Arch, Flavor, GuestJob, GuestOutcome, Lab, Layout};
use macrotick_model::Duration;

/// Describes a job for a guest on one of the kernels.
pub fn job<S: Into<String>>(flavor: Flavor, cpus: u32, words: impl IntoIterator<Item = S>) -> GuestJob {
    let mut job = GuestJob::new(flavor, words);
    job.cpus = cpus;
    // With lockdep and KASAN, every path has many more instructions. At 4 ns per instruction (shift 2) no time would be
    // left for them.
    job.shift = if flavor.is_debug() { 0 } else { 2 };
    job.live = true;
    job.allow_complaints = true; // to get the results in any case
    job.wall_limit = Duration::from_secs(if flavor == Flavor::Patched { 1800 } else { 3600 });
    // The storms leave much memory for RCU to free, and KASAN keeps freed memory.
    job.memory_mib = 1536;
    if flavor.is_debug() {
        // The timer of the local APIC fails its verification when the kernel calibrates it against the HPET.
        job.kernel_args.push("hpet=disable".into());
    }
    if cpus > 1 {
        // A CPU that waits for its turn in the lab is no stall.
        job.kernel_args.push("rcupdate.rcu_cpu_stall_timeout=120".into());
    }
    job
}

/// Runs a job with this agent in the image, on the architecture of the host. Panics if there is no outcome, and names the
/// last progress line of the job.
pub fn run(agent: &str, job: &GuestJob) -> GuestOutcome {
    run_on(Arch::X86_64, agent, job)
}

/// The same on any architecture.
pub fn run_on(arch: Arch, agent: &str, job: &GuestJob) -> GuestOutcome {
    let layout = Layout::find().expect("a checkout");
    let lab = Lab::with_agent(layout, agent).on(arch);
    let mut last = String::new();
    let outcome = lab.run(job, &mut Terminal::new(), &mut |line| line.clone_into(&mut last));
    outcome.unwrap_or_else(|error| panic!("in {last}: {error}"))
}
