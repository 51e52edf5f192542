//! The names of the figures that documents contain.
//!
//! A definition includes the rounding that a text calls for. The ends of a range, and values after "at most" and "more
//! than", are rounded outwards: [`down`] and [`up`]. A value after "about" has two significant figures. All other
//! values are as measured, and a page rounds them to its own decimals.

use std::collections::BTreeMap;

use super::published::Figures;

/// The figures by name.
#[derive(Default)]
struct Names(BTreeMap<String, f64>);

impl Names {
    fn set(&mut self, name: impl Into<String>, value: f64) {
        let name = name.into();
        assert!(self.0.insert(name.clone(), value).is_none(), "`{name}` is defined twice");
    }
}

/// Returns the names and values of all figures that documents contain.
pub fn all() -> BTreeMap<String, f64> {
    let mut names = Names::default();
    let benches = [containers, cost, e2e, isolation, lead, network, overhead, overrun, response, timershield];
    benches.iter().for_each(|define| define(&mut names));
    names.0
}

/// Rounds down to decimals; a negative number of them rounds to tens, hundreds and so on.
fn down(value: f64, decimals: i32) -> f64 {
    in_units(value, decimals).floor() / 10f64.powi(decimals)
}

/// Rounds up to decimals, as [`down`] rounds down.
fn up(value: f64, decimals: i32) -> f64 {
    in_units(value, decimals).ceil() / 10f64.powi(decimals)
}

/// Returns the value in units of its last decimal, without the error of binary fractions.
fn in_units(value: f64, decimals: i32) -> f64 {
    (value * 10f64.powi(decimals) * 1e6).round() / 1e6
}

/// Rounds to two significant figures.
fn about(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    (value / unit).round() * unit
}

fn containers(names: &mut Names) {
    let containers = Figures::of("containers");
    let aim = |figure: &str| containers.one(figure, "aim");
    names.set("containers.pick.median.least", containers.least("of it SCHED_DS.p50", |_| true));
    names.set("containers.pick.median.most", containers.most("of it SCHED_DS.p50", |_| true));
    names.set("containers.pick.p99", aim("a pick, what SCHED_DS has of it, 99th percentile"));
    names.set("containers.all.p99", aim("a pick, all classes together, 99th percentile"));
    names.set("containers.all.max", aim("a pick, all classes together, most"));
    names.set("containers.refill", aim("a refill of six groups, most"));
    names.set("containers.overhead", aim("overhead at 2.5 ms, most over the yielding periods"));
    names.set("containers.overhead.writes", up(containers.most("overhead", |case| case.contains(" io ")), 3));
}

fn cost(names: &mut Names) {
    let cost = Figures::of("cost");
    // The handler skips windows of entities without threads there.
    let skips = |case: &str| case.starts_with("nothing changes") || case.starts_with("the only job");
    let picks = |case: &str| !case.starts_with("nothing changes");
    names.set("cost.handler.least", about(cost.least("handler.mean", |case| !skips(case))));
    names.set("cost.handler.most", about(cost.most("handler.max", |case| !skips(case))));
    names.set("cost.handler.skips", up(cost.most("handler.max", skips), -2));
    names.set("cost.pick.least", cost.least("own pick.min", picks));
    names.set("cost.pick.most", cost.most("own pick.max", picks));
    names.set("cost.window", cost.one("memory.requested", "window"));
    names.set("cost.entity", cost.one("memory.requested", "entity"));
    names.set("cost.entity.given", cost.one("memory.allocated", "entity"));
    names.set("cost.files", cost.one("existing files touched", "source"));
}

fn e2e(names: &mut Names) {
    let e2e = Figures::of("e2e");
    let spread = |case: &str| e2e.one("end-to-end.max", case) - e2e.one("end-to-end.min", case);
    names.set("e2e.flood.spread", spread("ping flood: tt"));
    names.set("e2e.ingress.spread", spread("ping flood, scheduled ingress: tt"));
    names.set("e2e.ingress.datagrams", e2e.one("datagrams", "ping flood, scheduled ingress: tt"));
    names.set("e2e.fifo.max", e2e.one("end-to-end.max", "ping flood, scheduled ingress: fifo") / 1e3);
}

/// The stressors of stress-ng among the attacks.
const STRESS: [&str; 9] = [
    "a hog",
    "fork bomb",
    "affinity",
    "policies",
    "timer flood",
    "page faults",
    "memory pressure",
    "network flood",
    "switches",
];

fn isolation(names: &mut Names) {
    let isolation = Figures::of("isolation");
    for shield in ["off", "on"] {
        let worst = |attack: &str| isolation.one("worst response", &format!("{attack}, TimerShield {shield}"));
        let moved = |attack: &str| worst(attack) - worst("nothing");
        let stress = STRESS.map(moved).into_iter().fold(f64::NEG_INFINITY, f64::max);
        names.set(format!("isolation.stress.{shield}"), up(stress, 1));
        names.set(format!("isolation.offers.{shield}"), moved("lock offers"));
        names.set(format!("isolation.alarms.{shield}"), moved("alarms"));
        if shield == "off" {
            names.set("isolation.alarms.beyond", down(moved("alarms"), -2));
        }
    }
    // Both containers of a set have a number.
    names.set("isolation.sets", isolation.all("misses", |case| case.starts_with("low-hi ")).len() as f64 / 2.0);
    // Two rows have no attack: the container alone, and the only one of its pool.
    names.set(
        "isolation.attacks",
        isolation.all("worst response", |case| case.ends_with(", TimerShield on")).len() as f64 - 2.0,
    );
    let any =
        "worst response of the critical container, under any attack beyond that without, TimerShield on, settings of \
               the host held";
    names.set("isolation.attacks.worst", isolation.one(any, "aim"));
    for (name, case) in [("lead", "udp, DS, TimerShield, lead"), ("fifo", "udp, FIFO, pristine")] {
        names.set(format!("isolation.{name}.mean"), isolation.one("mean latency", case));
        names.set(format!("isolation.{name}.max"), isolation.one("most latency", case));
    }
}

