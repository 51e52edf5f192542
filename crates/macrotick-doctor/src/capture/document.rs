//! Reads and writes a captured host.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use macrotick_model::whole;

use crate::host::{Host, VERSION};

/// The most bytes of a document: 50 times that of a host with 64 CPUs.
const MOST: u64 = 256 << 20;

/// The reason why a file is no captured host, or cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is too long.
    #[error("{path} is no captured host: it is longer than {MOST} bytes", path = path.display())]
    Long {
        /// The file.
        path: PathBuf,
    },
    /// The file is no captured host.
    #[error("{path} is no captured host: {reason}", path = path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The reason, with line and column.
        reason: String,
    },
    /// The version is another one.
    #[error("{path} has version {found} of a captured host, and this program reads version {VERSION}", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Reads a captured host.
///
/// # Errors
///
/// Each of [`DocumentError`] but the last.
pub fn read(path: &Path) -> Result<Host, DocumentError> {
    let failed = |source| DocumentError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST + 1).read_to_string(&mut text)).map_err(failed)?;
    if read as u64 > MOST {
        return Err(DocumentError::Long { path: path.to_owned() });
    }
    decode(&text).map_err(|fault| match fault {
        Fault::Version(found) => DocumentError::Version { path: path.to_owned(), found },
        Fault::Text(reason) => DocumentError::Wrong { path: path.to_owned(), reason },
    })
}

#[derive(Debug, PartialEq)]
enum Fault {
    Version(u32),
    Text(String),
}

fn decode(text: &str) -> Result<Host, Fault> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }
    // A later version may have keys that this one does not know.
    let wrong =
        |error: serde_json::Error| Fault::Text(macrotick_model::visible::visible(&error.to_string()).to_string());
    let Versioned { version } = serde_json::from_str(text).map_err(wrong)?;
    if version != VERSION {
        return Err(Fault::Version(version));
    }
    serde_json::from_str(text).map_err(wrong)
}

/// Writes a captured host as a whole, or not at all. Only the owner may read a new file: root captures what others may
/// not see.
///
/// # Errors
///
/// [`DocumentError::Write`]
pub fn write(path: &Path, host: &Host) -> Result<(), DocumentError> {
    let text = serde_json::to_string_pretty(host).expect("a host is always JSON") + "\n";
    whole::write_private(path, text.as_bytes()).map_err(|source| DocumentError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_document_is_refused_with_its_place() {
        let host = Host { version: VERSION, ..Host::default() };
        let text = serde_json::to_string(&host).unwrap();
        assert_eq!(decode(&text), Ok(host));
        assert_eq!(decode(r#"{"version": 9, "later": 1}"#), Err(Fault::Version(9)));
        let unknown = decode(&text.replacen("\"files\"", "\"filez\"", 1));
        assert!(
            matches!(&unknown, Err(Fault::Text(text)) if text.contains("filez") && text.contains("line 1")),
            "{unknown:?}"
        );
        assert!(matches!(decode("[1]"), Err(Fault::Text(_))));
    }
}
