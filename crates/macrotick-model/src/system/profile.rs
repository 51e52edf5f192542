//! The set-up of the host for a plan.

use crate::cpus::CpuSet;
use crate::keys::{forms, object, words, Kind};
use crate::observation::Backend;
use crate::time::Duration;

words! {
    /// A set-up of the host. The first four are those of the UDP paper (section IV.B).
    pub enum SetUp: "a set-up" {
        "none" None = "The host stays as it is.";
        "real-time" RealTime = "The threads of the devices' interrupts run before the tasks that wait for them.";
        "affinity" Affinity = "As `real-time`, and the CPUs of the profile handle the devices' interrupts.";
        "isolation" Isolation = "As `affinity`, and other work leaves the CPUs of the profile.";
        "macrotick" Macrotick
            = "The set-up for windows: as `affinity`, with all threads that serve the network, and without idle states and other delays.";
    }
}

forms! {
    /// The priority of kernel threads that serve tasks.
    #[derive(Copy, Eq)]
    pub enum Serving: "a priority of serving threads" {
        plain Fixed: u8 [Serving::RANGE] = "The threads have this priority under `SCHED_FIFO`.";
        word "above" Above = "The priority follows from the plan: above all tasks that wait for the threads.";
        word "keep" Keep = "The threads keep their policy.";
    }
}

impl Serving {
    /// The runner itself has the priority above.
    const RANGE: Kind = Kind::Integer { least: 1, most: Serving::MOST as i64 };
    /// The highest priority of a serving thread.
    pub const MOST: u8 = 98;
}

forms! {
    /// The latency of idle states.
    #[derive(Copy, Eq)]
    pub enum IdleLatency: "an idle latency" {
        plain Most: Duration [IdleLatency::RANGE] = "A CPU uses only idle states that it leaves within this time.";
        word "keep" Keep = "The idle states stay as they are.";
    }
}

impl IdleLatency {
    const RANGE: Kind = Kind::Time { least: Duration::ZERO, most: Duration::from_secs(1) };
}

object! {
    /// The set-up of the host, with the settings that differ from the named one.
    pub struct Profile: "`profile`" short "like" {
        "like" like: SetUp, or "`none`" { SetUp::None } = "The set-up that gives the values of all keys that are not here.";
        "devices" devices: Vec<String> [Kind::List(&Kind::Text("names of network devices"))], optional "every network device with hardware"
            = "The network devices that serve the plan.";
        "cpus" cpus: CpuSet, optional "the CPUs of the system" = "CPUs of the profile, each of them a CPU of the system.";
        "interrupts" interrupts: Option<Serving>, optional "by `like`" = "Priority of the threads of the devices' interrupts (`irq/N-NAME`), see [The profile](#the-profile).";
        "softirqs" softirqs: Option<Serving>, optional "by `like`"
            = "Priority of `ksoftirqd`, `ktimers` and `backlog_napi` on the CPUs of the profile. With `above` it is the one below that of the interrupts.";
        "napi-threads" napi_threads: Option<bool>, optional "`false`"
            = "Whether the devices receive in threads of their own (`napi/DEVICE-N`), with the priority of the interrupts.";
        "interrupt-affinity" interrupt_affinity: Option<bool>, optional "by `like`" = "Whether only the CPUs of the profile handle the devices' interrupts.";
        "clear-steering" clear_steering: Option<bool>, optional "by `like`"
            = "Whether the masks of RPS and XPS of the devices become empty. Packets then stay on the CPU of the interrupt.";
        "shield-interrupts" shield_interrupts: Option<bool>, optional "by `like`" = "Whether all other interrupts leave the CPUs of the profile.";
        "shield-workqueues" shield_workqueues: Option<bool>, optional "by `like`" = "Whether unbound work queues of the kernel leave the CPUs of the profile.";
        "shield-watchdog" shield_watchdog: Option<bool>, optional "by `like`"
            = "Whether the lockup detector leaves the CPUs of the profile. It stops if no other CPU remains.";
        "partition" partition: Option<bool>, optional "by `like`"
            = "Whether the CPUs of the profile become an isolated cpuset partition, which only processes of the plan can use.";
        "idle-latency" idle_latency: Option<IdleLatency>, optional "by `like`" = "Limit for the idle states.";
        "governor" governor: Option<String> [Kind::Text("frequency governor")], optional "by `like`"
            = "Frequency governor of the CPUs of the profile. `keep` leaves it as it is.";
        "no-throttling" no_throttling: Option<bool>, optional "by `like`"
            = "Whether real-time threads may use all the time of a CPU: without the fair server, or before Linux 6.12 without `kernel.sched_rt_runtime_us`.";
        "no-timer-migration" no_timer_migration: Option<bool>, optional "by `like`" = "Whether timers stay on the CPU that armed them (`kernel.timer_migration`).";
        "normal-grace-periods" normal_grace_periods: Option<bool>, optional "by `like`"
            = "Whether RCU interrupts no CPU to end a grace period earlier (`/sys/kernel/rcu_normal`).";
    }
}

