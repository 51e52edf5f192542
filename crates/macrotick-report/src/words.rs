//! The texts of reports, and the format of their numbers.

use macrotick_model::{
    Backend, ClockInForce, ContainerRoot, EntityCounters, GateTier, GatesInForce, LeadInForce, Load, Observation,
    Periodic, PingFlood, Placed, Policy, ProfileInForce, SettingInForce, Task, Tier,
};

pub(crate) use macrotick_model::us;

use crate::chains::{BoundVerdict, ChainLatency, ChainReport};
use crate::jobs::{Outcome, Outcomes};
use crate::report::Report;
use crate::stats::Tenths;

/// Describes a tier.
pub(crate) fn tier(tier: Tier, backend: Backend) -> &'static str {
    match (tier, backend) {
        (Tier::KernelClass, _) => "kernel class SCHED_TT: the kernel enforced every window",
        (Tier::UserSpaceDispatcher, _) => "user-space dispatcher: the table was imitated with stock priorities",
        (Tier::NotEnforced, Backend::Fifo) => "no table enforced: SCHED_FIFO ran the tasks",
        (Tier::NotEnforced, Backend::Deadline) => "no table enforced: SCHED_DEADLINE ran the tasks",
        (Tier::NotEnforced, Backend::Other) => "no table enforced: SCHED_OTHER ran the tasks",
        (Tier::NotEnforced, _) => "no table enforced",
    }
}

/// Describes the enforcement of a run, and the tasks without enforcement.
pub(crate) fn tier_of(report: &Report) -> String {
    let tier = self::tier(report.tier, report.backend);
    match report.tasks.iter().filter(|task| task.runtime_ns.is_some()).count() {
        1.. if report.tier != Tier::KernelClass => tier.into(),
        0 => tier.into(),
        reserved => format!("{tier}; SCHED_DEADLINE ran {reserved} of {} tasks", report.tasks.len()),
    }
}

/// Returns a warning for latencies without a meaning.
pub(crate) fn latencies(report: &Report) -> Option<&'static str> {
    let several = report.environment.lab.is_some_and(|lab| lab.cpus > 1);
    several.then_some("Latencies mean nothing here: the lab's virtual CPUs take turns")
}

/// Returns the verdict in one line.
pub(crate) fn verdict_line(report: &Report) -> String {
    let verdict = &report.verdict;
    if report.tasks.is_empty() {
        return "no task to judge".into();
    }
    let misses = match verdict.missed {
        0 => "no miss".into(),
        1 => "1 miss".into(),
        misses => format!("{misses} misses"),
    };
    let chains = match (verdict.bounds, verdict.bounds_kept) {
        (0, _) => String::new(),
        (1, 1) => ", chain bound kept".into(),
        (bounds, kept) => format!(", {kept} of {bounds} chain bounds kept"),
    };
    format!("{misses} in {} jobs{chains}", verdict.released)
}

/// Returns the policy of a backend's tasks.
pub(crate) fn policy_of(backend: Backend) -> &'static str {
    match backend {
        Backend::Kernel => "SCHED_TT",
        Backend::User => "user-space dispatcher",
        Backend::Fifo => "SCHED_FIFO",
        Backend::Deadline => "SCHED_DEADLINE",
        Backend::Other => "SCHED_OTHER",
    }
}

/// Returns the number of missed jobs; `short` leaves out the number of jobs if no job was missed.
pub(crate) fn missed(misses: u64, jobs: u64, short: bool) -> String {
    match (misses, jobs) {
        (_, 0) => "no job to judge".into(),
        (0, _) if short => "none".into(),
        (0, all) => format!("none of {all} missed"),
        (misses, all) => format!("{misses} of {all} missed"),
    }
}

/// Returns the reason why the run did not show that a chain's bound holds.
pub(crate) fn chain_reason(chain: &ChainReport, name: &str, latency: &ChainLatency) -> Option<String> {
    let head = format!("chain {}", chain.name);
    match latency.verdict {
        BoundVerdict::Kept | BoundVerdict::Unbounded => None,
        BoundVerdict::Unobserved => Some(format!("{head}: {name} not shown, no path completed within the run")),
        BoundVerdict::Broken => {
            let over = (latency.over > 0).then(|| {
                let paths = latency.measured.map_or(0, |measured| measured.count);
                format!("{} of {paths} paths over the bound", latency.over)
            });
            let lost = (latency.lost > 0).then(|| format!("{} effects never came", latency.lost));
            let what: Vec<String> = over.into_iter().chain(lost).collect();
            Some(format!("{head}: {name} broken, {}", what.join(", ")))
        }
    }
}

