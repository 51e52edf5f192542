use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use macrotick_fixtures::{ms, us};

use super::*;

fn name() -> String {
    "a".into()
}

fn cpus() -> CpuSet {
    [0].into_iter().collect()
}

fn failed() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

fn about_the_plan() -> Vec<NodeError> {
    let backend = Backend::User;
    let mut all = vec![
        NodeError::PlanVersion(7),
        NodeError::NotPositive { what: "cycle", value: Duration::ZERO },
        NodeError::TooLong { what: "duration", value: ms(2), most: ms(1) },
        NodeError::LeftOpen(name()),
        NodeError::NoActivation(name()),
        NodeError::NoEntity(name()),
        NodeError::NoWindow(name()),
        NodeError::Migrates(name()),
        NodeError::MigrateBackend { task: name(), cpus: cpus(), backend },
        NodeError::ClockBackend(backend),
        NodeError::NameTooLong(name()),
        NodeError::PoolBackend { pool: name(), backend },
        NodeError::SupplyBackend { task: name(), backend },
        NodeError::GroupBackend { group: name(), load: name(), backend },
        NodeError::PartitionBackend(Backend::User),
        NodeError::StraddlesPartition { name: name(), cpus: cpus(), isolated: cpus() },
        NodeError::Straddles { name: name(), cpus: cpus(), domain: cpus() },
        NodeError::ChangeRefused { text: name(), wrong_input: true },
    ];
    let faults = [
        ChangeFault::Windows { running: true },
        ChangeFault::Clock { running: "CLOCK_TAI", wanted: "CLOCK_MONOTONIC" },
        ChangeFault::Namespaces,
        ChangeFault::Groups,
        ChangeFault::Reservations,
        ChangeFault::Refills,
        ChangeFault::Moves { name: name(), running: cpus(), wanted: cpus() },
        ChangeFault::Pool { pool: name(), key: "cgroup" },
        ChangeFault::Kind(name()),
    ];
    all.extend(faults.map(NodeError::Change));
    all
}

fn about_the_host() -> Vec<NodeError> {
    let call = || HostFailure::Call { what: "call".into(), source: failed() };
    let limit = ms(1);
    let mut all = vec![
        NodeError::CpuOffline { name: name(), cpu: 7 },
        NodeError::NoProgram { name: name(), program: name() },
        NodeError::NoDirectory { name: name(), directory: name() },
        NodeError::User { name: name(), user: name(), reason: name() },
        NodeError::Container { name: name(), fault: name() },
        NodeError::Refused(Refusal::Header),
        NodeError::Spawn { name: name(), program: name(), source: failed() },
        NodeError::Died { name: name(), status: ExitStatus::from_raw(0), output: Tail::default() },
        NodeError::NotReady { name: name(), stage: "ready", limit, doing: "sleeps", output: Tail::default() },
        NodeError::ShortWindow { task: name(), length: us(1), cpu: 0, needed: us(2), lead: None },
        NodeError::Host(call()),
        NodeError::Pin { name: name(), cpus: cpus(), source: failed() },
        NodeError::EpochPassed { late: limit, delay: limit },
        NodeError::Trace(call()),
        NodeError::ChangeRefused { text: name(), wrong_input: false },
        NodeError::Control { what: "make", path: "/run".into(), source: failed() },
        NodeError::NoAnswer,
        NodeError::Protocol(name()),
        NodeError::Interrupted("SIGINT"),
        NodeError::System { what: "calling", source: failed() },
    ];
    all.extend([ChangeFault::UnderWay, ChangeFault::Ending, ChangeFault::TableGone].map(NodeError::Change));
    all
}

#[test]
fn each_error_is_about_the_plan_or_about_the_host() {
    for error in about_the_plan() {
        assert!(error.is_about_the_plan(), "{error:?}");
    }
    for error in about_the_host() {
        assert!(!error.is_about_the_plan(), "{error:?}");
    }
}

#[test]
fn a_process_that_cannot_be_started_has_its_reason() {
    let told = |errno| {
        let source = io::Error::from_raw_os_error(errno);
        NodeError::Spawn { name: "h.505".into(), program: "/proc/self/exe".into(), source }.with_reason()
    };
    let text = "cannot start `h.505` (/proc/self/exe): No such file or directory (os error 2)";
    assert_eq!(told(libc::ENOENT), text);
    let (text, most) = (told(libc::EMFILE), limits::most());
    assert!(text.ends_with(&format!(": this process may have {most} files open (ulimit -Hn)")), "{text}");
    assert!(text.contains("Too many open files"), "{text}");
}
