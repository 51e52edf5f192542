//! Writes initramfs archives (newc cpio), sorted and without time stamps, so equal content gives equal bytes.

use std::collections::BTreeMap;

/// Kinds of files in the mode word (`inode(7)`).
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;
/// The archive's size is a multiple of this: the kernel wants zeroes up to a multiple of 4 between archives.
const BLOCK: usize = 512;

/// An archive in memory. Paths are relative (`bin/sh`); a later entry replaces an earlier one of the same path.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    entries: BTreeMap<String, (u32, Vec<u8>)>,
}

impl Archive {
    /// Returns an empty archive.
    pub fn new() -> Archive {
        Archive::default()
    }

    /// Adds a regular file and the directories above it.
    pub fn file(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        self.insert(path, REGULAR | mode, content);
    }

    /// Adds a directory and its parents.
    pub fn directory(&mut self, path: &str) {
        self.insert(path, DIRECTORY | 0o755, Vec::new());
    }

    /// Adds a symbolic link and the directories above it.
    pub fn symlink(&mut self, path: &str, target: &str) {
        self.insert(path, SYMLINK | 0o777, target.as_bytes().to_vec());
    }

    fn insert(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        let path = path.trim_matches('/');
        for (slash, _) in path.match_indices('/') {
            self.entries.entry(path[..slash].to_owned()).or_insert((DIRECTORY | 0o755, Vec::new()));
        }
        self.entries.insert(path.to_owned(), (mode, content));
    }

    /// Returns the archive's bytes. A directory comes before its files, because it sorts before them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (inode, (path, (mode, content))) in (1..).zip(&self.entries) {
            write_entry(&mut out, inode, *mode, path, content);
        }
        write_entry(&mut out, 0, 0, "TRAILER!!!", &[]);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
        out
    }
}

/// Writes one entry: a header of 13 eight-digit fields, the name with its NUL, the content; each padded to 4 bytes.
fn write_entry(out: &mut Vec<u8>, inode: u32, mode: u32, path: &str, content: &[u8]) {
    let size = u32::try_from(content.len()).expect("files of an initramfs are below 4 GiB");
    let name_size = path.len() as u32 + 1;
    let links = 1;
    // inode, mode, uid, gid, links, mtime, size, device major and minor, special major and minor, name, check
    let fields = [inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
    out.extend_from_slice(b"070701");
    for field in fields {
        out.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    out.extend_from_slice(path.as_bytes());
    out.push(0);
    pad(out);
    out.extend_from_slice(content);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn sample(reversed: bool) -> Archive {
        let mut archive = Archive::new();
        let mut steps: Vec<fn(&mut Archive)> =
            vec![|a| a.file("etc/motd", 0o644, b"hello".to_vec()), |a| a.symlink("bin/sh", "busybox"), |a| {
                a.directory("proc")
            }];
        if reversed {
            steps.reverse();
        }
        steps.iter().for_each(|step| step(&mut archive));
        archive
    }

    #[test]
    fn the_order_of_filling_does_not_show() {
        assert_eq!(sample(false).to_bytes(), sample(true).to_bytes());
        assert_eq!(sample(false).to_bytes().len() % BLOCK, 0);
    }

    #[test]
    fn cpio_lists_what_was_put_in() {
        let mut cpio = Command::new("cpio");
        cpio.args(["-t", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut cpio = cpio.spawn().expect("cpio is installed by `make setup`");
        cpio.stdin.take().unwrap().write_all(&sample(false).to_bytes()).unwrap();
        let listed = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(listed, "bin\nbin/sh\netc\netc/motd\nproc\n");
    }
}