/// Returns the verdict on a bound, in one word.
pub(crate) fn bound(verdict: BoundVerdict) -> &'static str {
    match verdict {
        BoundVerdict::Kept => "kept",
        BoundVerdict::Broken => "broken",
        BoundVerdict::Unobserved => "not shown",
        BoundVerdict::Unbounded => "no bound",
    }
}

/// Returns remarks on differences between plan and records.
pub(crate) fn record_remarks(task: &str, outcomes: &Outcomes) -> Vec<String> {
    let early = outcomes.jobs.iter().filter(|job| job.start.is_some_and(|start| start < job.nominal)).count();
    [
        (outcomes.unrecorded, "jobs of the plan have no record; they count as never started"),
        (outcomes.repeated, "records repeat a job; the first one counts"),
        (outcomes.off_table, "records carry a nominal instant that is not the plan's; the plan's counts"),
        (early as u64, "jobs started before their nominal instant"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, what)| format!("{task}: {number} {what}"))
    .collect()
}

/// Returns remarks on differences between the kernel's counters and the records, and on counted faults.
pub(crate) fn counter_remarks(task: &str, outcomes: &Outcomes, counters: &EntityCounters) -> Vec<String> {
    let misses = outcomes.jobs.iter().filter(|job| Outcome::missed(job)).count() as u64;
    let mut remarks = Vec::new();
    if counters.missed != misses && !outcomes.ended_early {
        let nobody = nobody_was_there(outcomes, counters.missed, misses);
        remarks
            .push(format!("{task}: the kernel counted {} misses, the records show {misses}{nobody}", counters.missed));
    }
    remarks.extend(yields(task, outcomes, counters));
    for (number, what) in [
        (counters.lost, "activations lost, because an older one was still pending"),
        (counters.skipped, "windows skipped by a late interrupt"),
        (counters.late, "jobs for which the lead was too short"),
        (counters.never_ran, "misses of jobs that had not started at their deadline"),
    ] {
        if number > 0 {
            remarks.push(format!("{task}: the kernel counted {number} {what}"));
        }
    }
    remarks
}

/// Returns a remark if jobs call `sched_yield(2)`. For the kernel such a job is complete, and waits for the next
/// activation.
fn yields(task: &str, outcomes: &Outcomes, counters: &EntityCounters) -> Option<String> {
    let ended = outcomes.jobs.iter().filter(|job| job.end.is_some()).count() as u64;
    // The kernel counts until the table stops. Jobs beyond the record buffer have no records.
    let later = counters.released.saturating_sub(outcomes.jobs.len() as u64);
    let recorded = outcomes.jobs.iter().rev().take(4).any(|job| job.start.is_some());
    let yields = counters.completed.checked_sub(ended + later).filter(|yields| *yields > 2 && recorded)?;
    Some(format!(
        "{task}: the kernel counted {} jobs completed, but {ended} reached their wait: sched_yield() ended {yields} \
         jobs (docs/reference/task-interface.md)",
        counters.completed
    ))
}

/// Explains a difference in misses. The kernel counts no miss of a task that is stopped or has no process; these jobs
/// never started.
fn nobody_was_there(outcomes: &Outcomes, counted: u64, recorded: u64) -> &'static str {
    let never_started = outcomes.jobs.iter().filter(|job| job.start.is_none()).count() as u64;
    match recorded.checked_sub(counted) {
        Some(uncounted @ 1..) if uncounted <= never_started => {
            ": it counts none of a task that is stopped or has no process"
        }
        _ => "",
    }
}

