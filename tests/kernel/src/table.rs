//! Tables for tests.

use macrotick_uapi::{self as abi, Device, Entity, Install, Sized32, Window};

use crate::check::Check;

/// A table for the device. Times are nanoseconds.
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

/// The reason why the kernel refused a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The errno of the call.
    pub errno: i32,
    /// `enum macrotick_error`.
    pub error: u32,
    /// The index of the wrong part.
    pub index: u32,
    /// The second index.
    pub other: u32,
}

impl Table {
    /// Makes an empty table.
    pub fn new(cycle_ns: u64) -> Table {
        Table { cycle_ns, lead_ns: 0, clock: libc::CLOCK_MONOTONIC, entities: Vec::new(), windows: Vec::new() }
    }

    /// Adds a window `[offset, offset + length)`, and its entity if this is the entity's first window.
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

    /// Makes a table with one entity `t` and one window with ACTIVATE and DEADLINE.
    pub fn single(cycle_ns: u64, cpu: u32, offset_ns: u64, length_ns: u64) -> Table {
        Table::new(cycle_ns).window("t", cpu, offset_ns, length_ns, abi::ACTIVATE | abi::DEADLINE)
    }

    /// Sets the lead.
    pub fn lead(self, lead_ns: u64) -> Table {
        Table { lead_ns, ..self }
    }

    /// Sets the reaction to misses of the last added entity.
    pub fn misses(mut self, flags: u32, max_misses: u32) -> Table {
        if let Some(entity) = self.entities.last_mut() {
            (entity.flags, entity.max_misses) = (flags, max_misses);
        }
        self
    }

    /// Lets the last added entity have windows on several CPUs.
    pub fn migrate(mut self) -> Table {
        if let Some(entity) = self.entities.last_mut() {
            entity.flags |= abi::MIGRATE;
        }
        self
    }

    /// Sorts the windows as the kernel requires.
    pub fn sorted(mut self) -> Table {
        self.windows.sort_by_key(|window| (window.cpu, window.offset_ns));
        self
    }

    /// Makes the last added entity a pool with these flags and this length of turns.
    pub fn pool(mut self, flags: u32, slice_ns: u64) -> Table {
        if let Some(entity) = self.entities.last_mut() {
            (entity.flags, entity.slice_ns) = (abi::POOL | flags, slice_ns);
        }
        self
    }

    /// Returns the request to install the table. It points into the table.
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

    /// Tries to install the table.
    pub fn try_install(&self, device: &Device) -> Result<(), Refusal> {
        send(device, self.request())
    }

    /// Swaps the installed table for this one. Returns the new epoch, or zero if the swap is already done.
    pub fn swap(&self, device: &Device) -> Result<u64, Refusal> {
        let mut request = Install { flags: abi::SWAP, ..self.request() };
        call(device, &mut request).map(|()| request.swap_ns)
    }

    /// Installs the table.
    pub fn install(&self, device: &Device) -> Check {
        self.try_install(device).map_err(|refusal| format!("install: {refusal:?}"))
    }
}

/// Sends a request without changes.
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
