//! Which mechanism fits a request, and why.

use macrotick_model::CpuSet;

use crate::request::{Mechanism, Request};

/// The part of a request that the choice depends on.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// The mechanism that the user wants.
    pub by: Option<Mechanism>,
    /// Whether all threads share the reservation.
    pub all_threads: bool,
    /// The first option that only SCHED_DEADLINE has.
    pub only_deadline: Option<&'static str>,
    /// The CPUs of the reservation.
    pub cpus: &'a CpuSet,
    /// Whether `--cpus` names them.
    pub names_cpus: bool,
    /// The number of threads of a running process; 0 for a program to start.
    pub threads: usize,
}

/// The part of the host that it depends on.
#[derive(Clone, Debug)]
pub struct Host<'a> {
    /// The CPUs of the program's root domain.
    pub domain: &'a CpuSet,
    /// Whether the host has groups with a budget.
    pub groups: &'a Result<(), NoGroups>,
}

/// The reason why a host has no groups with a budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoGroups {
    /// The kernel has no SCHED_DS.
    #[error("this kernel has no SCHED_DS: boot the Macrotick kernel")]
    NoClass,
    /// The control groups of version 2 do not have the cpu controller.
    #[error(
        "there is no hierarchy of control groups v2 with the cpu controller at /sys/fs/cgroup: boot with \
         systemd.unified_cgroup_hierarchy=1"
    )]
    NoHierarchy,
}

/// The mechanism, and why it is this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The reason, as a part of a sentence.
    pub reason: String,
}

/// The reason why no mechanism fits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It needs a group, and the host has none.
    #[error("it needs a group with a budget, because {need}; but {lack}{instead}")]
    NeedsGroup {
        /// The need.
        need: String,
        /// The reason why the host has none.
        lack: NoGroups,
        /// The alternative, as the end of the message.
        instead: &'static str,
    },
    /// SCHED_DEADLINE does not fit.
    #[error("SCHED_DEADLINE does not fit, because {need}: use --by group, or leave out --by{instead}")]
    NoDeadline {
        /// The reason.
        need: String,
        /// The alternative, as the end of the message.
        instead: &'static str,
    },
    /// The user wants a group, and the host has none.
    #[error("--by group does not fit: {0}")]
    NoGroup(#[from] NoGroups),
    /// Only SCHED_DEADLINE has the option, and the user wants a group.
    #[error("{0} is an option of SCHED_DEADLINE: a group with a budget has none like it. Leave out {0} or --by group")]
    GroupOption(&'static str),
    /// Only SCHED_DEADLINE has the option, and it does not fit.
    #[error(
        "{option} is an option of SCHED_DEADLINE, which does not fit, because {need}: leave out {option}{instead}"
    )]
    DeadlineOption {
        /// The option.
        option: &'static str,
        /// The reason.
        need: String,
        /// The alternative, as the end of the message.
        instead: &'static str,
    },
}

