//! The queues of the network devices.

use super::change::{Format, Target, Value};
use super::interrupts::device;
use super::request::{Item, Needs};

/// Returns the settings that leave each packet on the CPU of its interrupt: empty masks of RPS and XPS.
pub(super) fn steering(needs: &Needs) -> Vec<Item> {
    let devices = needs.devices.iter().filter(|_| needs.settings.clear_steering);
    let queues = devices.flat_map(|name| {
        let folder = device(name).join("queues");
        needs.access.names(&folder).into_iter().map(move |queue| (folder.join(&queue), queue))
    });
    queues
        .filter_map(|(folder, queue)| {
            let file = match queue.split('-').next()? {
                "rx" => "rps_cpus",
                "tx" => "xps_cpus",
                _ => return None,
            };
            let target = Target::file(folder.join(file), Format::Mask);
            Some(Item::wish("clear-steering", target, Value::Text("0".into())))
        })
        .collect()
}