/// The settings of a profile, with all defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileSettings {
    /// The priority of the threads of the devices' interrupts.
    pub interrupts: Serving,
    /// The priority of the threads of softirqs.
    pub softirqs: Serving,
    /// Whether the devices receive in threads of their own.
    pub napi_threads: bool,
    /// Whether only the CPUs of the profile handle the devices' interrupts.
    pub interrupt_affinity: bool,
    /// Whether the masks of RPS and XPS become empty.
    pub clear_steering: bool,
    /// Whether other interrupts leave the CPUs.
    pub shield_interrupts: bool,
    /// Whether unbound work queues leave the CPUs.
    pub shield_workqueues: bool,
    /// Whether the lockup detector leaves the CPUs.
    pub shield_watchdog: bool,
    /// Whether the CPUs become an isolated partition.
    pub partition: bool,
    /// The limit for the idle states.
    pub idle_latency: IdleLatency,
    /// The frequency governor; `None` leaves it as it is.
    pub governor: Option<String>,
    /// Whether real-time threads are not throttled.
    pub no_throttling: bool,
    /// Whether timers stay on their CPUs.
    pub no_timer_migration: bool,
    /// Whether RCU interrupts no CPU.
    pub normal_grace_periods: bool,
}

impl Profile {
    /// The word that leaves the governor as it is.
    const KEEP: &'static str = "keep";

    /// Returns whether the profile changes something under a backend.
    pub fn changes_something(&self, backend: Backend) -> bool {
        self.settings(backend) != Profile::like(SetUp::None).settings(backend)
    }

    /// Returns whether the CPUs become an isolated partition.
    pub fn has_partition(&self) -> bool {
        self.partition.unwrap_or(self.like == SetUp::Isolation)
    }

