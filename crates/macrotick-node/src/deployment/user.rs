//! The user of a program.

use std::io;
use std::process::{Command, Stdio};

use macrotick_model::Program;
use serde::{Deserialize, Serialize};

use crate::deployment::urgent;
use crate::error::NodeError;

/// The user that a process becomes before it executes its program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    user: libc::uid_t,
    group: libc::gid_t,
    groups: Vec<libc::gid_t>,
}

impl Owner {
    /// Returns the owner that a program asks for, if it is another user. `name` is the task or process of the program.
    /// It starts some processes, which takes time. Therefore it is called once, when a deployment is decoded, and the
    /// result is passed to the start.
    pub fn of(name: &str, program: &Program) -> Result<Option<Owner>, NodeError> {
        let Some(user) = &program.user else { return Ok(None) };
        let wrong = |reason: String| NodeError::User { name: name.into(), user: user.clone(), reason };
        let owner = match (Owner::known(user), user.parse()) {
            (Ok(owner), _) => owner,
            // A number may have no name.
            (Err(_), Ok(number)) => Owner { user: number, group: number, groups: Vec::new() },
            (Err(error), Err(_)) => return Err(wrong(error.to_string())),
        };
        // SAFETY: no memory is passed.
        let own = unsafe { libc::geteuid() };
        match own {
            own if own == owner.user => Ok(None),
            0 => Ok(Some(owner)),
            _ => Err(wrong("only root can start a program as another user".into())),
        }
    }

    /// Asks id(1). This program is linked statically and cannot load the libraries that look up users
    /// (nsswitch.conf(5)).
    fn known(user: &str) -> io::Result<Owner> {
        let ask = |what: &str| -> io::Result<Vec<u32>> {
            let mut id = Command::new("id");
            id.args([what, "--", user]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let told = urgent::spawn(&mut id)?.wait_with_output()?;
            let text =
                String::from_utf8_lossy(if told.status.success() { &told.stdout } else { &told.stderr }).into_owned();
            let numbers = text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>();
            numbers.filter(|numbers| !numbers.is_empty()).ok_or_else(|| io::Error::other(text.trim().to_owned()))
        };
        Ok(Owner { user: ask("-u")?[0], group: ask("-g")?[0], groups: ask("-G")? })
    }

    /// Gives the calling process to the owner. If the caller has the privilege, the process may lock any amount of
    /// memory. It ends with the runner. The function only makes system calls, for the time between fork and exec.
    pub fn become_it(&self) -> io::Result<()> {
        let all = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: reads one rlimit and the list of groups; the rest passes no memory. A change of the user clears the
        // signal for the runner's death (prctl(2)), so it is set again.
        let done = unsafe {
            libc::setrlimit(libc::RLIMIT_MEMLOCK, &all);
            libc::setgroups(self.groups.len(), self.groups.as_ptr()) == 0
                && libc::setgid(self.group) == 0
                && libc::setuid(self.user) == 0
                && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
        };
        done.then_some(()).ok_or_else(io::Error::last_os_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(user: &str) -> Result<Option<Owner>, String> {
        let program = Program { user: Some(user.into()), ..Program::new(["x"]) };
        Owner::of("a", &program).map_err(|error| error.to_string())
    }

    #[test]
    fn users_have_names_or_numbers() {
        // SAFETY: no memory is passed.
        let own = unsafe { libc::geteuid() };
        assert_eq!(owner(&own.to_string()), Ok(None));
        let told = owner("no-such-user").unwrap_err();
        assert!(told.starts_with("`a` cannot be started as user `no-such-user`: id: "), "{told}");
        assert!(owner("-u").unwrap_err().contains("cannot be started as user `-u`"));
        match own {
            0 => assert_eq!(owner("54321"), Ok(Some(Owner { user: 54321, group: 54321, groups: Vec::new() }))),
            _ => assert!(owner("54321").unwrap_err().ends_with("only root can start a program as another user")),
        }
        if own == 0 && Owner::known("nobody").is_ok() {
            let nobody = owner("nobody").unwrap().expect("another user");
            assert!(nobody.user != 0 && nobody.group != 0 && nobody.groups.contains(&nobody.group));
        }
    }
}
