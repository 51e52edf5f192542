//! The configuration that a kernel for a machine starts from.

use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use crate::arch::Arch;
use crate::config;
use crate::error::{Context, LabError};

/// The origin of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// That of the running kernel.
    Running,
    /// The default of Linux for the architecture.
    Default,
    /// A file, as it is or compressed by gzip.
    File(PathBuf),
}

impl Base {
    /// Returns the base that a word of the command line names.
    pub fn named(word: &str) -> Base {
        match word {
            "running" => Base::Running,
            "defconfig" => Base::Default,
            path => Base::File(path.into()),
        }
    }

    /// Returns the text; `None` for the default, which only the tree has. Refuses the configuration of another
    /// architecture: none of its drivers would stay.
    pub(super) fn text(&self, arch: Arch) -> Result<Option<String>, LabError> {
        let text = self.any_text()?;
        let other = Arch::ALL.into_iter().filter(|other| *other != arch);
        match text.as_deref().and_then(|text| other.clone().find(|other| config::value(text, other.option()).is_some()))
        {
            Some(other) => Err(LabError::ConfigOf { base: self.to_string(), other: other.name(), wanted: arch.name() }),
            None => Ok(text),
        }
    }

    fn any_text(&self) -> Result<Option<String>, LabError> {
        match self {
            Base::Default => Ok(None),
            Base::File(path) => read(path).map(Some),
            Base::Running => {
                let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
                let places = [PathBuf::from("/proc/config.gz"), format!("/boot/config-{}", release.trim()).into()];
                match places.iter().find(|place| place.is_file()) {
                    Some(place) => read(place).map(Some),
                    None => Err(LabError::NoRunningConfig {
                        places: places.map(|place| place.display().to_string()).join(" and "),
                    }),
                }
            }
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Base::Running => f.write_str("the running kernel"),
            Base::Default => f.write_str("defconfig"),
            Base::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Reads a file, and checks that it is a configuration.
fn read(path: &Path) -> Result<String, LabError> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).context("read", path)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).context("decompress", path)?;
        bytes = plain;
    }
    let text = String::from_utf8(bytes).ok().filter(|text| text.lines().any(|line| line.starts_with("CONFIG_")));
    text.ok_or_else(|| LabError::NotAConfig { path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_may_be_compressed_and_must_be_a_configuration() {
        let dir = std::env::temp_dir().join(format!("macrotick-base-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"# x\nCONFIG_A=y\n").unwrap();
        let packed = packed.finish().unwrap();
        for (name, content) in [("plain", b"CONFIG_A=y\n".as_slice()), ("packed.gz", &packed)] {
            fs::write(dir.join(name), content).unwrap();
            let text = Base::named(dir.join(name).to_str().unwrap()).text(Arch::X86_64).unwrap().unwrap();
            assert!(text.contains("CONFIG_A=y\n"), "{text}");
        }
        for (name, content) in
            [("empty", b"".as_slice()), ("binary", b"\x7fELF\xff"), ("cut.gz", &packed[..packed.len() / 2])]
        {
            fs::write(dir.join(name), content).unwrap();
            let error = Base::File(dir.join(name)).text(Arch::X86_64).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        fs::write(dir.join("other"), "CONFIG_ARM64=y\n").unwrap();
        let other = Base::File(dir.join("other"));
        assert!(other.text(Arch::Arm64).is_ok());
        let error = other.text(Arch::X86_64).unwrap_err().to_string();
        assert!(error.ends_with("other is a configuration for arm64, not for x86-64"), "{error}");
        assert_eq!([Base::named("running"), Base::named("defconfig")], [Base::Running, Base::Default]);
        fs::remove_dir_all(&dir).unwrap();
    }
}
