//! Idle states and frequencies of the CPUs of the profile.

use std::path::{Path, PathBuf};

use macrotick_model::IdleLatency;

use super::change::{Format, Target, Value};
use super::fault::ProfileFault;
use super::request::{Item, Needs};

fn of_cpu(cpu: u32) -> PathBuf {
    Path::new("/sys/devices/system/cpu").join(format!("cpu{cpu}"))
}

/// Returns the longest latency in whole microseconds, if the profile limits it.
pub(super) fn latency_limit(needs: &Needs) -> Option<u32> {
    match needs.settings.idle_latency {
        IdleLatency::Keep => None,
        IdleLatency::Most(most) => Some(u32::try_from(most.as_nanos() / 1000).unwrap_or(u32::MAX)),
    }
}

/// Returns the switches of the idle states that take longer.
pub(super) fn idle_states(needs: &Needs) -> Vec<Item> {
    let Some(limit) = latency_limit(needs) else { return Vec::new() };
    let mut items = Vec::new();
    for cpu in needs.cpus.as_slice() {
        let folder = of_cpu(*cpu).join("cpuidle");
        let states = needs.access.names(&folder);
        if states.is_empty() {
            items.push(Item::absent(folder.display().to_string(), "the CPU has no idle states"));
        }
        for state in states.iter().map(|state| folder.join(state)) {
            let latency = needs.access.read(&state.join("latency")).ok().and_then(|text| text.trim().parse().ok());
            if latency.is_some_and(|latency: u32| latency > limit) {
                let target = Target::file(state.join("disable"), Format::Plain);
                items.push(Item::wish("idle-latency", target, Value::Text("1".into())));
            }
        }
    }
    items
}

/// Returns the governors. Fails if a CPU with frequencies does not have the wanted one.
pub(super) fn governors(needs: &Needs) -> Result<Vec<Item>, ProfileFault> {
    let Some(governor) = &needs.settings.governor else { return Ok(Vec::new()) };
    let mut items = Vec::new();
    for &cpu in needs.cpus.as_slice() {
        let folder = of_cpu(cpu).join("cpufreq");
        let target = Target::file(folder.join("scaling_governor"), Format::Plain);
        let Ok(there) = needs.access.read(&folder.join("scaling_available_governors")) else {
            items.push(Item::absent(target.name(), "the CPU has no frequencies to choose from"));
            continue;
        };
        if !there.split_whitespace().any(|other| other == governor) {
            let (governor, there) = (governor.clone(), there.split_whitespace().collect::<Vec<_>>().join(", "));
            return Err(ProfileFault::NoGovernor { cpu, governor, there });
        }
        items.push(Item::wish("governor", target, Value::Text(governor.clone())));
    }
    Ok(items)
}
