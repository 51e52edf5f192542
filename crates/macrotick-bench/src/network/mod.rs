//! The time-aware network: how exactly frames leave at their gates, in bursts, and in slots.

mod bursts;
pub mod bursts_guest;
mod capture;
mod classes;
mod flood;
mod gates;
pub mod gates_guest;
mod pair;
mod papers;
mod ring;
mod slots;
pub mod slots_guest;
mod stamped;

use macrotick_lab::Flavor;
use macrotick_report::{figures, output, write_text};

use self::bursts::Bursts;
use self::gates::Gates;
use self::slots::Slots;
use crate::error::BenchError;
use crate::kit::aims::{self, Aim};
use crate::kit::bench::{kernel, Bench, Results};

const METHOD: &str = "\
Two network namespaces are joined by a veth with four queues. The near end has gates of the qdisc taprio on CLOCK_TAI, \
deployed by netlink as `macrotick` does. The kernel stamps each frame when the far end receives it. In virtual time \
this is one path of instructions after the frame has left the qdisc. The guest has one CPU.

**Gates.** The cycle is 1 ms. The critical class is open from 700 us to the end of the cycle, the other class before. A \
SCHED_FIFO 60 task sends a frame of 64 bytes at 100 us of each cycle, and the frame waits for its gate. The bench \
measures from the opening of the gate to the time stamp. The three columns are:

* `stock taprio`: the gates of Linux. Their timer expires in ksoftirqd, under SCHED_OTHER
* `taprio, ksoftirqd above the tasks`: the same gates, with ksoftirqd under SCHED_FIFO 95. The kernel needs no patch
* `exact gates`: [the thread of the gate](../explanation/exact-gates.md) with a lead of 60 us and the default policy, \
SCHED_FIFO 50

The hogs are four SCHED_OTHER processes that never sleep. The flood sends pings of 6000 bytes under SCHED_FIFO 40, each \
one after the reply to the previous one. It comes from the far end, or from the near end through the gated device.

For exact gates, the guest first measures the constant path, as the median of 200 frames on the idle guest. From then \
on, the gate opens earlier than the nominal instant by this path.

**Bursts.** In each cycle, a task sends 64 datagrams in each of some calls (`UDP_SEGMENT`), and the qdisc makes frames \
of them. They wait for their window. At the far end a task takes them from a ring (`TPACKET_V2`), and computes when the \
last one is in.

**Slots.** The cycle is 6 ms, with slots of 1 ms. Bulk has the default slot: a process sends without a pause and the \
gates cut its frames to the slot. Two senders have a slot each, and periods of 7 ms and 11 ms. A classifier gives their \
frames the priority, as for a container. A capture at the far end records all frames. The gates open earlier by the \
path that the idle guest had. The tolerance of the judge is 60 ns.

**Repetitions.** Bursts and slots run twice, and the two outputs must be equal to the byte. So must two more runs of \
each row of exact gates, with 1000 frames.";

/// Returns the size of each run: frames, or cycles.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok([gates::extent(bench.scale), bursts::extent(bench.scale), slots::extent(bench.scale)].concat())
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let kernels = vec![kernel(Flavor::Patched)?];
    let bursts = Bursts::measure(bench)?;
    let gates = Gates::measure(bench)?;
    let slots = Slots::measure(bench, gates.path_ns())?;
    let aims = [gates.aims(), bursts.aims(), slots.aims()].concat();
    let tables =
        [aims::markdown(&aims, bench.scale), gates.markdown(), bursts.markdown(), slots.markdown(), papers::markdown()];
    let tables = tables.join("\n");
    output::print(&tables);
    let of_aims = aims.iter().map(Aim::figure).collect();
    let all = [gates.figures(), bursts.figures(), slots.figures(), of_aims].concat();
    figures::write(&bench.folder.join("figures.json"), &all)?;
    let plots = gates.plots();
    for (file, _, svg) in &plots {
        write_text(&bench.folder.join(file), svg)?;
    }
    Ok(Results {
        title: "Network: frames at their gates, in bursts and in slots",
        method: METHOD.into(),
        tables,
        kernels,
        packages: &["iproute2"],
        plots: plots.into_iter().map(|(file, caption, _)| (file, caption)).collect(),
    })
}
