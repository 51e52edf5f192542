//! Plugins of QEMU: C sources of the lab, built at their first use.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::cache::{Key, Lock};
use crate::command;
use crate::error::{Context, LabError};
use crate::layout::Layout;

/// Builds a plugin, unless it is up to date.
pub fn build(layout: &Layout, name: &str, text: &str) -> Result<PathBuf, LabError> {
    let dir = layout.lab();
    let _lock = Lock::take(&dir.join(format!("{name}.lock")))?;
    let (program, package) = layout.arch().qemu();
    let qemu = command::output(Command::new(command::find(program, package)?).arg("--version"))?;
    let options = options(&qemu);
    let key = options.iter().fold(Key::new().with(text), |key, option| key.with(option)).finish();
    let plugin = dir.join(format!("{name}-{}.so", &key[..16]));
    if !plugin.exists() {
        let (source, unfinished) = (dir.join(format!("{name}.c")), dir.join(format!("{name}.new")));
        fs::write(&source, text).context("write", &source)?;
        let mut compiler = Command::new(command::find("gcc", "gcc")?);
        compiler.args(["-O2", "-shared", "-fPIC", "-fvisibility=hidden"]).args(options);
        command::output(compiler.arg("-o").arg(&unfinished).arg(&source))?;
        fs::rename(&unfinished, &plugin).context("rename", &unfinished)?;
    }
    Ok(plugin)
}

/// Returns the options for differences of QEMU's plugin interface: 9.0 dropped the first version, 9.1 copies an
/// instruction's bytes.
fn options(qemu: &str) -> [String; 2] {
    let version = qemu.split_once("version ").map_or("", |(_, rest)| rest);
    let mut digits = version.split(['.', ' ']).map_while(|digits| digits.parse::<u32>().ok());
    let release = (digits.next().unwrap_or(u32::MAX), digits.next().unwrap_or(0));
    let version = if release < (9, 0) { 1 } else { 2 };
    [format!("-DPLUGIN_VERSION={version}"), format!("-DINSTRUCTIONS_ARE_COPIED={}", u32::from(release >= (9, 1)))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_follows_qemu() {
        let of = |version: &str| options(&format!("QEMU emulator version {version}\nCopyright"));
        let expected = |version: u32, copied: u32| {
            [format!("-DPLUGIN_VERSION={version}"), format!("-DINSTRUCTIONS_ARE_COPIED={copied}")]
        };
        assert_eq!(of("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)"), expected(1, 0));
        assert_eq!([of("9.0.0"), of("10.0.2")], [expected(2, 0), expected(2, 1)]);
    }
}
