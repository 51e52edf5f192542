//! The kernel's events during a run, from an own instance of tracefs.

use std::io::{ErrorKind, Read};

use macrotick_host::trace::{self, Field, Instance, Point, PAGE};
use macrotick_host::{sys, HostFailure};

use crate::trace::{Event, EVENTS, POINTS};

/// `NET_RX_SOFTIRQ` (include/linux/interrupt.h).
const NET_RX: i64 = 3;
/// Only sockets of UDP: `IPPROTO_UDP` (include/uapi/linux/in.h).
const UDP: &str = "protocol == 17";

/// The events of a run, while the kernel records them.
pub struct Recording {
    instance: Instance,
    kinds: Vec<Kind>,
    running: Field,
}

/// A trace point that this kernel has.
struct Kind {
    /// Its place in [`EVENTS`].
    place: usize,
    id: u16,
    /// The thread, if it is not the one that ran.
    thread: Option<Field>,
    /// The buffer or the socket.
    object: Option<Field>,
    what: What,
}

/// Which of its events count.
enum What {
    All,
    /// This software interrupt.
    Softirq(Field),
    /// A packet, and no error: the length, and the flags of the call.
    Read(Field, Field),
}

impl Recording {
    /// Starts the recording. It needs root.
    ///
    /// # Errors
    ///
    /// The kernel shows no events to this user, or they have an unknown form.
    pub fn start() -> Result<Recording, HostFailure> {
        let instance = Instance::of_process("macrotick-probe", &[])?;
        let (mut kinds, mut running) = (Vec::new(), None);
        for (place, event) in EVENTS.iter().enumerate().filter(|(_, event)| instance.has(event)) {
            let point = Point::read(&instance, event)?;
            let field = |name: &str| point.field(name);
            let (thread, object, what) = match *event {
                "sched/sched_switch" => (Some(field("next_pid")?), None, What::All),
                "irq/irq_handler_entry" => (None, None, What::All),
                "irq/softirq_entry" => (None, None, What::Softirq(field("vec")?)),
                "sock/sk_data_ready" => (None, Some(field("skaddr")?), What::All),
                "sock/sock_recv_length" => (None, Some(field("sk")?), What::Read(field("ret")?, field("flags")?)),
                _ => (None, Some(field("skbaddr")?), What::All),
            };
            if event.starts_with("sock/") {
                instance.filter(event, UDP)?;
            }
            running.get_or_insert(field("common_pid")?);
            kinds.push(Kind { place, id: point.id, thread, object, what });
            instance.enable(event)?;
        }
        let running = running.ok_or(HostFailure::TracePoint(EVENTS[0]))?;
        instance.start()?;
        Ok(Recording { instance, kinds, running })
    }

    /// Returns the names of the points that this kernel does not have.
    pub fn missing(&self) -> Vec<&'static str> {
        let has = |place: usize| self.kinds.iter().any(|kind| kind.place == place);
        POINTS.iter().enumerate().filter(|(place, _)| !has(*place)).map(|(_, name)| *name).collect()
    }

    /// Ends the recording, and returns its events in order, and the number of those for which there was no room.
    /// `on_grid` converts from `CLOCK_MONOTONIC` in ns.
    pub fn end(self, on_grid: impl Fn(i64) -> i64) -> Result<(Vec<Event>, u64), HostFailure> {
        self.instance.stop()?;
        let dropped = self.instance.dropped()?;
        let (mut events, mut page) = (Vec::new(), vec![0; PAGE]);
        for cpu in sys::online_cpus()? {
            let mut buffer = self.instance.open_raw(cpu)?;
            loop {
                match buffer.read(&mut page) {
                    Ok(0) => break,
                    Ok(length) => trace::events(&page[..length], |at, event| events.extend(self.parse(at, cpu, event))),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(HostFailure::system("read events of packets")(error)),
                }
            }
        }
        events.sort_by_key(|event| event.at);
        events.iter_mut().for_each(|event| event.at = on_grid(event.at));
        Ok((events, dropped))
    }

    /// Parses an event, which begins with the number of its trace point.
    fn parse(&self, at: i64, cpu: u32, event: &[u8]) -> Option<Event> {
        let id = u16::from_ne_bytes(event.get(..2)?.try_into().ok()?);
        let kind = self.kinds.iter().find(|kind| kind.id == id)?;
        let counts = match kind.what {
            What::All => true,
            What::Softirq(vector) => vector.of(event) == NET_RX,
            What::Read(length, flags) => length.of(event) > 0 && flags.of(event) as i32 & libc::MSG_ERRQUEUE == 0,
        };
        let thread = kind.thread.unwrap_or(self.running).of(event) as i32;
        let object = kind.object.map_or(0, |object| object.of(event) as u64);
        counts.then_some(Event { at, cpu, kind: kind.place, thread, object })
    }
}
