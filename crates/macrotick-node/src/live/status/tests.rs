use macrotick_fixtures::{described, hold_schema, refusals, Side};
use macrotick_host::state::Coming;

use super::*;

fn entity(name: &str) -> EntityStatus {
    let entity = uapi::Entity { name: uapi::name(name), ..Default::default() };
    let stats = uapi::Stats { nr_threads: 1, ..Default::default() };
    describe_entity(&entity, &stats, 0, &[])
}

fn table(entities: Vec<EntityStatus>) -> TableStatus {
    describe_table(&uapi::Get { state: state::RUNNING, ..Default::default() }, entities)
}

fn left() -> Deployed {
    Deployed {
        supervisor: 7,
        system: "s".into(),
        entities: Vec::new(),
        groups: Vec::new(),
        slots: Vec::new(),
        slot_devices: Vec::new(),
        reserved: Vec::new(),
        changes: 0,
        coming: None,
        gates: Vec::new(),
        promised: Vec::new(),
        blocks: Vec::new(),
        remarks: Vec::new(),
    }
}

#[test]
fn the_windows_of_an_entity_are_its_own() {
    let window = |entity, flags, length_ns| uapi::Window { entity, flags, length_ns, ..Default::default() };
    let windows = [window(0, uapi::SYNC, 1), window(0, 3, 10), window(1, 3, 100), window(0, 0, 1000)];
    let described = describe_entity(&uapi::Entity::default(), &uapi::Stats::default(), 0, &windows);
    assert_eq!((described.windows, described.window_ns), (2, 1010));
}

#[test]
fn what_is_wrong_is_said() {
    let good = table(vec![entity("a")]);
    assert_eq!(problems(Some(&good), Some(1), None), [""; 0]);
    assert_eq!(problems(None, None, None), [""; 0]);
    let bad = table(vec![
        EntityStatus { missed: 3, ..entity("a") },
        EntityStatus { threads: 0, ..entity("b") },
        EntityStatus { threads: 0, pool: true, ..entity("p") },
        EntityStatus { missed: 1, missed_in_row: 2, stopped: true, ..entity("c") },
    ]);
    assert_eq!(
        problems(Some(&bad), Some(1), None),
        [
            "task `a` missed 3 deadlines",
            "no thread runs the jobs of task `b`",
            "task `c` was stopped after 2 misses in a row",
            "task `c` missed a deadline",
        ]
    );
    let left = left();
    assert_eq!(problems(None, Some(7), Some(&left)), [""; 0]);
    assert!(problems(None, None, Some(&left))[0].starts_with("the supervisor of `s` (process 7) was killed"));
}

/// `MACROTICK_BLESS=1` writes the file again.
#[test]
fn the_schema_is_that_of_the_types() {
    hold_schema::<Status>("status", "The output of `macrotick status --json`", Side::Written);
}

#[test]
fn a_status_keeps_the_schema() {
    let system = described(
        "system: s\nserver-period: 1ms\ntasks:\n  - {name: d, period: 1ms, wcet: 9us, supply: {deadline: \
         {runtime: 20us}}}\ngroups:\n  - {name: g, budget: 100us, priority: 3}\n",
    );
    let get = uapi::Get { state: state::RUNNING, clockid: libc::CLOCK_TAI as u32, ..Default::default() };
    let coming = Some(Coming { system: "t".into(), entities: vec!["b".into()], instant_ns: 1 });
    let group = GroupStatus {
        name: "g".into(),
        path: "/sys/fs/cgroup/g".into(),
        priority: 3,
        budgets: vec![(0, Duration::from_micros(100))],
        cpus: [0, 1].into_iter().collect(),
        threads: 1,
        usage_ns: 2,
        exhaustions: 3,
        throttled_ns: 4,
        astray: None,
    };
    let setting = settings::SettingStatus {
        name: "kernel.timershield".into(),
        set: 1,
        value: None,
        before: 0,
        holders: vec!["container c".into()],
    };
    let full = Status {
        version: Status::VERSION,
        table: Some(describe_table(&get, vec![entity("a")])),
        owner: Some(7),
        deployment: Some(Deployed { groups: system.groups, reserved: system.tasks, coming, ..left() }),
        groups: vec![group],
        settings: vec![setting],
        problems: vec!["a problem".into()],
    };
    let nothing = Status {
        table: None,
        owner: None,
        deployment: None,
        groups: Vec::new(),
        settings: Vec::new(),
        problems: Vec::new(),
        ..full.clone()
    };
    let json = |status: &Status| serde_json::to_value(status).unwrap();
    assert_eq!([refusals("status", &json(&full)), refusals("status", &json(&nothing))], [[""; 0]; 2]);
    for (place, key) in [("", "more"), ("/table/entities/0", "misses_in_row"), ("/deployment/groups/0", "more")] {
        let mut wrong = json(&full);
        wrong.pointer_mut(place).and_then(|at| at.as_object_mut()).unwrap().insert(key.into(), 1.into());
        assert!(!refusals("status", &wrong).is_empty(), "{place}/{key} is taken");
    }
}
