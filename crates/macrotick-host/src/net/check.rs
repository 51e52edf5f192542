//! Checks of a wanted state that need no change of the device.

use macrotick_model::Duration;

use super::classifier::MAX_CLASSIFIERS;
use super::fault::DeployFault;
use super::present::Present;
use super::wanted::{Classifier, GateClock, Leaf, Mapping, Mode, Root, Taprio, Tree, Wanted, MAX_CLASSES, PRIORITIES};

/// The largest cycle of the kernel (`taprio_cycle_time_range`).
const MAX_CYCLE: i64 = i32::MAX as i64;

/// Refuses a wanted state that contradicts itself or the device.
pub(super) fn check(wanted: &Wanted, present: &Present) -> Result<(), Box<DeployFault>> {
    let refuse = |step: &str, reason: String| DeployFault::unfit(&wanted.device, step, reason, None);
    if let Some(tree) = &wanted.tree {
        match &tree.root {
            Root::Taprio { taprio, else_try } => {
                check_taprio(taprio, else_try, present.link.mtu).map_err(|reason| refuse("set the gates", reason))?;
                check_queues(wanted, present, &taprio.mapping)?;
            }
            Root::Mqprio(mapping) => {
                check_mapping(mapping, false).map_err(|reason| refuse("set the traffic classes", reason))?;
                check_queues(wanted, present, mapping)?;
            }
            Root::Default | Root::Single(_) if !tree.leaves.is_empty() => {
                let reason = "only gates and traffic classes have qdiscs of single queues".into();
                return Err(refuse("set the qdiscs of queues", reason));
            }
            Root::Default | Root::Single(_) => {}
        }
        let last = u32::from(tree.leaves.keys().last().copied().unwrap_or(0));
        if !tree.leaves.is_empty() && last >= present.link.tx_queues {
            return Err(too_few(wanted, present, last + 1));
        }
        check_shapers(tree).map_err(|reason| refuse("set the shaper", reason))?;
        check_launch_time(&tree.root, tree.leaves.values()).map_err(|reason| refuse("set the gates", reason))?;
    }
    for (_, classifiers) in wanted.classifiers() {
        check_classifiers(classifiers).map_err(|reason| refuse("set the classifiers", reason))?;
    }
    if !wanted.vlan_priorities.is_empty() && present.link.vlan_priorities.is_none() {
        let kind = if present.link.kind.is_empty() { "no virtual device" } else { &present.link.kind };
        return Err(refuse("set the priorities of the VLAN", format!("it is no VLAN ({kind})")));
    }
    match wanted.vlan_priorities.iter().find(|(_, pcp)| **pcp > 7) {
        Some((_, pcp)) => Err(refuse("set the priorities of the VLAN", format!("PCP {pcp} is beyond 7"))),
        None => Ok(()),
    }
}

fn check_taprio(taprio: &Taprio, else_try: &[Mode], mtu: u32) -> Result<(), String> {
    check_mapping(&taprio.mapping, matches!(taprio.mode, Mode::TxtimeAssist { .. }))?;
    let zero = Duration::from_nanos(0);
    if taprio.entries.is_empty() {
        return Err("the gate list has no entry".into());
    }
    if taprio.cycle.as_nanos() > MAX_CYCLE {
        return Err(format!("the cycle of {} is longer than {}", taprio.cycle, Duration::from_nanos(MAX_CYCLE)));
    }
    let mask = (1_u32 << taprio.mapping.queues.len()) - 1;
    for (number, entry) in taprio.entries.iter().enumerate() {
        if entry.length <= zero || entry.length.as_nanos() > i64::from(u32::MAX) {
            return Err(format!("entry {number} of the gate list has a length of {}", entry.length));
        }
        if entry.open & !mask != 0 {
            return Err(format!("entry {number} of the gate list opens a class that does not exist"));
        }
    }
    let sum: i64 = taprio.entries.iter().map(|entry| entry.length.as_nanos()).sum();
    if sum != taprio.cycle.as_nanos() {
        return Err(format!("the entries take {}, and the cycle is {}", Duration::from_nanos(sum), taprio.cycle));
    }
    if taprio.max_sdu.len() > taprio.mapping.queues.len() {
        return Err("there are limits of frames for more classes than exist".into());
    }
    if let Some(limit) = taprio.max_sdu.iter().find(|limit| **limit > mtu) {
        return Err(format!("the limit of {limit} bytes for a frame exceeds the MTU of {mtu}"));
    }
    let in_hardware = taprio.mode == Mode::Hardware || else_try.contains(&Mode::Hardware);
    if in_hardware && taprio.clock != GateClock::Tai {
        return Err(format!("gates in hardware are on CLOCK_TAI, and these are on {}", taprio.clock.name()));
    }
    Ok(())
}

