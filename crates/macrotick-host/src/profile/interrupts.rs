//! Interrupts: those of the devices, and their CPUs.

use std::path::{Path, PathBuf};

use super::access::Access;
use super::change::{is_missing, missing, Format, Target, Value};
use super::request::{Item, Needs, Wish};
use crate::sys;

const INTERRUPTS: &str = "/proc/irq";
/// The files of an interrupt. All other names are those of its actions.
const FILES: [&str; 7] = [
    "affinity_hint",
    "effective_affinity",
    "effective_affinity_list",
    "node",
    "smp_affinity",
    "smp_affinity_list",
    "spurious",
];

/// Returns the directory of a network device.
pub(super) fn device(name: &str) -> PathBuf {
    Path::new("/sys/class/net").join(name)
}

/// Returns the numbers of the interrupts of a network device, in ascending order. The bus lists those of a PCI device.
/// The names of actions give the others: a driver names them after the network device, virtio after its own device.
pub(super) fn of_device(access: &dyn Access, name: &str) -> Vec<u32> {
    let hardware = device(name).join("device");
    let mut numbers: Vec<u32> = numbers(access, &hardware.join("msi_irqs"));
    let pin = access.read(&hardware.join("irq")).ok().and_then(|text| text.trim().parse::<u32>().ok());
    numbers.extend(pin.filter(|number| *number != 0));
    let own = access.target(&hardware).filter(|own| own.starts_with("virtio"));
    let names: Vec<&str> = [Some(name), own.as_deref()].into_iter().flatten().collect();
    let is_its = |action: &String| {
        let rest = names.iter().find_map(|name| action.strip_prefix(name));
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    let all = self::numbers(access, Path::new(INTERRUPTS));
    numbers.extend(all.iter().filter(|number| actions(access, **number).iter().any(is_its)));
    numbers.retain(|number| all.contains(number));
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Returns the settings of the CPUs of interrupts. `own` are those of the devices.
pub(super) fn affinities(needs: &Needs, own: &[u32]) -> Vec<Item> {
    let mut items = Vec::new();
    let list =
        |number: u32| Target::file(Path::new(INTERRUPTS).join(format!("{number}/smp_affinity_list")), Format::List);
    if needs.settings.interrupt_affinity {
        let cpus = Value::Text(sys::cpu_list(needs.cpus.as_slice()));
        items.extend(own.iter().map(|number| Item::wish("interrupt-affinity", list(*number), cpus.clone())));
    }
    if !needs.settings.shield_interrupts {
        return items;
    }
    if let Some(absent) = needs.absent_without_others("shield-interrupts") {
        items.push(absent);
        return items;
    }
    let key = "shield-interrupts";
    let fallback = Target::file(Path::new(INTERRUPTS).join("default_smp_affinity"), Format::Mask);
    items.extend(without(needs, key, fallback));
    // An interrupt without an action cannot occur.
    let used = numbers(needs.access, Path::new(INTERRUPTS)).into_iter();
    let used = used.filter(|number| !own.contains(number) && !actions(needs.access, *number).is_empty());
    items.extend(used.filter_map(|number| {
        let Some(Item::Wish(wish)) = without(needs, key, list(number)) else { return None };
        Some(Item::Wish(Wish { may_refuse: true, ..wish }))
    }));
    items
}

/// Returns the wish that a file of CPUs loses those of the profile. If none remains, it gets all others.
pub(super) fn without(needs: &Needs, key: &'static str, target: Target) -> Option<Item> {
    let Target::File { path, format } = &target else { return None };
    let text = match needs.access.read(path) {
        Ok(text) => text,
        Err(error) => {
            let reason = if is_missing(&error) { missing(&error) } else { error.to_string() };
            return Some(Item::absent(target.name(), reason));
        }
    };
    let now = match format {
        Format::Mask => sys::parse_cpu_mask(&text).unwrap_or_default(),
        _ => sys::parse_cpu_list(&text),
    };
    let rest: Vec<u32> = needs.others.iter().copied().filter(|cpu| now.contains(cpu)).collect();
    let cpus = if rest.is_empty() { &needs.others } else { &rest };
    // CPUs that are not online do not matter: a file that has none of the profile's stays as it is.
    let value = match (now.iter().any(|cpu| needs.cpus.contains(*cpu)) || rest.is_empty(), format) {
        (false, _) => text.trim_end().into(),
        (true, Format::Mask) => sys::cpu_mask(cpus),
        (true, _) => sys::cpu_list(cpus),
    };
    Some(Item::wish(key, target, Value::Text(value)))
}

fn numbers(access: &dyn Access, path: &Path) -> Vec<u32> {
    let mut numbers: Vec<u32> = access.names(path).iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn actions(access: &dyn Access, number: u32) -> Vec<String> {
    let mut names = access.names(&Path::new(INTERRUPTS).join(number.to_string()));
    names.retain(|name| !FILES.contains(&name.as_str()));
    names
}
