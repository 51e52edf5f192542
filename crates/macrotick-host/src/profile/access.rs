//! The host as a profile sees it: files, kernel threads, and the record of the changes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use macrotick_model::CpuSet;

use crate::file::{read_own, replace};
use crate::kernel_threads;
use crate::lock::{runtime_path, ROOT};
use crate::sys::{self, SchedAttr, Tid};

/// All reads and changes of a profile. The tests have a host of their own.
pub(super) trait Access {
    /// Whether this program may change the host.
    fn is_root(&self) -> bool;
    /// Reads a file.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Writes a file that exists.
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;
    /// Returns the names in a directory in ascending order, none if there is no such directory.
    fn names(&self, path: &Path) -> Vec<String>;
    /// Returns the last part of the target of a link.
    fn target(&self, link: &Path) -> Option<String>;
    /// Returns all threads of the kernel with their names.
    fn threads(&self) -> Vec<(Tid, String)>;
    /// Whether this is still the thread of that name.
    fn is_still(&self, thread: Tid, name: &str) -> bool;
    /// Returns the policy of a thread.
    fn policy(&self, thread: Tid) -> io::Result<SchedAttr>;
    /// Sets the policy of a thread.
    fn set_policy(&self, thread: Tid, policy: &SchedAttr) -> io::Result<()>;
    /// Returns the CPUs that a thread may run on.
    fn affinity(&self, thread: Tid) -> io::Result<CpuSet>;
    /// Sets the CPUs that a thread may run on.
    fn set_affinity(&self, thread: Tid, cpus: &CpuSet) -> io::Result<()>;
    /// Limits the latency of idle states to this number of microseconds, for as long as the file is open.
    fn limit_latency(&self, us: u32) -> io::Result<File>;
    /// Returns the text of the record.
    fn record(&self) -> Option<String>;
    /// Replaces the text of the record, or removes it.
    fn set_record(&self, text: Option<&str>) -> io::Result<()>;
}

/// This host, with the suffix of the file that is the record.
pub(super) struct ThisHost(pub &'static str);

/// The suffix of the record of the profile's changes.
pub(super) const PROFILE: &str = "-profile.json";
/// A program that writes to this file and holds it open limits the latency of idle states.
pub(super) const LATENCY: &str = "/dev/cpu_dma_latency";

impl ThisHost {
    fn path(&self) -> PathBuf {
        runtime_path(ROOT, self.0)
    }
}

impl Access for ThisHost {
    fn is_root(&self) -> bool {
        sys::user() == ROOT
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(path)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
    }

    fn names(&self, path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn target(&self, link: &Path) -> Option<String> {
        Some(fs::read_link(link).ok()?.file_name()?.to_str()?.to_owned())
    }

    fn threads(&self) -> Vec<(Tid, String)> {
        kernel_threads::all()
    }

    fn is_still(&self, thread: Tid, name: &str) -> bool {
        kernel_threads::is_still(thread, name)
    }

    fn policy(&self, thread: Tid) -> io::Result<SchedAttr> {
        sys::sched_attr(thread)
    }

    fn set_policy(&self, thread: Tid, policy: &SchedAttr) -> io::Result<()> {
        sys::set_sched_attr(thread, policy)
    }

    fn affinity(&self, thread: Tid) -> io::Result<CpuSet> {
        sys::affinity(thread)
    }

    fn set_affinity(&self, thread: Tid, cpus: &CpuSet) -> io::Result<()> {
        sys::pin(thread, cpus.as_slice())
    }

    fn limit_latency(&self, us: u32) -> io::Result<File> {
        let mut file = OpenOptions::new().write(true).open(LATENCY)?;
        file.write_all(&us.to_ne_bytes())?;
        Ok(file)
    }

    fn record(&self) -> Option<String> {
        read_own(&self.path())
    }

    fn set_record(&self, text: Option<&str>) -> io::Result<()> {
        replace(&self.path(), text)
    }
}
