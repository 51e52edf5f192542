//! Joins a base, the settings and the fragments of the user, and compares the result with the base.

use std::collections::{BTreeMap, BTreeSet};

use super::options::{is_about_debug_information, Setting, SETTINGS};
use crate::config;
use crate::error::LabError;

/// An option that has another value than in the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The name without `CONFIG_`.
    pub name: String,
    /// The value in the base: `n` if it is not set.
    pub before: String,
    /// The value in the result.
    pub now: String,
    /// The reason.
    pub why: String,
}

/// The differences between a base and the result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    /// The options that a setting or a fragment changed, in the order of the settings: those that Macrotick needs first,
    /// those of fragments last.
    pub changes: Vec<Change>,
    /// Advised settings and lines of fragments that do not hold, with the value that holds. Another option demands this
    /// value, or this source does not have the other one.
    pub refused: Vec<Change>,
    /// The options of the base that are off because this source cannot have them together with PREEMPT_RT.
    pub excluded: Vec<String>,
    /// The other options of the base that are off because they depend on something that is off.
    pub lost: Vec<String>,
    /// The options of the base that this source does not have.
    pub unknown: Vec<String>,
}

/// Returns the lines for `olddefconfig`: those of the base, our settings, and the fragments.
///
/// A fragment that changes a needed setting is an error.
pub(super) fn request(base: &str, fragments: &[String], debug_information: bool) -> Result<String, LabError> {
    let is_wanted = |setting: &&Setting| !(debug_information && is_about_debug_information(setting));
    let ours: String = SETTINGS.iter().filter(is_wanted).map(line).collect();
    let theirs = config::join(fragments);
    let contradicted: Vec<String> = SETTINGS
        .iter()
        .filter(|setting| setting.is_needed && config::mentions(&theirs, &symbol(setting)))
        .filter(|setting| value(&theirs, &symbol(setting)) != setting.value)
        .map(|setting| format!("{} must be {} ({})", symbol(setting), setting.value, setting.why))
        .collect();
    match contradicted.is_empty() {
        true => Ok(config::join(&[base.to_owned(), ours, theirs])),
        false => Err(LabError::Fragment { contradicted }),
    }
}

impl Merge {
    /// Compares the base with the result of a request. A needed setting that does not hold is an error.
    pub(super) fn between(base: &str, fragments: &[String], request: &str, result: &str) -> Result<Merge, LabError> {
        let mut merge = Merge::default();
        let mut missing = Vec::new();
        let change = |symbol: &str, why: String| Change {
            name: symbol.trim_start_matches("CONFIG_").to_owned(),
            before: value(base, symbol),
            now: value(result, symbol),
            why,
        };
        let theirs = config::join(fragments);
        for setting in
            SETTINGS.iter().filter(|setting| setting.is_needed || !config::mentions(&theirs, &symbol(setting)))
        {
            let symbol = symbol(setting);
            let change = change(&symbol, setting.why.to_owned());
            match (change.now == setting.value, setting.is_needed) {
                (false, true) => missing.push(format!("{symbol}={} ({})", setting.value, setting.why)),
                // An option that the base does not have either was not taken away.
                (false, false) if value(request, &symbol) == setting.value && change.now != "n" => {
                    merge.refused.push(change)
                }
                _ if change.before != change.now => merge.changes.push(change),
                _ => {}
            }
        }
        if !missing.is_empty() {
            return Err(LabError::Config { missing });
        }
        let is_needed = |asked: &String| SETTINGS.iter().any(|setting| setting.is_needed && symbol(setting) == *asked);
        for asked in config::mentioned(&theirs).filter(|asked| !is_needed(asked)) {
            let wanted = value(&theirs, &asked);
            let change = change(&asked, format!("a fragment asks for {wanted}"));
            match change.now == wanted {
                false => merge.refused.push(change),
                true if change.before != change.now => merge.changes.push(change),
                true => {}
            }
        }
        Ok(merge)
    }

    /// Adds the options of the base that are off in the result, without a setting that says so. `without` is the result
    /// without PREEMPT_RT; `prompts` are the options of the source. Options without a prompt are left out.
    pub(super) fn with_lost(self, base: &str, result: &str, without: &str, prompts: &BTreeMap<String, bool>) -> Merge {
        let set = |config: &str| config::all(config).map(|(symbol, _)| symbol).collect::<BTreeSet<String>>();
        let (result, without) = (set(result), set(without));
        let mut merge = self;
        let told: BTreeSet<String> =
            merge.changes.iter().chain(&merge.refused).map(|change| change.name.clone()).collect();
        let is_ours = |symbol: &str| {
            SETTINGS.iter().any(|setting| self::symbol(setting) == symbol)
                || told.contains(symbol.trim_start_matches("CONFIG_"))
        };
        for (symbol, _) in config::all(base).filter(|(symbol, _)| !result.contains(symbol) && !is_ours(symbol)) {
            let name = symbol.trim_start_matches("CONFIG_").to_owned();
            match prompts.get(&name) {
                None => merge.unknown.push(name),
                Some(true) if without.contains(&symbol) => merge.excluded.push(name),
                Some(true) => merge.lost.push(name),
                Some(false) => {}
            }
        }
        merge
    }
}

fn symbol(setting: &Setting) -> String {
    format!("CONFIG_{}", setting.name)
}

fn line(setting: &Setting) -> String {
    config::render(&symbol(setting), Some(setting.value).filter(|value| *value != "n"))
}

