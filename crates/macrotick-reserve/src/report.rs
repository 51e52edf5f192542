//! The result, for people and for programs.

use std::fmt;
use std::path::PathBuf;

use macrotick_model::{CpuSet, Duration};
use serde::Serialize;

use crate::admission::Guarantee;
use crate::budget::Budget;
use crate::choice::Choice;
use crate::facts::Facts;
use crate::request::{Mechanism, Request, Target};

/// The reservation, its mechanism and the reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Why it is this one.
    pub reason: String,
    /// The CPU time in each period.
    pub runtime: Duration,
    /// The period.
    pub period: Duration,
    /// The time from the begin of a period in which the runtime is there.
    pub deadline: Duration,
    /// The CPUs.
    pub cpus: CpuSet,
    /// The process, if it runs already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// The group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupReport>,
    /// The statement of the analysis.
    pub guarantee: String,
    /// Effects that the user must know.
    pub remarks: Vec<String>,
}

/// The group of a reservation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupReport {
    /// The budget in each server period, on each CPU.
    pub budget: Duration,
    /// The server period.
    pub server_period: Duration,
    /// The group priority.
    pub priority: u32,
    /// The share of each CPU, in percent.
    pub percent: f64,
    /// Its directory.
    pub path: PathBuf,
}

impl Report {
    /// Makes the report of a choice, before the admission.
    pub(crate) fn new(request: &Request, choice: &Choice) -> Report {
        let times = request.times;
        let pid = match request.target {
            Target::Process(pid) => Some(pid),
            Target::Program(_) => None,
        };
        Report {
            mechanism: choice.mechanism,
            reason: choice.reason.clone(),
            runtime: times.runtime,
            period: times.period,
            deadline: times.deadline,
            cpus: CpuSet::default(),
            pid,
            group: None,
            guarantee: String::new(),
            remarks: Vec::new(),
        }
    }

    /// Adds an admission by SCHED_DEADLINE.
    pub(crate) fn by_deadline(&mut self, request: &Request, facts: &Facts, guarantee: Guarantee) {
        self.cpus = facts.domain.clone();
        self.guarantee = match guarantee {
            Guarantee::Deadlines => "the runtime is there by each deadline".into(),
            Guarantee::Late(late) => format!("the runtime may come up to {late} after the deadline"),
            Guarantee::Unknown(reason) => format!("no bound is known: {reason}"),
        };
        self.remarks.push("children and further threads run without the reservation (SCHED_RESET_ON_FORK)".into());
        if request.options.overrun_signal {
            let text = "the kernel sends SIGXCPU at each overrun, which ends a program that does not handle it";
            self.remarks.push(text.into());
        }
        if request.options.reclaim {
            self.remarks.push("the thread may also use time that other reservations leave unused".into());
        }
    }

    /// Adds an admission as a group.
    pub(crate) fn by_group(&mut self, request: &Request, budget: &Budget, path: PathBuf) {
        self.cpus = budget.cpus.iter().copied().collect();
        self.group = Some(GroupReport {
            budget: budget.length,
            server_period: budget.server_period,
            priority: budget.priority,
            percent: budget.percent(),
            path,
        });
        let each = if budget.cpus.len() > 1 { " on each CPU" } else { "" };
        self.guarantee = format!("the runtime is there by each deadline{each}");
        self.remarks.push("the budget is a limit, too: beyond it the threads wait for the next server period".into());
        if request.cpus.is_none() {
            self.remarks.push("one CPU has the budget, and all threads run on it; --cpus names several".into());
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mechanism = match self.mechanism {
            Mechanism::Deadline => "SCHED_DEADLINE, for one thread",
            Mechanism::Group => "a group with a budget, for the process tree",
        };
        let share = self.runtime.as_secs_f64() * 100.0 / self.period.as_secs_f64();
        write!(f, "{} in each {}", self.runtime, self.period)?;
        if self.deadline != self.period {
            write!(f, ", within {}", self.deadline)?;
        }
        writeln!(f, " ({share:.1} % of a CPU), on {}", self.cpus.words())?;
        writeln!(f, "  by {mechanism}: {}", self.reason)?;
        if let Some(group) = &self.group {
            let GroupReport { budget, server_period, priority, percent, .. } = group;
            writeln!(
                f,
                "  {budget} in each server period of {server_period} ({percent:.1} %), group priority {priority}"
            )?;
        }
        write!(f, "  {}", self.guarantee)?;
        self.remarks.iter().try_for_each(|remark| write!(f, "\n  {remark}"))
    }
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::us;
    use macrotick_host::sys::DeadlineOptions;
    use macrotick_model::Group;

    use super::*;
    use crate::request::Times;

    #[test]
    fn a_group_is_shown_with_its_budget() {
        let request = Request {
            target: Target::Program(vec!["mpv".into()]),
            times: Times { runtime: us(10_000), period: us(41_708), deadline: us(20_000) },
            cpus: None,
            all_threads: true,
            options: DeadlineOptions::default(),
            by: None,
        };
        let choice = Choice { mechanism: Mechanism::Group, reason: "it needs one".into() };
        let declared = Group::named("reserve", vec![1]);
        let budget = Budget { cpus: vec![1], length: us(650), server_period: us(2500), priority: 3, declared };
        let mut report = Report::new(&request, &choice);
        report.by_group(&request, &budget, "/sys/fs/cgroup/g".into());
        assert_eq!(
            report.to_string(),
            "10ms in each 41708us, within 20ms (24.0 % of a CPU), on CPU 1\n  \
             by a group with a budget, for the process tree: it needs one\n  \
             650us in each server period of 2500us (26.0 %), group priority 3\n  \
             the runtime is there by each deadline\n  \
             the budget is a limit, too: beyond it the threads wait for the next server period\n  \
             one CPU has the budget, and all threads run on it; --cpus names several"
        );
    }
}
