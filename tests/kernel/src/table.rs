//! Tables for tests.

use macrotick_uapi::{self as abi, Device, Entity, Install, Sized32, Window};

use crate::check::Check;

/// A table to be installed. Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct Table {
    /// The cycle.
    pub cycle_ns: u64,
    /// The lead.
    pub lead_ns: u64,
    /// The clock.
    pub clock: libc::clockid_t,
    /// The entities in the order of their first window.
    pub entities: Vec<Entity>,
    /// The windows in the order in which they were added.
    pub windows: Vec<Window>,
}

/// Why the kernel refused a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the call returned.
    pub errno: i32,
    /// `enum macrotick_error`.
    pub error: u32,
    /// Its index.
    pub index: u32,
    /// Its second index.
    pub other: u32,
}

impl Table {
    /// An empty table.
    pub fn new(cycle_ns: u64) -> Table {
        Table { cycle_ns, lead_ns: 0, clock: libc::CLOCK_MONOTONIC, entities: Vec::new(), windows: Vec::new() }
    }

    /// Adds a window `[offset, offset + length)`, and its entity if it is the first one.
    pub fn window(mut self, entity: &str, cpu: u32, offset_ns: u64, length_ns: u64, flags: u32) -> Table {
        let name = abi::name(entity);
        let known = self.entities.iter().position(|one| one.name == name);
        let entity = known.unwrap_or_else(|| {
            self.entities.push(Entity { name, ..Default::default() });
            self.entities.len() - 1
        }) as u32;
        self.windows.push(Window { offset_ns, length_ns, cpu, entity, flags, bound_ns: 0 });
        self
    }

    /// Adds a sync window, and puts the table on `CLOCK_TAI`.
    pub fn sync(mut self, cpu: u32, offset_ns: u64, length_ns: u64, bound_ns: u32) -> Table {
        self.clock = libc::CLOCK_TAI;
        self.windows.push(Window { offset_ns, length_ns, cpu, flags: abi::SYNC, bound_ns, ..Default::default() });
        self
    }

    /// One entity `t` with one window with ACTIVATE and DEADLINE.
    pub fn single(cycle_ns: u64, cpu: u32, offset_ns: u64, length_ns: u64) -> Table {
        Table::new(cycle_ns).window("t", cpu, offset_ns, length_ns, abi::ACTIVATE | abi::DEADLINE)
    }

    /// Sets the lead.
    pub fn lead(self, lead_ns: u64) -> Table {
        Table { lead_ns, ..self }
    }

    /// Sets what becomes of misses of the last entity that was added.
    pub fn misses(mut self, flags: u32, max_misses: u32) -> Table {
        if let Some(entity) = self.entities.last_mut() {
            (entity.flags, entity.max_misses) = (flags, max_misses);
        }
        self
    }

    /// The last entity that was added may have windows on several CPUs.
    pub fn migrate(mut self) -> Table {
        if let Some(entity) = self.entities.last_mut() {
            entity.flags |= abi::MIGRATE;
        }
        self
    }

    /// Puts the windows into the order that the kernel wants.
    pub fn sorted(mut self) -> Table {
        self.windows.sort_by_key(|window| (window.cpu, window.offset_ns));
        self
    }

    /// Makes the last entity that was added a pool with these flags, whose threads have turns of such a length.
    pub fn pool(mut self, flags: u32, slice_ns: u64) -> Table {
        if let Some(entity) = self.entities.last_mut() {
            (entity.flags, entity.slice_ns) = (abi::POOL | flags, slice_ns);
        }
        self
    }

    /// The request to install it. It points into the table.
    pub fn request(&self) -> Install {
        Install {
            clockid: self.clock as u32,
            nr_entities: self.entities.len() as u32,
            nr_windows: self.windows.len() as u32,
            cycle_ns: self.cycle_ns,
            lead_ns: self.lead_ns,
            entities: self.entities.as_ptr() as u64,
            windows: self.windows.as_ptr() as u64,
            ..Default::default()
        }
        .sized()
    }

    /// Tries to install it.
    pub fn try_install(&self, device: &Device) -> Result<(), Refusal> {
        send(device, self.request())
    }

    /// Puts it in the place of the installed one; tells its epoch, or zero if it is in place already.
    pub fn swap(&self, device: &Device) -> Result<u64, Refusal> {
        let mut request = Install { flags: abi::SWAP, ..self.request() };
        call(device, &mut request).map(|()| request.swap_ns)
    }

    /// Installs it.
    pub fn install(&self, device: &Device) -> Check {
        self.try_install(device).map_err(|refusal| format!("install: {refusal:?}"))
    }
}

/// Sends a request as it is.
pub fn send(device: &Device, mut request: Install) -> Result<(), Refusal> {
    call(device, &mut request)
}

fn call(device: &Device, request: &mut Install) -> Result<(), Refusal> {
    device.call(request).map_err(|errno| Refusal {
        errno,
        error: request.error,
        index: request.error_index,
        other: request.error_other,
    })
}
