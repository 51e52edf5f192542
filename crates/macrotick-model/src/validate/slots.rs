//! Rules of slots (TDMA).
//!
//! The sum test is that of the paper on real-time containers (section 3.2). By this test, the slots of an interface
//! together are at most as long as the cycle in which they repeat.

use super::{Rules, CLASS_NAMES, GROUP_NAMES, INTERFACE_NAMES};
use crate::system::{Interface, Network, Slot};
use crate::time::Duration;

impl Rules<'_> {
    pub(super) fn slots(&mut self, network: &Network) {
        for (index, slot) in network.slots.iter().enumerate() {
            self.slot(&format!("network.slots[{index}]"), network, slot);
        }
        for interface in &network.interfaces {
            let here =
                |(_, slot): &(usize, &Slot)| network.interface_of(slot).is_some_and(|one| one.name == interface.name);
            let slots: Vec<(usize, &Slot)> = network.slots.iter().enumerate().filter(here).collect();
            self.sum_of_slots(interface, &slots);
            for (number, slot) in slots.iter().enumerate() {
                slots[..number].iter().for_each(|before| self.two_slots(interface, *before, *slot));
                self.strangers(network, interface, *slot);
            }
        }
    }

    fn slot(&mut self, path: &str, network: &Network, slot: &Slot) {
        let at = |key: &str| format!("{path}.{key}");
        let groups = self.system.groups.iter().map(|group| group.name.as_str());
        self.known((&at("group"), &slot.group), ("group", GROUP_NAMES), groups);
        self.class_of_slot(path, network, slot);
        match (&slot.interface, network.interface_of(slot)) {
            (Some(name), None) => {
                let all = network.interfaces.iter().map(|interface| interface.name.as_str());
                self.known((&at("interface"), name), ("interface", INTERFACE_NAMES), all);
            }
            (None, None) => {
                let planned = network.interfaces.iter().filter(|interface| interface.is_planned()).count();
                let text = match planned {
                    0 => format!("the slot of group `{}` has no interface: none has planned gates", slot.group),
                    _ => format!(
                        "the slot of group `{}` has no `interface`, and {planned} have planned gates",
                        slot.group
                    ),
                };
                self.add(path, &["network.interfaces", &at("interface")], text).hint =
                    Some("name the interface, which has `gates: planned`".into());
            }
            (_, Some(interface)) if !interface.is_planned() => {
                let text = format!("interface `{}` has no planned gates", interface.name);
                self.add(at("interface"), &["network.interfaces"], text).hint = Some("set `gates: planned`".into());
            }
            (_, Some(interface)) => self.length_of_slot(path, network, slot, interface),
        }
    }

    fn class_of_slot(&mut self, path: &str, network: &Network, slot: &Slot) {
        let place = format!("{path}.class");
        let needs = [CLASS_NAMES, "network.classes"];
        match network.class(&slot.class) {
            Some(class) if network.classes.last() == Some(class) => {
                let text = format!("class `{}` takes all other frames: it cannot be that of a slot", class.name);
                self.add(&place, &needs, text).hint = Some("add a class with a `priority` before the last one".into());
            }
            Some(_) => {}
            None if slot.class == slot.group => {
                let text = format!("the slot of group `{}` has no class: none has this name", slot.group);
                let hint = format!("add `{{name: {}, priority: NUMBER}}` to `classes`, or set `class`", slot.group);
                self.add(&place, &needs, text).hint = Some(hint);
            }
            None => {
                let all = network.classes.iter().map(|class| class.name.as_str());
                self.known((&place, &slot.class), ("class", CLASS_NAMES), all);
            }
        }
    }

    fn length_of_slot(&mut self, path: &str, network: &Network, slot: &Slot, interface: &Interface) {
        let Slot { period, length, offset, .. } = *slot;
        if period <= Duration::ZERO || length <= Duration::ZERO {
            return;
        }
        let at = |key: &str| format!("{path}.{key}");
        let time = interface.longest_frame_time(network.max_size(&slot.class));
        // Another rule reports an opening beyond the range of a cycle.
        let least = time.checked_add(interface.opening).unwrap_or(interface.opening);
        if length > period {
            self.add(at("length"), &[&at("period")], format!("length {length} is longer than the period {period}"));
        } else if length < least {
            let text =
                format!("length {length} is too short: the longest frame of class `{}` needs {least}", slot.class);
            self.add(at("length"), &["network.classes", "network.interfaces"], text).hint =
                Some("set a longer slot, or `max-size` of the class".into());
        } else if let Some(offset) = offset.filter(|offset| *offset >= period) {
            self.add(at("offset"), &[&at("period")], format!("offset {offset} is not before the period {period} ends"));
        }
    }

    /// Applies the sum test.
    fn sum_of_slots(&mut self, interface: &Interface, slots: &[(usize, &Slot)]) {
        let valid = |slot: &Slot| slot.period > Duration::ZERO && slot.length > Duration::ZERO;
        let Some(&(first, _)) = slots.first().filter(|_| slots.iter().all(|(_, slot)| valid(slot))) else { return };
        let cycle = slots.iter().try_fold(Duration::from_nanos(1), |cycle, (_, slot)| cycle.lcm(slot.period));
        let Some(cycle) = cycle else { return };
        let total = |slot: &Slot| i128::from(slot.length.as_nanos()) * i128::from(cycle / slot.period);
        let sum: i128 = slots.iter().map(|(_, slot)| total(slot)).sum();
        if sum <= i128::from(cycle.as_nanos()) {
            return;
        }
        let each: Vec<String> =
            slots.iter().map(|(_, slot)| format!("`{}` {} of {}", slot.group, slot.length, slot.period)).collect();
        let sum = Duration::from_nanos(i64::try_from(sum).unwrap_or(i64::MAX));
        let text =
            format!("the slots of interface `{}` need {sum} of every {cycle}: {}", interface.name, each.join(", "));
        let needs: Vec<String> = slots.iter().map(|(index, _)| format!("network.slots[{index}]")).collect();
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        self.add(format!("network.slots[{first}].length"), &needs, text).hint =
            Some("make slots shorter, or periods longer".into());
    }

    /// Checks two slots of one interface against each other.
    fn two_slots(&mut self, interface: &Interface, before: (usize, &Slot), slot: (usize, &Slot)) {
        let ((other, before), (index, slot)) = (before, slot);
        let path = |index: usize| format!("network.slots[{index}]");
        if before.class == slot.class && before.group != slot.group {
            let text = format!(
                "groups `{}` and `{}` have slots for the same class `{}` on interface `{}`",
                before.group, slot.group, slot.class, interface.name
            );
            self.add(format!("{}.class", path(index)), &[&path(other)], text).hint =
                Some("each group needs a class of its own there".into());
        }
        // An offset outside of the period is reported separately.
        let within = |slot: &Slot| slot.offset.filter(|offset| (Duration::ZERO..slot.period).contains(offset));
        let (Some(one), Some(two)) = (within(before), within(slot)) else { return };
        if overlap((one, before), (two, slot)) {
            let text = format!(
                "the slots of `{}` ({} from {one} of every {}) and of `{}` ({} from {two} of every {}) overlap",
                before.group, before.length, before.period, slot.group, slot.length, slot.period
            );
            self.add(path(index), &[&path(other)], text);
        }
    }

    /// Reports flows of others in the class of a slot.
    fn strangers(&mut self, network: &Network, interface: &Interface, (index, slot): (usize, &Slot)) {
        for (number, flow) in network.flows.iter().enumerate() {
            let crosses = self.system.way(network, flow).iter().any(|one| one.name == interface.name);
            if crosses && flow.class == slot.class && flow.from != slot.group {
                let text = format!(
                    "flow `{}` is in the class `{}`, which belongs to the slots of group `{}` on interface `{}`",
                    flow.name, slot.class, slot.group, interface.name
                );
                let needs = format!("network.slots[{index}]");
                self.add(format!("network.flows[{number}].class"), &[&needs, CLASS_NAMES], text).hint =
                    Some("choose another class".into());
            }
        }
    }
}

