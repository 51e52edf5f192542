//! Tasks.

use macrotick_model::{CpuSet, Duration, ExecutionTime, Reservation, Supply, Task, Workload};

/// Returns a task with jobs that compute for its WCET.
pub fn task(name: &str, period: Duration, wcet: Duration) -> Task {
    Task { run: spin(wcet), ..Task::named(name, period, wcet) }
}

/// Returns a job that always computes this long.
pub fn spin(time: Duration) -> Workload {
    Workload::Spin(ExecutionTime::Fixed(time))
}

/// Returns a reservation of SCHED_DEADLINE on these CPUs.
pub fn reserved(runtime: Duration, cpus: &[u32]) -> Supply {
    Supply::Deadline(Reservation { runtime, cpus: CpuSet::from_iter(cpus.iter().copied()) })
}
