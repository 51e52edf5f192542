//! Clocks, their synchronisation, and measured delays.

use macrotick_model::Duration;

use super::judging::{cpu_words, few};
use crate::check::{Check, Mend, Verdict};
use crate::host::{Host, Measured};
use crate::needs::Needs;

pub(super) const CHECKS: [Check; 6] = [
    Check {
        name: "tai-offset",
        rank: 21,
        states: "The offset of CLOCK_TAI is set.",
        why: "Without it CLOCK_TAI is UTC: hosts and gates disagree by the leap seconds.",
        source: "adjtimex(2)",
        reads: &[],
        is_needed: |needs| needs.tai.is_some(),
        judge: tai_offset,
    },
    Check {
        name: "synchronisation",
        rank: 22,
        states: "The clock is synchronised, with an error below the bound of the plan, if it is known.",
        why: "Tables and gates of several hosts are only as close to each other as their clocks.",
        source: "adjtimex(2), STA_UNSYNC and esterror",
        reads: &[],
        is_needed: |needs| needs.tai.is_some(),
        judge: synchronisation,
    },
    Check {
        name: "clock-programs",
        rank: 23,
        states: "One program sets the clock.",
        why: "Two of them correct each other, and the clock moves back and forth.",
        source: "rtcqs; linuxptp",
        reads: &[],
        is_needed: |needs| needs.tai.is_some(),
        judge: programs,
    },
    Check {
        name: "stolen-time",
        rank: 60,
        states: "Nothing takes a CPU away for more than 50 us without the kernel.",
        why: "Firmware (SMI), a hypervisor or a long interrupt stops every thread, windows included.",
        source: "Documentation/trace/hwlat_detector.rst",
        reads: &[],
        is_needed: |_| true,
        judge: stolen,
    },
    Check {
        name: "op-tee",
        rank: 67,
        states: "No secure world takes the CPU away.",
        why: "A fast call of OP-TEE, and its own interrupts, run with the interrupts of Linux masked.",
        source: "Documentation/core-api/real-time/hardware.rst",
        reads: &[
            "/sys/bus/tee/devices/*/uevent",
            "/sys/class/tee/*/dev",
            "/proc/device-tree/firmware/optee/compatible",
        ],
        is_needed: |_| false,
        judge: op_tee,
    },
    Check {
        name: "timer-latency",
        rank: 70,
        states: "A sleep ends within 200 us of its instant.",
        why: "A late timer delays every start of a job that is not led, and every end of a window.",
        source: "cyclictest(8)",
        reads: &[],
        is_needed: |_| true,
        judge: timers,
    },
];

fn tai_offset(host: &Host, needs: &Needs) -> Verdict {
    let Some(clock) = host.clock else { return Verdict::unknown("the capture has no clock") };
    if clock.tai_offset_s != 0 {
        return Verdict::good(format!("{} s", clock.tai_offset_s));
    }
    if needs.tai.is_none() {
        return Verdict::absent("the plan does not follow CLOCK_TAI");
    }
    let mend = Mend::Change("let phc2sys, ptp4l or chronyd (`leapsectz right/UTC`) set it".into());
    Verdict::bad("0 s", "37 s since 2017", [mend])
}

fn synchronisation(host: &Host, needs: &Needs) -> Verdict {
    let Some(clock) = host.clock else { return Verdict::unknown("the capture has no clock") };
    let error = clock.estimated_error_us.map(Duration::from_micros);
    let observed = match (clock.synchronised, error) {
        (true, Some(error)) => format!("synchronised, estimated error {error}"),
        (true, None) => "synchronised by a program that estimates no error, such as linuxptp".into(),
        (false, _) => "not synchronised".into(),
    };
    match needs.tai {
        None if clock.synchronised => Verdict::good(observed),
        None => Verdict::absent("not synchronised, and the plan does not follow CLOCK_TAI"),
        Some(bound) if clock.synchronised && error.is_none_or(|error| error <= bound) => Verdict::good(observed),
        Some(bound) => {
            let mend = Mend::Change("run one of ptp4l with phc2sys, or chronyd, and wait until it has settled".into());
            Verdict::bad(observed, format!("synchronised, estimated error at most {bound}"), [mend])
        }
    }
}

