//! The device, with one method per call.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

use crate::{
    call, name, Argument, Bind, Entity, Get, Notify, Recorder, Rings, Sized32, Start, Stats, Unbind, Wait, Window,
    DEVICE,
};

/// The error of an attempt to open the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// The error number: `ENOENT` if the kernel has no class, for example.
    pub errno: i32,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{DEVICE}: {}", io::Error::from_raw_os_error(self.errno))
    }
}

impl std::error::Error for OpenError {}

/// For programs with strings as errors.
impl From<OpenError> for String {
    fn from(error: OpenError) -> String {
        error.to_string()
    }
}

/// The opened device. Every method returns the errno of a call that fails.
///
/// Installing, starting, stopping, removing, binding and unbinding need `CAP_SYS_NICE` (`EPERM`). A thread under
/// `SCHED_TT` cannot start, stop or remove the table (`EDEADLK`).
#[derive(Debug)]
pub struct Device(File);

impl Device {
    /// Opens the device. Every user may do so.
    pub fn open() -> Result<Device, OpenError> {
        let opened = OpenOptions::new().read(true).write(true).open(DEVICE);
        opened.map(Device).map_err(|error| OpenError { errno: error.raw_os_error().unwrap_or(libc::EIO) })
    }

    /// Issues any call with any argument.
    ///
    /// # Safety
    /// The kernel writes the results of the call to the address `pointer`. [`call::GET`] also writes to the addresses
    /// in the structure. An address that is not mapped only gives `EFAULT`.
    pub unsafe fn raw(&self, call: u32, pointer: u64) -> Result<(), i32> {
        // SAFETY: promised by the caller. The C libraries disagree on the type of the number.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), call as _, pointer) } {
            -1 => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
            _ => Ok(()),
        }
    }

    /// Issues the call of a structure, and fills in the structure's size.
    ///
    /// Installing has no other method, because the structure contains the reason of a refusal. The call fails with
    /// `EINVAL`, `EBUSY` or `ENOMEM`, and `error` is one of [`error`](crate::error). The kernel only reads from the
    /// addresses in the structure (`EFAULT`).
    pub fn call<T: Argument>(&self, arg: &mut T) -> Result<(), i32> {
        *arg = arg.sized();
        // SAFETY: the structure is writable and as large as it says; the trait promises the rest.
        unsafe { self.raw(T::CALL, arg as *mut T as u64) }
    }

    /// Starts the table at an instant, in nanoseconds. Returns the epoch in force, which is later by whole cycles if
    /// the instant has passed. `ENOENT`: no table; `EBUSY`: it runs; `EINVAL`: more than
    /// [`MAX_CYCLE_NS`](crate::MAX_CYCLE_NS) ahead.
    pub fn start(&self, epoch_ns: u64) -> Result<u64, i32> {
        let mut start = Start { epoch_ns, ..Default::default() };
        self.call(&mut start).map(|()| start.epoch_ns)
    }

    /// Stops the table; a table that does not run may be stopped again. `ENOENT`: no table.
    pub fn stop(&self) -> Result<(), i32> {
        // SAFETY: the call takes no argument.
        unsafe { self.raw(call::STOP, 0) }
    }

    /// Stops the table and removes it. `ENOENT`: no table.
    pub fn remove(&self) -> Result<(), i32> {
        // SAFETY: the call takes no argument.
        unsafe { self.raw(call::REMOVE, 0) }
    }

    /// Returns state, counts, cycle and epoch.
    pub fn get(&self) -> Result<Get, i32> {
        self.read(&mut [], &mut [])
    }

    /// Returns the values of [`get`](Device::get), and reads the table's entities and windows. It does not fill an
    /// empty slice. `ENOSPC`: a slice is too short, but not empty.
    pub fn read(&self, entities: &mut [Entity], windows: &mut [Window]) -> Result<Get, i32> {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let mut get = Get {
            nr_entities: count(entities.len()),
            nr_windows: count(windows.len()),
            entities: entities.as_mut_ptr() as u64,
            windows: windows.as_mut_ptr() as u64,
            ..Default::default()
        }
        .sized();
        // SAFETY: the structure is as large as it says, and the slices are at least as long.
        unsafe { self.raw(call::GET, &mut get as *mut Get as u64) }.map(|()| get)
    }

    /// Returns the counters of an entity, by its index in the table. `ENOENT`: no table, or no such entity.
    pub fn stats(&self, entity: u32) -> Result<Stats, i32> {
        let mut stats = Stats { entity, ..Default::default() };
        self.call(&mut stats).map(|()| stats)
    }

    /// Signals the misses of an entity, or of [`ALL_ENTITIES`](crate::ALL_ENTITIES), on an eventfd; -1 ends that.
    /// `ENOENT`: no table, or no such entity; `EBADF`, `EINVAL`: no eventfd.
    pub fn notify(&self, entity: u32, eventfd: i32) -> Result<(), i32> {
        self.call(&mut Notify { entity, eventfd, ..Default::default() })
    }

    /// Starts the flight recorder with this number of events for each CPU, a power of two. It records until the device
    /// and the rings are dropped. `EPERM`: without `CAP_PERFMON`, or the kernel is locked down; `EINVAL`: another
    /// number; `EBUSY`: there is a recorder; `EOPNOTSUPP`: a kernel without trace points.
    pub fn record(&self, nr_events: u32) -> Result<Rings, i32> {
        let mut recorder = Recorder { nr_events, ..Default::default() };
        self.call(&mut recorder)?;
        Rings::map(&self.0, recorder.nr_rings as usize, nr_events as usize)
    }

    /// Binds the caller (-1), or the thread of a pidfd, to an entity. `ENOENT`: no table, or no such entity; `EBUSY`:
    /// already bound; `ESRCH`: it has ended.
    /// `EINVAL`: the name is too long, it is a kernel thread, or its affinity excludes the entity's CPU. `EAGAIN`: its
    /// affinity changed during the call, or it sleeps on another CPU; `EBADF`: no pidfd.
    pub fn bind(&self, pidfd: i32, entity: &str) -> Result<(), i32> {
        self.call(&mut Bind { pidfd, name: name(entity), ..Default::default() })
    }

    /// Ends the membership of the caller (-1), or of the thread of a pidfd. `ENOTCONN`: not bound; `ESRCH`: it has
    /// ended; `EBADF`: no pidfd.
    pub fn unbind(&self, pidfd: i32) -> Result<(), i32> {
        self.call(&mut Unbind { pidfd, ..Default::default() })
    }

    /// Completes the caller's job and waits for the next one. `ENOTCONN`: not bound; `ESHUTDOWN`: the table was
    /// removed; `EINTR`: a signal was handled that came before the wait started or while no table runs.
    pub fn wait(&self) -> Result<Wait, i32> {
        let mut wait = Wait::default();
        self.call(&mut wait).map(|()| wait)
    }
}
