//! Observations and their records.

use macrotick_model::observation::Lab;
use macrotick_model::{
    Backend, ClockInForce, Duration, EntityCounters, Environment, GateTier, GatesInForce, GroupObservation, Job,
    LeadInForce, Observation, Plan, PoolObservation, ProcessOutput, RefusedTier, Segment, TaskObservation, Tier,
};

/// Returns an empty observation of one cycle of a plan under the kernel class.
pub fn observation(plan: Plan) -> Observation {
    Observation {
        version: Observation::VERSION,
        backend: Backend::Kernel,
        tier: Tier::KernelClass,
        environment: Environment::default(),
        lead: None,
        clock: None,
        gates: Vec::new(),
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

/// Returns exact gates of an interface.
pub fn exact_gates(interface: &str, lead: Duration) -> GatesInForce {
    let refused = vec![RefusedTier { tier: GateTier::Hardware, reason: "Operation not supported".into() }];
    GatesInForce {
        interface: interface.into(),
        device: "eth0".into(),
        namespace: Some(format!("macrotick-{interface}")),
        tier: GateTier::Exact,
        lead: Some(lead),
        refused,
        closed: None,
        dropped: 0,
    }
}

/// Returns a clock that no program synchronises or sets, and that no table followed.
pub fn unsynchronised_clock() -> ClockInForce {
    let (estimated_error, corrections) = (None, 0);
    let (stretched, shrunk, rest) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    ClockInForce { synchronised: false, estimated_error, tai_offset_s: 0, stretched, shrunk, corrections, rest }
}

/// Returns the lab with one CPU and one nanosecond per instruction.
pub fn lab() -> Environment {
    Environment {
        kernel: "6.12.117-macrotick".into(),
        kernel_version: "#1 SMP PREEMPT_RT".into(),
        preemption: "PREEMPT_RT".into(),
        cpu_model: "QEMU TCG CPU version 2.5+".into(),
        cpus: 1,
        lab: Some(Lab { ns_per_instruction: 1, cpus: 1 }),
        facts: vec![("clock source".into(), "tsc".into())],
        profile: None,
    }
}

/// Returns the lead that a host needs, and the time that the plan keeps free.
pub fn measured_lead(needed: Duration, kept_free: Duration) -> LeadInForce {
    LeadInForce { lead: needed, kept_free, needed: Some(needed) }
}

/// Returns the records of a task, without the kernel's counters.
pub fn records(task: &str, jobs: Vec<Job>) -> TaskObservation {
    TaskObservation { name: task.into(), jobs, recorded_until: None, counters: None }
}

/// Returns a job that ran from `start` to `end`, where they are known.
pub fn job(number: u64, nominal: Duration, start: Option<Duration>, end: Option<Duration>) -> Job {
    Job { job: number, nominal, start, end }
}

/// Returns the kernel's counters of an entity with complete jobs only.
pub fn counters(done: u64) -> EntityCounters {
    EntityCounters { released: done, completed: done, ..EntityCounters::default() }
}

/// Returns the processor time of a pool: in the class, and in total.
pub fn pool_record(pool: &str, runtime_ns: u64, usage_ns: u64) -> PoolObservation {
    PoolObservation { name: pool.into(), runtime_ns, usage_ns, overrun: 0, skipped: 0, threads: 1 }
}

/// Returns the processor time of a group that never waited.
pub fn group_record(group: &str, usage_ns: u64) -> GroupObservation {
    GroupObservation { name: group.into(), usage_ns, ..GroupObservation::default() }
}

/// Returns the output of a process.
pub fn output(process: &str, text: &str) -> ProcessOutput {
    ProcessOutput { name: process.into(), text: text.into() }
}

/// Returns a segment in which a thread outside of pools had CPU 0.
pub fn segment(who: &str, start_ns: i64, end_ns: i64) -> Segment {
    Segment { cpu: 0, who: who.into(), pool: None, start_ns, end_ns }
}
