//! Rules of the set-up of the host.

use super::{Rules, TASK_NAMES};
use crate::system::Profile;

/// The longest name of a network device (`IFNAMSIZ` less the terminating NUL).
const MAX_DEVICE: usize = 15;

impl Rules<'_> {
    pub(super) fn profile(&mut self) {
        let Some(profile) = &self.system.profile else { return };
        for (index, device) in profile.devices.iter().enumerate() {
            let path = format!("profile.devices[{index}]");
            if !is_device_name(device) {
                let text = format!("`{device}` is no name of a network device");
                self.add(path, &[], text).hint = Some("`ip link` lists the names".into());
            } else if profile.devices[..index].contains(device) {
                self.add(path, &[], format!("the device `{device}` is listed twice"));
            }
        }
        profile.cpus.as_slice().iter().for_each(|&cpu| self.cpu("profile.cpus", cpu));
        if profile.governor.as_ref().is_some_and(|governor| !is_word(governor)) {
            self.add("profile.governor", &[], "a governor is one word").hint = Some("write `performance`".into());
        }
        self.partition(profile);
    }

    /// Checks that no task needs a scheduling domain on isolated CPUs. SCHED_DEADLINE moves its tasks in a domain.
    fn partition(&mut self, profile: &Profile) {
        let isolated = |cpu: &u32| profile.cpus.is_empty() || profile.cpus.contains(*cpu);
        let mut reserved = self.system.reserved();
        let on_isolated = reserved
            .find(|(_, reservation)| reservation.cpus.is_empty() || reservation.cpus.as_slice().iter().any(isolated));
        if let (true, Some((task, _))) = (profile.has_partition(), on_isolated) {
            let text = format!(
                "task `{}` has `supply: deadline`, which needs a scheduling domain: isolated CPUs have none",
                task.name
            );
            let needs = ["profile.like", "profile.cpus", TASK_NAMES, "tasks"];
            self.add("profile.partition", &needs, text).hint =
                Some("add `partition: false`, or choose other CPUs in `cpus` of the profile".into());
        }
    }
}

fn is_device_name(name: &str) -> bool {
    let valid = |c: char| c.is_ascii_graphic() && !"/:".contains(c);
    (1..=MAX_DEVICE).contains(&name.len()) && name.chars().all(valid) && !matches!(name, "." | "..")
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}
