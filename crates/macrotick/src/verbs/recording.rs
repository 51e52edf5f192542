//! The files of recorded misses.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use macrotick_node::Recorded;

use super::{create, write};
use crate::error::CliError;

/// The folder of recordings.
const FOLDER: &str = "/var/lib/macrotick/recordings";
/// The most recordings in the folder. The latest ones stay.
const MOST: usize = 32;

/// Writes the recording of a miss, and removes the oldest ones. Returns its path.
pub(super) fn keep(recorded: &Recorded) -> Result<PathBuf, CliError> {
    keep_in(Path::new(FOLDER), recorded)
}

fn keep_in(folder: &Path, recorded: &Recorded) -> Result<PathBuf, CliError> {
    create(folder)?;
    let path = folder.join(format!("{}-{}.json", recorded.task.replace('/', "_"), recorded.job));
    write(&path, &recorded.trace)?;
    let mut all: Vec<(SystemTime, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "json") && entry.path() != path)
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    all.sort();
    for (_, old) in all.iter().rev().skip(MOST - 1) {
        let _ = fs::remove_file(old);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_latest_recordings_stay() {
        let folder = std::env::temp_dir().join(format!("macrotick-recordings-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("notes.txt"), "mine").unwrap();
        let early = SystemTime::UNIX_EPOCH;
        for job in 0..40 {
            let recorded = Recorded { task: "a/b".into(), job, sentence: String::new(), trace: "{}".into() };
            let path = keep_in(&folder, &recorded).unwrap();
            let written = early + Duration::from_secs(job);
            fs::File::options().write(true).open(path).unwrap().set_modified(written).unwrap();
        }
        let mut names: Vec<String> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!((names.len(), names.last().unwrap().as_str()), (MOST + 1, "notes.txt"));
        assert!(names.contains(&"a_b-39.json".to_owned()) && !names.contains(&"a_b-7.json".to_owned()), "{names:?}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
