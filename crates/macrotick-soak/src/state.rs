//! The directory of a soak: its plan and its counts. Both are written as a whole, and survive a power cut.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use macrotick_model::files::FileError;
use macrotick_model::{whole, Plan};
use sha2::{Digest, Sha256};

use crate::counts::Counts;

const PLAN: &str = "plan.json";
const COUNTS: &str = "counts.json";
/// The ending of the file that a cut in the middle of a save leaves beside the counts.
const PARTIAL: &str = ".partial";

/// The reason why a soak does not start, or its counts are not saved.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// The directory cannot be used.
    #[error("cannot use the directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another soak counts in this directory.
    #[error("another soak counts in {}", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has files, but not those of a soak.
    #[error("{} is not the directory of a soak: it has `{file}`, and no plan.json", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// One of its files.
        file: String,
    },
    /// There is no soak.
    #[error("there are no counts of a soak in {}", path.display())]
    Nothing {
        /// The directory.
        path: PathBuf,
    },
    /// The plan cannot be read.
    #[error(transparent)]
    Plan(#[from] FileError),
    /// The counts cannot be read.
    #[error("cannot read the counts in {}: {reason}; without this file the soak starts again from zero", path.display())]
    Counts {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The counts are of another plan.
    #[error("the counts in {} are of another plan than the plan.json beside them", path.display())]
    OtherPlan {
        /// The file.
        path: PathBuf,
    },
    /// The directory has the counts of another system.
    #[error("{} has the counts of another system or plan: give another directory, or the description that it began with", path.display())]
    OtherSystem {
        /// The directory.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl SoakError {
    /// Whether the directory that the user gave is the cause, and not the host.
    pub fn is_about_the_input(&self) -> bool {
        !matches!(self, SoakError::Directory { .. } | SoakError::Write { .. } | SoakError::Busy { .. })
    }
}

/// The directory of a soak, which no other soak uses meanwhile.
pub struct State {
    directory: PathBuf,
    /// Open and locked while the soak runs. The kernel unlocks it when this process ends.
    _lock: File,
}

impl State {
    /// Takes the directory for a soak, and makes it if it is not there.
    pub fn open(directory: &Path) -> Result<State, SoakError> {
        let failed = |source| SoakError::Directory { path: directory.into(), source };
        if !directory.is_dir() {
            DirBuilder::new().recursive(true).create(directory).map_err(failed)?;
        }
        let lock = File::open(directory).map_err(failed)?;
        match flock(&lock, libc::LOCK_EX) {
            Ok(()) => Ok(State { directory: directory.into(), _lock: lock }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(SoakError::Busy { path: directory.into() }),
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns the plan with which the soak began. `None`: it has not started.
    pub fn plan(&self) -> Result<Option<Plan>, SoakError> {
        let path = self.directory.join(PLAN);
        if path.exists() {
            return Ok(Some(Plan::load(&path)?));
        }
        let failed = |source| SoakError::Directory { path: self.directory.clone(), source };
        let names = fs::read_dir(&self.directory).map_err(failed)?.flatten().map(|entry| entry.file_name());
        let file = names.map(|name| name.to_string_lossy().into_owned()).find(|name| !name.ends_with(PARTIAL));
        let path = self.directory.clone();
        file.map_or(Ok(None), |file| Err(SoakError::Foreign { path, file }))
    }

    /// Begins a soak: keeps its plan.
    pub fn begin(&self, plan: &Plan) -> Result<(), SoakError> {
        self.write(PLAN, &plan.to_json())
    }

    /// Returns the counts so far of the plan in this directory. `None`: none were saved.
    pub fn counts(&self) -> Result<Option<Counts>, SoakError> {
        let path = self.directory.join(COUNTS);
        if !path.exists() {
            return Ok(None);
        }
        let counts = read_counts(&path)?;
        match counts.plan_sha256 == self.plan_sha256()? {
            true => Ok(Some(counts)),
            false => Err(SoakError::OtherPlan { path }),
        }
    }

    /// Returns the SHA-256 of the plan in this directory.
    pub fn plan_sha256(&self) -> Result<String, SoakError> {
        let path = self.directory.join(PLAN);
        let bytes = fs::read(&path).map_err(|source| SoakError::Directory { path, source })?;
        Ok(format!("{:x}", Sha256::digest(bytes)))
    }

    /// Replaces the saved counts. After a failure the former ones are there unchanged.
    pub(crate) fn save(&self, counts: &str) -> Result<(), SoakError> {
        self.write(COUNTS, counts)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), SoakError> {
        let path = self.directory.join(file);
        whole::write_durably(&path, text.as_bytes()).map_err(|source| SoakError::Write { path, source })
    }
}

/// Reads the saved counts of a soak, which may run. Also returns whether it runs.
pub fn read(directory: &Path) -> Result<(Counts, bool), SoakError> {
    let path = directory.join(COUNTS);
    if !path.exists() {
        return Err(SoakError::Nothing { path: directory.into() });
    }
    let counts = read_counts(&path)?;
    let lock = File::open(directory).map_err(|source| SoakError::Directory { path: directory.into(), source })?;
    Ok((counts, flock(&lock, libc::LOCK_SH).is_err()))
}

fn read_counts(path: &Path) -> Result<Counts, SoakError> {
    let failed = |reason: String| SoakError::Counts { path: path.into(), reason };
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let counts: Counts = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    match counts.version {
        Counts::VERSION => Ok(counts),
        other => Err(failed(format!("its version is {other}, but this program reads version {}", Counts::VERSION))),
    }
}

fn flock(file: &File, operation: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::flock(file.as_raw_fd(), operation | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("macrotick-soak-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn plan(name: &str) -> Plan {
        let text = format!("system: {name}\ncpus: [0]\ntasks:\n  - {{name: d, period: 10ms, wcet: 1ms, supply: {{deadline: {{cpus: [0]}}}}}}\n");
        let system = macrotick_fixtures::described(&text);
        Plan::new("null", macrotick_model::Duration::from_millis(10), Vec::new(), system)
    }

    fn text(state: &State) -> String {
        let counts = Counts::new("s".into(), state.plan_sha256().unwrap(), 7);
        serde_json::to_string(&counts).unwrap()
    }

    #[test]
    fn a_soak_finds_its_counts_again() {
        let path = folder("again");
        let state = State::open(&path).unwrap();
        assert_eq!(state.plan().unwrap(), None);
        assert!(matches!(read(&path), Err(SoakError::Nothing { .. })));
        state.begin(&plan("s")).unwrap();
        // A cut before the first save, and one in the middle of a save.
        assert_eq!(state.counts().unwrap(), None);
        fs::write(path.join("counts.json.partial"), "{").unwrap();
        state.save(&text(&state)).unwrap();
        assert!(!path.join("counts.json.partial").exists());
        assert!(read(&path).unwrap().1, "it runs");
        assert!(matches!(State::open(&path), Err(SoakError::Busy { .. })));
        drop(state);
        assert!(!read(&path).unwrap().1, "it does not run");
        let again = State::open(&path).unwrap();
        assert_eq!(again.plan().unwrap(), Some(plan("s")));
        assert_eq!(again.counts().unwrap().map(|counts| counts.began_unix_ns), Some(7));
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn what_is_no_soak_is_refused_with_its_place() {
        let path = folder("foreign");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("letter.txt"), "dear").unwrap();
        let state = State::open(&path).unwrap();
        let at = path.display();
        let told = |error: SoakError| error.to_string();
        let foreign = format!("{at} is not the directory of a soak: it has `letter.txt`, and no plan.json");
        assert_eq!(told(state.plan().unwrap_err()), foreign);
        fs::write(path.join(PLAN), "{").unwrap();
        assert!(told(state.plan().unwrap_err()).contains("plan.json"));
        state.begin(&plan("s")).unwrap();
        let whole = text(&state);
        for (text, reason) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            (&whole[..whole.len() / 2], "EOF while parsing"),
            (
                &whole.replacen("\"version\":1", "\"version\":9", 1),
                "its version is 9, but this program reads version 1",
            ),
            (&whole.replacen("\"version\":1", "\"version\":1,\"more\":1", 1), "unknown field `more`"),
        ] {
            fs::write(path.join(COUNTS), text).unwrap();
            let refused = told(state.counts().unwrap_err());
            let place = format!("cannot read the counts in {at}/counts.json: ");
            assert!(refused.starts_with(&place) && refused.contains(reason), "{refused}");
            assert_eq!(fs::read_to_string(path.join(COUNTS)).unwrap(), text, "it is not touched");
        }
        fs::write(path.join(COUNTS), &whole).unwrap();
        state.begin(&plan("t")).unwrap();
        assert!(matches!(state.counts(), Err(SoakError::OtherPlan { .. })));
        fs::remove_dir_all(&path).unwrap();
        let file = folder("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(State::open(&file), Err(SoakError::Directory { .. })));
        fs::remove_file(&file).unwrap();
    }
}
