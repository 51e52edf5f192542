//! Settings of the whole host that deployments and containers hold. The first holder sets a setting, and the last one
//! restores it.
//!
//! A ledger, which is a file that is valid until the next boot, lists these settings. For each one it has the value
//! before, the value that was set, and the holders. The ledger is written before the setting. Therefore the next
//! program can restore every setting of a killed one. A holder is a process or a control group. A holder that is gone
//! holds nothing: the next program that opens the ledger removes it.
//!
//! The administrator decides. This module does not touch a setting that already suits, nor one that another program has
//! changed. A failure here does not stop a deployment: it is reported, and the deployment continues.

mod holder;
mod ledger;
mod setting;

use std::io;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::file::read_number;
use crate::sys;

pub use holder::Holder;
use ledger::{Entries, Entry, Ledger, Was};
pub use setting::TIMERSHIELD;
use setting::{name_of, Setting};

/// Settings that are held. Dropping it restores those without another holder.
#[derive(Debug)]
pub struct Held {
    ledger: Ledger,
    holder: Holder,
    paths: Vec<PathBuf>,
    set: Vec<String>,
    lacking: Vec<String>,
}

impl Held {
    /// Makes a holder hold all known settings. Needs root.
    pub fn take(holder: Holder) -> Held {
        Held::take_all(holder, &Setting::all())
    }

    /// The same for a container with slots. It also holds the setting that keeps the priorities of routed frames.
    pub fn take_with_slots(holder: Holder) -> Held {
        let settings: Vec<Setting> = Setting::all().into_iter().chain([Setting::kept_priorities()]).collect();
        Held::take_all(holder, &settings)
    }

    fn take_all(holder: Holder, settings: &[Setting]) -> Held {
        let mut held = Held::take_from(Ledger::of_host(), holder, settings);
        held.lacking.extend(sys::may_sample_unprivileged().then(|| OPEN_CLOCKS.to_owned()));
        held
    }

    fn take_from(ledger: Ledger, holder: Holder, settings: &[Setting]) -> Held {
        let mut held = Held { ledger: ledger.clone(), holder, paths: Vec::new(), set: Vec::new(), lacking: Vec::new() };
        let changed = ledger.change(|entries| settings.iter().for_each(|setting| held.take_one(entries, setting)));
        if let Err(error) = changed {
            held.lacking.push(format!("cannot record the holders of host settings: {error}"));
        }
        held
    }

    fn take_one(&mut self, entries: &mut Entries, setting: &Setting) {
        let name = setting.name();
        match self.ledger.hold(entries, setting, &self.holder) {
            Ok(None) => return,
            Ok(Some(Was::Held)) => {}
            Ok(Some(Was::Set { before, set })) => {
                self.set.push(format!("{name} is {set} while a deployment or container needs it (before: {before})"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.lacking.extend(setting.lacking.map(str::to_owned));
            }
            Err(error) => return self.lacking.push(format!("{name} cannot be set to {}: {error}", setting.bound)),
        }
        self.paths.push(setting.path.clone());
    }

    /// Returns remarks about the settings that were set.
    pub fn set(&self) -> &[String] {
        &self.set
    }

    /// Returns remarks about missing protection.
    pub fn lacking(&self) -> &[String] {
        &self.lacking
    }

    /// Holds the settings as long as the holder exists, even after the end of this process.
    pub fn keep(mut self) {
        self.paths.clear();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.paths.is_empty() {
            // The next program that opens the ledger repairs a failure.
            let _ = self.ledger.give_back(&self.paths, &self.holder);
        }
    }
}

/// The levels of `kernel.perf_event_paranoid` in Linux itself end at 2. Debian's kernels have more.
const OPEN_CLOCKS: &str = "this kernel gives unprivileged programs clocks by perf_event_open(2), whatever \
                           kernel.perf_event_paranoid is: each may interrupt its CPU every 10us; a seccomp \
                           profile can forbid it";

/// Restores the settings of holders that are gone: killed processes and removed control groups.
pub fn settle() {
    let ledger = Ledger::of_host();
    if ledger.file.exists() {
        let _ = ledger.change(|_| ());
    }
}

/// Restores the settings of a container that has ended.
pub fn give_back_of_container(name: &str) {
    let ledger = Ledger::of_host();
    if ledger.file.exists() {
        let _ = ledger.change(|entries| {
            entries.settings.iter_mut().for_each(|entry| entry.holders.retain(|holder| !holder.is_ended(name)));
            entries.settle();
        });
    }
}

/// A setting that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SettingStatus {
    /// Its name in sysctl(8).
    pub name: String,
    /// The value that it was set to.
    pub set: i64,
    /// Its present value. If it differs, another program has set it.
    pub value: Option<i64>,
    /// Its value before, which the last holder restores.
    pub before: i64,
    /// The holders that need it.
    pub holders: Vec<String>,
}

/// Returns the held settings of this host. Needs no privilege.
pub fn held() -> Vec<SettingStatus> {
    let status = |entry: Entry| SettingStatus {
        name: name_of(&entry.path),
        set: entry.set,
        value: read_number(&entry.path).ok(),
        before: entry.before,
        holders: entry.holders.iter().map(Holder::to_string).collect(),
    };
    Ledger::of_host().read().settings.into_iter().map(status).collect()
}

/// Returns remarks about settings without a living holder. Needs no privilege.
pub fn left() -> Vec<String> {
    Ledger::of_host().read().settings.iter().filter_map(describe_left).collect()
}

fn describe_left(entry: &Entry) -> Option<String> {
    let last = entry.holders.last().filter(|_| !entry.holders.iter().any(Holder::is_there))?;
    let name = name_of(&entry.path);
    Some(format!("{name} was not restored by {last}: run `macrotick stop`"))
}

#[cfg(test)]
mod tests {
    use super::holder::start_of;
    use super::setting::Bound;
    use super::*;
    use std::fs;
    use std::process::{Child, Command};

