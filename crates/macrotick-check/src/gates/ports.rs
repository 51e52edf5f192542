//! The interfaces of a plan as ports, with the gates of the plan.

use std::collections::BTreeSet;

use macrotick_model::{Duration, GateEntry, GateList, Gates as Described, Instant, Interface, Network, Plan};

use crate::network::{Class, Gates, Link, NetworkViolation as Violation, Port};

/// An interface with the gates of the plan.
pub(crate) struct Side<'a> {
    pub interface: &'a Interface,
    /// The gate list, if the interface has gates.
    pub list: Option<&'a GateList>,
    /// The port, with gates that open on the instant.
    pub punctual: Port,
    /// The port, with gates that open as late as the description allows.
    pub late: Port,
    /// Per class, whether planned gates keep the link for it: a flow or a slot uses it here.
    pub kept: Vec<bool>,
}

/// Reports a gate list of an interface that the system does not have.
pub(super) fn unknown(list: &GateList) -> Violation {
    Violation::UnknownList { interface: list.interface.clone() }
}

/// Makes the ports, in the order of the interfaces. `None` for an interface with gates that cannot be used.
pub(crate) fn sides<'a>(plan: &'a Plan, network: &'a Network, found: &mut Vec<Violation>) -> Vec<Option<Side<'a>>> {
    let strangers = plan.gates.iter().filter(|list| network.interface(&list.interface).is_none());
    found.extend(strangers.map(unknown));
    network.interfaces.iter().map(|interface| side(plan, network, interface, found)).collect()
}

fn side<'a>(
    plan: &'a Plan,
    network: &'a Network,
    interface: &'a Interface,
    found: &mut Vec<Violation>,
) -> Option<Side<'a>> {
    let names: Vec<&str> = network.class_names().collect();
    let list = list(plan, interface, found)?;
    let gates = match list.map(|list| Gates::new(&names, list, Instant::default())).transpose() {
        Ok(gates) => gates,
        Err(error) => {
            found.push(Violation::Gates { interface: interface.name.clone(), error: error.to_string() });
            return None;
        }
    };
    let class = |name: &&str| Class { max_sdu: Some(network.max_size(name).bytes()), ..Class::new(*name) };
    let longest = names.iter().map(|name| network.max_size(name).bytes()).max().unwrap_or(0);
    let link = Link { mtu: longest, ..Link::ethernet(interface.link_speed().bits()) };
    let port = Port::new(interface.name.clone(), link, names.iter().map(class).collect());
    let late = gates.as_ref().map(|gates| {
        // The first frame starts less than `opening` after the instant.
        let list = opened_late(&names, &interface.name, gates, interface.opening.as_nanos() - 1);
        Gates::new(&names, &list, Instant::default()).expect("the parts of a cycle sum up to it")
    });
    let kept = names.iter().map(|name| interface.is_planned() && is_used(plan, network, interface, name)).collect();
    let (punctual, late) = (Port { gates, ..port.clone() }, Port { gates: late, ..port });
    Some(Side { interface, list, punctual, late, kept })
}

/// Returns the list of an interface, `Some(None)` for one without gates, and `None` if the plan is wrong.
fn list<'a>(plan: &'a Plan, interface: &Interface, found: &mut Vec<Violation>) -> Option<Option<&'a GateList>> {
    let name = || interface.name.clone();
    let mut lists = plan.gates.iter().filter(|list| list.interface == interface.name);
    let list = match (&interface.gates, lists.next(), lists.next()) {
        (None, None, _) => return Some(None),
        (None, Some(_), _) => {
            found.push(Violation::StrayList { interface: name() });
            return None;
        }
        (Some(_), None, _) => {
            found.push(Violation::NoList { interface: name() });
            return None;
        }
        (Some(_), Some(_), Some(_)) => {
            found.push(Violation::TwoLists { interface: name() });
            return None;
        }
        (Some(_), Some(list), None) => list,
    };
    let problems = list.problems(plan);
    let error = |problem| Violation::Gates { interface: name(), error: format!("interface `{}`: {problem}", name()) };
    let usable = problems.is_empty();
    found.extend(problems.into_iter().map(error));
    match &interface.gates {
        Some(Described::Given(entries)) if *entries != list.entries => {
            found.push(Violation::OtherList { interface: name() });
            None
        }
        _ => usable.then_some(Some(list)),
    }
}

/// Whether a flow or a slot uses the class on the interface.
pub(crate) fn is_used(plan: &Plan, network: &Network, interface: &Interface, class: &str) -> bool {
    let crosses = |flow| plan.system.way(network, flow).iter().any(|one| one.name == interface.name);
    let here = |slot| network.interface_of(slot).is_some_and(|one| one.name == interface.name);
    network.flows.iter().any(|flow| flow.class == class && crosses(flow))
        || network.slots.iter().any(|slot| slot.class == class && here(slot))
}

/// Returns a list with the same closings, in which each window starts later by `late` nanoseconds. Windows that are not
/// longer than that are not there.
fn opened_late(names: &[&str], interface: &str, gates: &Gates, late: i64) -> GateList {
    let cycle = gates.cycle().as_nanos();
    let windows: Vec<Vec<(i64, i64)>> = (0..names.len())
        .map(|class| {
            let long = gates.windows(class).filter(|(start, end)| end - start > late);
            long.map(|(start, end)| ((start + late).rem_euclid(cycle), end - start - late)).collect()
        })
        .collect();
    let cuts = windows.iter().flatten().flat_map(|(start, length)| [*start, (start + length) % cycle]);
    let cuts: BTreeSet<i64> = cuts.chain([0]).collect();
    let ends = cuts.iter().skip(1).copied().chain([cycle]);
    let is_open = |class: usize, at: i64| {
        gates.always(class) || windows[class].iter().any(|(start, length)| (at - start).rem_euclid(cycle) < *length)
    };
    let entry = |(from, to): (&i64, i64)| GateEntry {
        length: Duration::from_nanos(to - from),
        open: (0..names.len()).filter(|class| is_open(*class, *from)).map(|class| names[class].to_owned()).collect(),
    };
    let entries = cuts.iter().zip(ends).map(entry).collect();
    GateList { interface: interface.into(), cycle: gates.cycle(), entries }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_open_late_and_close_on_time() {
        let ns = Duration::from_nanos;
        let entry = |length, open: &[&str]| GateEntry {
            length: ns(length),
            open: open.iter().map(|name| (*name).to_owned()).collect(),
        };
        let entries =
            vec![entry(10, &["a", "c"]), entry(20, &["b", "c"]), entry(3, &["a", "c"]), entry(67, &["b", "c"])];
        let list = GateList { interface: "i".into(), cycle: ns(100), entries };
        let names = ["a", "b", "c"];
        let gates = Gates::new(&names, &list, Instant::default()).unwrap();
        let late = opened_late(&names, "i", &gates, 4);
        let shown: Vec<(i64, String)> =
            late.entries.iter().map(|entry| (entry.length.as_nanos(), entry.open.join(""))).collect();
        // `a` is open in [0, 10) and [30, 33), `b` in [10, 30) and [33, 100), and `c` all the time.
        let expected = [(4, "c"), (6, "ac"), (4, "c"), (16, "bc"), (7, "c"), (63, "bc")];
        assert_eq!(shown, expected.map(|(length, open)| (length, open.to_owned())));
    }
}
