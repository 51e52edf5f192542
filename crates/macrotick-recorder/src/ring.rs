//! The rings of all CPUs.

use macrotick_host::device;
use macrotick_host::HostFailure;
use macrotick_uapi::{Device, Event, Rings};

use crate::decode::Decoder;
use crate::event::Recording;

/// The running recorder. The kernel stops it when this is dropped.
pub struct Recorder {
    /// Before the device: the kernel keeps a device open while its rings are mapped.
    rings: Rings,
    _device: Device,
    decoder: Decoder,
}

impl Recorder {
    /// Starts to record, with rings of at least this size for each CPU.
    ///
    /// # Errors
    ///
    /// The kernel has no recorder, another program has it, or the caller must not use it.
    pub fn start(kilobytes: u32) -> Result<Recorder, HostFailure> {
        let device = device::open()?;
        let events = (kilobytes * 1024 / size_of::<Event>() as u32).next_power_of_two();
        let rings = device.record(events).map_err(|errno| device::failed("start the flight recorder", errno))?;
        Ok(Recorder { rings, _device: device, decoder: Decoder::default() })
    }

    /// Returns the latest events. The kernel goes on recording.
    pub fn latest(&mut self) -> Recording {
        let mut recording = Recording::default();
        for ring in 0..self.rings.count() {
            for event in self.rings.latest(ring) {
                let Some((event, name)) = self.decoder.decode(ring as u32, &event) else { continue };
                recording.events.push(event);
                recording.names.extend(name);
            }
        }
        recording.events.sort_by_key(|event| event.at);
        recording
    }
}