    /// A ledger and a setting, in a directory of their own.
    struct Bench(PathBuf);

    impl Bench {
        fn new(name: &str, value: i64) -> Bench {
            let path = std::env::temp_dir().join(format!("macrotick-settings-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            let bench = Bench(path);
            bench.write(value);
            bench
        }

        fn ledger(&self) -> Ledger {
            Ledger { file: self.0.join("ledger.json"), lock: self.0.join("lock") }
        }

        fn setting(&self) -> Setting {
            Setting { path: self.0.join("shield"), bound: Bound::Least(1), lacking: Some("none") }
        }

        fn hold(&self, holder: Holder) -> Held {
            Held::take_from(self.ledger(), holder, &[self.setting()])
        }

        /// In this test a directory stands for a control group.
        fn container(&self, name: &str) -> Holder {
            let path = self.0.join(name);
            fs::create_dir(&path).unwrap();
            Holder::group(name, &path).unwrap()
        }

        fn write(&self, value: i64) {
            fs::write(self.setting().path, format!("{value}\n")).unwrap();
        }

        fn value(&self) -> i64 {
            read_number(&self.setting().path).unwrap()
        }

        /// Whether nothing is noted.
        fn is_blank(&self) -> bool {
            !self.ledger().file.exists()
        }
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn own(name: &str) -> Holder {
        Holder::this_process(name)
    }

    fn sleeper() -> (Child, Holder) {
        let child = Command::new("sleep").arg("99").spawn().unwrap();
        let (name, id) = ("sleeper".into(), child.id());
        (child, Holder::Process { name, id, start: start_of(id).unwrap() })
    }

    #[test]
    fn the_first_sets_and_the_last_gives_back() {
        let bench = Bench::new("count", 0);
        let first = bench.hold(own("first"));
        assert_eq!(first.set().len(), 1);
        let second = bench.hold(own("second"));
        // The second holder reports no change.
        assert_eq!((second.set().len(), bench.value()), (0, 1));
        drop(first);
        assert_eq!((bench.value(), bench.is_blank()), (1, false));
        drop(second);
        assert_eq!((bench.value(), bench.is_blank()), (0, true));
    }

    #[test]
    fn a_setting_can_have_an_upper_bound() {
        let bench = Bench::new("most", 1);
        let setting = || Setting { bound: Bound::Most(0), ..bench.setting() };
        let hold = |name| Held::take_from(bench.ledger(), own(name), &[setting()]);
        let held = hold("first");
        assert_eq!((held.set().len(), bench.value()), (1, 0));
        drop(held);
        assert_eq!((bench.value(), bench.is_blank()), (1, true));
        bench.write(0);
        drop(hold("second"));
        assert_eq!((bench.value(), bench.is_blank()), (0, true));
    }

    #[test]
    fn what_a_killed_one_holds_is_told() {
        let bench = Bench::new("left", 0);
        let (mut child, sleeper) = sleeper();
        let id = child.id();
        bench.hold(sleeper).keep();
        let left = || bench.ledger().read().settings.iter().filter_map(describe_left).collect::<Vec<_>>();
        assert_eq!(left(), [""; 0]);
        child.kill().unwrap();
        child.wait().unwrap();
        let [told] = &left()[..] else { panic!("{:?}", left()) };
        let end = format!(" was not restored by sleeper (process {id}), which is gone: run `macrotick stop`");
        assert!(told.ends_with(&end), "{told}");
        let held = bench.hold(own("another"));
        assert_eq!(left(), [""; 0]);
        drop(held);
    }

    #[test]
    fn what_the_administrator_has_set_stays() {
        let bench = Bench::new("before", 1);
        let held = bench.hold(own("first"));
        assert_eq!((held.set().len(), bench.is_blank()), (0, true));
        drop(held);
        assert_eq!(bench.value(), 1);

        // Then another program sets a different value, which also suits.
        bench.write(0);
        let held = bench.hold(own("first"));
        bench.write(2);
        let second = bench.hold(own("second"));
        drop((held, second));
        assert_eq!((bench.value(), bench.is_blank()), (2, true));
    }

    #[test]
    fn what_is_switched_off_meanwhile_is_on_for_the_next_and_off_again() {
        let bench = Bench::new("meanwhile", 0);
        let first = bench.hold(own("first"));
        bench.write(0);
        drop(first);
        assert_eq!((bench.value(), bench.is_blank()), (0, true));

        bench.write(-1);
        let first = bench.hold(own("first"));
        bench.write(0);
        let second = bench.hold(own("second"));
        assert_eq!(bench.value(), 1);
        drop(first);
        assert_eq!(bench.value(), 1);
        drop(second);
        assert_eq!(bench.value(), 0);
    }

    #[test]
    fn who_is_gone_holds_nothing() {
        let bench = Bench::new("gone", 0);
        let (mut child, holder) = sleeper();
        bench.hold(holder.clone()).keep();
        bench.ledger().change(|_| ()).unwrap();
        assert_eq!(bench.value(), 1);
        child.kill().unwrap();
        // The process is dead even before it is reaped.
        while holder.is_there() {
            std::thread::yield_now();
        }
        bench.ledger().change(|_| ()).unwrap();
        assert_eq!((bench.value(), bench.is_blank()), (0, true));
        child.wait().unwrap();

        let container = bench.container("c");
        bench.hold(container.clone()).keep();
        assert_eq!(bench.value(), 1);
        let Holder::Group { path, .. } = &container else { panic!("{container:?}") };
        fs::remove_dir(path).unwrap();
        assert_eq!(container.to_string(), "container c, which is gone");
        // The next holder finds the setting on, takes over that state, and sets it again.
        let next = bench.hold(own("next"));
        assert_eq!((next.set().len(), bench.value()), (1, 1));
        drop(next);
        assert_eq!((bench.value(), bench.is_blank()), (0, true));
    }

    #[test]
    fn nothing_is_believed_of_another_boot() {
        let bench = Bench::new("boot", 0);
        bench.hold(bench.container("c")).keep();
        let file = bench.ledger().file;
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(&crate::proc::boot(), "another")).unwrap();
        fs::remove_dir(bench.0.join("c")).unwrap();
        // In this boot another program has switched it on.
        bench.ledger().change(|_| ()).unwrap();
        assert_eq!((bench.value(), bench.is_blank()), (1, true));
    }

    #[test]
    fn what_cannot_be_had_is_told_and_not_held() {
        let bench = Bench::new("lacking", 0);
        fs::remove_file(bench.setting().path).unwrap();
        let held = bench.hold(own("first"));
        assert_eq!((held.lacking(), bench.is_blank()), (&["none".to_owned()][..], true));
        drop(held);

        fs::write(bench.setting().path, "many").unwrap();
        let held = bench.hold(own("first"));
        assert!(
            held.lacking()[0].starts_with("cannot be set to 1: ")
                || held.lacking()[0].contains(" cannot be set to 1: ")
        );
        assert!(bench.is_blank());

        bench.write(0);
        let nowhere = Ledger { file: bench.0.join("no/ledger"), lock: bench.0.join("no/lock") };
        let held = Held::take_from(nowhere, own("first"), &[bench.setting()]);
        assert!(held.lacking()[0].starts_with("cannot record the holders of host settings: "));
        assert_eq!(bench.value(), 0);
    }
}
