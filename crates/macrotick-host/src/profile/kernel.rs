//! Other work of the kernel: work queues, the lockup detector, timers, RCU, the throttling of real-time threads.

use std::path::Path;

use super::change::{Format, Target, Value};
use super::interrupts::without;
use super::request::{Item, Needs};

const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";
const WATCHDOG_CPUS: &str = "/proc/sys/kernel/watchdog_cpumask";
const WATCHDOG: &str = "/proc/sys/kernel/watchdog";
const TIMERS: &str = "/proc/sys/kernel/timer_migration";
const RCU_NORMAL: &str = "/sys/kernel/rcu_normal";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const THROTTLING: &str = "/proc/sys/kernel/sched_rt_runtime_us";
/// The fair server of each CPU, in debugfs. It took the place of the throttling.
const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";
/// The first release with the fair server.
const FIRST_FAIR_SERVER: (u32, u32) = (6, 12);

fn plain(key: &'static str, path: impl AsRef<Path>, value: &str) -> Item {
    Item::wish(key, Target::file(path.as_ref(), Format::Plain), Value::Text(value.into()))
}

/// Returns the settings that keep other work off the CPUs of the profile.
pub(super) fn shields(needs: &Needs) -> Vec<Item> {
    let mut items = Vec::new();
    if needs.settings.shield_workqueues {
        let mask = || without(needs, "shield-workqueues", Target::file(WORKQUEUES, Format::Mask));
        items.extend(needs.absent_without_others("shield-workqueues").or_else(mask));
    }
    if needs.settings.shield_watchdog {
        let list = || without(needs, "shield-watchdog", Target::file(WATCHDOG_CPUS, Format::List));
        match needs.others.is_empty() {
            true => items.push(plain("shield-watchdog", WATCHDOG, "0")),
            false => items.extend(list()),
        }
    }
    items
}

/// Returns the settings of timers, RCU and throttling.
pub(super) fn delays(needs: &Needs) -> Vec<Item> {
    let mut items = Vec::new();
    if needs.settings.no_timer_migration {
        items.push(plain("no-timer-migration", TIMERS, "0"));
    }
    if needs.settings.normal_grace_periods {
        items.push(plain("normal-grace-periods", RCU_NORMAL, "1"));
    }
    if needs.settings.no_throttling {
        items.extend(throttling(needs));
    }
    items
}

/// Since Linux 6.12 the limit of real-time threads only bounds the reservations of SCHED_DEADLINE.
fn throttling(needs: &Needs) -> Vec<Item> {
    let key = "no-throttling";
    let release = needs.access.read(Path::new(RELEASE)).ok();
    if release.as_deref().and_then(parse_release).is_none_or(|release| release < FIRST_FAIR_SERVER) {
        return vec![plain(key, THROTTLING, "-1")];
    }
    let servers = needs.access.names(Path::new(FAIR_SERVER));
    let of_cpus = needs.cpus.as_slice().iter().map(|cpu| format!("cpu{cpu}"));
    let of_cpus: Vec<Item> = of_cpus
        .filter(|cpu| servers.contains(cpu))
        .map(|cpu| plain(key, Path::new(FAIR_SERVER).join(cpu).join("runtime"), "0"))
        .collect();
    match of_cpus.is_empty() {
        true => vec![Item::absent(FAIR_SERVER, "debugfs is not mounted, or the kernel was built without it")],
        false => of_cpus,
    }
}

fn parse_release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_two_numbers() {
        assert_eq!(parse_release("6.12.117-macrotick\n"), Some((6, 12)));
        assert_eq!(parse_release("7.3-rc1"), Some((7, 3)));
        assert_eq!(parse_release("x"), None);
    }
}
