//! Reads the kernel's configuration.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;

use flate2::read::GzDecoder;

use crate::checks::options_read;

/// The most bytes of a configuration: 30 times that of a distribution.
const MOST: u64 = 8 << 20;

/// Returns the options that the checks read. `None`: the kernel does not show its configuration, and there is no file
/// of its release.
pub(super) fn read(release: &str) -> Option<BTreeMap<String, String>> {
    let own = File::open("/proc/config.gz").ok().and_then(|file| {
        let mut text = String::new();
        GzDecoder::new(file).take(MOST).read_to_string(&mut text).ok()?;
        Some(text)
    });
    let text = own
        .or_else(|| fs::read_to_string(format!("/boot/config-{release}")).ok())
        .or_else(|| fs::read_to_string(format!("/lib/modules/{release}/config")).ok())?;
    let wanted: Vec<String> = options_read().collect();
    Some(set(&text, |name| wanted.iter().any(|wanted| wanted == name)))
}

fn set(text: &str, is_wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let wanted = lines.filter(|(name, _)| is_wanted(name));
    wanted.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_lines_with_a_value() {
        let text = "# CONFIG_KASAN is not set\nCONFIG_PREEMPT_RT=y\nCONFIG_HZ=250\nCONFIG_OTHER=y\n";
        let found = set(text, |name| name != "CONFIG_OTHER");
        let wanted =
            [("CONFIG_HZ", "250"), ("CONFIG_PREEMPT_RT", "y")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(found, BTreeMap::from(wanted));
    }
}