impl<'a> Wish<'a> {
    /// Returns the wish of a request for these CPUs, with this number of running threads.
    pub fn of(request: &Request, cpus: &'a CpuSet, threads: usize) -> Wish<'a> {
        let options = [(request.options.reclaim, "--reclaim"), (request.options.overrun_signal, "--overrun-signal")];
        Wish {
            by: request.by,
            all_threads: request.all_threads,
            only_deadline: options.into_iter().find(|(given, _)| *given).map(|(_, option)| option),
            cpus,
            names_cpus: request.cpus.is_some(),
            threads,
        }
    }
}

/// A reason against SCHED_DEADLINE.
struct Need {
    text: String,
    /// The alternative, as the end of a message.
    instead: &'static str,
    /// Whether `--by deadline` shows that the user knows.
    may_be_meant: bool,
}

/// Chooses the mechanism.
pub fn choose(wish: &Wish, host: &Host) -> Result<Choice, Misfit> {
    let need = needs_group(wish, host);
    let choice = |mechanism, reason: &str| Ok(Choice { mechanism, reason: reason.into() });
    match wish.by {
        Some(Mechanism::Group) => {
            if let Some(option) = wish.only_deadline {
                return Err(Misfit::GroupOption(option));
            }
            host.groups.clone()?;
            choice(Mechanism::Group, "--by says so")
        }
        Some(Mechanism::Deadline) => match need.filter(|need| !need.may_be_meant) {
            Some(Need { text, instead, .. }) => Err(Misfit::NoDeadline { need: text, instead }),
            None => choice(Mechanism::Deadline, "--by says so"),
        },
        None => match (need, wish.only_deadline) {
            (Some(Need { text, instead, .. }), Some(option)) => {
                Err(Misfit::DeadlineOption { option, need: text, instead })
            }
            (Some(Need { text, instead, .. }), None) => match host.groups {
                Ok(()) => choice(Mechanism::Group, &text),
                Err(lack) => Err(Misfit::NeedsGroup { need: text, lack: lack.clone(), instead }),
            },
            (None, Some(option)) => choice(Mechanism::Deadline, &format!("only it has {option}")),
            (None, None) if wish.threads == 1 => choice(Mechanism::Deadline, "the process has one thread"),
            (None, None) => {
                choice(Mechanism::Deadline, "the reservation is for one thread (--all-threads chooses a group)")
            }
        },
    }
}

/// Returns the reason why SCHED_DEADLINE is not enough.
fn needs_group(wish: &Wish, host: &Host) -> Option<Need> {
    let need = |text: String, instead, may_be_meant| Some(Need { text, instead, may_be_meant });
    if wish.all_threads {
        let text =
            "SCHED_DEADLINE reserves for one thread, and its children and further threads run without (--all-threads)";
        return need(text.into(), ". Without --all-threads one thread has the reservation", false);
    }
    let domain = host.domain;
    if !domain.as_slice().iter().all(|&cpu| wish.cpus.contains(cpu)) || (wish.names_cpus && wish.cpus != domain) {
        let who = if wish.names_cpus { "--cpus names" } else { "the affinity or cpuset of the program is" };
        let text = format!(
            "SCHED_DEADLINE moves threads between all CPUs of a root domain, here {}, and {who} {}",
            domain.words(),
            wish.cpus.words()
        );
        return need(text, ". Or widen --cpus to the domain, or run it in a cpuset partition of these CPUs", false);
    }
    if wish.threads > 1 {
        let text = format!("the process has {} threads, and SCHED_DEADLINE reserves for one of them", wish.threads);
        return need(text, ". With --by deadline only the thread of this id has the reservation", true);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Option<Mechanism> = Some(Mechanism::Deadline);
    const GROUP: Option<Mechanism> = Some(Mechanism::Group);

    fn wish(cpus: &CpuSet) -> Wish<'_> {
        Wish { by: None, all_threads: false, only_deadline: None, cpus, names_cpus: false, threads: 0 }
    }

    #[test]
    fn the_mechanism_that_fits_is_chosen_and_the_reason_named() {
        let [both, one]: [CpuSet; 2] = [[0, 1].into_iter().collect(), [1].into_iter().collect()];
        let all = |cpus| Wish { all_threads: true, ..wish(cpus) };
        let reclaim = |wish| Wish { only_deadline: Some("--reclaim"), ..wish };
        let named = |wish| Wish { names_cpus: true, ..wish };
        let by = |by, wish| Wish { by, ..wish };
        let threads = |threads, wish| Wish { threads, ..wish };
        let with = Ok(());
        let without = Err(NoGroups::NoClass);
        for (wish, groups, said) in [
            (wish(&both), &without, "Deadline: the reservation is for one thread"),
            (wish(&both), &with, "Deadline: the reservation is for one thread"),
            (named(wish(&both)), &with, "Deadline: the reservation"),
            (threads(1, wish(&both)), &with, "Deadline: the process has one thread"),
            (reclaim(wish(&both)), &with, "Deadline: only it has --reclaim"),
            (all(&both), &with, "Group: SCHED_DEADLINE reserves for one thread"),
            (all(&both), &without, "it needs a group with a budget, because SCHED_DEADLINE reserves for one thread"),
            (threads(3, wish(&both)), &with, "Group: the process has 3 threads"),
            (threads(3, wish(&both)), &without, "With --by deadline only the thread of this id has the reservation"),
            (by(DEADLINE, threads(3, wish(&both))), &with, "Deadline: --by says so"),
            (wish(&one), &with, "here the CPUs 0, 1, and the affinity or cpuset of the program is CPU 1"),
            (named(wish(&one)), &with, "Group: SCHED_DEADLINE moves threads between all CPUs of a root domain"),
            (named(wish(&one)), &without, "--cpus names CPU 1; but this kernel has no SCHED_DS: boot the Macrotick"),
            (by(DEADLINE, named(wish(&one))), &with, "SCHED_DEADLINE does not fit, because"),
            (by(DEADLINE, all(&both)), &with, "SCHED_DEADLINE does not fit, because"),
            (by(GROUP, wish(&both)), &with, "Group: --by says so"),
            (by(GROUP, wish(&both)), &without, "--by group does not fit: this kernel has no SCHED_DS"),
            (by(GROUP, wish(&both)), &Err(NoGroups::NoHierarchy), "--by group does not fit: there is no hierarchy"),
            (by(GROUP, reclaim(wish(&both))), &with, "Leave out --reclaim or --by group"),
            (reclaim(all(&both)), &with, "--reclaim is an option of SCHED_DEADLINE, which does not fit, because"),
        ] {
            let told = match choose(&wish, &Host { domain: &both, groups }) {
                Ok(choice) => format!("{:?}: {}", choice.mechanism, choice.reason),
                Err(misfit) => misfit.to_string(),
            };
            assert!(told.contains(said), "{wish:?}: {told}");
        }
    }

    #[test]
    fn more_cpus_than_those_of_the_domain_are_no_domain() {
        let [domain, more]: [CpuSet; 2] = [[0, 1].into_iter().collect(), [0, 1, 2].into_iter().collect()];
        let host = Host { domain: &domain, groups: &Err(NoGroups::NoClass) };
        assert!(choose(&wish(&more), &host).is_ok());
        assert!(choose(&Wish { names_cpus: true, ..wish(&more) }, &host).is_err());
    }
}
