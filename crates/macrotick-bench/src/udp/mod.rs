//! The UDP paper: round trips over network cards beside loads, in four configurations.

mod cells;
mod hub;
mod papers;
mod stress;
mod traffic;
pub mod udp_guest;

use macrotick_lab::Flavor;
use macrotick_report::{figures, output};

use self::cells::Cells;
use crate::error::BenchError;
use crate::kit::aims::{self, Aim};
use crate::kit::bench::{kernel, Bench, Results};

const METHOD: &str = "\
The guest has three network cards of the model vmxnet3 on one hub: client, server and PC. Each card has a network \
namespace. [The probe](../reference/probe.md) sends 500 bytes from the client to the server every 1.001 ms, with \
`SO_PRIORITY` 4. The server answers. A round trip is the time from the call of send to the answer, as in the paper. A \
miss is an answer more than 1 ms after the nominal instant, or none.

The guest has one CPU for all of this, and the hub takes no virtual time. In the paper each machine has two cores. The \
period is not a whole number of ticks, so the phase of the tick sweeps over the round trip. Each card has the traffic \
classes of the paper: priority 4 has queue 0, 2 and 3 have queue 1, all others queue 2. The model gives all received \
frames to queue 0.

**Configurations.** The kernel has PREEMPT_RT in all of them.

* `no RT priorities`: client and server under SCHED_OTHER. Interrupt threads have the kernel's SCHED_FIFO 50
* `RT priorities`: client and server under SCHED_FIFO 80, as in the paper
* `RT priorities, interrupt threads above`: the same, with the interrupt threads of queue 0 of both cards at 85
* `Macrotick`: the priorities of [the profile](../reference/description.md#the-profile) `macrotick` (interrupt threads of \
queue 0 at 82, ksoftirqd at 81), a window of 900 us for the client, in which others run while it waits, and gates of taprio with a lead at client and PC. \
The gate of all other traffic is open from 300 to 700 us after the nominal instant, and 8 frames may wait for it. The \
profile finds no cards in namespaces: the bench sets its values card by card

**Loads.**

* `stress`: the processes of the paper's command `stress -c 2 -i 2 -m 2 --vm-bytes 128M -d 2 --hdd-bytes 15M`. The disk \
is ext4 in memory with 16 MiB, so the files have 4 MiB
* `TX traffic`: the client sends datagrams of 1470 bytes to the PC. The PC is another machine: its card is closed, and \
reception costs nothing
* `RX traffic`: the PC sends the same to a process at the server. Here the PC's process shares the CPU

The table has the traffic that arrived. Processes of the loads run under SCHED_OTHER.

**Page allocator.** This kernel has `CONFIG_PCP_BATCH_SCALE_MAX=0`. With Linux's default of 5, a few packets beside \
`stress` took some 500 us in every configuration. A CPU then gives up to 2000 free pages back under one lock: the client \
did so itself when it freed a packet, and the interrupt thread of the receiving card waited for a process that did. \
Priorities and windows do not shorten such a section of the kernel; this option does.

**Repetitions.** Beside received traffic, each configuration runs two more times with fewer packets. The two outputs must \
be equal to the byte.";

/// Returns the size of each run: packets.
pub fn extent(bench: &Bench) -> Result<Vec<u64>, BenchError> {
    Ok(cells::extent(bench.scale))
}

/// Runs the experiment.
pub fn run(bench: &Bench) -> Result<Results, BenchError> {
    let kernels = vec![kernel(Flavor::Net)?];
    let cells = Cells::measure(bench)?;
    let aims = cells.aims();
    let tables = [aims::markdown(&aims, bench.scale), cells.markdown()].join("\n");
    output::print(&tables);
    let all = [cells.figures(), aims.iter().map(Aim::figure).collect()].concat();
    figures::write(&bench.folder.join("figures.json"), &all)?;
    Ok(Results {
        title: "UDP: round trips over network cards beside loads",
        method: METHOD.into(),
        tables,
        kernels,
        packages: &["iproute2"],
        plots: Vec::new(),
    })
}
