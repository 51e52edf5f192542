//! Exact gates of taprio: `net/sched/sch_taprio_gate.c` in the kernel's overlay.

use macrotick_uapi as abi;

use super::containers::unshare;
use super::{is_slow, Scenario};
use crate::board::Board;
use crate::check::{Check, Explain};
use crate::process::{self, check_in_child};
use crate::random::{variation, Random};
use crate::sys::{self, SchedAttr};
use crate::taprio::{self, Taprio, EXACT, OTHERS};
use crate::wire::{self, Wire, CRITICAL};
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("gates_refusals", refusals),
    Scenario::new("gates_without_privilege", without_privilege),
    Scenario::new("gates_open_on_the_instant", || on_the_instant(0)).punctual(),
    Scenario::new("gates_open_on_the_instant_beside_hogs", || on_the_instant(4)).punctual(),
    Scenario::new("gates_close", close).punctual(),
    Scenario::new("gates_swap", swap).punctual(),
    Scenario::new("gates_after_a_pause", after_a_pause).punctual(),
    Scenario::new("gates_of_a_link_that_comes_back", link).punctual(),
    Scenario::new("gates_thread_ends", thread_ends),
    Scenario::new("gates_storm", || storm(200)).within(60_000),
    Scenario::new("gates_storm_2", || storm(200)).on(2).within(120_000),
    Scenario::new("full_gates_storm", || storm(5000)).within(1_200_000),
    Scenario::new("full_gates_storm_2", || storm(5000)).on(2).within(2_400_000),
];

/// The kernel's own number, which taprio returns to user space.
const ENOTSUPP: i32 = 524;
const MS: i64 = 1_000_000;
/// The tick, which comes every millisecond, sweeps over it.
const CYCLE: i64 = 1_010_000;
const OPEN: i64 = 700_000;
/// Class 1 has the last 310 us of each cycle, class 0 the rest.
const LIST: [(u32, u32); 2] = [(1, OPEN as u32), (2, (CYCLE - OPEN) as u32)];
/// The longest way of a frame from its gate to the time stamp at 4 ns an instruction, with interrupts in between.
/// On slow kernels a path may be longer than the lead: there, frames only have to arrive.
const PATH_NS: i64 = 20_000;
/// Cycles before the first frame. The kernel patches itself for the receiver's time stamps meanwhile.
const START: i64 = 100;
/// Sets gates on the sender's interface, in its namespace.
fn set(taprio: &Taprio) -> Result<(), i32> {
    taprio.set(taprio::index(wire::SENDER))
}

/// Runs a check in namespace `a`.
fn in_sender(body: impl FnOnce() -> Check) -> Check {
    check_in_child(10_000_000_000, || wire::enter("a").and_then(|()| body()))
}

/// Sets gates, and puts their thread above the threads of interrupts.
fn configure(taprio: &Taprio) -> Check {
    in_sender(|| set(taprio).explain("set gates"))?;
    sys::set_sched(process::kernel_thread("gate/va")?, SchedAttr::fifo(98)).explain("the policy of the gate's thread")
}

