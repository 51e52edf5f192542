//! The kernel's events during a run, from an own instance of tracefs.

use macrotick_host::trace::{self, Field, Instance, Point};
use macrotick_host::{sys, HostFailure};

use crate::trace::{Event, EVENTS, POINTS};

/// Only `NET_RX_SOFTIRQ` (include/linux/interrupt.h).
const NET_RX: &str = "vec == 3";
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
    /// The length and the flags of a call that may have read a packet.
    read: Option<(Field, Field)>,
}

impl Recording {
    /// Prepares the recording. It needs root.
    ///
    /// # Errors
    ///
    /// The kernel shows no events to this user, or they have an unknown form.
    pub fn prepare() -> Result<Recording, HostFailure> {
        let instance = Instance::of_process("macrotick-probe", &[])?;
        let (mut kinds, mut running) = (Vec::new(), None);
        for (place, event) in EVENTS.iter().enumerate().filter(|(_, event)| instance.has(event)) {
            let point = Point::read(&instance, event)?;
            let field = |name: &str| point.field(name);
            let (thread, object, filter) = match *event {
                "sched/sched_switch" => (Some(field("next_pid")?), None, None),
                "irq/irq_handler_entry" => (None, None, None),
                "irq/softirq_entry" => (None, None, Some(NET_RX)),
                "sock/sk_data_ready" => (None, Some(field("skaddr")?), Some(UDP)),
                "sock/sock_recv_length" => (None, Some(field("sk")?), Some(UDP)),
                _ => (None, Some(field("skbaddr")?), None),
            };
            let is_read = *event == "sock/sock_recv_length";
            let read = is_read.then(|| Ok::<_, HostFailure>((field("ret")?, field("flags")?))).transpose()?;
            if let Some(filter) = filter {
                instance.filter(event, filter)?;
            }
            running.get_or_insert(field("common_pid")?);
            kinds.push(Kind { place, id: point.id, thread, object, read });
            instance.enable(event)?;
        }
        let running = running.ok_or(HostFailure::TracePoint(EVENTS[0].to_owned()))?;
        Ok(Recording { instance, kinds, running })
    }

    /// Starts the recording.
    pub fn begin(&self) -> Result<(), HostFailure> {
        self.instance.start()
    }

    /// Returns the names of the points that this kernel does not have.
    pub fn missing(&self) -> Vec<&'static str> {
        let has = |place: usize| self.kinds.iter().any(|kind| kind.place == place);
        POINTS.iter().enumerate().filter(|(place, _)| !has(*place)).map(|(_, name)| *name).collect()
    }

    /// Ends the recording, and returns its events in order, and the number of those for which there was no room. The
    /// events end where the first CPU had no room. `on_grid` converts from `CLOCK_MONOTONIC` in ns.
    pub fn end(self, on_grid: impl Fn(i64) -> i64) -> Result<(Vec<Event>, u64), HostFailure> {
        self.instance.stop()?;
        let (mut events, mut dropped, mut end) = (Vec::new(), 0, i64::MAX);
        for cpu in sys::online_cpus()? {
            let (before, here) = (events.len(), self.instance.dropped_on(cpu)?);
            let mut buffer = self.instance.open_raw(cpu)?;
            let read = trace::drain(&mut buffer, |at, event| events.extend(self.parse(at, cpu, event)));
            read.map_err(HostFailure::system("read events of packets"))?;
            dropped += here;
            if here > 0 {
                end = end.min(events[before..].last().map_or(0, |event: &Event| event.at));
            }
        }
        events.retain(|event| event.at <= end);
        events.sort_by_key(|event| event.at);
        events.iter_mut().for_each(|event| event.at = on_grid(event.at));
        Ok((events, dropped))
    }

    /// Parses an event, which begins with the number of its trace point.
    fn parse(&self, at: i64, cpu: u32, event: &[u8]) -> Option<Event> {
        let id = u16::from_ne_bytes(event.get(..2)?.try_into().ok()?);
        let kind = self.kinds.iter().find(|kind| kind.id == id)?;
        // Errors, and messages about sent packets, are no packets.
        let counts = kind
            .read
            .is_none_or(|(length, flags)| length.of(event) >= 0 && flags.of(event) as i32 & libc::MSG_ERRQUEUE == 0);
        let thread = kind.thread.unwrap_or(self.running).of(event) as i32;
        let object = kind.object.map_or(0, |object| object.of(event) as u64);
        counts.then_some(Event { at, cpu, kind: kind.place, thread, object })
    }
}