fn check_mapping(mapping: &Mapping, may_overlap: bool) -> Result<(), String> {
    let count = mapping.queues.len();
    if count == 0 || count > MAX_CLASSES {
        return Err(format!("{count} traffic classes: there can be 1 to {MAX_CLASSES}"));
    }
    if let Some(class) = mapping.classes.iter().find(|class| usize::from(**class) >= count) {
        return Err(format!("a priority has class {class}, and there are {count} classes"));
    }
    for (number, queues) in mapping.queues.iter().enumerate() {
        let end = |queues: &super::wanted::Queues| u32::from(queues.offset) + u32::from(queues.count);
        let shared = |other: &super::wanted::Queues| {
            u32::from(other.offset) < end(queues) && u32::from(queues.offset) < end(other)
        };
        if queues.count == 0 {
            return Err(format!("class {number} has no queue"));
        }
        if !may_overlap && mapping.queues[..number].iter().any(shared) {
            return Err(format!("class {number} shares a queue with another class"));
        }
    }
    Ok(())
}

fn check_queues(wanted: &Wanted, present: &Present, mapping: &Mapping) -> Result<(), Box<DeployFault>> {
    let needed = mapping.needed_queues();
    let has = wanted.queues.unwrap_or(present.link.tx_queues).min(present.link.tx_queues);
    if needed > has {
        return Err(too_few(wanted, present, needed));
    }
    Ok(())
}

fn too_few(wanted: &Wanted, present: &Present, needed: u32) -> Box<DeployFault> {
    let (device, has) = (&wanted.device, wanted.queues.unwrap_or(u32::MAX).min(present.link.tx_queues));
    let remedy = match present.link.kind.as_str() {
        "" => format!("give it more queues: `ethtool -L {device} combined {needed}`"),
        kind => format!(
            "create it with more queues: `ip link add {device} numtxqueues {needed} numrxqueues {needed} type {kind} ...`"
        ),
    };
    let reason = format!("it has {has} transmit queues, and {needed} are needed");
    DeployFault::unfit(device, "set the traffic classes", reason, Some(remedy))
}

/// Refuses a shaper that could never be without credit.
fn check_shapers(tree: &Tree) -> Result<(), String> {
    let single = match &tree.root {
        Root::Single(leaf) => Some(leaf),
        _ => None,
    };
    let fast = tree.leaves.values().chain(single).find_map(|leaf| match leaf {
        Leaf::Cbs(cbs) if cbs.send_slope >= 0 => Some(cbs),
        _ => None,
    });
    fast.map_or(Ok(()), |cbs| {
        let speed = cbs.idle_slope - cbs.send_slope;
        Err(format!(
            "its rate of {} kb/s is not below the {speed} kb/s at which the kernel takes this device. It takes 10 Mb/s \
             for a device without a speed",
            cbs.idle_slope
        ))
    })
}

/// Refuses txtime-assist above an etf in software: it would let frames leave before the gate opens.
fn check_launch_time<'a>(root: &Root, mut leaves: impl Iterator<Item = &'a Leaf>) -> Result<(), String> {
    let Root::Taprio { taprio, else_try } = root else { return Ok(()) };
    let assists = |mode: &Mode| matches!(mode, Mode::TxtimeAssist { .. });
    if !assists(&taprio.mode) && !else_try.iter().any(assists) {
        return Ok(());
    }
    match leaves.any(|leaf| matches!(leaf, Leaf::Etf(etf) if etf.offload)) {
        true => Ok(()),
        false => {
            Err("txtime-assist needs an etf qdisc with offload, on a device with launch time: an etf in software \
                      lets frames leave before the gate opens"
                .into())
        }
    }
}

