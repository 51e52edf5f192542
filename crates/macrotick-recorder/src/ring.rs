//! The ring buffers of all CPUs.

use std::fs::File;

use macrotick_host::sys;
use macrotick_host::trace::{self, Instance};
use macrotick_host::HostFailure;

use crate::decode::{self, Decoder};
use crate::event::{Event, Recording};

/// The name of the instance in tracefs.
const NAME: &str = "macrotick-recorder";

/// The running recorder. Dropping it ends it.
pub struct Recorder {
    /// The ring buffers by CPU. They are closed before the instance is removed.
    buffers: Vec<(u32, File)>,
    instance: Instance,
    decoder: Decoder,
}

impl Recorder {
    /// Starts to record, with ring buffers of this size for each CPU.
    ///
    /// # Errors
    ///
    /// The kernel has no trace points, or the caller must not use them.
    pub fn start(kilobytes: u32) -> Result<Recorder, HostFailure> {
        let instance = Instance::ring(NAME, kilobytes)?;
        let points = decode::points(&instance);
        let decoder = Decoder::read(&instance, &points)?;
        let open = |cpu| Ok((cpu, instance.open_raw(cpu)?));
        let buffers = sys::online_cpus()?.into_iter().map(open).collect::<Result<Vec<_>, HostFailure>>()?;
        points.iter().try_for_each(|point| instance.enable(point))?;
        instance.start()?;
        Ok(Recorder { buffers, instance, decoder })
    }

    /// Takes what was recorded until now, and goes on. Events during this call are lost.
    ///
    /// # Errors
    ///
    /// The ring buffers cannot be read.
    pub fn take(&mut self) -> Result<Recording, HostFailure> {
        self.instance.stop()?;
        let mut recording = Recording::default();
        for (cpu, buffer) in &mut self.buffers {
            let found = |at: i64, data: &[u8]| {
                let Some(decoded) = self.decoder.decode(data) else { return };
                recording.events.push(Event { at, cpu: *cpu, thread: decoded.thread, what: decoded.what });
                recording.names.extend(decoded.name);
            };
            trace::drain(buffer, found).map_err(HostFailure::system("read recorded events"))?;
        }
        recording.events.sort_by_key(|event| event.at);
        self.instance.start()?;
        Ok(recording)
    }
}
