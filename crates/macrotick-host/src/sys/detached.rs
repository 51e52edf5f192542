//! A process beside this one that lives on when this one executes a program or is killed.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::check;
use crate::proc;

/// The two sides of [`fork_keeper`].
pub enum Forked {
    /// This is the process that called. The reader ends when the keeper has ended.
    Caller {
        /// The caller is alive, and executes no other program, as long as this is open.
        alive: OwnedFd,
        /// Input that ends with the keeper.
        keeper: File,
    },
    /// This is the keeper: a process in a session of its own, without the files and the terminal of the caller. Its
    /// reader ends when the caller has ended or executes another program.
    Keeper {
        /// Input that ends with the caller.
        caller: File,
        /// The keeper is alive as long as this is open.
        alive: OwnedFd,
    },
}

/// Splits this process in two. The keeper is no child of the caller, so a program that the caller executes does not see
/// it. Signals of the terminal do not reach it. It ignores SIGTERM: a service manager sends this to all processes
/// of a service. The keeper has to clean up after them.
///
/// # Errors
///
/// A process with several threads, because locks of the others would stay held in the keeper; or the kernel's refusal.
pub fn fork_keeper() -> io::Result<Forked> {
    if proc::threads(std::process::id() as i32).nth(1).is_some() {
        return Err(io::Error::other("this process has several threads"));
    }
    let (caller_read, caller_write) = pipe()?;
    let (keeper_read, keeper_write) = pipe()?;
    // SAFETY: this process has one thread. The child in between calls only what is safe after a fork.
    unsafe {
        match check(libc::fork().into())? {
            0 => {
                libc::setsid();
                match libc::fork() {
                    0 => {}
                    -1 => libc::_exit(1),
                    _ => libc::_exit(0),
                }
            }
            between => {
                let mut status = 0;
                while libc::waitpid(between as i32, &mut status, 0) < 0 && *libc::__errno_location() == libc::EINTR {}
                return match status {
                    0 => Ok(Forked::Caller { alive: caller_write, keeper: keeper_read.into() }),
                    _ => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
                };
            }
        }
    }
    drop((caller_write, keeper_read));
    detach([&caller_read, &keeper_write]);
    Ok(Forked::Keeper { caller: caller_read.into(), alive: keeper_write })
}

/// Lets go of all that this process has from its caller, except two descriptors.
fn detach(kept: [&OwnedFd; 2]) {
    let mut kept = kept.map(|fd| fd.as_raw_fd() as libc::c_uint);
    kept.sort_unstable();
    // SAFETY: replaces the standard descriptors, and closes those that came from the caller's parent: this program opens
    // all of its own with O_CLOEXEC, and the owner of one in use here is `kept`.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::chdir(c"/".as_ptr());
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for fd in 0..3 {
            libc::dup2(null, fd);
        }
        let mut from = 3;
        for last in kept.iter().map(|fd| fd.wrapping_sub(1)).chain([libc::c_uint::MAX]) {
            if from <= last {
                libc::syscall(libc::SYS_close_range, from, last, 0);
            }
            from = last.wrapping_add(2);
        }
    }
}

/// Makes a pipe: the end to read and the end to write.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: writes two descriptors, which are ours.
    unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC).into())?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}
