//! The kernel threads that serve tasks: those of interrupts, of softirqs, and of the receive queues of a device.

use macrotick_model::KernelThread;

use super::change::{Format, Target, Value};
use super::interrupts::device;
use super::request::{Item, Needs};
use crate::kernel_threads::full_name;
use crate::sys::{SchedAttr, Standing, Tid};

/// The threads of softirqs on each CPU. The network's work runs in them.
const SOFTIRQS: [KernelThread; 3] = [KernelThread::Ksoftirqd, KernelThread::Ktimers, KernelThread::BacklogNapi];

/// Returns the priorities of the threads of interrupts. `own` are the interrupts of the devices.
pub(super) fn interrupts(needs: &Needs, own: &[u32]) -> Vec<Item> {
    let (Some(priority), false) = (needs.interrupts, own.is_empty()) else { return Vec::new() };
    let all = needs.access.threads();
    let is_its = |name: &str| {
        let number = name.strip_prefix("irq/").and_then(|rest| rest.split('-').next()?.parse().ok());
        number.is_some_and(|number: u32| own.contains(&number))
    };
    let threads: Vec<&(Tid, String)> = all.iter().filter(|(_, name)| is_its(name)).collect();
    if threads.is_empty() {
        let reason = "this kernel handles interrupts without threads: it needs PREEMPT_RT, or `threadirqs` on its \
                      command line";
        return vec![Item::absent("interrupts", reason)];
    }
    threads.into_iter().map(|thread| fifo(needs, "interrupts", thread, priority)).collect()
}

/// Returns the priorities of the threads of softirqs on the CPUs of the profile.
pub(super) fn softirqs(needs: &Needs) -> Vec<Item> {
    let Some(priority) = needs.softirqs else { return Vec::new() };
    let all = needs.access.threads();
    let names = SOFTIRQS.iter().flat_map(|kind| needs.cpus.as_slice().iter().map(|cpu| full_name(*kind, *cpu)));
    names
        .map(|name| match all.iter().find(|(_, other)| *other == name) {
            Some(thread) => fifo(needs, "softirqs", thread, priority),
            None => Item::absent(format!("policy of {name}"), "this kernel has no such thread"),
        })
        .collect()
}

/// Returns the switches that make the devices receive in threads.
pub(super) fn napi_switches(needs: &Needs) -> Vec<Item> {
    let devices = needs.devices.iter().filter(|_| needs.settings.napi_threads);
    let switch = |name: &String| Target::file(device(name).join("threaded"), Format::Plain);
    devices.map(|name| Item::wish("napi-threads", switch(name), Value::Text("1".into()))).collect()
}

/// Returns the priorities and CPUs of these threads, which exist only after the switches are on.
pub(super) fn napi(needs: &Needs) -> Vec<Item> {
    if !needs.settings.napi_threads {
        return Vec::new();
    }
    let is_its = |name: &str| {
        let rest = |device: &String| name.strip_prefix("napi/")?.strip_prefix(device.as_str())?.strip_prefix('-');
        needs.devices.iter().any(|device| rest(device).is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_digit())))
    };
    let mut items = Vec::new();
    for thread in needs.access.threads().iter().filter(|(_, name)| is_its(name)) {
        items.extend(needs.interrupts.map(|priority| fifo(needs, "napi-threads", thread, priority)));
        if needs.settings.interrupt_affinity {
            let target = Target::Cpus { thread: thread.0, name: thread.1.clone() };
            items.push(Item::wish("napi-threads", target, Value::Cpus(needs.cpus.clone())));
        }
    }
    items
}

fn fifo(needs: &Needs, key: &'static str, (thread, name): &(Tid, String), priority: u8) -> Item {
    let target = Target::Policy { thread: *thread, name: name.clone() };
    if let Some(group) = needs.served.get(name) {
        return Item::absent(target.name(), format!("group `{group}` serves the thread"));
    }
    match needs.access.policy(*thread) {
        Ok(policy) if !policy.has_no_supply() => Item::absent(target.name(), format!("the thread runs under {policy}")),
        _ => Item::wish(key, target, Value::Policy(SchedAttr::new(Standing::Fifo(priority), false))),
    }
}
