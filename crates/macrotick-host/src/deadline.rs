//! The limits of SCHED_DEADLINE on this host, and the CPUs between which its threads migrate.

use std::path::Path;

use macrotick_analysis::kernel::WHOLE;
use macrotick_model::{CpuSet, Duration};

use crate::cgroup::{below_root_of, read_file, EFFECTIVE_CPUS, PARTITION, ROOT};
use crate::environment::kernel;
use crate::error::HostFailure;
use crate::file;
use crate::sys::{self, Tid};

/// The directory of these sysctls.
const SYSCTLS: &str = "/proc/sys/kernel";
/// The servers of classes that deadline tasks could starve, one directory per CPU. Only root can read them.
const SERVERS: [&str; 2] = ["/sys/kernel/debug/sched/fair_server", "/sys/kernel/debug/sched/ext_server"];
/// The first release with the server of the fair class.
const FIRST_WITH_SERVER: (u32, u32) = (6, 12);

/// The limits of SCHED_DEADLINE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineLimits {
    /// The bandwidth on each CPU, in units of 2^-20 of it (`sched_rt_runtime_us` of `sched_rt_period_us`). `None`: the
    /// kernel admits any sum.
    pub each: Option<i128>,
    /// The part of it that belongs to servers of other classes.
    pub servers: i128,
    /// The shortest period.
    pub least: Duration,
    /// The longest period.
    pub most: Duration,
}

impl DeadlineLimits {
    /// Reads them. Without the sysctls of the period, the kernel's constants hold.
    pub fn of_host() -> Result<DeadlineLimits, HostFailure> {
        let sysctl = |name: &str| {
            let path = Path::new(SYSCTLS).join(name);
            file::read_number(&path).map_err(HostFailure::file("read", path))
        };
        let (runtime, period) = (sysctl("sched_rt_runtime_us")?, sysctl("sched_rt_period_us")?);
        let of_period = |name, otherwise| sysctl(name).map_or(otherwise, Duration::from_micros);
        let range = macrotick_model::validate::RESERVATION_RANGE;
        Ok(DeadlineLimits {
            each: (runtime >= 0).then(|| i128::from(runtime) * WHOLE / i128::from(period.max(1))),
            servers: servers().unwrap_or_else(|| servers_of(&kernel().release)),
            least: of_period("sched_deadline_period_min_us", *range.start()),
            most: of_period("sched_deadline_period_max_us", *range.end()),
        })
    }
}

/// Returns the bandwidth of the servers of the first CPU. `None`: debugfs is not mounted, or this user cannot read it.
fn servers() -> Option<i128> {
    let bandwidth = |folder: &str| {
        let read = |name: &str| file::read_number(&Path::new(folder).join("cpu0").join(name)).ok();
        Some(i128::from(read("runtime")?) * WHOLE / i128::from(read("period")?.max(1)))
    };
    let [fair, other] = SERVERS.map(bandwidth);
    fair.map(|fair| fair + other.unwrap_or(0))
}

/// Returns their default bandwidth: 50 ms of every second.
fn servers_of(release: &str) -> i128 {
    let mut numbers = release.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    let release = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if release >= FIRST_WITH_SERVER {
        WHOLE / 20
    } else {
        0
    }
}

/// Returns the CPUs of a thread's root domain. SCHED_DEADLINE needs the affinity of all of them. It is that of the
/// nearest partition upwards. The other CPUs are one domain, without those that were isolated at boot.
pub fn domain_of(thread: Tid) -> Result<CpuSet, HostFailure> {
    let below = below_root_of(&thread.to_string())?.unwrap_or_default();
    let group = Path::new(ROOT).join(below);
    for path in group.ancestors().take_while(|path| path.starts_with(ROOT)) {
        // The root of the hierarchy has no such file.
        let partition = read_file(path, PARTITION)?.unwrap_or_default();
        if path == Path::new(ROOT) || matches!(partition.trim(), "root" | "isolated") {
            if let Some(cpus) = read_file(path, EFFECTIVE_CPUS)? {
                return Ok(without_isolated(&sys::parse_cpu_list(&cpus)));
            }
        }
    }
    sys::online_cpus().map(|cpus| without_isolated(&cpus))
}

fn without_isolated(cpus: &[u32]) -> CpuSet {
    let isolated = file::read(Path::new("/sys/devices/system/cpu/isolated")).unwrap_or_default();
    let isolated = sys::parse_cpu_list(&isolated);
    let left: CpuSet = cpus.iter().copied().filter(|cpu| !isolated.contains(cpu)).collect();
    match left.is_empty() {
        true => cpus.iter().copied().collect(),
        false => left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fair_class_has_a_server_since_a_release() {
        let five_percent = WHOLE / 20;
        for (release, bandwidth) in [
            ("6.12.48-macrotick", five_percent),
            ("6.18.44-fc", five_percent),
            ("7.0-rc1", five_percent),
            ("6.11.0", 0),
            ("5.15.0-rt17", 0),
            ("odd", 0),
        ] {
            assert_eq!(servers_of(release), bandwidth, "{release}");
        }
    }

    #[test]
    fn the_limits_of_this_host_are_sensible() {
        let limits = DeadlineLimits::of_host().unwrap();
        assert!(limits.each.is_none_or(|each| (0..=WHOLE).contains(&each)), "{limits:?}");
        assert!(Duration::ZERO < limits.least && limits.least < limits.most, "{limits:?}");
        let domain = domain_of(sys::own_tid()).unwrap();
        let online = sys::online_cpus().unwrap();
        assert!(!domain.is_empty() && domain.as_slice().iter().all(|cpu| online.contains(cpu)), "{domain}");
    }
}