    /// Returns the settings under a backend. Windows of the kernel class are not throttled, and the account of
    /// SCHED_DEADLINE beside them needs the limit. Therefore `macrotick` keeps the throttling under `kernel`.
    pub fn settings(&self, backend: Backend) -> ProfileSettings {
        use SetUp::{Isolation, Macrotick, None as Bare};
        let like = self.like;
        let (some, bound) = (like != Bare, !matches!(like, Bare | SetUp::RealTime));
        let (isolates, ours) = (like == Isolation, like == Macrotick);
        let serving =
            |given: Option<Serving>, above: bool| given.unwrap_or(if above { Serving::Above } else { Serving::Keep });
        let idle = if ours { IdleLatency::Most(Duration::ZERO) } else { IdleLatency::Keep };
        let governor = self.governor.clone().or_else(|| ours.then(|| "performance".into()));
        ProfileSettings {
            interrupts: serving(self.interrupts, some),
            softirqs: serving(self.softirqs, ours),
            napi_threads: self.napi_threads.unwrap_or(false),
            interrupt_affinity: self.interrupt_affinity.unwrap_or(bound),
            clear_steering: self.clear_steering.unwrap_or(bound),
            shield_interrupts: self.shield_interrupts.unwrap_or(isolates || ours),
            shield_workqueues: self.shield_workqueues.unwrap_or(isolates || ours),
            shield_watchdog: self.shield_watchdog.unwrap_or(isolates || ours),
            partition: self.has_partition(),
            idle_latency: self.idle_latency.unwrap_or(idle),
            governor: governor.filter(|governor| governor != Profile::KEEP),
            no_throttling: self.no_throttling.unwrap_or(ours && backend != Backend::Kernel),
            no_timer_migration: self.no_timer_migration.unwrap_or(ours),
            normal_grace_periods: self.normal_grace_periods.unwrap_or(isolates || ours),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(like: &str) -> Profile {
        let text = format!("system: s\ntasks: [{{name: a, period: 1ms, wcet: 1us}}]\nprofile: {like}\n");
        crate::System::parse(&text, "s.yaml").unwrap_or_else(|errors| panic!("{errors}")).profile.expect("a profile")
    }

    /// The columns of the table in `docs/reference/description.md`.
    #[test]
    fn each_set_up_adds_to_the_one_before() {
        let settings = |word| like(word).settings(Backend::Fifo);
        let none = settings("none");
        let keep = (Serving::Keep, IdleLatency::Keep, None);
        assert_eq!((none.interrupts, none.idle_latency, none.governor.clone()), keep);
        let real_time = ProfileSettings { interrupts: Serving::Above, ..none };
        assert_eq!(settings("real-time"), real_time);
        let affinity = ProfileSettings { interrupt_affinity: true, clear_steering: true, ..real_time };
        assert_eq!(settings("affinity"), affinity);
        let away = ProfileSettings {
            shield_interrupts: true,
            shield_workqueues: true,
            shield_watchdog: true,
            normal_grace_periods: true,
            ..affinity
        };
        assert_eq!(settings("isolation"), ProfileSettings { partition: true, ..away.clone() });
        let macrotick = ProfileSettings {
            softirqs: Serving::Above,
            idle_latency: IdleLatency::Most(Duration::ZERO),
            governor: Some("performance".into()),
            no_throttling: true,
            no_timer_migration: true,
            ..away
        };
        assert_eq!(settings("macrotick"), macrotick);
        let kernel = ProfileSettings { no_throttling: false, ..macrotick };
        assert_eq!(like("macrotick").settings(Backend::Kernel), kernel);
    }

    #[test]
    fn a_given_setting_wins() {
        let profile = like("{like: macrotick, interrupts: 85, softirqs: keep, governor: keep, idle-latency: 10us}");
        let settings = profile.settings(Backend::Kernel);
        assert_eq!((settings.interrupts, settings.softirqs), (Serving::Fixed(85), Serving::Keep));
        assert_eq!((settings.governor, settings.idle_latency), (None, IdleLatency::Most(Duration::from_micros(10))));
        assert!(settings.shield_interrupts && !settings.partition);
        let changes = |text| like(text).changes_something(Backend::Fifo);
        assert!(!changes("none") && !changes("{devices: [eth1]}"));
        assert!(changes("real-time") && changes("{softirqs: 95}"));
    }

    #[test]
    fn a_profile_is_written_as_it_is_read() {
        for text in ["isolation", "{like: affinity, devices: [eth1], cpus: [0], interrupts: above, partition: false}"] {
            let profile = like(text);
            let mut system = crate::System::named("s");
            system.tasks = vec![crate::Task::named("a", Duration::from_millis(1), Duration::from_micros(1))];
            system.profile = Some(profile.clone());
            let written = system.to_yaml();
            let again = crate::System::parse(&written, "s.yaml").unwrap_or_else(|errors| panic!("{written}{errors}"));
            assert_eq!(again.profile, Some(profile));
        }
        assert!(!crate::System::named("s").to_yaml().contains("profile"));
    }
}
