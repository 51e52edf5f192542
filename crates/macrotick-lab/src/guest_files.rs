//! Files of the host that the lab copies into the guest.
//!
//! A file has the same path in the guest. A relative path counts from the directory in which `macrotick` was started;
//! in the guest it counts from the working directory. The dependencies of a program come with it: a script's
//! interpreter, and the shared libraries of a dynamic program. Files of the guest's image, such as `/bin/sh`, are not
//! replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use crate::agent;
use crate::error::LabError;
use crate::image::{self, ImageKind};
use crate::libraries;
use crate::program::{self, Foreign, Interpreter, Needs};

/// The reason why a file cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// It cannot be read on the host.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// A program without execute permission on the host.
    #[error("it is not an executable file")]
    NotExecutable,
    /// A relative path that leaves the directory, so it has no place in the guest.
    #[error("the path leads out of the directory in which macrotick was started: use an absolute path")]
    Outside,
    /// The guest cannot execute it.
    #[error(transparent)]
    Foreign(#[from] Foreign),
    /// A script with an interpreter that does not exist.
    #[error("it is a script for `{0}`, which neither the lab nor this host has")]
    NoInterpreter(String),
    /// A script with an interpreter that is not a program.
    #[error("it is a script for `{0}`, which is not a program")]
    BadInterpreter(String),
    /// Its libraries cannot be found out, or some are missing.
    #[error(transparent)]
    Libraries(#[from] LabError),
    /// The pattern is wrong.
    #[error("{0}")]
    Pattern(#[from] glob::PatternError),
    /// No file has this name.
    #[error("this host has no such file")]
    NoMatch,
    /// A device or a socket, for example.
    #[error("{0} is neither a file nor a directory")]
    Kind(PathBuf),
    /// A link that may lead in circles.
    #[error("{0} is a symbolic link to a directory; the lab follows it only if it is named itself")]
    LinkedDirectory(PathBuf),
    /// The files are larger than the guest's memory allows.
    #[error("with this file, the files for the lab exceed {} MiB", LIMIT >> 20)]
    TooMuch,
}

/// The most bytes of all files together. The guest holds them three times while it unpacks them.
const LIMIT: usize = 96 << 20;

/// The directories of the guest's `PATH`, in which `env` looks. On the host `/bin` may be a link to `/usr/bin`, and
/// programs look for their files there.
const GUEST_PATH: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The files, by their absolute path in the guest.
pub(crate) struct GuestFiles {
    image: BTreeSet<String>,
    files: BTreeMap<String, Vec<u8>>,
    size: usize,
}

impl GuestFiles {
    /// Returns an empty set. The programs of the image with engines are not known: files replace those of the image.
    pub(crate) fn for_image(kind: ImageKind) -> Result<GuestFiles, LabError> {
        Ok(GuestFiles::beside(match kind {
            ImageKind::Small => image::programs()?,
            ImageKind::Engines => BTreeSet::new(),
        }))
    }

    fn beside(image: BTreeSet<String>) -> GuestFiles {
        GuestFiles { image, files: BTreeMap::new(), size: 0 }
    }

    /// Returns all files: absolute path and content.
    pub(crate) fn into_files(self) -> Vec<(String, Vec<u8>)> {
        self.files.into_iter().collect()
    }

    /// Adds a program that the guest executes.
    pub(crate) fn add_program(&mut self, program: &str) -> Result<(), FileFault> {
        let place = resolve(program)?;
        if self.image.contains(&place) {
            return Ok(());
        }
        let meta = fs::metadata(program)?;
        if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 {
            return Err(FileFault::NotExecutable);
        }
        let content = fs::read(program)?;
        match program::needs(&content)? {
            Needs::Nothing => {}
            Needs::Libraries => self.add_libraries(Path::new(program))?,
            Needs::Interpreter(interpreter) => self.add_interpreter(&interpreter)?,
        }
        self.insert(place, content)
    }

    /// Adds a file, a directory with all files below it, or all files that match a pattern.
    pub(crate) fn add(&mut self, pattern: &str) -> Result<(), FileFault> {
        // A path may contain special characters of patterns.
        if Path::new(pattern).exists() {
            return self.add_tree(Path::new(pattern));
        }
        let mut matches = glob::glob(pattern)?.peekable();
        if matches.peek().is_none() {
            return Err(FileFault::NoMatch);
        }
        matches.try_for_each(|found| self.add_tree(&found.map_err(io::Error::from)?))
    }

    fn add_tree(&mut self, path: &Path) -> Result<(), FileFault> {
        let meta = fs::metadata(path)?;
        if meta.is_file() {
            return self.add_file(path);
        }
        if !meta.is_dir() {
            return Err(FileFault::Kind(path.into()));
        }
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            match fs::metadata(entry.path()) {
                // A link to a missing file counts as a missing file, on the host and in the guest.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(meta) if meta.is_dir() && entry.file_type()?.is_symlink() => {
                    return Err(FileFault::LinkedDirectory(entry.path()));
                }
                _ => self.add_tree(&entry.path())?,
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<(), FileFault> {
        let place = resolve(&path.to_string_lossy())?;
        if self.image.contains(&place) {
            return Ok(());
        }
        let content = fs::read(path)?;
        // Without the interpreter of a script: it may never be executed.
        if program::needs(&content) == Ok(Needs::Libraries) {
            self.add_libraries(path)?;
        }
        self.insert(place, content)
    }

    fn add_libraries(&mut self, program: &Path) -> Result<(), FileFault> {
        let here = std::env::current_dir()?;
        for library in libraries::of(program)? {
            let content = fs::read(&library)?;
            // A run path relative to the program, or to its working directory, leads to the same place in the guest.
            if let Ok(relative) = Path::new(&library).strip_prefix(&here) {
                self.insert(resolve(&relative.to_string_lossy())?, content.clone())?;
            }
            self.insert(library, content)?;
        }
        if let Ok(cache) = fs::read(libraries::LOADER_CACHE) {
            self.insert(libraries::LOADER_CACHE.into(), cache)?;
        }
        Ok(())
    }

    fn add_interpreter(&mut self, interpreter: &Interpreter) -> Result<(), FileFault> {
        let path = match &interpreter.command {
            Some(command) if self.image.contains(&interpreter.path) => self.find(command)?,
            _ => interpreter.path.clone(),
        };
        if self.image.contains(&path) {
            return Ok(());
        }
        let content = fs::read(&path).map_err(|_| FileFault::NoInterpreter(path.clone()))?;
        if matches!(program::needs(&content), Err(Foreign) | Ok(Needs::Interpreter(_))) {
            return Err(FileFault::BadInterpreter(path));
        }
        self.add_program(&path)
    }

    /// Returns the path that `env` finds in the guest, after the copy.
    fn find(&self, command: &str) -> Result<String, FileFault> {
        let places = GUEST_PATH.map(|directory| format!("{directory}/{command}"));
        let found = |there: &dyn Fn(&str) -> bool| places.iter().find(|place| there(place)).cloned();
        found(&|place| self.image.contains(place))
            .or_else(|| found(&|place| Path::new(place).is_file()))
            .ok_or_else(|| FileFault::NoInterpreter(command.to_owned()))
    }

    fn insert(&mut self, place: String, content: Vec<u8>) -> Result<(), FileFault> {
        self.size += content.len();
        self.size -= self.files.insert(place, content).map_or(0, |before| before.len());
        if self.size > LIMIT {
            return Err(FileFault::TooMuch);
        }
        Ok(())
    }
}

/// Returns a path's meaning in the guest, absolute and without `.` and `..`.
fn resolve(path: &str) -> Result<String, FileFault> {
    let start = Path::new(if path.starts_with('/') { "/" } else { agent::DIRECTORY });
    let mut place = PathBuf::from(start);
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => place.push(name),
            Component::ParentDir if start != Path::new("/") && place == start => return Err(FileFault::Outside),
            Component::ParentDir => drop(place.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(place.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder for one test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("macrotick-guest-files-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn path(&self, name: &str) -> String {
            self.0.join(name).to_str().unwrap().to_owned()
        }

        fn write(&self, name: &str, content: &[u8], mode: u32) -> String {
            let path = self.path(name);
            fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn none() -> GuestFiles {
        GuestFiles::beside(BTreeSet::from(["/bin/sh", "/usr/bin/env"].map(str::to_owned)))
    }

    fn program(path: &str) -> Result<Vec<String>, FileFault> {
        let mut files = none();
        files.add_program(path)?;
        Ok(files.files.into_keys().collect())
    }

    fn named(pattern: &str) -> Result<Vec<String>, FileFault> {
        let mut files = none();
        files.add(pattern)?;
        Ok(files.files.into_keys().collect())
    }

    #[test]
    fn relative_paths_count_from_the_directory_in_which_the_program_starts() {
        assert_eq!(resolve("tasks/./x/../t").unwrap(), "/root/tasks/t");
        assert!(matches!(resolve("tasks/../../t"), Err(FileFault::Outside)));
        assert_eq!(resolve("/../root/../bin/./sh").unwrap(), "/bin/sh");
    }

    #[test]
    fn what_the_image_has_is_not_replaced() {
        assert_eq!(program("/bin/../bin/sh").unwrap(), Vec::<String>::new());
        assert_eq!(named("/bin/sh").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_script_for_the_image_is_taken_along_alone() {
        let folder = Folder::new("script");
        let script = folder.write("script", b"#!/bin/sh\n", 0o755);
        assert_eq!(program(&script).unwrap(), [script]);
    }

    #[test]
    fn a_dynamic_program_brings_its_loader_and_libraries() {
        let files = program("/usr/bin/groff").unwrap();
        assert!(files.contains(&"/usr/bin/groff".to_owned()), "{files:?}");
        assert!(files.iter().any(|path| path.contains("/ld-linux")), "{files:?}");
        assert!(files.iter().any(|path| path.ends_with("/libc.so.6")), "{files:?}");
    }

    #[test]
    fn a_script_brings_its_interpreter_however_it_is_named() {
        let folder = Folder::new("interpreter");
        for line in ["#!/usr/bin/perl\n", "#!/usr/bin/env perl\n"] {
            let files = program(&folder.write("script", line.as_bytes(), 0o755)).unwrap();
            assert!(files.contains(&"/usr/bin/perl".to_owned()), "{files:?}");
            assert!(files.iter().any(|path| path.ends_with("/libc.so.6")), "{files:?}");
        }
    }

    #[test]
    fn an_interpreter_that_cannot_be_is_named() {
        let folder = Folder::new("no-interpreter");
        let fault = |line: &str| {
            let script = folder.write("script", format!("#!{line}\n").as_bytes(), 0o755);
            program(&script).unwrap_err().to_string()
        };
        let nowhere = "which neither the lab nor this host has";
        assert_eq!(fault("/no/such -x"), format!("it is a script for `/no/such`, {nowhere}"));
        assert_eq!(fault("/usr/bin/env no-such"), format!("it is a script for `no-such`, {nowhere}"));
        let script = folder.write("other", b"#!/bin/sh\n", 0o755);
        assert_eq!(fault(&script), format!("it is a script for `{script}`, which is not a program"));
    }

    #[test]
    fn what_may_not_be_executed_on_the_host_may_not_in_the_lab() {
        let folder = Folder::new("mode");
        let plain = folder.write("plain", b"#!/bin/sh\n", 0o644);
        assert!(matches!(program(&plain), Err(FileFault::NotExecutable)));
        assert!(matches!(program("/tmp/"), Err(FileFault::NotExecutable)));
        assert!(matches!(program(&folder.write("text", b"hello\n", 0o755)), Err(FileFault::Foreign(_))));
    }

    #[test]
    fn files_directories_and_patterns_are_taken_along() {
        let folder = Folder::new("trees");
        let paths = ["d/a.txt", "d/e/b.txt", "d/e/c.bin"].map(|name| folder.write(name, b"x", 0o644));
        symlink("nothing", folder.path("d/dangling")).unwrap();
        assert_eq!(named(&paths[0]).unwrap(), paths[..1]);
        assert_eq!(named(&folder.path("d")).unwrap(), paths);
        assert_eq!(named(&folder.path("d/*/*.txt")).unwrap(), paths[1..2]);
        let odd = folder.write("[x]", b"", 0o644);
        assert_eq!(named(&odd).unwrap(), [odd]);
    }

    #[test]
    fn what_cannot_be_taken_along_is_told() {
        let folder = Folder::new("faults");
        folder.write("d/a", b"x", 0o644);
        symlink(".", folder.path("d/self")).unwrap();
        let fault = |pattern: &str| named(pattern).unwrap_err();
        assert!(matches!(fault(&folder.path("*.bin")), FileFault::NoMatch));
        assert!(matches!(fault(&folder.path("x")), FileFault::NoMatch));
        assert!(matches!(fault("../*"), FileFault::Outside));
        assert!(matches!(fault("/x/***"), FileFault::Pattern(_)));
        assert!(matches!(fault("/dev/null"), FileFault::Kind(_)));
        assert!(matches!(fault(&folder.path("d")), FileFault::LinkedDirectory(path) if path.ends_with("d/self")));
        fs::File::create(folder.path("big")).unwrap().set_len(LIMIT as u64 + 1).unwrap();
        assert_eq!(fault(&folder.path("big")).to_string(), "with this file, the files for the lab exceed 96 MiB");
    }
}
