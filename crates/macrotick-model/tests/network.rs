//! Network namespaces and their contents.

use macrotick_model::{GroupThread, KernelThread, Load, PingFlood, System};

const NAMESPACES: &str =
    "namespaces:\n  - {name: left, address: 10.0.0.1/24}\n  - {name: right, address: 10.0.0.2/24}\n";

fn described(rest: &str) -> System {
    let source =
        format!("system: s\ntasks:\n  - {{name: a, period: 10ms, wcet: 1ms, namespace: left}}\n{NAMESPACES}{rest}");
    System::parse(&source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn tasks_and_loads_are_in_their_namespaces() {
    let system = described("load:\n  - {name: b, hog: {}, namespace: right}\n  - {name: c, hog: {}}\n");
    assert_eq!(system.tasks[0].namespace.as_deref(), Some("left"));
    let of_loads: Vec<_> = system.load.iter().map(|load| load.namespace.as_deref()).collect();
    assert_eq!(of_loads, [Some("right"), None]);
    let decoded = system.namespace("right").and_then(|namespace| namespace.decode());
    assert_eq!(decoded, Some(("10.0.0.2".parse().expect("an address"), 24)));
}

#[test]
fn a_ping_flood_has_the_size_of_a_ping() {
    let load = |keys: &str| {
        let text = format!("load:\n  - {{name: b, ping-flood: {{to: 10.0.0.2{keys}}}}}\n");
        described(&text).load[0].run.clone()
    };
    let of = |bytes| Load::PingFlood(PingFlood { to: "10.0.0.2".into(), bytes });
    assert_eq!((load(""), load(", bytes: 6000")), (of(56), of(6000)));
}

#[test]
fn pools_hold_kernel_threads() {
    let system = described(
        "groups:\n  - {name: p, windows: {period: 10ms, length: 1ms}, kernel-threads: [ktimers, ksoftirqd]}\n",
    );
    let threads = [KernelThread::Ktimers, KernelThread::Ksoftirqd].map(GroupThread::EachCpu);
    assert_eq!(system.pool("p").unwrap().kernel_threads, threads);
}

#[test]
fn a_system_without_namespaces_does_not_mention_them() {
    let source = "system: s\ntasks:\n  - {name: a, period: 10ms, wcet: 1ms}\n";
    let system = System::parse(source, "s.yaml").expect("valid");
    assert!(!system.to_yaml().contains("namespace"), "{}", system.to_yaml());
}