fn lead(names: &mut Names) {
    let lead = Figures::of("lead");
    let (leads, none) = (|case: &str| case.ends_with(": tt, lead"), |case: &str| case.ends_with(": tt"));
    let spread = lead.all("lateness.max", leads).into_iter().map(|(case, max)| max - lead.one("lateness.min", case));
    names.set("lead.spread", up(spread.fold(0.0, f64::max), 2));
    names.set("lead.least", down(lead.least("lateness.min", leads), 2));
    names.set("lead.most", up(lead.most("lateness.max", leads), 2));
    names.set("lead.none.least", down(lead.least("lateness.min", none), 1));
    names.set("lead.none.most", up(lead.most("lateness.max", none), 1));
}

fn network(names: &mut Names) {
    let network = Figures::of("network");
    for (name, title) in
        [("stock", "stock taprio"), ("ksoftirqd", "taprio, ksoftirqd above the tasks"), ("exact", "exact gates")]
    {
        let is_meant = |case: &str| case.ends_with(&format!(": {title}"));
        names.set(format!("network.{name}.least"), down(network.least("after the gate.min", is_meant), 2));
        names.set(format!("network.{name}.most"), up(network.most("after the gate.max", is_meant), 2));
    }
    let aim = |figure: &str| network.one(figure, "aim");
    names.set("network.spread", up(aim("exact gates: max - min, most of all loads"), 3));
    names.set("network.mean", up(aim("exact gates, path taken off: mean, most of all loads"), 3));
    names.set("network.deviation", up(aim("exact gates, path taken off: standard deviation, most of all loads"), 3));
    let burst = |case: &str| case.starts_with("bursts of ");
    names.set("network.burst.first", up(network.most("first frame", burst), 1));
    let slot = |case: &str| case.starts_with("slots, ");
    names.set("network.slot.least", down(network.least("after the slot's start.min", slot), 2));
    names.set("network.slot.most", up(network.most("after the slot's start.max", slot), 2));
}

fn overhead(names: &mut Names) {
    let overhead = Figures::of("overhead");
    let of = |program: &'static str| move |case: &str| case.starts_with(program) && case.ends_with("difference");
    names.set("overhead.sleep", overhead.most("mean", of("cyclictest")));
    names.set("overhead.messages", overhead.most("equal work", of("hackbench")));
}

fn overrun(names: &mut Names) {
    let overrun = Figures::of("overrun");
    names.set("overrun.jobs", overrun.common("jobs of the others"));
    for (name, case) in [
        ("fifo", "SCHED_FIFO, at the plan's instants"),
        ("deadline", "SCHED_DEADLINE"),
        ("user", "user-space dispatcher"),
        ("tt", "SCHED_TT"),
        ("lead", "SCHED_TT, lead"),
    ] {
        names.set(format!("overrun.{name}.misses"), overrun.one("misses of the others", case));
        names.set(format!("overrun.{name}.starts"), overrun.one("worst start spread of the others", case));
    }
}

fn response(names: &mut Names) {
    let response = Figures::of("response");
    names.set("response.jobs", response.common("activations"));
    for case in ["other", "fifo", "deadline", "user", "kernel"] {
        for part in ["mean", "std", "max"] {
            names.set(format!("response.{case}.{part}"), response.one(&format!("lateness.{part}"), case));
        }
        names.set(format!("response.{case}.misses"), response.one("misses", case));
    }
}

fn timershield(names: &mut Names) {
    let shield = Figures::of("timershield");
    for kernel in ["pristine", "off", "on"] {
        for (place, tasks, switch) in [("alone", 0, "switch.p50"), ("beside", 50, "switch.p95")] {
            for (name, figure) in [("enqueue", "enqueue.p50"), ("expiry", "expiry.p50"), ("switch", switch)] {
                let value = shield.one(figure, &format!("{tasks} lower tasks, {kernel}"));
                names.set(format!("timershield.{name}.{place}.{kernel}"), value);
            }
        }
    }
    let more = |figure: &str, kernel: &str| shield.one(&format!("{figure}: more than on the pristine kernel"), kernel);
    let (sleep, switch) = ("a sleep's timer, enqueue and expiry", "a switch that leaves the event device alone");
    names.set("timershield.own", shield.one("of it TimerShield's.p50", "0 lower tasks, on"));
    names.set("timershield.sleep", more(sleep, "on"));
    names.set("timershield.switch", more(switch, "on"));
    names.set("timershield.switch.classes", more(switch, "off"));
    for between in [1, 30, 50] {
        let lowest = more(&format!("mean response of the lowest task, {between} in between"), "on");
        names.set(format!("timershield.lowest.{between}"), lowest);
    }
    let crowd = "longest response, synchronised: more beside 100 than beside 1";
    names.set("timershield.crowd", shield.one(crowd, "pristine"));
}

#[test]
fn rounding_is_outwards() {
    assert_eq!(
        (down(2.366, 1), up(4.364, 1), up(0.93, 2), down(117.6, -2), up(1363.0, -2)),
        (2.3, 4.4, 0.93, 100.0, 1400.0)
    );
    assert_eq!((about(557.0), about(1363.0)), (560.0, 1400.0));
}