/// Describes the gates of each interface: the part that opens them, and the better ones that were refused.
pub fn gates(gates: &[GatesInForce]) -> Vec<String> {
    let one = |gates: &GatesInForce| {
        let by = match (gates.tier, gates.lead) {
            (GateTier::Hardware, _) => "the device opens the gates".to_owned(),
            (GateTier::Exact, Some(lead)) => format!("exact gates with a lead of {lead}"),
            (GateTier::Exact, None) => "exact gates".to_owned(),
            (GateTier::Software, _) => "gates in software, which open late".to_owned(),
            (GateTier::TxtimeAssist, _) => "the device sends at instants that software sets".to_owned(),
        };
        let place = gates.namespace.as_ref().map_or(String::new(), |namespace| format!(" in {namespace}"));
        let refused: Vec<&str> = gates.refused.iter().map(|refused| refused.tier.name()).collect();
        let refused = match refused.as_slice() {
            [] => String::new(),
            all => format!("; not there: {}", all.join(", ")),
        };
        let closed = gates.closed.map_or(String::new(), |closed| {
            format!("; the device was closed for {closed}, and dropped {} frames", gates.dropped)
        });
        format!("{} ({}{place}): {by}{refused}{closed}", gates.interface, gates.device)
    };
    gates.iter().map(one).collect()
}

/// Describes the lead, its reason, and the share that it takes of each CPU.
pub(crate) fn lead(report: &Report) -> Option<String> {
    let LeadInForce { lead, kept_free, needed } = report.lead.filter(|_| report.cycle_ns > 0)?;
    let why =
        needed.map(|needed| format!(" (this host needs {needed}, {kept_free} are kept free)")).unwrap_or_default();
    let shares = report.tables.iter().map(|table| {
        let jobs = table.windows.iter().filter(|window| window.activate).count() as i64;
        let permille = rounded(jobs * lead.as_nanos() * 1000, report.cycle_ns);
        format!("{}.{} % of CPU {}", permille / 10, permille % 10, table.cpu)
    });
    Some(format!("{lead} before each job{why}, which takes {}", shares.collect::<Vec<_>>().join(", ")))
}

/// Describes the clock that the table followed, its synchronisation, and the corrections of the table.
pub(crate) fn clock(report: &Report) -> Option<String> {
    let clock = report.clock?;
    let ClockInForce { stretched, shrunk, corrections, rest, .. } = clock;
    let state = match (clock.synchronised, clock.estimated_error) {
        (true, Some(error)) => format!("CLOCK_TAI, synchronised, estimated error {error}"),
        (true, None) => "CLOCK_TAI, synchronised, error not estimated".into(),
        (false, _) => "table on an unsynchronised clock, CLOCK_TAI".into(),
    };
    let state = match clock.tai_offset_s {
        0 => format!("{state} without its offset"),
        offset => format!("{state}, {offset} s ahead of UTC"),
    };
    let taken = match corrections {
        0 => "never corrected".into(),
        1 => format!("corrected once, +{stretched} -{shrunk}"),
        times => format!("corrected {times} times, +{stretched} -{shrunk}"),
    };
    let rest = if rest.as_nanos() == 0 { String::new() } else { format!(", {rest} off at the end") };
    Some(format!("{state}; {taken}{rest}"))
}

/// Returns the caveat of the offset of the clock.
fn offset_caveat(observation: &Observation) -> Option<String> {
    observation.clock.filter(|clock| clock.tai_offset_s == 0).map(|_| {
        "No program has set the offset of CLOCK_TAI on this host, so that clock is UTC. The table is not aligned with \
         tables of hosts that have the offset."
            .into()
    })
}

/// Returns the caveat of the synchronisation of the clock.
fn clock_caveat(observation: &Observation) -> Option<String> {
    match observation.clock {
        Some(ClockInForce { synchronised: false, .. }) => Some(
            "The table followed CLOCK_TAI, but no program synchronises that clock on this host. The table is not \
             aligned with tables of other hosts."
                .into(),
        ),
        None if observation.plan.system.sync().is_some() => {
            Some("Only the kernel class follows CLOCK_TAI. This run was on CLOCK_MONOTONIC.".into())
        }
        _ => None,
    }
}

/// Returns the caveat of the lead.
fn lead_caveat(observation: &Observation) -> Option<String> {
    match (observation.lead, observation.plan.system.lead) {
        (Some(LeadInForce { lead, needed: Some(needed), .. }), _) if needed > lead => {
            Some(format!("This host needs a lead of {needed}; the plan keeps {lead} free, so jobs may start late."))
        }
        (None, Some(planned)) => Some(format!(
            "The plan keeps {} free before each job for a lead. Only the kernel class has a lead; this time was idle.",
            planned.reserved()
        )),
        _ => None,
    }
}

/// Returns the caveat of the reactions to misses.
fn miss_caveat(observation: &Observation) -> Option<String> {
    let asked = observation.plan.system.tasks.iter().any(Task::acts_on_misses);
    (asked && observation.tier != Tier::KernelClass)
        .then(|| "Only the kernel class reacts to misses. In this run late jobs continued.".into())
}

