//! The options that a kernel for Macrotick has, each with its reason.
//!
//! Sources: `Documentation/core-api/real-time/kernel-configuration.rst` (Linux 7.0 and later), `Kconfig.macrotick`,
//! `timershield/Kconfig`, and the measurements in `docs/results`.

/// An option, and its value in a kernel for Macrotick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The name without `CONFIG_`.
    pub name: &'static str,
    /// `y`, `n`, or a value as it stands in a configuration.
    pub value: &'static str,
    /// Whether Macrotick does not work without it. Other settings yield to a fragment of the user.
    pub is_needed: bool,
    /// The reason.
    pub why: &'static str,
}

const fn needed(name: &'static str, value: &'static str, why: &'static str) -> Setting {
    Setting { name, value, is_needed: true, why }
}

const fn advised(name: &'static str, value: &'static str, why: &'static str) -> Setting {
    Setting { name, value, is_needed: false, why }
}

const CHOICE: &str = "one choice with PREEMPT_RT";
const FAULTS: &str = "looks for faults in the kernel: each lock or interrupt takes longer";
const GOVERNOR: &str = "a governor that changes the frequency changes execution times";
const WATCHDOG: &str = "the watchdog interrupts every CPU and runs above all tasks";
const KEYS: &str = "names a file with keys of the distributor, which the source does not have";
const DEBUG: &str = "makes the build several times larger; macrotick does not use it";

/// All settings.
pub(super) const SETTINGS: [Setting; 61] = [
    needed("MACROTICK", "y", "the classes SCHED_TT and SCHED_DS"),
    needed("TIMERSHIELD", "y", "timers of less important tasks wait"),
    needed("EXPERT", "y", "PREEMPT_RT depends on it"),
    needed("PREEMPT_RT", "y", "interrupts and locks of the kernel are preemptible"),
    needed("PREEMPT_NONE", "n", CHOICE),
    needed("PREEMPT_VOLUNTARY", "n", CHOICE),
    needed("PREEMPT", "n", CHOICE),
    needed("HIGH_RES_TIMERS", "y", "windows begin between two ticks"),
    needed("CGROUPS", "y", "budgets belong to control groups"),
    needed("CGROUP_SCHED", "y", "budgets belong to control groups"),
    needed("CPUSETS", "y", "a deployment keeps other threads away from CPUs"),
    needed("RT_GROUP_SCHED", "n", "threads in control groups would get no real-time priority"),
    needed("EVENTFD", "y", "the supervisor waits for events of the kernel"),
    needed("NET_SCHED", "y", "gates for frames"),
    needed("NET_SCH_TAPRIO", "y", "gates for frames"),
    needed("NET_SCH_TAPRIO_EXACT", "y", "gates open at the nanosecond"),
    advised("LOCALVERSION", "\"-macrotick\"", "the kernel stands beside that of the distribution"),
    advised("JUMP_LABEL", "y", "a feature that is off costs a no-op instead of a branch"),
    advised("RCU_EXPERT", "y", "RCU_BOOST depends on it"),
    advised("RCU_BOOST", "y", "a preempted reader would delay all who wait for memory"),
    advised("NO_HZ_FULL", "n", "each change between kernel and program costs more"),
    advised("NO_HZ_IDLE", "y", "an idle CPU needs no tick, a busy one keeps it"),
    advised("NO_HZ", "n", "each end of an idle phase costs more"),
    advised("HZ_PERIODIC", "n", "an idle CPU needs no tick"),
    advised("CPU_FREQ_DEFAULT_GOV_PERFORMANCE", "y", GOVERNOR),
    advised("CPU_FREQ_DEFAULT_GOV_SCHEDUTIL", "n", GOVERNOR),
    advised("CPU_FREQ_DEFAULT_GOV_ONDEMAND", "n", GOVERNOR),
    advised("CPU_FREQ_DEFAULT_GOV_CONSERVATIVE", "n", GOVERNOR),
    advised("CPU_FREQ_DEFAULT_GOV_POWERSAVE", "n", GOVERNOR),
    advised("CPU_FREQ_DEFAULT_GOV_USERSPACE", "n", GOVERNOR),
    advised("EFI_DISABLE_RUNTIME", "y", "a call of the firmware stops the CPU; `efi=runtime` allows it for one boot"),
    advised("SOFTLOCKUP_DETECTOR", "n", WATCHDOG),
    advised("HARDLOCKUP_DETECTOR", "n", WATCHDOG),
    advised("NUMA_BALANCING_DEFAULT_ENABLED", "n", "moves the memory of running tasks"),
    advised("PCP_BATCH_SCALE_MAX", "0", "the page allocator would free up to 2000 pages under one lock"),
    advised("PROVE_LOCKING", "n", FAULTS),
    advised("PROVE_RCU", "n", FAULTS),
    advised("LOCK_STAT", "n", FAULTS),
    advised("DEBUG_LOCK_ALLOC", "n", FAULTS),
    advised("DEBUG_MUTEXES", "n", FAULTS),
    advised("DEBUG_SPINLOCK", "n", FAULTS),
    advised("DEBUG_RT_MUTEXES", "n", FAULTS),
    advised("DEBUG_OBJECTS", "n", FAULTS),
    advised("DEBUG_PREEMPT", "n", FAULTS),
    advised("DEBUG_PAGEALLOC_ENABLE_DEFAULT", "n", FAULTS),
    advised("KASAN", "n", FAULTS),
    advised("KCSAN", "n", FAULTS),
    advised("KMSAN", "n", FAULTS),
    advised("SLUB_DEBUG_ON", "n", FAULTS),
    advised("PREEMPT_TRACER", "n", FAULTS),
    advised("IRQSOFF_TRACER", "n", FAULTS),
    advised("SYSTEM_TRUSTED_KEYS", "\"\"", KEYS),
    advised("SYSTEM_REVOCATION_KEYS", "\"\"", KEYS),
    advised("DEBUG_INFO_NONE", "y", DEBUG),
    advised("DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT", "n", DEBUG),
    advised("DEBUG_INFO_DWARF4", "n", DEBUG),
    advised("DEBUG_INFO_DWARF5", "n", DEBUG),
    advised("DEBUG_INFO_SPLIT", "n", DEBUG),
    advised("DEBUG_INFO_BTF", "n", DEBUG),
    advised("GDB_SCRIPTS", "n", DEBUG),
    advised("WERROR", "n", "a newer compiler than that of the source has new warnings"),
];

/// A fragment that takes PREEMPT_RT away. It shows which other options PREEMPT_RT excludes.
pub(super) const WITHOUT: &str = "# CONFIG_PREEMPT_RT is not set\nCONFIG_PREEMPT=y\n";

/// Whether a setting removes debug information.
pub(super) fn is_about_debug_information(setting: &Setting) -> bool {
    setting.why == DEBUG
}
