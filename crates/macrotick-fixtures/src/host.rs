//! A host that is in use.

use macrotick_host::present::{Present, PresentGroup};
use macrotick_model::CpuSet;

use crate::{described, us};

/// Returns a host with two CPUs, without a table, and with two groups. They have budgets of every 2500 us: `vision` of
/// a deployment, with a task, and `/web`, with a budget only. The deployment is about to change.
pub fn present() -> Present {
    let declared = described(
        "system: s\ntasks:\n  - {name: a, period: 1ms, wcet: 1us}\ngroups:\n  - name: vision\n    criticality: 3\n    \
         budget: 400us\n    tasks:\n      - {name: filter, period: 10ms, wcet: 100us, priority: 4}\n",
    );
    let declared = declared.groups.into_iter().next();
    Present {
        server_period: us(2500),
        cpus: vec![0, 1],
        domains: Vec::new(),
        table: None,
        groups: vec![
            PresentGroup { declared, ..present_group("vision", 20, &[(0, 500)]) },
            present_group("/web", 7, &[(0, 300), (1, 300)]),
        ],
        reserved: Vec::new(),
        system: Some("s".into()),
        changes: true,
    }
}

/// Returns a group with budgets of some CPUs, in microseconds, and no other properties.
pub fn present_group(name: &str, priority: u32, budgets: &[(u32, i64)]) -> PresentGroup {
    PresentGroup {
        name: name.into(),
        path: format!("/sys/fs/cgroup/{name}").into(),
        priority,
        budgets: budgets.iter().map(|&(cpu, budget)| (cpu, us(budget))).collect(),
        cpus: CpuSet::default(),
        bound: false,
        declared: None,
    }
}
