//! A separate instance of tracefs, which records events of the kernel.
//!
//! If the ring buffer is full, it loses the latest events.

mod layout;
mod ring;

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::HostFailure;
use crate::sys::Tid;
use crate::{file, proc};

pub use layout::{Field, Point};
pub use ring::drain;

/// The mount point of tracefs.
pub const ROOT: &str = "/sys/kernel/tracing";
const INSTANCE: &str = "instances/macrotick";
/// The size per CPU. A switch takes about 80 bytes, so this is enough for some 100 000 switches.
const BUFFER_KB: &str = "8192";

/// An instance of tracefs. Dropping it removes the instance, and unmounts tracefs if this program mounted it.
pub struct Instance {
    directory: PathBuf,
    _mount: Option<Mount<'static>>,
}

impl Instance {
    /// Makes the instance and configures it for switches and forks. Tracing is still off.
    pub fn prepare() -> Result<Instance, HostFailure> {
        Instance::make(INSTANCE, &["sched/sched_switch", "sched/sched_process_fork"])
    }

    /// Makes an instance of this process for some events. Its name begins with `name`. Tracing is still off. Instances of
    /// such processes that were killed are removed.
    pub fn of_process(name: &str, events: &[&str]) -> Result<Instance, HostFailure> {
        let instance = Instance::make(&format!("instances/{name}-{}", std::process::id()), events)?;
        Instance::remove_left(name);
        Ok(instance)
    }

    /// Removes the instances of processes that are gone.
    fn remove_left(name: &str) {
        for other in fs::read_dir(Path::new(ROOT).join("instances")).into_iter().flatten().flatten() {
            let file = other.file_name();
            let process =
                file.to_str().and_then(|file| file.strip_prefix(name)?.strip_prefix('-')?.parse::<Tid>().ok());
            if process.is_some_and(|process| proc::stat(process).is_none()) {
                let _ = fs::remove_dir(other.path());
            }
        }
    }

    /// Lets only those events pass that a filter accepts (Documentation/trace/events.rst, section 5). It replaces the
    /// filter before.
    pub fn filter(&self, event: &str, filter: &str) -> Result<(), HostFailure> {
        self.write(&format!("events/{event}/filter"), filter)
    }

    /// Opens the ring buffer of a CPU. A read takes a page, or fails with `WouldBlock`.
    pub fn open_raw(&self, cpu: u32) -> Result<File, HostFailure> {
        let path = self.directory.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        opened.map_err(HostFailure::file("open", path.as_path()))
    }

    /// Whether the kernel has an event.
    pub fn has(&self, event: &str) -> bool {
        self.directory.join("events").join(event).exists()
    }

    /// Switches an event on.
    pub fn enable(&self, event: &str) -> Result<(), HostFailure> {
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// Returns the kernel's description of an event: its number and its fields.
    pub fn format_of(&self, event: &str) -> Result<String, HostFailure> {
        file::read(&self.directory.join("events").join(event).join("format"))
    }

    fn make(name: &str, events: &[&str]) -> Result<Instance, HostFailure> {
        let mount = Mount::if_missing().map_err(HostFailure::file("mount", ROOT))?;
        let directory = Path::new(ROOT).join(name);
        // A killed run may have left one. The lock ensures that no other run uses it.
        let _ = fs::remove_dir(&directory);
        fs::create_dir(&directory).map_err(HostFailure::file("make", directory.as_path()))?;
        let instance = Instance { directory, _mount: mount };
        for (file, value) in
            [("tracing_on", "0"), ("trace_clock", "mono"), ("options/overwrite", "0"), ("buffer_size_kb", BUFFER_KB)]
        {
            instance.write(file, value)?;
        }
        events.iter().try_for_each(|event| instance.enable(event))?;
        Ok(instance)
    }

    /// Starts tracing.
    pub fn start(&self) -> Result<(), HostFailure> {
        self.write("tracing_on", "1")
    }

    /// Stops tracing.
    pub fn stop(&self) -> Result<(), HostFailure> {
        self.write("tracing_on", "0")
    }

    /// Returns the events in text form.
    pub fn text(&self) -> Result<String, HostFailure> {
        file::read(&self.directory.join("trace"))
    }

    /// Returns the number of events of a CPU for which there was no room.
    pub fn dropped_on(&self, cpu: u32) -> Result<u64, HostFailure> {
        let stats = file::read(&self.directory.join(format!("per_cpu/cpu{cpu}/stats")))?;
        Ok(dropped(&stats))
    }

    /// Returns the number of events for which there was no room.
    pub fn dropped(&self) -> Result<u64, HostFailure> {
        let folder = self.directory.join("per_cpu");
        let mut sum = 0;
        for cpu in fs::read_dir(&folder).map_err(HostFailure::file("read", folder.as_path()))? {
            let cpu = cpu.map_err(HostFailure::file("read", folder.as_path()))?;
            sum += dropped(&file::read(&cpu.path().join("stats"))?);
        }
        Ok(sum)
    }

    fn write(&self, file: &str, value: &str) -> Result<(), HostFailure> {
        file::write(&self.directory.join(file), value)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.stop();
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Finds the number of dropped events among the statistics of a CPU.
fn dropped(stats: &str) -> u64 {
    let count = stats.lines().find_map(|line| line.strip_prefix("dropped events:")?.trim().parse().ok());
    count.unwrap_or(0)
}

/// The path of [`ROOT`].
const PLACE: &CStr = c"/sys/kernel/tracing";

/// A mount by this program. Dropping it unmounts it, unless another program uses it.
struct Mount<'a>(&'a CStr);

impl Mount<'_> {
    fn if_missing() -> io::Result<Option<Mount<'static>>> {
        match Path::new(ROOT).join("instances").is_dir() {
            true => Ok(None),
            false => Mount::new(c"tracefs", PLACE).map(Some),
        }
    }

    fn new<'a>(kind: &CStr, place: &'a CStr) -> io::Result<Mount<'a>> {
        // SAFETY: terminated strings; no data.
        match unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) } {
            0 => Ok(Mount(place)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        // SAFETY: a terminated string. If another program uses the mount, Linux refuses, and it stays.
        unsafe { libc::umount2(self.0.as_ptr(), 0) };
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs::File;

    use super::*;

    #[test]
    fn what_somebody_uses_stays_mounted() {
        // SAFETY: no memory is passed. The call concerns this thread only: no other thread sees its mounts.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return eprintln!("skipped: it needs root");
        }
        let whole = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: terminated strings; no data.
        let apart = unsafe { libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), whole, std::ptr::null()) };
        assert_eq!(apart, 0);
        let folder = std::env::temp_dir().join(format!("macrotick-mount-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (place, file) = (CString::new(folder.to_str().unwrap()).unwrap(), folder.join("file"));
        for used in [false, true] {
            let mount = Mount::new(c"tmpfs", &place).unwrap();
            let open = File::create_new(&file).unwrap();
            let user = used.then_some(open);
            drop(mount);
            assert_eq!(file.exists(), used);
            drop(user);
        }
        drop(Mount(&place));
        assert!(!file.exists(), "it is used by nobody");
        fs::remove_dir(&folder).unwrap();
    }
}
