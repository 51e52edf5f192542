//! Reports to the user why a container is refused, and which settings the host lacks for a container that starts.
//!
//! runc passes on the standard error of a hook. crun gives its hooks `/dev/null` there, so the hook writes to crun's
//! own standard error, which the user or podman's conmon reads. Podman reads crun's log instead. If the log has one
//! record, podman shows only that one, which is crun's own. If it has more, podman shows the output that conmon has
//! read. Therefore the hook also writes the reason to the log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use macrotick_model::visible::visible;
use serde_json::json;

use crate::error::HookError;

/// The device number of `/dev/null`.
const NULL: (u32, u32) = (1, 3);

/// Writes a remark about a container that starts to standard error.
pub fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "{}", line(text));
}

/// Writes the reason to every place that the user may read. Ignores failures, because no place is left to report them.
pub fn refusal(error: &HookError) {
    let text = line(&error.to_string());
    let _ = writeln!(io::stderr(), "{text}");
    if stderr_is_null() {
        let runtime = std::os::unix::process::parent_id();
        let _ = stderr_of(runtime).and_then(|mut file| writeln!(file, "{text}"));
        let _ = log_of(runtime).map(|path| append(path, &text));
    }
}

/// Makes the text safe for terminals: other users choose annotations, names of control groups and other parts of it.
fn line(text: &str) -> String {
    visible(&format!("macrotick: {text}"))
}

fn stderr_is_null() -> bool {
    // SAFETY: the descriptor is borrowed; `ManuallyDrop` never closes it.
    let stderr = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) });
    stderr.metadata().is_ok_and(|meta| {
        let number = (libc::major(meta.rdev()), libc::minor(meta.rdev()));
        meta.file_type().is_char_device() && number == NULL
    })
}

/// Returns the same open file that a process has as its standard error. A second open would fail for a socket. For an
/// ordinary file, each of the two would overwrite the output of the other.
fn stderr_of(pid: u32) -> io::Result<File> {
    // SAFETY: both calls take numbers and return a new descriptor, or a negative number.
    unsafe {
        let process = owned(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        let stderr = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), libc::STDERR_FILENO, 0);
        owned(stderr).map(File::from)
    }
}

/// # Safety
///
/// A number that is not negative must be a descriptor without an owner.
unsafe fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    match result {
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(result as RawFd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the log that the runtime writes, according to its arguments.
fn log_of(pid: u32) -> Option<PathBuf> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<String> =
        line.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    log_in(&words)
}

/// Returns the path only of a log of JSON records.
fn log_in(words: &[String]) -> Option<PathBuf> {
    let option = |name: &str| {
        let at = words.iter().position(|word| word == name || word.starts_with(&format!("{name}=")))?;
        match words[at].split_once('=') {
            Some((_, value)) => Some(value),
            None => words.get(at + 1).map(String::as_str),
        }
    };
    option("--log").filter(|_| option("--log-format") == Some("json")).map(PathBuf::from)
}

fn append(path: PathBuf, text: &str) -> io::Result<()> {
    let record = json!({ "msg": text, "level": "error" });
    writeln!(OpenOptions::new().append(true).open(path)?, "{record}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_found_in_the_runtimes_arguments() {
        let log = |line: &str| log_in(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(log("crun --log-format=json --log /run/oci-log create x"), Some("/run/oci-log".into()));
        assert_eq!(log("crun --log=/run/oci-log --log-format json create x"), Some("/run/oci-log".into()));
        assert_eq!(log("crun --log /run/oci-log create x"), None);
        assert_eq!(log("crun --log-format=json run x"), None);
        assert_eq!(log("crun --log-format=json --log"), None);
    }

    #[test]
    fn the_standard_error_of_a_process_is_the_same_file() {
        let path = std::env::temp_dir().join(format!("macrotick-hook-stderr-{}", std::process::id()));
        let mut child = std::process::Command::new("sh");
        child.args(["-c", "echo first >&2; read word; echo third >&2"]).stdin(std::process::Stdio::piped());
        let mut child = child.stderr(File::create(&path).unwrap()).spawn().unwrap();
        while fs::read_to_string(&path).unwrap().is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        writeln!(stderr_of(child.id()).unwrap(), "second").unwrap();
        writeln!(child.stdin.take().unwrap(), "go").unwrap();
        child.wait().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\nsecond\nthird\n");
        fs::remove_file(path).unwrap();
    }
}