/// Checks which requests fail, and that a running list goes on after them.
fn refusals() -> Check {
    let _wire = Wire::new()?;
    in_sender(|| {
        let good = Taprio::exact(&LIST);
        let refused = |what: &str, taprio: Taprio, errno: i32| -> Check {
            ensure_eq!(set(&taprio), Err(errno), "{what}");
            Ok(())
        };
        let each = || -> Check {
            refused("a lead below 1 us", Taprio { lead: Some(999), ..good.clone() }, libc::ERANGE)?;
            refused("a lead above 1 ms", Taprio { lead: Some(1_000_001), ..good.clone() }, libc::ERANGE)?;
            let longer = Some(2 * CYCLE);
            refused("a cycle beyond the entries", Taprio { cycle: longer, ..good.clone() }, libc::EINVAL)?;
            refused("a cycle within the entries", Taprio { cycle: Some(CYCLE / 2), ..good.clone() }, libc::EINVAL)?;
            let long = vec![(3, 10_000); 1025];
            refused("too many entries", Taprio { entries: long, ..good.clone() }, libc::E2BIG)?;
            refused("leads of half a cycle", Taprio { lead: Some(252_501), ..good.clone() }, libc::ERANGE)?;
            refused("no entry", Taprio { entries: Vec::new(), ..good.clone() }, libc::EINVAL)
        };
        each()?;
        for other in OTHERS {
            let flags = Some(EXACT | other);
            refused("two kinds of gates", Taprio { flags, ..good.clone() }, libc::EINVAL)?;
        }
        let lead_of_others = Taprio { flags: None, lead: Some(10_000), ..good.clone() };
        refused("a lead of gates that are not exact", lead_of_others, libc::EINVAL)?;
        set(&good).explain("exact gates")?;
        each()?;
        refused("gates that are not exact any more", Taprio { flags: None, ..good.clone() }, libc::EOPNOTSUPP)?;
        refused("another clock", Taprio { clock: libc::CLOCK_MONOTONIC, ..good.clone() }, ENOTSUPP)?;
        for lead in [1000, 250_000] {
            set(&Taprio { lead: Some(lead), ..good.clone() }).explain("another lead")?;
        }
        let most = vec![(3, 10_000); 1024];
        set(&Taprio { entries: most, lead: Some(5000), ..good.clone() }).explain("as many entries as possible")?;
        process::kernel_thread("gate/va").map(drop)?;
        taprio::remove(taprio::index(wire::SENDER)).explain("remove")
    })
}

/// Checks that the administrator of a network namespace needs CAP_SYS_NICE for exact gates, to make them and to change
/// them. Any user can have a namespace of his own.
fn without_privilege() -> Check {
    let _wire = Wire::new()?;
    let good = Taprio::exact(&LIST);
    let refused = |whose: &str| -> Check {
        ensure_eq!(set(&good), Err(libc::EPERM), "exact gates, {whose}");
        Ok(())
    };
    in_sender(|| {
        sys::drop_capability(sys::CAP_SYS_NICE).explain("drop CAP_SYS_NICE")?;
        refused("by an administrator of networks")?;
        set(&Taprio { flags: None, ..good.clone() }).explain("gates that are not exact")
    })?;
    in_sender(|| taprio::remove(taprio::index(wire::SENDER)).explain("remove"))?;
    process::check_in_child(10_000_000_000, || {
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)?;
        std::fs::write("/proc/self/uid_map", "0 0 1").map_err(|error| format!("uid_map: {error}"))?;
        wire::make_pair()?;
        refused("by root of a user namespace")?;
        set(&Taprio { flags: None, ..good.clone() }).explain("gates that are not exact, by root of a user namespace")
    })?;
    ensure!(process::kernel_thread("gate/va").is_err(), "there is a thread after refused requests");
    in_sender(|| {
        set(&good).explain("exact gates")?;
        sys::drop_capability(sys::CAP_SYS_NICE).explain("drop CAP_SYS_NICE")?;
        refused("by an administrator of networks, of gates that exist")
    })
}

/// Sends a frame of each priority at these phases of each cycle, from a cycle in the near future on.
fn send_at(phases: &'static [(i64, i32)], cycles: u64, size: usize) {
    process::fork(move || {
        let work = || -> Check {
            wire::enter("a")?;
            let sockets = phases.iter().map(|(_, priority)| wire::sender(*priority)).collect::<Check<Vec<_>>>()?;
            // Below the gate's thread, which is also above the end of this process.
            sys::set_sched(0, SchedAttr::fifo(40)).explain("policy")?;
            let first = sys::tai_ns() / CYCLE as u64 + START as u64;
            let mut frame = vec![0u8; size];
            for cycle in first..first + cycles {
                for (socket, (phase, priority)) in sockets.iter().zip(phases) {
                    sys::sleep_until_on(libc::CLOCK_TAI, cycle * CYCLE as u64 + *phase as u64);
                    frame[..8].copy_from_slice(&(*priority as u64).to_ne_bytes());
                    // A full queue is no failure of the scenario.
                    let _ = socket.send(&frame);
                }
            }
            Ok(())
        };
        i32::from(work().is_err())
    });
}