/// Returns the value of an option as it stands in a configuration; `n` if it is not set.
fn value(config: &str, symbol: &str) -> String {
    config::all(config).find(|(found, _)| found == symbol).map_or_else(|| "n".into(), |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed() -> String {
        SETTINGS.iter().filter(|setting| setting.is_needed).map(line).collect()
    }

    #[test]
    fn the_settings_change_the_base_and_fragments_change_the_settings() {
        let base = "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_KASAN=y\nCONFIG_E1000=m\nCONFIG_LOCALVERSION=\"-cloud\"\n";
        let fragment = "CONFIG_LOCALVERSION=\"-mine\"\n# CONFIG_E1000 is not set\n".to_owned();
        let request = request(base, &[fragment], false).unwrap();
        for line in [
            "CONFIG_MACROTICK=y",
            "# CONFIG_KASAN is not set",
            "CONFIG_LOCALVERSION=\"-mine\"",
            "# CONFIG_E1000 is not set",
        ] {
            assert!(request.lines().any(|found| found == line), "{line} in\n{request}");
        }
        assert!(request.contains("# CONFIG_PREEMPT_VOLUNTARY is not set"));
    }

    #[test]
    fn a_fragment_cannot_take_away_what_is_needed() {
        let off = "# CONFIG_PREEMPT_RT is not set\nCONFIG_RT_GROUP_SCHED=y\n".to_owned();
        let error = request("CONFIG_A=y\n", &[off], false).unwrap_err().to_string();
        assert!(error.contains("CONFIG_PREEMPT_RT must be y"), "{error}");
        assert!(error.contains("CONFIG_RT_GROUP_SCHED must be n"), "{error}");
        assert!(request("CONFIG_A=y\n", &["CONFIG_PREEMPT_RT=y\n".to_owned()], false).is_ok());
    }

    #[test]
    fn debug_information_stays_on_request() {
        let base = "CONFIG_DEBUG_INFO_BTF=y\n";
        assert!(request(base, &[], true).unwrap().contains("CONFIG_DEBUG_INFO_BTF=y"));
        assert!(request(base, &[], false).unwrap().contains("# CONFIG_DEBUG_INFO_BTF is not set"));
    }

    #[test]
    fn each_difference_has_its_list() {
        let base = "CONFIG_KASAN=y\nCONFIG_CPUSETS=y\nCONFIG_JUMP_LABEL=y\nCONFIG_GONE=m\nCONFIG_DRM_I915=m\nCONFIG_CC_IS_GCC=y\nCONFIG_LEAF=y\nCONFIG_E1000=m\n";
        let request = request(base, &[], false).unwrap();
        let result = format!("{}CONFIG_JUMP_LABEL=y\nCONFIG_NO_HZ=y\nCONFIG_E1000=m\n", needed());
        let without = format!("{result}CONFIG_DRM_I915=m\n");
        let prompts = [("DRM_I915", true), ("E1000", true), ("LEAF", true), ("CC_IS_GCC", false)];
        let prompts = prompts.map(|(name, chosen)| (name.to_owned(), chosen)).into();
        let merge = Merge::between(base, &[], &request, &result).unwrap().with_lost(base, &result, &without, &prompts);
        let names = |changes: &[Change]| changes.iter().map(|change| change.name.clone()).collect::<Vec<_>>();
        let changed = names(&merge.changes);
        assert!(changed.starts_with(&["MACROTICK".to_owned(), "TIMERSHIELD".to_owned()]), "{changed:?}");
        assert!(changed.contains(&"KASAN".to_owned()) && !changed.contains(&"CPUSETS".to_owned()));
        assert_eq!(names(&merge.refused), ["NO_HZ"]);
        assert_eq!(
            [merge.excluded, merge.lost, merge.unknown],
            ["DRM_I915", "LEAF", "GONE"].map(|name| vec![name.to_owned()])
        );
    }

    #[test]
    fn a_needed_setting_that_does_not_hold_is_an_error() {
        let result = needed().replace("CONFIG_PREEMPT_RT=y\n", "");
        let error = Merge::between("CONFIG_A=y\n", &[], &needed(), &result).unwrap_err().to_string();
        assert!(error.contains("CONFIG_PREEMPT_RT=y"), "{error}");
    }

    #[test]
    fn lines_of_a_fragment_are_told_as_such() {
        let base = "CONFIG_E1000=m\nCONFIG_NO_HZ_FULL=y\n";
        let fragment = "CONFIG_NO_HZ_IDLE=n\n# CONFIG_E1000 is not set\nCONFIG_MISSPELT=y\nCONFIG_PREEMPT_RT=y\n";
        let fragments = [fragment.to_owned(), "CONFIG_NO_HZ_FULL=y\n".to_owned()];
        let request = request(base, &fragments, false).unwrap();
        let result = format!("{}CONFIG_NO_HZ_FULL=y\n", needed());
        let merge = Merge::between(base, &fragments, &request, &result).unwrap();
        let told = |change: &Change| format!("{} {} {}: {}", change.name, change.before, change.now, change.why);
        let changes: Vec<String> = merge.changes.iter().map(told).collect();
        assert_eq!(changes.last().unwrap(), "E1000 m n: a fragment asks for n");
        assert!(!changes.iter().any(|change| change.starts_with("NO_HZ_")), "{changes:?}");
        assert_eq!(merge.refused.iter().map(told).collect::<Vec<_>>(), ["MISSPELT n n: a fragment asks for y"]);
        let prompts = [("E1000".to_owned(), true)].into();
        assert!(merge.with_lost(base, &result, &result, &prompts).lost.is_empty());
    }

    #[test]
    fn no_setting_is_listed_twice() {
        let names: std::collections::BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        assert_eq!(names.len(), SETTINGS.len());
    }
}