/// Returns the caveat of pools.
fn pool_caveat(observation: &Observation) -> Option<String> {
    let asked = observation.plan.system.pools().next().is_some();
    (asked && observation.tier != Tier::KernelClass).then(|| {
        "Only the kernel class serves groups in windows. In this run their threads ran under SCHED_OTHER, at any time \
         and on any CPU."
            .into()
    })
}

/// Returns the caveat of groups.
fn group_caveat(observation: &Observation) -> Option<String> {
    let asked = observation.plan.system.servers().next().is_some();
    (asked && observation.tier != Tier::KernelClass)
        .then(|| "Only the kernel class serves groups by budgets. In this run their threads had none.".into())
}

/// Returns the caveat of tasks without windows.
fn supply_caveat(observation: &Observation) -> Option<String> {
    let asked = observation.plan.system.reserved().next().is_some();
    match observation.backend {
        Backend::Kernel | Backend::Deadline => None,
        other => asked.then(|| format!("Under `{other}` the tasks with `supply: deadline` had no reservations.")),
    }
}

/// Returns the limits of a run's numbers.
pub(crate) fn caveats(observation: &Observation) -> Vec<String> {
    let mut caveats = Vec::new();
    if let Some(lab) = observation.environment.lab {
        caveats.push(format!(
            "Measured in the lab: virtual time advances {} ns per guest instruction. Neither caches nor the speed of \
             devices are modelled, so times compare path lengths of the software, not machines.",
            lab.ns_per_instruction
        ));
        if lab.cpus > 1 {
            caveats.push(format!(
                "The lab's {} virtual CPUs take turns: when several are busy, each advances slower than the clock. \
                 Latencies are meaningful with one virtual CPU only.",
                lab.cpus
            ));
        }
    }
    match observation.tier {
        Tier::KernelClass => {}
        Tier::UserSpaceDispatcher => caveats.push(
            "The user-space dispatcher can neither stop a task inside the kernel nor keep interrupts out of a window. \
             It does not guarantee the results of this run."
                .into(),
        ),
        Tier::NotEnforced => caveats.push(
            "No table was enforced. The report judges the run by the plan's deadlines, which the stock policy does not \
             know."
                .into(),
        ),
    }
    caveats.extend(clock_caveat(observation));
    caveats.extend(offset_caveat(observation));
    caveats.extend(lead_caveat(observation));
    caveats.extend(miss_caveat(observation));
    caveats.extend(pool_caveat(observation));
    caveats.extend(group_caveat(observation));
    caveats.extend(supply_caveat(observation));
    caveats.push("A measurement shows what happened in this run; it is no bound on what can happen.".into());
    caveats
}

/// Formats tenths of nanoseconds as microseconds with three decimals, rounded half away from zero.
pub(crate) fn us_of_tenths(tenths: Tenths) -> String {
    us(rounded(tenths.0, 10))
}

/// The number of decimals in one table: all its times have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decimals {
    /// Three decimals: the nanosecond.
    Three,
    /// One decimal, if times of more than 10 ms would make columns too wide.
    One,
}

impl Decimals {
    /// Returns the number of decimals for a table with this largest time.
    pub fn for_largest(ns: i64) -> Decimals {
        if ns.unsigned_abs() < 10_000_000 {
            Decimals::Three
        } else {
            Decimals::One
        }
    }
    /// Formats nanoseconds as microseconds.
    pub fn us(self, ns: i64) -> String {
        match self {
            Decimals::Three => us(ns),
            Decimals::One => tenths_of_us(rounded(ns, 100)),
        }
    }
    /// Formats tenths of nanoseconds as microseconds.
    pub fn us_of_tenths(self, tenths: Tenths) -> String {
        match self {
            Decimals::Three => us_of_tenths(tenths),
            Decimals::One => tenths_of_us(rounded(tenths.0, 1000)),
        }
    }
}

fn tenths_of_us(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}.{}", value.unsigned_abs() / 10, value.unsigned_abs() % 10)
}

/// Returns a quotient rounded half away from zero.
fn rounded(value: i64, by: i64) -> i64 {
    let half = if value < 0 { -by / 2 } else { by / 2 };
    value.saturating_add(half) / by
}