/// Receives in namespace `b` and judges the phase of each arrival; `judge` gets the priority and the phase in ns.
fn receive(count: u64, judge: impl Fn(u64, i64) -> Check, at_end: impl FnOnce(Vec<i64>) -> Check) -> Check {
    check_in_child(60_000_000_000, || {
        wire::enter("b")?;
        let socket = wire::receiver()?;
        sys::set_sched(0, SchedAttr::fifo(30)).explain("policy")?;
        let mut phases = Vec::with_capacity(count as usize);
        for number in 0..count {
            let arrival = wire::receive(&socket).ok_or_else(|| format!("frame {number} of {count} did not come"))?;
            // CLOCK_TAI and CLOCK_REALTIME are equal in the lab, unless a scenario changes that.
            let phase = (arrival.at_ns as i64 + tai_ahead()) % CYCLE;
            judge(arrival.number, phase).map_err(|reason| format!("frame {number}: {reason}"))?;
            phases.push(phase);
        }
        phases.sort_unstable();
        at_end(phases)
    })
}

fn tai_ahead() -> i64 {
    let seconds = 1_000_000_000;
    (sys::tai_ns() as i64 - sys::real_ns() as i64 + seconds / 2) / seconds * seconds
}

/// Checks that frames that wait for their gate leave on the instant, with one constant path after it.
fn on_the_instant(hogs: usize) -> Check {
    let _wire = Wire::new()?;
    configure(&Taprio::exact(&LIST))?;
    for _ in 0..hogs {
        process::hog(SchedAttr::other());
    }
    send_at(&[(100_000, CRITICAL)], 300, 64);
    let in_gate = |_, phase: i64| -> Check {
        ensure!(is_slow() || (OPEN..OPEN + PATH_NS).contains(&phase), "a frame came at {phase} ns of the cycle");
        Ok(())
    };
    receive(300, in_gate, |phases| {
        // Timers of less important tasks, and the tick, can expire in the same moment.
        let (least, most) = (phases[0], phases[phases.len() / 2]);
        // Without PREEMPT_RT, sections without preemption and softirqs delay the thread beyond its lead.
        let exact = sys::is_preempt_rt() && !is_slow();
        let instructions = |ns: i64| ns / 4;
        ensure!(
            !exact || instructions(most - least) <= 80 && instructions(least - OPEN) <= 1300,
            "half of the frames came at {least} to {most} ns"
        );
        Ok(())
    })
}

/// Checks that no frame leaves outside of its gate, with frames at any phase.
fn close() -> Check {
    let _wire = Wire::new()?;
    configure(&Taprio::exact(&LIST))?;
    const PHASES: &[(i64, i32)] = &[
        (5_000, 0),
        (10_000, CRITICAL),
        (300_000, CRITICAL),
        (660_000, 0),
        (695_000, 0),
        (698_000, CRITICAL),
        (720_000, 0),
        (730_000, CRITICAL),
        (900_000, CRITICAL),
        (990_000, CRITICAL),
    ];
    send_at(PHASES, 100, 200);
    receive(
        100 * PHASES.len() as u64,
        |priority, phase| {
            let (from, to) = if priority == 0 { (0, OPEN) } else { (OPEN, CYCLE) };
            // The frame has left when the gate closes; the stamp is taken a path later.
            let late = if priority == 0 { phase } else { (phase - OPEN).rem_euclid(CYCLE) + OPEN };
            ensure!(
                is_slow() || (from..to + PATH_NS).contains(&late),
                "a frame of priority {priority} came at {phase} ns"
            );
            Ok(())
        },
        |_| Ok(()),
    )
}