fn check_classifiers(classifiers: &[Classifier]) -> Result<(), String> {
    if classifiers.len() > MAX_CLASSIFIERS {
        return Err(format!("{} classifiers: there can be at most {MAX_CLASSIFIERS}", classifiers.len()));
    }
    for (number, Classifier { frames, priority }) in classifiers.iter().enumerate() {
        let alone = super::wanted::Frames { pcp: frames.pcp, ..Default::default() };
        if frames.pcp.is_some_and(|pcp| pcp > 7) || frames.pcp.is_some() && *frames != alone {
            return Err(format!("classifier {number}: a PCP is 0 to 7, and stands alone"));
        }
        if frames.port.is_some() && frames.protocol.is_none() {
            return Err(format!("classifier {number}: a port needs a protocol"));
        }
        if frames.code_point.is_some_and(|code| code > 63) {
            return Err(format!("classifier {number}: a code point is 0 to 63"));
        }
        if *priority as usize >= PRIORITIES {
            return Err(format!("classifier {number}: priority {priority} has no class of its own"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::samples;
    use crate::net::wanted::{Cbs, Entry, Frames, Queues};

    fn refusal(change: impl FnOnce(&mut Taprio)) -> String {
        let mut taprio = samples::taprio();
        change(&mut taprio);
        let tree = Some(Tree::of(Root::Taprio { taprio, else_try: Vec::new() }));
        let wanted = Wanted { tree, ..Wanted::of("eth0") };
        check(&wanted, &samples::present()).map_or_else(|fault| fault.to_string(), |()| String::new())
    }

    #[test]
    fn bad_gates_are_refused() {
        assert_eq!(refusal(|_| ()), "");
        let says = |change: fn(&mut Taprio), said: &str| {
            assert_eq!(refusal(change), format!("device `eth0`: cannot set the gates: {said}"));
        };
        says(|taprio| taprio.entries.clear(), "the gate list has no entry");
        says(|taprio| taprio.entries[0].open = 4, "entry 0 of the gate list opens a class that does not exist");
        says(|taprio| taprio.cycle = Duration::from_millis(2), "the entries take 1ms, and the cycle is 2ms");
        says(|taprio| taprio.cycle = Duration::from_millis(3000), "the cycle of 3s is longer than 2147483647ns");
        says(|taprio| taprio.mapping.classes[0] = 2, "a priority has class 2, and there are 2 classes");
        says(|taprio| taprio.mapping.queues[1].offset = 0, "class 1 shares a queue with another class");
        says(|taprio| taprio.max_sdu = vec![9000], "the limit of 9000 bytes for a frame exceeds the MTU of 1500");
        let hardware = |taprio: &mut Taprio| {
            (taprio.mode, taprio.clock) = (Mode::Hardware, GateClock::Monotonic);
        };
        says(hardware, "gates in hardware are on CLOCK_TAI, and these are on CLOCK_MONOTONIC");
        let empty = |taprio: &mut Taprio| {
            taprio.entries.push(Entry { length: Duration::from_nanos(0), open: 0 });
        };
        says(empty, "entry 2 of the gate list has a length of 0ns");
    }

    #[test]
    fn a_shaper_is_slower_than_its_device() {
        let refused = |send_slope: i32, single: bool| {
            let leaf = Leaf::Cbs(Cbs { idle_slope: 40_000, send_slope, ..samples::cbs() });
            let tree = match single {
                true => Tree::of(Root::Single(leaf)),
                false => Tree {
                    leaves: [(1, leaf)].into(),
                    ..Tree::of(Root::Taprio { taprio: samples::taprio(), else_try: Vec::new() })
                },
            };
            let wanted = Wanted { tree: Some(tree), ..Wanted::of("eth0") };
            check(&wanted, &samples::present()).err().map(|fault| fault.to_string())
        };
        let said =
            "device `eth0`: cannot set the shaper: its rate of 40000 kb/s is not below the 10000 kb/s at which the \
                    kernel takes this device. It takes 10 Mb/s for a device without a speed";
        for single in [true, false] {
            assert_eq!(refused(-1, single), None);
            assert_eq!(refused(30_000, single).as_deref(), Some(said));
        }
    }

    #[test]
    fn too_few_queues_are_refused_with_the_command() {
        let said = refusal(|taprio| taprio.mapping.queues[1] = Queues { count: 7, offset: 1 });
        assert_eq!(
            said,
            "device `eth0`: cannot set the traffic classes: it has 4 transmit queues, and 8 are needed; create it with \
             more queues: `ip link add eth0 numtxqueues 8 numrxqueues 8 type veth ...`"
        );
    }

    #[test]
    fn launch_time_needs_the_device() {
        let said = refusal(|taprio| taprio.mode = Mode::TxtimeAssist { delay: Duration::from_nanos(1) });
        assert!(said.contains("an etf in software lets frames leave before the gate opens"), "{said}");
    }

    #[test]
    fn bad_classifiers_are_refused() {
        let port = Frames { port: Some(1), ..Frames::default() };
        let refused = check_classifiers(&[Classifier { frames: port, priority: 6 }]);
        assert_eq!(refused, Err("classifier 0: a port needs a protocol".into()));
        let refused = check_classifiers(&[Classifier { frames: Frames::default(), priority: 16 }]);
        assert_eq!(refused, Err("classifier 0: priority 16 has no class of its own".into()));
    }
}
