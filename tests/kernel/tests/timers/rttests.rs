//! The programs of rt-tests.
//!
//! The bounds of latencies are for one CPU of the lab at 4 ns per instruction, with and without TimerShield. Events
//! coincide differently in every build: the bounds are some times the measured latencies. They detect timers that are
//! forgotten or served in the wrong order, but not small delays.

use super::program::{Latency, Program, Wants};

/// Five threads of one priority that wake up at once need half of this time.
const BOUND_US: i64 = 300;

const fn cycles(cycles: u64, bound_us: i64) -> Wants {
    Wants::Cycles { cycles, latency: Latency::AtMost(bound_us) }
}

const fn samples(samples: u64, bound_us: i64) -> Wants {
    Wants::Samples { samples, latency: Latency::AtMost(bound_us) }
}

/// The expected number of cycles. If a signal comes later than the next expiry, cyclictest counts it as early.
const SIGNALS: Wants = Wants::Cycles { cycles: 200, latency: Latency::Any };

pub const ALL: &[Program] = &[
    Program::rttest("cyclictest", "cyclictest -qm -p 80 -i 500 -l 1000 --json=/tmp/json", cycles(1000, BOUND_US)),
    Program::rttest(
        "cyclictest-priorities",
        "cyclictest -qm -p 80 -t 5 -d 250 -i 500 -l 500 --priospread --json=/tmp/json",
        cycles(500, BOUND_US),
    ),
    Program::rttest(
        "cyclictest-together",
        "cyclictest -qm -p 80 -t 5 -d 0 -i 500 -l 500 --json=/tmp/json",
        cycles(500, BOUND_US),
    )
    .slow(),
    Program::rttest(
        "cyclictest-rr",
        "cyclictest -qm -p 80 -t 4 -d 250 -i 500 -l 500 --policy=rr --json=/tmp/json",
        cycles(500, BOUND_US),
    )
    .slow(),
    Program::rttest("cyclictest-smp", "cyclictest -qm -p 80 -S -i 500 -l 500 --json=/tmp/json", cycles(500, BOUND_US))
        .slow(),
    Program::rttest(
        "cyclictest-realtime",
        "cyclictest -qm -p 80 -c 1 -i 500 -l 500 --json=/tmp/json",
        cycles(500, BOUND_US),
    )
    .slow(),
    Program::rttest(
        "cyclictest-relative",
        "cyclictest -qm -p 80 -t 3 -d 250 -i 500 -l 500 -r --json=/tmp/json",
        cycles(500, BOUND_US),
    )
    .slow(),
    Program::rttest(
        "cyclictest-nanosleep",
        "cyclictest -qm -p 80 -t 3 -d 250 -i 500 -l 500 -s --json=/tmp/json",
        cycles(500, BOUND_US),
    ),
    Program::rttest(
        "cyclictest-other",
        "cyclictest -qm --policy=other -t 4 -d 250 -i 500 -l 500 --json=/tmp/json",
        cycles(500, 10_000),
    )
    .slow(),
    Program::rttest(
        "cyclictest-timers",
        "cyclictest -qm -p 80 -t 3 -d 500 -i 2000 -l 200 -x --json=/tmp/json",
        SIGNALS,
    ),
    Program::rttest(
        "cyclictest-timers-relative",
        "cyclictest -qm -p 80 -t 3 -d 500 -i 2000 -l 200 -x -r --json=/tmp/json",
        SIGNALS,
    ),
    // With shorter intervals, the run time is below 2 ms, which SCHED_DEADLINE refuses without HRTICK.
    Program::rttest("cyclicdeadline", "cyclicdeadline -q -i 10000 -D 1 --json=/tmp/json", cycles(100, BOUND_US)),
    // Without -P it computes for its whole budget, exact to a microsecond. If it overruns, it misses half of its
    // periods.
    Program::rttest(
        "deadline_test",
        "deadline_test -t 1 -i 10000 -p 30 -P 95",
        Wants::Says("missed deadlines  = 0\nmissed periods    = 0"),
    )
    .punctual()
    .slow(),
    Program::rttest("pi_stress", "pi_stress -q -D 1 -g 1", Wants::Says("Total inversion performed: ")),
    Program::rttest("pip_stress", "pip_stress", Wants::Says("inversion")),
    Program::rttest("pmqtest", "pmqtest -q -p 80 -i 500 -l 300 --json=/tmp/json", samples(300, BOUND_US)),
    Program::rttest("ptsematest", "ptsematest -q -p 80 -i 500 -l 300 --json=/tmp/json", samples(300, BOUND_US)),
    Program::rttest("sigwaittest", "sigwaittest -q -p 80 -i 500 -l 300 --json=/tmp/json", samples(300, BOUND_US)),
    Program::rttest(
        "sigwaittest-fork",
        "sigwaittest -q -p 80 -i 500 -l 300 -f --json=/tmp/json",
        samples(300, BOUND_US),
    )
    .slow(),
    // It makes its key from the file that the shell names in `_`.
    Program::rttest(
        "svsematest",
        "env _=/usr/bin/svsematest svsematest -q -p 80 -i 500 -l 300 --json=/tmp/json",
        samples(300, BOUND_US),
    ),
    Program::rttest(
        "svsematest-fork",
        "env _=/usr/bin/svsematest svsematest -q -p 80 -i 500 -l 300 -f --json=/tmp/json",
        samples(300, BOUND_US),
    )
    .slow(),
    // Its second thread sleeps for 10 ms in each cycle.
    Program::rttest("signaltest", "signaltest -q -m -p 80 -l 300 --json=/tmp/json", cycles(300, 10_000 + BOUND_US)),
    Program::rttest("rt-migrate-test", "rt-migrate-test -l 5", Wants::Says("Task 1 (prio 3)")),
    Program::rttest("rt-migrate-test-check", "rt-migrate-test -c -l 5", Wants::Says("Task 1 (prio 3)")).punctual(),
    Program::rttest("ssdd", "ssdd -q -i 100 -f 2", Wants::Says("All tests PASSED.")),
    Program::rttest("hackbench", "hackbench -g 2 -l 20", Wants::Says("Time: ")).slow(),
    Program::rttest("timershield", "cat /sys/kernel/debug/timershield", Wants::Counters),
];