/// Checks that another list takes effect at its base time: no frame is outside of both.
fn swap() -> Check {
    const SHIFTED: [(u32, u32); 3] = [(2, 200_000), (1, 600_000), (2, 210_000)];
    let _wire = Wire::new()?;
    configure(&Taprio::exact(&LIST))?;
    send_at(&[(250_000, CRITICAL), (720_000, 0)], 300, 64);
    let at = (taprio::now(libc::CLOCK_TAI) / CYCLE + START + 150) * CYCLE;
    process::fork(move || {
        let again = || -> Check {
            sys::sleep_until_on(libc::CLOCK_TAI, (at - 50 * CYCLE) as u64);
            configure(&Taprio { base: at, ..Taprio::exact(&SHIFTED) })
        };
        i32::from(again().is_err())
    });
    check_in_child(60_000_000_000, || {
        wire::enter("b")?;
        let socket = wire::receiver()?;
        sys::set_sched(0, SchedAttr::fifo(30)).explain("policy")?;
        let mut after = 0;
        for number in 0..600 {
            let arrival = wire::receive(&socket).ok_or_else(|| format!("frame {number} did not come"))?;
            let stamp = arrival.at_ns as i64 + tai_ahead();
            let (phase, is_new) = (stamp % CYCLE, stamp >= at);
            after += u64::from(is_new);
            let allowed = match (is_new, arrival.number == 0) {
                // The frames of class 0 leave at once, or when their gate opens again.
                (false, true) => phase < OPEN + PATH_NS,
                (false, false) => !(PATH_NS..OPEN).contains(&phase),
                (true, true) => (200_000..800_000 + PATH_NS).contains(&phase),
                (true, false) => !(200_000 + PATH_NS..800_000).contains(&phase),
            };
            ensure!(
                is_slow() || allowed,
                "frame {number}, priority {}, came at {phase} ns, new list: {is_new}",
                arrival.number
            );
        }
        ensure!(is_slow() || (100..500).contains(&after), "{after} of 600 frames came under the new list");
        Ok(())
    })
}

/// Checks that gates follow their clock while no frame waits for them.
fn after_a_pause() -> Check {
    let _wire = Wire::new()?;
    // A cycle that has no common multiple with the pause.
    configure(&Taprio { base: 333, ..Taprio::exact(&LIST) })?;
    let thread = process::kernel_thread("gate/va")?;
    let before = process::cpu_ns(thread)?;
    sys::sleep(2_345_678_901);
    ensure_eq!(process::cpu_ns(thread)?, before, "CPU time of a thread that has nothing to open");
    send_at(&[(100_000, CRITICAL)], 20, 64);
    let in_gate = |_, phase: i64| -> Check {
        ensure!(
            is_slow() || (OPEN + 333..OPEN + 333 + PATH_NS).contains(&phase),
            "a frame came at {phase} ns of the cycle"
        );
        Ok(())
    };
    receive(20, in_gate, |_| Ok(()))
}

/// Checks that gates are right after their link was down.
fn link() -> Check {
    let wire = Wire::new()?;
    configure(&Taprio::exact(&LIST))?;
    for _ in 0..3 {
        send_at(&[(100_000, CRITICAL)], 5, 64);
        sys::sleep(((START + 2) * MS) as u64);
        wire.switch(false)?;
        sys::sleep(20 * MS as u64);
        wire.switch(true)?;
        process::end_all();
        send_at(&[(100_000, CRITICAL)], 10, 64);
        let in_gate = |_, phase: i64| -> Check {
            ensure!(is_slow() || (OPEN..OPEN + PATH_NS).contains(&phase), "a frame came at {phase} ns of the cycle");
            Ok(())
        };
        receive(10, in_gate, |_| Ok(()))?;
    }
    Ok(())
}

fn has_thread() -> bool {
    process::kernel_thread("gate/va").is_ok()
}

/// Checks that the thread ends with the qdisc, with the interface and with the namespace.
fn thread_ends() -> Check {
    let wire = Wire::new()?;
    ensure!(!has_thread(), "a gate's thread without gates");
    configure(&Taprio::exact(&LIST))?;
    ensure!(has_thread(), "no gate's thread");
    in_sender(|| taprio::remove(taprio::index(wire::SENDER)).explain("remove"))?;
    ensure!(!has_thread(), "the gate's thread stayed behind");
    configure(&Taprio::exact(&LIST))?;
    drop(wire);
    ensure!(sys::eventually(5_000_000_000, || !has_thread()), "the gate's thread outlived its namespace");
    Ok(())
}

/// Returns the shortest interval and cycle of random gates, in nanoseconds. Without exact gates, a timer of Linux expires
/// at each boundary. Its handler takes the debug kernel longer than 40 us, and with shorter cycles the softirq never ends.
fn shortest() -> u64 {
    if is_slow() {
        200_000
    } else {
        20_000
    }
}

