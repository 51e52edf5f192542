//! The kernel's selftests for timers, sleeps and time limits.

use super::program::Program;

/// Clocks that do not support sleeps, by their names in the selftests, and clocks of alarms, for which the lab has no
/// real-time clock. The last one is a number without a clock.
const NO_SLEEP: &[&str] = &[
    "CLOCK_PROCESS_CPUTIME_ID",
    "CLOCK_THREAD_CPUTIME_ID",
    "CLOCK_MONOTONIC_RAW",
    "CLOCK_REALTIME_COARSE",
    "CLOCK_MONOTONIC_COARSE",
    "CLOCK_REALTIME_ALARM",
    "CLOCK_BOOTTIME_ALARM",
    "UNKNOWN_CLOCKID",
];
const NO_SLEEP_BUT_CPU_TIME: &[&str] = &[
    "CLOCK_MONOTONIC_RAW",
    "CLOCK_REALTIME_COARSE",
    "CLOCK_MONOTONIC_COARSE",
    "CLOCK_REALTIME_ALARM",
    "CLOCK_BOOTTIME_ALARM",
];
const NO_CLOCK: &[&str] = &["CLOCK_REALTIME_ALARM", "CLOCK_BOOTTIME_ALARM", "UNKNOWN_CLOCKID"];
const NO_ALARMS: &[&str] = &["CLOCK_REALTIME_ALARM", "CLOCK_BOOTTIME_ALARM"];

/// The selftests that sleep.
pub const SLEEPING: &[Program] = &[
    Program::selftest("nanosleep", "./nanosleep", 100).skips(NO_SLEEP),
    Program::selftest("nsleep-lat", "./nsleep-lat", 300).skips(NO_SLEEP_BUT_CPU_TIME),
    Program::selftest("set-timer-lat", "./set-timer-lat", 300).skips(NO_ALARMS),
    Program::selftest("mqueue-lat", "./mqueue-lat", 60),
    Program::selftest("raw_skew", "./raw_skew", 300),
    Program::selftest("valid-adjtimex", "./valid-adjtimex", 60),
    Program::selftest("adjtick", "./adjtick", 300),
    Program::selftest("leap-a-day", "./leap-a-day -i 4", 300),
    Program::selftest("set-tai", "./set-tai", 60),
    Program::selftest("set-tz", "./set-tz", 60),
    // After a step of 4 %, the clock's rate is wrong by up to 0.1 ppm; the selftest expects at most 0.02 ppm.
    Program::selftest("freq-step", "./freq-step", 600).fails(&[]),
    // On the debug kernel, some of its ten threads are not yet asleep after the 10 ms that it waits.
    Program::selftest("futex_requeue", "./futex_requeue", 60).slow(),
    Program::selftest("futex_requeue_pi", "./futex_requeue_pi", 60),
    Program::selftest("futex_requeue_pi-b", "./futex_requeue_pi -b", 60),
    Program::selftest("futex_requeue_pi-o", "./futex_requeue_pi -b -o", 60),
    Program::selftest("futex_requeue_pi-5us", "./futex_requeue_pi -b -l -t 5000", 60),
    Program::selftest("futex_requeue_pi-500us", "./futex_requeue_pi -b -o -t 500000", 60),
    Program::selftest("futex_requeue_pi-2s", "./futex_requeue_pi -b -l -t 2000000000", 60),
    Program::selftest("futex_requeue_pi_mismatched_ops", "./futex_requeue_pi_mismatched_ops", 60),
    Program::selftest("futex_requeue_pi_signal_restart", "./futex_requeue_pi_signal_restart", 60),
    Program::selftest("futex_wait", "./futex_wait", 60),
    Program::selftest("futex_wait_private_mapped_file", "./futex_wait_private_mapped_file", 60),
    Program::selftest("futex_wait_timeout", "./futex_wait_timeout", 60),
    Program::selftest("futex_wait_uninitialized_heap", "./futex_wait_uninitialized_heap", 60),
    Program::selftest("futex_wait_wouldblock", "./futex_wait_wouldblock", 60),
    Program::selftest("futex_waitv", "./futex_waitv", 60),
    Program::selftest("nanosleep-fifo", "./beside.sh ./nanosleep", 100).skips(NO_SLEEP).slow(),
    Program::selftest("futex_wait_timeout-fifo", "./beside.sh ./futex_wait_timeout", 60),
    Program::selftest("futex_requeue_pi-fifo", "./beside.sh ./futex_requeue_pi -b -l -t 500000", 60),
];

/// The selftests that compute until an instant.
pub const SPINNING: &[Program] = &[
    // Linux 6.12 delivers signals of timers that were set again, deleted, or ignored for a while; Linux 6.13 withholds
    // them.
    Program::selftest("posix_timers", "./posix_timers", 100).fails(&[
        "check_sig_ign SIGEV_SIGNAL",
        "check_rearm",
        "check_delete",
    ]),
    Program::selftest("inconsistency-check", "./inconsistency-check -t 1", 60).skips(NO_CLOCK),
    Program::selftest("threadtest", "./threadtest -t 1", 60),
    Program::selftest("threadtest-i", "./threadtest -t 1 -i", 60),
];

/// The selftests that take long.
pub const LONG: &[Program] = &[
    // Its threads spin until all of them do, for longer than 30 s where CPUs take turns.
    Program::selftest("epoll60", "./epoll_wakeup_test -t epoll60", 60).punctual(),
    Program::selftest("epoll61", "./epoll_wakeup_test -t epoll61 -t epoll63", 60),
    Program::selftest("mqueue-lat-fifo", "./beside.sh ./mqueue-lat", 60),
    Program::selftest("leapcrash", "./leapcrash", 200),
    Program::selftest("clocksource-switch", "./short.sh clocksource-switch -t 1", 300).skips(NO_SLEEP),
    Program::selftest("skew_consistency", "./short.sh skew_consistency", 60),
    Program::selftest("set-2038", "./short.sh set-2038", 900).skips(NO_SLEEP),
    Program::selftest("change_skew", "./short.sh change_skew", 1500).skips(NO_SLEEP),
];

/// The selftests that are not run, with the reasons.
pub const NOT_RUN: &[(&str, &str)] = &[
    ("rtcpie", "needs a real-time clock, which the lab does not have"),
    ("alarmtimer-suspend", "needs a real-time clock; without one it ends without a test"),
];

/// The directories of the kernel's selftests. These tables have all their programs.
pub const DIRECTORIES: &[&str] = &["timers", "futex/functional", "filesystems/epoll"];
