//! Observations and their records.

use macrotick_model::observation::Lab;
use macrotick_model::{
    Backend, ClockInForce, Duration, EntityCounters, Environment, GroupObservation, Job, LeadInForce, Observation,
    Plan, PoolObservation, ProcessOutput, Segment, TaskObservation, Tier,
};

/// One cycle of a plan under the kernel class, of which nothing is known.
pub fn observation(plan: Plan) -> Observation {
    Observation {
        version: Observation::VERSION,
        backend: Backend::Kernel,
        tier: Tier::KernelClass,
        environment: Environment::default(),
        lead: None,
        clock: None,
        duration: plan.cycle,
        tasks: Vec::new(),
        pools: Vec::new(),
        groups: Vec::new(),
        segments: Vec::new(),
        output: Vec::new(),
        remarks: Vec::new(),
        plan,
    }
}

/// A clock that is nobody's reference and that no table had to follow.
pub fn unsynchronised_clock() -> ClockInForce {
    let (estimated_error, corrections) = (None, 0);
    let (stretched, shrunk, rest) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    ClockInForce { synchronised: false, estimated_error, stretched, shrunk, corrections, rest }
}

/// The lab with one CPU and an instruction each nanosecond.
pub fn lab() -> Environment {
    Environment {
        kernel: "6.12.117-macrotick".into(),
        kernel_version: "#1 SMP PREEMPT_RT".into(),
        preemption: "PREEMPT_RT".into(),
        cpu_model: "QEMU TCG CPU version 2.5+".into(),
        cpus: 1,
        lab: Some(Lab { ns_per_instruction: 1, cpus: 1 }),
        facts: vec![("clock source".into(), "tsc".into())],
    }
}

/// The lead that a host was found to need, of what the plan keeps free.
pub fn measured_lead(needed: Duration, kept_free: Duration) -> LeadInForce {
    LeadInForce { lead: needed, kept_free, needed: Some(needed) }
}

/// What a task did, without the kernel's counters.
pub fn records(task: &str, jobs: Vec<Job>) -> TaskObservation {
    TaskObservation { name: task.into(), jobs, recorded_until: None, counters: None }
}

/// A job that ran from `start` to `end`, where that is known.
pub fn job(number: u64, nominal: Duration, start: Option<Duration>, end: Option<Duration>) -> Job {
    Job { job: number, nominal, start, end }
}

/// The kernel's counters of an entity all of whose jobs were done.
pub fn counters(done: u64) -> EntityCounters {
    EntityCounters { released: done, completed: done, ..EntityCounters::default() }
}

/// Processor time of a pool: in the class, and in all.
pub fn pool_record(pool: &str, runtime_ns: u64, usage_ns: u64) -> PoolObservation {
    PoolObservation { name: pool.into(), runtime_ns, usage_ns, overrun: 0, skipped: 0, threads: 1 }
}

/// Processor time of a group that never waited.
pub fn group_record(group: &str, usage_ns: u64) -> GroupObservation {
    GroupObservation { name: group.into(), usage_ns, ..GroupObservation::default() }
}

/// What a process wrote.
pub fn output(process: &str, text: &str) -> ProcessOutput {
    ProcessOutput { name: process.into(), text: text.into() }
}

/// A stretch of time in which a thread in no pool had CPU 0.
pub fn segment(who: &str, start_ns: i64, end_ns: i64) -> Segment {
    Segment { cpu: 0, who: who.into(), pool: None, start_ns, end_ns }
}
