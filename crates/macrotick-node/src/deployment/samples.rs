//! Small plans, for tests.

use macrotick_model::{CpuTable, Duration, ExecutionTime, OnMiss, Plan, System, Task, Window, Workload};

/// Microseconds.
pub fn us(us: i64) -> Duration {
    Duration::from_micros(us)
}

/// A task that spins for its WCET of 100 us.
pub fn task(name: &str, period: Duration, priority: Option<u8>) -> Task {
    Task {
        name: name.into(),
        period,
        wcet: us(100),
        deadline: period,
        offset: None,
        jitter: None,
        cpu: None,
        migrate: false,
        priority,
        on_miss: OnMiss::Resume,
        max_misses: None,
        supply: Default::default(),
        namespace: None,
        workload: Workload::Spin(ExecutionTime::Fixed(us(100))),
    }
}

/// A window, in microseconds.
pub fn window(task: &str, offset: i64, length: i64, activate: bool, deadline: bool) -> Window {
    Window { offset: us(offset), length: us(length), task: task.into(), activate, deadline }
}

/// A plan with a cycle of a millisecond, and windows on CPU 0.
pub fn plan(tasks: Vec<Task>, windows: Vec<Window>) -> Plan {
    let system = System {
        name: "test".into(),
        macrotick: us(10),
        cycle: None,
        lead: None,
        sync: None,
        cpus: vec![0],
        duration: Duration::from_millis(10),
        tasks,
        pools: Vec::new(),
        server_period: System::DEFAULT_SERVER_PERIOD,
        groups: Vec::new(),
        namespaces: Vec::new(),
        chains: Vec::new(),
        background: Vec::new(),
        table: None,
        files: Vec::new(),
    };
    let tables = vec![CpuTable { cpu: 0, windows }];
    Plan { version: Plan::VERSION, solver: "test".into(), cycle: Duration::from_millis(1), tables, system }
}
