//! Files that are written as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes a file next to the target and renames it. So no reader sees half of it, and a program that has the old file
/// open or mapped keeps that. A symbolic link stays, and its target is written. A special file, such as a device, is
/// written directly.
pub fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_new(path, contents, 0o666, false)
}

/// Does the same, and returns when the file would survive a power cut.
pub fn write_durably(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_new(path, contents, 0o666, true)?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Does the same for a file that only its owner may read, if it is a new one.
pub fn write_private(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_new(path, contents, 0o600, false)
}

fn write_new(path: &Path, contents: &[u8], mode: u32, durably: bool) -> io::Result<()> {
    let is_there = fs::symlink_metadata(path).is_ok();
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let former = fs::metadata(path);
    if is_there && !former.as_ref().is_ok_and(fs::Metadata::is_file) {
        return fs::write(path, contents);
    }
    let partial = partial(&target);
    // Another user may own the directory. A link in the place of the partial file would lead the text elsewhere.
    let _ = fs::remove_file(&partial);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&partial)
        .and_then(|mut file| file.write_all(contents).map(|()| file))
        // Before the rename: otherwise a cut could leave an empty file under the new name.
        .and_then(|file| if durably { file.sync_all() } else { Ok(()) })
        .and_then(|()| former.map_or(Ok(()), |former| fs::set_permissions(&partial, former.permissions())))
        .and_then(|()| fs::rename(&partial, &target));
    // The target is unchanged. A partial file may exist or not.
    written.inspect_err(|_| _ = fs::remove_file(&partial))
}

fn partial(path: &Path) -> PathBuf {
    let mut partial = OsString::from(path);
    partial.push(".partial");
    partial.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{symlink, FileTypeExt, PermissionsExt};

    use super::*;

    #[test]
    fn links_and_what_is_no_file_stay_what_they_are() {
        let folder = std::env::temp_dir().join(format!("macrotick-whole-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("directory")).unwrap();
        let at = |name: &str| folder.join(name);
        fs::write(at("file"), "old").unwrap();
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("file", at("link")).unwrap();
        symlink("new", at("dangling")).unwrap();
        symlink("/dev/full", at("device")).unwrap();
        write(&at("link"), b"new").unwrap();
        write(&at("dangling"), b"made").unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "new");
        assert_eq!(fs::metadata(at("file")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "made");
        symlink("file", at("trap.partial")).unwrap();
        write(&at("trap"), b"trap").unwrap();
        assert_eq!(
            fs::read_to_string(at("file")).unwrap(),
            "new",
            "a link in the place of the partial file is not followed"
        );
        write_private(&at("private"), b"private").unwrap();
        assert_eq!(fs::metadata(at("private")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(write(&at("device"), b"x").unwrap_err().raw_os_error(), Some(28));
        assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
        assert!(write(&at("directory"), b"x").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 8, "no partial file is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
