//! The file of the administrator, and the limits of a user.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use macrotick_host::grants::is_of_the_administrator;
use macrotick_host::sys::Peer;
use macrotick_model::{CpuSet, Duration};
use serde::Deserialize;

use crate::accounts::Accounts;
use crate::error::GrantError;

/// The file.
pub const FILE: &str = "/etc/macrotick/grant.yaml";
/// The longest file, in bytes.
const LONGEST: u64 = 1 << 16;
/// A whole CPU in millionths, for each of as many CPUs as a set can have.
const MOST: u64 = 1_000_000 * 1024;

/// The limits of one user, or of each member of a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limit {
    /// The most for all reservations of the user together, in millionths of a CPU. Each counts as its runtime divided by
    /// its deadline.
    pub bandwidth_ppm: u64,
    /// The shortest period.
    pub least_period: Duration,
    /// The CPUs that a reservation may be on; `None`: all.
    #[serde(default)]
    pub cpus: Option<CpuSet>,
    /// Whether the user may take time that other reservations leave unused.
    #[serde(default)]
    pub reclaim: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    users: BTreeMap<String, Limit>,
    #[serde(default)]
    groups: BTreeMap<String, Limit>,
}

/// The limits of all users.
#[derive(Debug, PartialEq, Eq)]
pub struct Limits {
    users: BTreeMap<u32, Limit>,
    groups: BTreeMap<u32, Limit>,
}

impl Limits {
    /// Reads the file of the administrator.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, that another user can change, or that is wrong, with the place.
    pub fn read(path: &Path) -> Result<Limits, GrantError> {
        let unreadable = |source| GrantError::Unreadable { path: path.into(), source };
        let file = File::open(path).map_err(unreadable)?;
        if !is_of_the_administrator(&file, path)? {
            return Err(GrantError::NotOfRoot { path: path.into() });
        }
        let mut text = String::new();
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > LONGEST {
            return Err(unreadable(io::Error::other(format!("it is longer than {LONGEST} bytes"))));
        }
        let accounts = [Accounts::users(), Accounts::groups()];
        let [users, groups] = accounts.map(|accounts| accounts.map_err(unreadable));
        Limits::parse(&text, &users?, &groups?).map_err(|reason| GrantError::Limits { path: path.into(), reason })
    }

    /// Reads the text of the file. The error has the line and the column, or the key.
    fn parse(text: &str, users: &Accounts, groups: &Accounts) -> Result<Limits, String> {
        let document: Document = serde_yaml_ng::from_str(text).map_err(|error| match error.location() {
            Some(at) => format!("{}:{}: {error}", at.line(), at.column()),
            None => format!(" {error}"),
        })?;
        let numbered = |key: &str, all: BTreeMap<String, Limit>, accounts: &Accounts| {
            let mut numbers = BTreeMap::new();
            for (name, limit) in all {
                let at = format!(" {key}.{name}");
                let Some(number) = accounts.number(&name) else {
                    return Err(format!("{at}: there is no such account in /etc: give its number"));
                };
                limit.check().map_err(|reason| format!("{at}.{reason}"))?;
                if numbers.insert(number, limit).is_some() {
                    return Err(format!("{at}: account {number} has limits already"));
                }
            }
            Ok(numbers)
        };
        Ok(Limits {
            users: numbered("users", document.users, users)?,
            groups: numbered("groups", document.groups, groups)?,
        })
    }

    /// Returns the limits of a peer: its own, or else the greatest bandwidth that one of its groups has.
    pub fn of(&self, peer: &Peer) -> Option<&Limit> {
        let of_groups = peer.groups.iter().filter_map(|group| self.groups.get(group));
        self.users.get(&peer.user).or_else(|| of_groups.max_by_key(|limit| limit.bandwidth_ppm))
    }
}

impl Limit {
    fn check(&self) -> Result<(), String> {
        if !(1..=MOST).contains(&self.bandwidth_ppm) {
            return Err(format!("bandwidth-ppm: {} is out of range: 1 to {MOST}", self.bandwidth_ppm));
        }
        if self.least_period <= Duration::ZERO {
            return Err("least-period: it must be longer than zero".into());
        }
        match self.cpus.as_ref().is_some_and(CpuSet::is_empty) {
            true => Err("cpus: there is no CPU".into()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::us;

    use super::*;

    fn parse(text: &str) -> Result<Limits, String> {
        Limits::parse(text, &Accounts::users().unwrap(), &Accounts::groups().unwrap())
    }

    const TEXT: &str = "users:\n  1000: {bandwidth-ppm: 250000, least-period: 1ms, cpus: [0, 1]}\n\
                        groups:\n  root: {bandwidth-ppm: 100000, least-period: 5ms}\n  \
                        7: {bandwidth-ppm: 200000, least-period: 2ms, reclaim: true}\n";

    #[test]
    fn own_limits_come_before_those_of_groups_and_the_greatest_of_these_counts() {
        let limits = parse(TEXT).unwrap();
        let of = |user, groups: &[u32]| {
            limits.of(&Peer { process: 1, user, groups: groups.to_vec() }).map(|limit| limit.bandwidth_ppm)
        };
        assert_eq!(
            [of(1000, &[7]), of(1, &[0, 7]), of(1, &[0]), of(1, &[8])],
            [Some(250_000), Some(200_000), Some(100_000), None]
        );
        let own = &limits.users[&1000];
        assert_eq!(
            (own.least_period, own.reclaim, own.cpus.as_ref().unwrap().as_slice()),
            (us(1000), false, &[0, 1][..])
        );
        assert!(limits.groups[&7].reclaim);
    }

    #[test]
    fn each_fault_has_its_place() {
        for (from, to, said) in [
            ("least-period: 1ms", "least-period: 1", "2:"),
            (", least-period: 1ms", "", "missing field `least-period`"),
            ("cpus", "cpu", "unknown field `cpu`"),
            ("250000", "0", "users.1000.bandwidth-ppm: 0 is out of range"),
            ("250000", "-1", "2:"),
            ("1ms", "0ms", "users.1000.least-period: it must be longer than zero"),
            ("[0, 1]", "[]", "users.1000.cpus"),
            ("root:", "no-such-group:", "groups.no-such-group: there is no such account in /etc"),
            ("7:", "0:", "has limits already"),
            ("users:", "user:", "unknown field `user`"),
        ] {
            let wrong = TEXT.replacen(from, to, 1);
            let told = parse(&wrong).unwrap_err();
            assert!(told.contains(said), "{to}: {told}");
        }
    }

    #[test]
    fn a_file_that_others_can_change_is_not_read() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("macrotick-limits-{}", std::process::id()));
        std::fs::write(&path, TEXT).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
        let told = Limits::read(&path).unwrap_err().to_string();
        assert!(told.contains("must be a file of root that no other user can write"), "{told}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let is_root = macrotick_host::sys::user() == 0;
        assert_eq!(Limits::read(&path).is_ok(), is_root);
        std::fs::remove_file(&path).unwrap();
    }
}
