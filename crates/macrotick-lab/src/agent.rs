//! The agent: the guest's first process. It runs the one job, sends its results, and ends the guest.
//!
//! While the job runs, the agent sleeps in `waitpid`, so it does not disturb the measurement. It writes to the result
//! channel after the job. Only progress lines come earlier, and only if the job asks for them.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread::JoinHandle;

use crate::frame::{Frame, GuestStatus};
use crate::fwcfg;
use crate::job::Document;

/// The result channel: the second serial port, or a virtual one where the machine has one port.
#[cfg(target_arch = "x86_64")]
const RESULTS: &str = "/dev/ttyS1";
#[cfg(target_arch = "aarch64")]
const RESULTS: &str = "/dev/vport0p1";
/// The directory in which the job's program starts.
pub const DIRECTORY: &str = "/root";
/// Files for the job's output until it has ended.
const STDOUT: &str = "/tmp/.stdout";
const STDERR: &str = "/tmp/.stderr";
/// The word of the kernel's command line with the number of CPUs that stay.
pub(crate) const CPUS: &str = "lab_cpus=";
/// The variable with the descriptor for progress lines.
const LIVE_VARIABLE: &str = "MACROTICK_LIVE_FD";

/// Runs the agent. It must be the first process of a guest. It does not return: the machine ends.
pub fn main() -> ! {
    match OpenOptions::new().write(true).open(RESULTS).and_then(make_raw) {
        Ok(mut channel) => {
            if let Err(problem) = serve(&mut channel) {
                let frames = [Frame::Refused(problem), Frame::Done];
                frames.iter().for_each(|frame| drop(send(&channel, frame)));
            }
            // SAFETY: tcdrain takes a descriptor that `channel` keeps open, and no memory.
            unsafe { libc::tcdrain(channel.as_raw_fd()) };
        }
        Err(error) => eprintln!("agent: cannot use {RESULTS}: {error}"),
    }
    restart()
}

/// Sends a line of progress to the host if the job has `live`; otherwise it does nothing.
pub fn live(line: &str) {
    let Some(fd) = std::env::var(LIVE_VARIABLE).ok().and_then(|text| text.parse::<i32>().ok()) else { return };
    let line = format!("{}\n", line.replace('\n', " "));
    // SAFETY: write reads `line.len()` bytes of `line`; a wrong descriptor is an error that progress may ignore.
    unsafe { libc::write(fd, line.as_ptr().cast(), line.len()) };
}

/// Fetches the job, runs it, and sends its results. An error is a text for the host.
fn serve(channel: &mut File) -> Result<(), String> {
    take_offline()?;
    let job = Document::decode(&fwcfg::fetch_job()?)?;
    for (path, content) in &job.files {
        install(Path::new(path), content).map_err(|error| format!("cannot write {path}: {error}"))?;
    }
    let (status, forwarder) = run(&job, channel)?;
    end_others();
    if let Some(forwarder) = forwarder {
        forwarder.join().map_err(|_| "the thread that forwards progress died")?;
    }
    report(&job, status, channel).map_err(|error| format!("cannot send results: {error}"))
}

/// Takes the CPUs offline that only the boot needed: [`CPUS`] on the kernel's command line has the number of the others.
///
/// This is before the machine is saved: what several CPUs do does not repeat.
fn take_offline() -> Result<(), String> {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let Some(cpus) = line.split_whitespace().find_map(|word| word.strip_prefix(CPUS)) else { return Ok(()) };
    let first: u32 = cpus.parse().map_err(|_| format!("{CPUS}{cpus}: not a number of CPUs"))?;
    let path = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/online");
    for path in (first..).map(path).take_while(|path| Path::new(path).exists()) {
        fs::write(&path, "0").map_err(|error| format!("cannot take a CPU offline: {path}: {error}"))?;
    }
    Ok(())
}

/// Writes a file of the job. A file that starts like a program becomes executable.
fn install(path: &Path, content: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    // Removed first: a process from the image may have it mapped, for example a library.
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => fs::write(path, content)?,
    }
    let program = content.starts_with(b"#!") || content.starts_with(b"\x7fELF");
    fs::set_permissions(path, fs::Permissions::from_mode(if program { 0o755 } else { 0o644 }))
}