/// Whether two slots ever overlap. The distance between starts takes all values of one remainder modulo the common
/// divisor of the periods.
fn overlap((one, first): (Duration, &Slot), (two, second): (Duration, &Slot)) -> bool {
    let divisor = first.period.gcd(second.period);
    if divisor <= Duration::ZERO {
        return false;
    }
    let after = |from: Duration, to: Duration| {
        Duration::from_nanos((to.as_nanos() - from.as_nanos()).rem_euclid(divisor.as_nanos()))
    };
    after(one, two) < first.length || after(two, one) < second.length
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with all slots of a common cycle.
    #[test]
    fn overlaps_are_those_of_the_common_cycle() {
        let slot = |period: i64, length: i64| Slot {
            group: "g".into(),
            class: "g".into(),
            interface: None,
            period: Duration::from_nanos(period),
            length: Duration::from_nanos(length),
            offset: None,
        };
        for (p, l, q, m) in [(6, 1, 4, 1), (6, 2, 4, 1), (6, 1, 6, 2), (5, 1, 3, 1), (8, 2, 4, 2), (4, 4, 8, 1)] {
            for (a, b) in (0..p).flat_map(|a| (0..q).map(move |b| (a, b))) {
                let cycle = p * q;
                let covers = |at: i64, offset: i64, period: i64, length: i64| (at - offset).rem_euclid(period) < length;
                let expected = (0..cycle).any(|at| covers(at, a, p, l) && covers(at, b, q, m));
                let at = Duration::from_nanos;
                assert_eq!(overlap((at(a), &slot(p, l)), (at(b), &slot(q, m))), expected, "{p} {l} {a}, {q} {m} {b}");
            }
        }
    }
}