/// A random list: mostly a good one.
pub(super) fn random(choice: &mut Random) -> Taprio {
    let count = 1 + choice.below(6) as usize;
    let entries: Vec<(u32, u32)> =
        (0..count).map(|_| (choice.below(4) as u32, (shortest() + choice.below(300_000)) as u32)).collect();
    let base = match choice.below(3) {
        0 => 0,
        1 => taprio::now(libc::CLOCK_TAI) + choice.below(5_000_000) as i64,
        _ => choice.below(1_000_000) as i64,
    };
    Taprio {
        base,
        cycle: (choice.below(10) == 0).then(|| (shortest() + choice.below(2_000_000)) as i64),
        flags: match choice.below(20) {
            0 => None,
            1 => Some(choice.below(16) as u32),
            _ => Some(EXACT),
        },
        lead: (choice.below(3) > 0).then(|| 1000 << choice.below(11) as u32),
        ..Taprio::exact(&entries)
    }
}

/// Sends frames of a class, and sleeps for a moment after each 16.
fn traffic(board: Board, which: usize, priority: i32) -> i32 {
    let work = || -> Check {
        wire::enter("a")?;
        let socket = wire::sender(priority)?;
        loop {
            let _ = socket.send(&[0; 200]);
            board.add(which, 1);
            if board.get(which) % 16 == 0 {
                sys::sleep(100_000);
            }
        }
    };
    i32::from(work().is_err())
}

/// The virtual time after which a storm ends on slow kernels, in nanoseconds. The traffic leaves no idle time to skip,
/// so that each second costs the host a thousand million instructions.
const SLOW_STORM: u64 = 6_000_000_000;

/// Sets, changes and removes gates beside traffic, with links that go down and namespaces that disappear.
fn storm(rounds: u64) -> Check {
    let begin = sys::now_ns();
    let mut choice = Random::new(variation());
    let board = Board::new(3);
    let mut wire = Wire::new()?;
    let start = |board: Board| {
        process::fork(move || traffic(board, 0, 0));
        process::fork(move || traffic(board, 1, CRITICAL));
        process::fork(move || {
            let _ = sys::set_sched(0, SchedAttr::fifo(20));
            traffic(board, 2, CRITICAL)
        });
    };
    start(board);
    let mut done = 0;
    while done < rounds && !(is_slow() && sys::now_ns() > begin + SLOW_STORM) {
        done += 1;
        match choice.below(40) {
            0 => {
                process::end_all();
                drop(wire);
                wire = Wire::new()?;
                start(board);
            }
            1 | 2 => {
                wire.switch(false)?;
                sys::sleep(choice.below(300_000));
                wire.switch(true)?;
            }
            3..=6 => in_sender(|| {
                let _ = taprio::remove(taprio::index(wire::SENDER));
                Ok(())
            })?,
            7..=9 => {
                if let Ok(pid) = process::kernel_thread("gate/va") {
                    let attr = match choice.below(3) {
                        0 => SchedAttr::other(),
                        1 => SchedAttr::fifo(1 + choice.below(98) as u32),
                        _ => SchedAttr::policy(abi::SCHED_DS),
                    };
                    let _ = sys::set_sched(pid, attr);
                    let _ = sys::set_affinity(pid, &[choice.below(u64::from(sys::nr_cpus())) as u32]);
                }
            }
            _ => {
                let taprio = random(&mut choice);
                in_sender(|| {
                    let _ = set(&taprio);
                    Ok(())
                })?;
            }
        }
        sys::sleep(choice.below(3_000_000));
    }
    println!("# {done} changes of gates, {} frames", (0..3).map(|which| board.get(which)).sum::<u64>());
    // Whatever happened: good gates still let frames through.
    process::end_all();
    drop(wire);
    on_the_instant_of_any_kernel()
}

fn on_the_instant_of_any_kernel() -> Check {
    let _wire = Wire::new()?;
    configure(&Taprio::exact(&LIST))?;
    send_at(&[(100_000, CRITICAL)], 20, 64);
    receive(20, |_, _| Ok(()), |_| Ok(()))
}
