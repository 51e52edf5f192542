//! The numbers of users and groups, from `/etc/passwd` and `/etc/group`. This program is linked statically, so it cannot
//! load the libraries that ask other directories. Such accounts are named by their numbers.

use std::io;
use std::path::Path;

/// The names of one kind of account, with their numbers.
pub struct Accounts(String);

impl Accounts {
    /// Reads the users of this host.
    pub fn users() -> io::Result<Accounts> {
        Accounts::read(Path::new("/etc/passwd"))
    }

    /// Reads the groups of this host.
    pub fn groups() -> io::Result<Accounts> {
        Accounts::read(Path::new("/etc/group"))
    }

    fn read(path: &Path) -> io::Result<Accounts> {
        std::fs::read_to_string(path).map(Accounts)
    }

    /// Returns the number of a name. A number stands for itself. `None`: there is no such account.
    pub fn number(&self, name: &str) -> Option<u32> {
        if let Ok(number) = name.parse() {
            return Some(number);
        }
        let mut fields = self.0.lines().map(|line| line.split(':').collect::<Vec<_>>());
        fields.find(|fields| fields.first() == Some(&name))?.get(2)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_accounts() {
        let accounts = Accounts("root:x:0:0:root:/root:/bin/sh\nalice:x:1000:100::/home/alice:\nodd\n".into());
        let number = |name| accounts.number(name);
        assert_eq!([number("root"), number("alice"), number("77")], [Some(0), Some(1000), Some(77)]);
        assert_eq!([number("x"), number("odd"), number(""), number("-1"), number("4294967296")], [None; 5]);
        assert_eq!(Accounts::users().unwrap().number("root"), Some(0));
    }
}