/// Programs that set the clock, as threads are called.
const PROGRAMS: [(&str, &str); 5] = [
    ("phc2sys", "phc2sys"),
    ("chronyd", "chronyd"),
    ("systemd-timesyn", "systemd-timesyncd"),
    ("ntpd", "ntpd"),
    ("openntpd", "openntpd"),
];

fn programs(host: &Host, needs: &Needs) -> Verdict {
    let runs = |name: &str| host.threads.iter().any(|thread| !thread.is_kernel && thread.name == name);
    let found: Vec<&str> = PROGRAMS.into_iter().filter(|(name, _)| runs(name)).map(|(_, told)| told).collect();
    match found[..] {
        [] if needs.tai.is_some() => {
            let mend = Mend::Change("run ptp4l with phc2sys, or chronyd".into());
            Verdict::bad("none", "one program", [mend])
        }
        [] => Verdict::absent("no program sets the clock"),
        [one] => Verdict::good(one),
        [keep, ref others @ ..] => {
            let mend: Vec<Mend> =
                others.iter().map(|name| Mend::Run(format!("systemctl disable --now {name}"))).collect();
            Verdict::bad(found.join(", "), format!("only one, for example {keep}"), mend)
        }
    }
}

/// The longest time that a CPU may be away, in nanoseconds.
const AWAY: u64 = 50_000;

/// Writes a length with one digit after the point.
fn us(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

fn planned<'a>(host: &'a Host, needs: &'a Needs) -> Vec<&'a Measured> {
    let is_planned = |cpu| needs.cpus.is_empty() || needs.cpus.contains(&cpu);
    host.measured.iter().filter(|measured| is_planned(measured.cpu)).collect()
}

fn worst<'a>(measured: &[&'a Measured], value: impl Fn(&Measured) -> u64) -> Option<&'a Measured> {
    measured.iter().copied().max_by_key(|measured| value(measured))
}

fn stolen(host: &Host, needs: &Needs) -> Verdict {
    let measured = planned(host, needs);
    let Some(worst) = worst(&measured, |measured| measured.longest_gap_ns) else {
        return Verdict::unknown("the capture has no measurement");
    };
    let cpus = measured.iter().map(|measured| measured.cpu).collect();
    let observed = format!(
        "at most {} on CPU {}, in a spin of {} on {}; {} gaps above 10 us there, {} in all",
        us(worst.longest_gap_ns),
        worst.cpu,
        us(worst.spin_ns),
        cpu_words(&cpus),
        worst.gaps,
        us(worst.stolen_ns),
    );
    match worst.longest_gap_ns <= AWAY {
        true => Verdict::good(observed),
        false => {
            let firmware = "look for its cause with the tracer hwlat: firmware, a hypervisor, or an interrupt";
            Verdict::bad(observed, format!("at most {}", us(AWAY)), [Mend::Change(firmware.into())])
        }
    }
}

fn op_tee(host: &Host, _: &Needs) -> Verdict {
    let devices = host.matching("/sys/class/tee/*/dev");
    let names: Vec<String> = devices.iter().map(|found| found.parts[0].to_owned()).collect();
    match names.is_empty() && host.text("/proc/device-tree/firmware/optee/compatible").is_none() {
        true => Verdict::absent("the host has no trusted execution environment"),
        false => Verdict::noted(format!("{}: its calls and interrupts cannot be masked", few(names).join(", "))),
    }
}

/// The longest lateness of a sleep, in nanoseconds.
const LATE: u64 = 200_000;

fn timers(host: &Host, needs: &Needs) -> Verdict {
    let measured = planned(host, needs);
    let Some(worst) = worst(&measured, |measured| measured.sleep_worst_ns) else {
        return Verdict::unknown("the capture has no measurement");
    };
    let policy = if worst.was_fifo { "SCHED_FIFO" } else { "SCHED_OTHER" };
    let observed = format!(
        "median {}, at most {} of {} sleeps on CPU {} under {policy}",
        us(worst.sleep_median_ns),
        us(worst.sleep_worst_ns),
        worst.sleeps,
        worst.cpu
    );
    match worst.sleep_worst_ns <= LATE {
        true => Verdict::good(observed),
        false if !worst.was_fifo => Verdict::unknown(format!("{observed}: only root can sleep under SCHED_FIFO")),
        false => {
            let change = Mend::Change("mend the other findings first; then trace with `osnoise` or `timerlat`".into());
            Verdict::bad(observed, format!("at most {}", us(LATE)), [change])
        }
    }
}
