//! One order of everything that a description lists, so that no result depends on the order of the description.

use macrotick_model::System;

/// Returns the system with its lists in the order of names.
pub(crate) fn ordered(system: &System) -> System {
    let mut ordered = system.clone();
    ordered.tasks.sort_by(|one, other| one.name.cmp(&other.name));
    for task in &mut ordered.tasks {
        task.after.sort_unstable();
        task.apart.sort_unstable();
        task.exclusive.sort_unstable();
    }
    ordered.groups.sort_by(|one, other| one.name.cmp(&other.name));
    ordered.chains.sort_by(|one, other| one.name.cmp(&other.name));
    ordered
}

/// Returns the system with the reservations of the ordered one.
pub(crate) fn with_reservations(system: &System, ordered: &System) -> System {
    let mut system = system.clone();
    for task in &mut system.tasks {
        if let Ok(index) = ordered.tasks.binary_search_by(|other| other.name.cmp(&task.name)) {
            task.supply = ordered.tasks[index].supply.clone();
        }
    }
    system
}
