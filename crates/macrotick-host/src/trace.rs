//! An instance of tracefs of our own, in which the scheduler's events are recorded.
//!
//! The ring buffer does not overwrite: what is lost, is lost at the end.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::HostFailure;
use crate::file;

/// Where tracefs is mounted.
pub const ROOT: &str = "/sys/kernel/tracing";
const INSTANCE: &str = "instances/macrotick";
/// Per CPU; a switch takes about 80 bytes, so this is some 100 000 switches.
const BUFFER_KB: &str = "8192";

/// An instance, ready to trace. Dropping it removes it, and tracefs where we mounted it.
pub struct Instance {
    directory: PathBuf,
    _mount: Option<Mount<'static>>,
}

impl Instance {
    /// Makes the instance and sets it up to record switches and forks; nothing is traced yet.
    pub fn prepare() -> Result<Instance, HostFailure> {
        let mount = Mount::if_missing().map_err(HostFailure::file("mount", ROOT))?;
        let directory = Path::new(ROOT).join(INSTANCE);
        // One may be left over from a run that was killed; the lock says that nobody uses it.
        let _ = fs::remove_dir(&directory);
        fs::create_dir(&directory).map_err(HostFailure::file("make", directory.as_path()))?;
        let instance = Instance { directory, _mount: mount };
        for (file, value) in [
            ("tracing_on", "0"),
            ("trace_clock", "mono"),
            ("options/overwrite", "0"),
            ("buffer_size_kb", BUFFER_KB),
            ("events/sched/sched_switch/enable", "1"),
            ("events/sched/sched_process_fork/enable", "1"),
        ] {
            instance.write(file, value)?;
        }
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

    /// The events in the text form.
    pub fn text(&self) -> Result<String, HostFailure> {
        file::read(&self.directory.join("trace"))
    }

    /// How many events there was no room for.
    pub fn dropped(&self) -> Result<u64, HostFailure> {
        let folder = self.directory.join("per_cpu");
        let mut dropped = 0;
        for cpu in fs::read_dir(&folder).map_err(HostFailure::file("read", folder.as_path()))? {
            let cpu = cpu.map_err(HostFailure::file("read", folder.as_path()))?;
            let stats = file::read(&cpu.path().join("stats"))?;
            let count = stats.lines().find_map(|line| line.strip_prefix("dropped events:")?.trim().parse::<u64>().ok());
            dropped += count.unwrap_or(0);
        }
        Ok(dropped)
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

/// Of [`ROOT`].
const PLACE: &CStr = c"/sys/kernel/tracing";

/// What was mounted by us. Dropping it unmounts it, unless somebody uses it.
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
        // SAFETY: a terminated string. Where somebody uses it meanwhile, Linux refuses: then it stays.
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
        // SAFETY: no memory is passed. It is about this thread alone: what it mounts is seen by nobody else.
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