/// Runs the program to its end. The thread that forwards its progress ends when no process has the descriptor open.
fn run(job: &Document, channel: &File) -> Result<(GuestStatus, Option<JoinHandle<()>>), String> {
    let (program, arguments) = job.argv.split_first().ok_or("no program to run")?;
    let create = |path: &str| File::create(path).map_err(|error| format!("cannot create {path}: {error}"));
    let mut command = Command::new(program);
    command.args(arguments).envs(job.env.iter().map(|(name, value)| (name, OsStr::new(value))));
    command.current_dir(DIRECTORY).stdin(std::process::Stdio::null());
    command.stdout(create(STDOUT)?).stderr(create(STDERR)?);
    let lines = job.live.then(|| offer_live(&mut command)).transpose().map_err(|error| format!("no pipe: {error}"))?;
    let child = command.spawn().map_err(|error| format!("cannot run {program}: {error}"))?;
    drop(command); // closes the agent's copy of the pipe's writing end, so that reading it ends with the job
    let forwarder = match lines {
        None => None,
        Some(lines) => {
            let channel = channel.try_clone().map_err(|error| format!("no second channel: {error}"))?;
            Some(std::thread::spawn(move || forward(lines, &channel)))
        }
    };
    Ok((wait_for(child.id() as i32), forwarder))
}

/// Gives the program a descriptor for progress lines; returns the end for reading.
fn offer_live(command: &mut Command) -> std::io::Result<OwnedFd> {
    let mut ends = [0; 2];
    // SAFETY: pipe2 writes two descriptors into `ends`.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptors are fresh and have no other owner.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    command.env(LIVE_VARIABLE, write.as_raw_fd().to_string());
    // SAFETY: between fork and exec the closure only calls fcntl, which is async-signal-safe. It owns the descriptor.
    unsafe {
        command.pre_exec(move || match libc::fcntl(write.as_raw_fd(), libc::F_SETFD, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    Ok(read)
}

fn forward(lines: OwnedFd, channel: &File) {
    for line in BufReader::new(File::from(lines)).lines().map_while(Result::ok) {
        if send(channel, &Frame::Live(line)).is_err() {
            return;
        }
    }
}

/// Reaps every child, as the first process must, until the job's own child has ended.
fn wait_for(child: i32) -> GuestStatus {
    loop {
        let mut raw = 0;
        // SAFETY: waitpid writes to `raw`.
        let ended = unsafe { libc::waitpid(-1, &mut raw, 0) };
        if ended == child {
            let status = ExitStatus::from_raw(raw);
            return match status.code() {
                Some(code) => GuestStatus::Exited(code),
                None => GuestStatus::Signaled(status.signal().unwrap_or(0)),
            };
        }
        assert!(ended > 0, "the job's process is a child that was not reaped yet");
    }
}

/// Kills the processes that the job left running, so they do not slow the collection, and waits for their end.
fn end_others() {
    // SAFETY: kill takes no memory; from the first process -1 means all other processes. waitpid may ignore the status.
    unsafe {
        libc::kill(-1, libc::SIGKILL);
        while libc::waitpid(-1, std::ptr::null_mut(), 0) > 0 {}
    }
}

fn report(job: &Document, status: GuestStatus, channel: &File) -> std::io::Result<()> {
    send(channel, &Frame::Stdout(fs::read(STDOUT)?))?;
    send(channel, &Frame::Stderr(fs::read(STDERR)?))?;
    for path in &job.collect {
        if let Some(content) = read_if_there(path)? {
            send(channel, &Frame::File(path.clone(), content))?;
        }
    }
    send(channel, &Frame::Status(status))?;
    send(channel, &Frame::Done)
}

/// Reads to the end, because files of tracefs and procfs have no size.
fn read_if_there(path: &str) -> std::io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        opened => opened?.read_to_end(&mut content).map(|_| Some(content)),
    }
}

fn send(mut channel: &File, frame: &Frame) -> std::io::Result<()> {
    channel.write_all(&frame.encode())
}

/// Makes a terminal raw: bytes must arrive unchanged. The speed does not matter, because QEMU does not model it. A virtual
/// port is no terminal.
fn make_raw(tty: File) -> std::io::Result<File> {
    if !tty.is_terminal() {
        return Ok(tty);
    }
    // SAFETY: an all-zero termios is a valid value, and tcgetattr overwrites it; all calls get live pointers.
    let done = unsafe {
        let mut attributes: libc::termios = std::mem::zeroed();
        let got = libc::tcgetattr(tty.as_raw_fd(), &mut attributes);
        libc::cfmakeraw(&mut attributes);
        got == 0 && libc::tcsetattr(tty.as_raw_fd(), libc::TCSANOW, &attributes) == 0
    };
    done.then_some(tty).ok_or_else(std::io::Error::last_os_error)
}

/// Restarts the machine. QEMU runs with `-no-reboot`, so a restart ends it.
fn restart() -> ! {
    // SAFETY: reboot takes a number.
    unsafe { libc::reboot(libc::LINUX_REBOOT_CMD_RESTART) };
    // Reached only outside of a guest: reboot needs the privileges of a first process.
    std::process::exit(1)
}
