//! The topology of the guest: three network cards on one hub, each in a namespace of its own.
//!
//! ```text
//! namespace client          namespace server          namespace pc
//! client0 10.0.0.1 ══╦══ server0 10.0.0.2 ══╦══ pc0 10.0.0.3
//!                    ╚════════ hub ═════════╝
//! ```

use std::cell::RefCell;
use std::ptr;
use std::rc::Rc;

use macrotick_host::net::interrupts::{self, Service};
use macrotick_host::net::{
    Deployment, Entry, GateClock, Leaf, Mapping, Mode, Netlink, Root, Shared, Taprio, Target, Tree, Wanted,
};
use macrotick_host::Undo;
use macrotick_model::Duration;

use super::cells::Column;
use crate::kit::netns::{enter, file, ip};
use crate::kit::process::{self, last_error};

/// The namespace of the client.
pub const CLIENT: &str = "client";
/// The namespace of the server.
pub const SERVER: &str = "server";
/// The namespace of the machine that only makes traffic.
pub const PC: &str = "pc";
/// All namespaces, in the order of their cards and addresses.
const NAMESPACES: [&str; 3] = [CLIENT, SERVER, PC];

/// The priority of the measured packets (`SO_PRIORITY`). The paper maps it to queue 0, 2 and 3 to queue 1, and all others
/// to queue 2.
pub const PRIORITY: u8 = 4;
const CLASSES: u16 = 3;
const PRIORITIES: [(u8, u8); 3] = [(PRIORITY, 0), (3, 1), (2, 1)];
/// The queue of all other traffic, and the class.
const BULK: u16 = 2;

/// The cycle of client, table and gates. It is no whole number of ticks: their phase sweeps over the round trip.
pub const CYCLE_NS: i64 = 1_001_000;
/// The gate of the other traffic in the cycle, from the instant at which the client sends.
const OPEN_NS: i64 = 300_000;
const CLOSE_NS: i64 = 700_000;
/// The frames of the other traffic that may wait for their gate. Further ones are dropped, as at any full queue.
const WAITING: u32 = 8;
/// The lead of exact gates.
const LEAD: Duration = Duration::from_nanos(60_000);

/// Returns the device of a namespace.
pub fn device(namespace: &str) -> String {
    format!("{namespace}0")
}

/// Returns the address of a namespace.
pub fn address(namespace: &str) -> String {
    let number = NAMESPACES.iter().position(|one| *one == namespace).map_or(0, |index| index + 1);
    format!("10.0.0.{number}")
}

/// The topology. The guest's end removes it.
pub struct Hub {
    /// The traffic classes and gates of the devices.
    deployments: Vec<Deployment>,
}

impl Hub {
    /// Moves the cards to their namespaces, and opens all of them but that of the PC. The caller must have one thread.
    pub fn make() -> Result<Hub, String> {
        for (number, namespace) in NAMESPACES.iter().enumerate() {
            let name = device(namespace);
            ip(None, &format!("netns add {namespace}\nlink set eth{number} netns {namespace} name {name}\n"))?;
            let mut batch = format!("addr add {}/24 dev {name}\nlink set lo up\n", address(namespace));
            if *namespace != PC {
                batch += &format!("link set {name} up\n");
            }
            ip(Some(namespace), &batch)?;
        }
        [CLIENT, SERVER].into_iter().try_for_each(neighbours)?;
        Ok(Hub { deployments: Vec::new() })
    }

    /// Opens the card of the PC. Until then it receives nothing, and costs nothing.
    pub fn open_pc(&self) -> Result<(), String> {
        ip(Some(PC), &format!("link set {} up\n", device(PC)))?;
        neighbours(PC)
    }

    /// Deploys the traffic classes of a column; for gates, with the instant of `CLOCK_TAI` at which a cycle begins.
    pub fn deploy(&mut self, column: Column, begin: i64) -> Result<(), String> {
        for namespace in NAMESPACES {
            let classes = Mapping::one_queue_each(CLASSES, &PRIORITIES);
            // The gates of the server would keep nothing back: it sends answers only.
            let tree = match column == Column::Macrotick && namespace != SERVER {
                true => Tree {
                    leaves: [(BULK, Leaf::Pfifo { limit: WAITING })].into(),
                    ..Tree::of(Root::Taprio { taprio: gates(classes, begin), else_try: Vec::new() })
                },
                false => Tree::of(Root::Mqprio(classes)),
            };
            let kernel: Shared = {
                let opened = Netlink::open_in(&file(namespace)?).map_err(|error| format!("netlink: {error}"))?;
                Rc::new(RefCell::new(opened))
            };
            let wanted = Wanted { tree: Some(tree), ..Wanted::of(device(namespace)) };
            let target = Target { kernel, namespace: Some(namespace.into()), wanted };
            self.deployments.push(Deployment::make(&[target]).map_err(|fault| fault.to_string())?);
        }
        Ok(())
    }
}

/// Returns gates that are closed for the other traffic around the round trip.
fn gates(mapping: Mapping, begin: i64) -> Taprio {
    let (measured, all) = (1, (1 << CLASSES) - 1);
    let entries = [(measured, OPEN_NS), (all, CLOSE_NS - OPEN_NS), (measured, CYCLE_NS - CLOSE_NS)];
    Taprio {
        mode: Mode::Exact { lead: LEAD },
        clock: GateClock::Tai,
        base_time: begin,
        cycle: Duration::from_nanos(CYCLE_NS),
        entries: entries.map(|(open, length)| Entry { length: Duration::from_nanos(length), open }).into(),
        mapping,
        max_sdu: Vec::new(),
    }
}

/// Enters the hardware addresses of the others. No question for an address delays a frame.
fn neighbours(namespace: &str) -> Result<(), String> {
    let device = device(namespace);
    let others = NAMESPACES.iter().enumerate().filter(|(_, other)| **other != namespace);
    let batch: String = others
        .map(|(number, other)| {
            let hardware = macrotick_lab::nics::address(number as u32);
            format!("neigh replace {} lladdr {hardware} dev {device} nud permanent\n", address(other))
        })
        .collect();
    ip(Some(namespace), &batch)
}

/// Sets the priority of the interrupt threads of a card's first queue, which has the measured packets.
pub fn raise_interrupts(namespace: &'static str, priority: u8) -> Result<(), String> {
    process::wait(process::fork(move || {
        enter(namespace)?;
        see_own_devices()?;
        let service = Service { queue: Some(0), cpus: Vec::new(), priority: Some(priority) };
        let failed = |failure: macrotick_host::HostFailure| failure.to_string();
        let changes = interrupts::decide(&device(namespace), &[service]).map_err(failed)?;
        if changes.is_empty() {
            return Err(format!("{} has no interrupt thread of queue 0", device(namespace)));
        }
        let mut undo = Undo::default();
        let applied = interrupts::apply(&changes, &mut undo).map_err(failed);
        undo.forget();
        applied
    })?)
}

/// Gives the caller a `/sys` with the devices of its network namespace.
fn see_own_devices() -> Result<(), String> {
    // SAFETY: constant strings; the caller has one thread.
    unsafe {
        if libc::unshare(libc::CLONE_NEWNS) != 0 {
            return Err(last_error("unshare"));
        }
        match libc::mount(c"sys".as_ptr(), c"/sys".as_ptr(), c"sysfs".as_ptr(), 0, ptr::null()) {
            0 => Ok(()),
            _ => Err(last_error("mounting /sys")),
        }
    }
}