/// Formats a time in the unit that suits it, with four digits, for axes and sentences.
pub(crate) fn short_time(ns: i64) -> String {
    let (unit_ns, unit): (i64, _) = match ns.unsigned_abs() {
        0 => return "0".into(),
        1..=999 => (1, "ns"),
        1_000..=999_999 => (1_000, "us"),
        1_000_000..=999_999_999 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let decimals = match ns.unsigned_abs() / unit_ns.unsigned_abs() {
        _ if unit_ns == 1 => 0,
        0..=9 => 3,
        10..=99 => 2,
        100..=999 => 1,
        _ => 0,
    };
    // In whole numbers: 1.025 has no binary fraction, so floating point would round equal halves to both sides.
    let one = 10_i64.pow(decimals);
    let value = rounded(ns, unit_ns / one);
    let sign = if value < 0 { "-" } else { "" };
    let (whole, part) = (value.unsigned_abs() / one.unsigned_abs(), value.unsigned_abs() % one.unsigned_abs());
    let text = format!("{sign}{whole}.{part:0width$}", width = decimals as usize);
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats thousandths as a percentage.
pub(crate) fn percent(permille: i64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

/// Formats a count for a page, with a space between thousands. Texts for terminals and programs have plain numbers.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 && digits.len() > 4 {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

/// Returns a word with a capital letter.
pub(crate) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Formats a process's policy.
fn policy(policy: Policy) -> String {
    match policy {
        Policy::Other(0) => "SCHED_OTHER".into(),
        Policy::Other(nice) => format!("SCHED_OTHER, nice {nice}"),
        Policy::Fifo(priority) => format!("SCHED_FIFO {priority}"),
    }
}

/// Describes the CPU, the group and the policy of a process.
pub(crate) fn place(process: &Placed) -> String {
    let policy = policy(process.policy);
    match (&process.group, process.cpu) {
        (Some(group), _) if !process.has_budget => format!("in group {group}"),
        (Some(group), Some(cpu)) => format!("{policy} in group {group}, CPU {cpu}"),
        (Some(group), None) => format!("{policy} in group {group}"),
        (None, Some(cpu)) => format!("{policy}, CPU {cpu}"),
        (None, None) => format!("{policy}, any CPU"),
    }
}

/// Describes the action of a process.
pub(crate) fn load(load: &Load) -> String {
    match load {
        Load::Hog => "computes without end".into(),
        Load::Syscalls => "issues system calls without end".into(),
        Load::Periodic(Periodic { period, run }) => format!("computes {run} in every {period}"),
        Load::PingFlood(PingFlood { to, bytes }) => format!("floods {to} with pings of {bytes} bytes"),
        Load::Program(program) => program.command.join(" "),
        Load::Container(container) => {
            let (ContainerRoot::Rootfs(root) | ContainerRoot::Image(root)) = &container.root;
            let words = [container.engine.name().to_string(), root.clone()].into_iter();
            words
                .chain(container.program.iter().flat_map(|program| program.command.clone()))
                .collect::<Vec<_>>()
                .join(" ")
        }
    }
}

/// Returns the facts about the machine of a run, name and value.
pub(crate) fn environment(report: &Report) -> Vec<(String, String)> {
    let environment = &report.environment;
    let lab = environment.lab.map(|lab| {
        format!("{} ns of virtual time per instruction, {} virtual CPU(s)", lab.ns_per_instruction, lab.cpus)
    });
    let mut facts = vec![
        ("kernel", environment.kernel.clone()),
        ("kernel version", environment.kernel_version.clone()),
        ("preemption", environment.preemption.clone()),
        ("CPU model", environment.cpu_model.clone()),
        ("CPUs online", environment.cpus.to_string()),
        ("lab", lab.unwrap_or_else(|| "no: measured on a machine".into())),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    let facts = facts.into_iter().map(|(name, value)| (name.to_string(), value));
    facts.chain(environment.facts.iter().cloned()).chain(profile(environment.profile.as_ref())).collect()
}

/// Returns the set-up of the host: its name, and each setting that changed or is absent.
fn profile(profile: Option<&ProfileInForce>) -> Vec<(String, String)> {
    let Some(profile) = profile else { return Vec::new() };
    let setting = |setting: &SettingInForce| {
        let text = match setting {
            SettingInForce { absent: Some(reason), .. } => format!("not set: {reason}"),
            SettingInForce { before, value: Some(value), .. } if before.as_ref() != Some(value) => {
                let before = before.as_ref().map(|before| format!(" (before: {before})"));
                format!("{value}{}", before.unwrap_or_default())
            }
            _ => return None,
        };
        Some((setting.name.clone(), text))
    };
    let name = ("profile".to_owned(), profile.name.clone());
    std::iter::once(name).chain(profile.settings.iter().filter_map(setting)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_lists_what_changed_and_what_is_absent() {
        let setting = |name: &str, before: Option<&str>, value: Option<&str>, absent: Option<&str>| SettingInForce {
            name: name.into(),
            before: before.map(String::from),
            value: value.map(String::from),
            absent: absent.map(String::from),
        };
        let settings = vec![
            setting("kernel.timer_migration", Some("1"), Some("0"), None),
            setting("/sys/kernel/rcu_normal", Some("1"), Some("1"), None),
            setting("governor", None, None, Some("this host does not have it")),
            setting("partition", None, Some("isolated"), None),
        ];
        let told = profile(Some(&ProfileInForce { name: "macrotick".into(), settings }));
        let told: Vec<String> = told.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let expected = [
            "profile: macrotick",
            "kernel.timer_migration: 0 (before: 1)",
            "governor: not set: this host does not have it",
            "partition: isolated",
        ];
        assert_eq!(told, expected);
        assert_eq!(profile(None), []);
    }

    #[test]
    fn gates_name_what_opens_them() {
        let exact = macrotick_fixtures::exact_gates("left", macrotick_fixtures::us(60));
        let closed = GatesInForce {
            namespace: None,
            tier: GateTier::Software,
            lead: None,
            refused: Vec::new(),
            closed: Some(macrotick_fixtures::us(40)),
            dropped: 3,
            ..exact.clone()
        };
        assert_eq!(
            gates(&[exact, closed]),
            [
                "left (eth0 in macrotick-left): exact gates with a lead of 60us; not there: hardware",
                "left (eth0): gates in software, which open late; the device was closed for 40us, and dropped 3 frames",
            ]
        );
    }

    #[test]
    fn microseconds_are_exact() {
        assert_eq!(
            [us(0), us(1), us(-1), us(12_345), us(-1_002_003)],
            ["0.000", "0.001", "-0.001", "12.345", "-1002.003"]
        );
        assert_eq!([us_of_tenths(Tenths(31_634)), us_of_tenths(Tenths(31_635))], ["3.163", "3.164"]);
        assert_eq!([us_of_tenths(Tenths(-5)), us_of_tenths(Tenths(-4))], ["-0.001", "0.000"]);
    }

    #[test]
    fn long_times_give_up_decimals() {
        assert_eq!(Decimals::for_largest(9_999_999), Decimals::Three);
        let one = Decimals::for_largest(-10_000_000);
        assert_eq!([one.us(12_345_650), one.us(-49), one.us(-50)], ["12345.7", "0.0", "-0.1"]);
        assert_eq!(one.us_of_tenths(Tenths(123_456_500)), "12345.7");
    }

    #[test]
    fn misses_are_told_with_what_they_are_of() {
        assert_eq!(missed(1178, 1560, true), "1178 of 1560 missed");
        assert_eq!([missed(0, 1560, true), missed(0, 1560, false)], ["none", "none of 1560 missed"]);
        assert_eq!(missed(0, 0, true), "no job to judge");
    }

    #[test]
    fn short_times_choose_their_unit() {
        let texts: Vec<String> = [0, 999, 1_500, 12_340, 250_000, 1_000_000, 10_001_009].map(short_time).into();
        assert_eq!([1_025_000, 1_425_000, -33_250_000].map(short_time), ["1.025 ms", "1.425 ms", "-33.25 ms"]);
        assert_eq!([1_000_500, 1_001_500, 12_345_000].map(short_time), ["1.001 ms", "1.002 ms", "12.35 ms"]);
        assert_eq!([999_999, 999_999_500].map(short_time), ["1000 us", "1000 ms"]);
        assert_eq!(texts, ["0", "999 ns", "1.5 us", "12.34 us", "250 us", "1 ms", "10 ms"]);
    }

    #[test]
    fn counts_are_grouped_from_five_digits() {
        assert_eq!([grouped(0), grouped(1234), grouped(12345)], ["0", "1234", "12\u{a0}345"]);
    }
}
