//! The facts about a host in a report.

use macrotick_model::observation::Lab;
use macrotick_model::Environment;

use crate::sys;

/// The lab sets this variable to `SHIFT,CPUS`. An instruction takes `2^SHIFT` ns of virtual time.
const ENV_LAB: &str = "MACROTICK_LAB";

/// Returns the facts of this host. In the lab they are the same in each run.
pub fn environment() -> Environment {
    let Kernel { release: kernel, version: kernel_version, .. } = kernel();
    let preemption = preemption(&kernel_version, read("/sys/kernel/realtime").as_deref() == Some("1"));
    Environment {
        preemption: preemption.into(),
        kernel,
        kernel_version,
        cpu_model: cpu_model(&read("/proc/cpuinfo").unwrap_or_default()),
        cpus: sys::online_cpus().map_or(0, |cpus| cpus.len() as u32),
        lab: std::env::var(ENV_LAB).ok().and_then(|text| parse_lab(&text)),
        facts: facts(),
        profile: None,
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

/// The kernel of this host, from `uname(2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The release, for example `6.12.48-macrotick`.
    pub release: String,
    /// The version, for example `#1 SMP PREEMPT_RT`.
    pub version: String,
    /// The machine, for example `x86_64`.
    pub machine: String,
}

/// Returns the kernel of this host.
pub fn kernel() -> Kernel {
    // SAFETY: uname fills the structure with terminated strings.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&mut name);
        let text = |field: &[libc::c_char]| std::ffi::CStr::from_ptr(field.as_ptr()).to_string_lossy().into_owned();
        Kernel { release: text(&name.release), version: text(&name.version), machine: text(&name.machine) }
    }
}

/// Returns the preemption model: `PREEMPT_RT`, another one, or `none`. `/sys/kernel/realtime` belongs to the out-of-tree patch, and not every kernel has it.
/// The version string always has the word.
pub fn preemption(version: &str, realtime: bool) -> &'static str {
    let known = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"];
    if realtime {
        return known[0];
    }
    known.into_iter().find(|word| version.split_whitespace().any(|part| part == *word)).unwrap_or("none")
}

fn cpu_model(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.trim().to_string())
}

fn parse_lab(text: &str) -> Option<Lab> {
    let (shift, cpus) = text.split_once(',')?;
    let ns_per_instruction = 1u32.checked_shl(shift.trim().parse().ok()?)?;
    Some(Lab { ns_per_instruction, cpus: cpus.trim().parse().ok()? })
}

fn facts() -> Vec<(String, String)> {
    [
        ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ("sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us"),
        ("TimerShield", crate::settings::TIMERSHIELD),
        ("perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"),
        ("isolated CPUs", "/sys/devices/system/cpu/isolated"),
        ("frequency governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ]
    .into_iter()
    .filter_map(|(name, path)| Some((name.to_string(), read(path)?)))
    .filter(|(_, value)| !value.is_empty())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preemption_is_what_the_version_says() {
        assert_eq!(preemption("#1 SMP PREEMPT_RT Debian 6.12", false), "PREEMPT_RT");
        assert_eq!(preemption("#1 SMP PREEMPT_DYNAMIC @0", false), "PREEMPT_DYNAMIC");
        assert_eq!(preemption("#1 SMP @0", false), "none");
        assert_eq!(preemption("#1 SMP PREEMPT @0", true), "PREEMPT_RT");
    }

    #[test]
    fn the_lab_tells_its_clock() {
        assert_eq!(parse_lab("2,1"), Some(Lab { ns_per_instruction: 4, cpus: 1 }));
        assert_eq!(parse_lab("0"), None);
        assert_eq!(parse_lab("64,1"), None);
    }

    #[test]
    fn the_model_of_the_cpu() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n"), "Some CPU @ 3 GHz");
        assert_eq!(cpu_model("processor\t: 0\n"), std::env::consts::ARCH);
    }
}
