//! Settings of the whole host that deployments and containers hold: set for the first that needs one, given back after the last.
//!
//! A ledger, a file that goes with the boot, has for each such setting its value before, the one that it was set to, and its
//! holders. It is written before the setting is, so that a tool that is killed leaves nothing that the next one cannot give back.
//! A holder is a process or a control group. One that is gone holds nothing: whoever opens the ledger next leaves it out.
//!
//! The administrator has the last word. A setting that suits already is left alone, and so is one that meanwhile has another
//! value than it was set to. A failure here is none of the deployment's: it is told, and everything else goes on.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::lock::{runtime_path, ROOT};
use crate::proc;
use crate::sys;

const LEDGER: &str = "-settings.json";
const LOCK: &str = "-settings.lock";
/// Says something else after each boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const SYSCTL: &str = "/proc/sys/";

/// A number of sysctl(8) that has to be at least so much.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    path: PathBuf,
    least: i64,
    /// What is told where the kernel has none. `None`: nothing is lacking then.
    lacking: Option<&'static str>,
}

impl Setting {
    /// What everything needs that relies on the kernel class, whatever runs beside it.
    fn all() -> [Setting; 2] {
        let kernel =
            |name: &str, least, lacking| Setting { path: [SYSCTL, "kernel", name].iter().collect(), least, lacking };
        let no_shield =
            "this kernel has no TimerShield: sleeps of many threads that end at once delay what is deployed";
        // Without the latter there is no perf_event_open(2).
        [kernel("timershield", 1, Some(no_shield)), kernel("perf_event_paranoid", 3, None)]
    }

    fn name(&self) -> String {
        name_of(&self.path)
    }
}

/// As sysctl(8) has it.
fn name_of(path: &Path) -> String {
    path.strip_prefix(SYSCTL).unwrap_or(path).display().to_string().replace('/', ".")
}

fn read_number(path: &Path) -> io::Result<i64> {
    fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
}

/// What needs settings, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    /// For as long as a process lives.
    Process {
        /// What it is for.
        name: String,
        /// Its number.
        id: u32,
        /// When it began: no later process of that number began then.
        start: u64,
    },
    /// For as long as a control group is there.
    Group {
        /// The container's name.
        name: String,
        /// Its directory.
        path: PathBuf,
        /// The directory's number: no later one of that path has it.
        inode: u64,
    },
}

impl Holder {
    /// This process.
    pub fn this_process(name: &str) -> Holder {
        let id = std::process::id();
        Holder::Process { name: name.into(), id, start: start_of(id).unwrap_or(0) }
    }

    /// A container, by its control group.
    pub fn group(name: &str, path: &Path) -> io::Result<Holder> {
        Ok(Holder::Group { name: name.into(), path: path.into(), inode: fs::metadata(path)?.ino() })
    }

    fn is_there(&self) -> bool {
        match self {
            Holder::Process { id, start, .. } => start_of(*id) == Some(*start),
            Holder::Group { path, inode, .. } => fs::metadata(path).is_ok_and(|meta| meta.ino() == *inode),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Process { name, id, .. } => write!(f, "{name} (process {id})"),
            Holder::Group { name, .. } => write!(f, "container {name}"),
        }?;
        f.write_str(if self.is_there() { "" } else { ", which is gone" })
    }
}

/// When a process began, in ticks since the boot. `None`: it is dead.
fn start_of(process: u32) -> Option<u64> {
    start_in(&proc::stat(process as sys::Tid)?)
}

/// The third field is the state, the 22nd the start.
fn start_in(stat: &str) -> Option<u64> {
    let (_, mut words) = proc::split_stat(stat)?;
    let is_dead = matches!(words.next()?, "Z" | "X");
    words.nth(18)?.parse().ok().filter(|_| !is_dead)
}

/// A setting that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    path: PathBuf,
    before: i64,
    set: i64,
    holders: Vec<Holder>,
}

impl Entry {
    /// Whether it still has the value that it was set to.
    fn is_ours(&self) -> bool {
        read_number(&self.path).is_ok_and(|now| now == self.set)
    }

    fn give_back(&self) {
        if self.is_ours() {
            let _ = fs::write(&self.path, self.before.to_string());
        }
    }
}

/// What the ledger says.
#[derive(Debug, Serialize, Deserialize)]
struct Entries {
    boot: String,
    settings: Vec<Entry>,
}

impl Entries {
    /// Leaves out the holders that are gone, and gives back what has none.
    fn settle(&mut self) {
        for entry in &mut self.settings {
            entry.holders.retain(Holder::is_there);
        }
        self.settings.retain(|entry| {
            let is_held = !entry.holders.is_empty();
            if !is_held {
                entry.give_back();
            }
            is_held
        });
    }

    /// The entry of a setting that has the value `now`, for one more holder; made where there is none, or none that counts.
    fn entry(&mut self, setting: &Setting, now: i64) -> &mut Entry {
        let place = self.settings.iter().position(|entry| entry.path == setting.path);
        let place = place.unwrap_or_else(|| {
            let (path, holders) = (setting.path.clone(), Vec::new());
            self.settings.push(Entry { path, before: now, set: now, holders });
            self.settings.len() - 1
        });
        let entry = &mut self.settings[place];
        if entry.set != now {
            entry.before = now;
        }
        entry.set = now.max(setting.least);
        entry
    }
}

/// Where it is noted who holds what.
#[derive(Clone, Debug)]
struct Ledger {
    file: PathBuf,
    lock: PathBuf,
}

impl Ledger {
    fn of_host() -> Ledger {
        Ledger { file: runtime_path(ROOT, LEDGER), lock: runtime_path(ROOT, LOCK) }
    }

    /// Changes it, while nobody else does.
    fn change(&self, change: impl FnOnce(&mut Entries) -> io::Result<()>) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(&self.lock)?;
        // SAFETY: no memory is passed.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut entries = self.read();
        entries.settle();
        change(&mut entries)?;
        self.write(&entries)
    }

    /// Nothing is believed of another boot, nor of other users: among temporary files it could be anybody's.
    fn read(&self) -> Entries {
        let boot = fs::read_to_string(BOOT).unwrap_or_default().trim().to_owned();
        let read = || {
            let meta = fs::symlink_metadata(&self.file).ok()?;
            let is_own = meta.is_file() && (meta.uid() == ROOT || meta.uid() == sys::user());
            let text = is_own.then(|| fs::read_to_string(&self.file).ok()).flatten()?;
            serde_json::from_str(&text).ok().filter(|entries: &Entries| entries.boot == boot)
        };
        read().unwrap_or_else(|| Entries { boot: boot.clone(), settings: Vec::new() })
    }

    /// All of it, or what was there stays.
    fn write(&self, entries: &Entries) -> io::Result<()> {
        if entries.settings.is_empty() {
            return match fs::remove_file(&self.file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let partial = self.file.with_extension("partial");
        let _ = fs::remove_file(&partial);
        let text = serde_json::to_string_pretty(entries).expect("a ledger is always JSON");
        File::create_new(&partial)?.write_all((text + "\n").as_bytes())?;
        fs::rename(&partial, &self.file)
    }

    /// Has a holder hold a setting. Returns whether it is to be given back one day: not if the value is others' word and suits.
    fn hold(&self, entries: &mut Entries, setting: &Setting, holder: &Holder) -> Result<Option<Was>, io::Error> {
        let now = read_number(&setting.path)?;
        let is_ours = entries.settings.iter().any(|entry| entry.path == setting.path && entry.set == now);
        if now >= setting.least && !is_ours {
            entries.settings.retain(|entry| entry.path != setting.path);
            return Ok(None);
        }
        let entry = entries.entry(setting, now);
        entry.holders.push(holder.clone());
        let (before, set) = (entry.before, entry.set);
        if now == set {
            return Ok(Some(Was::Held));
        }
        let written = self.write(entries).and_then(|()| fs::write(&setting.path, set.to_string()));
        if written.is_err() {
            entries.entry(setting, now).holders.pop();
            entries.settings.retain(|entry| !entry.holders.is_empty());
        }
        written.map(|()| Some(Was::Set { before, set }))
    }

    /// The reverse.
    fn give_back(&self, paths: &[PathBuf], holder: &Holder) -> io::Result<()> {
        self.change(|entries| {
            for entry in entries.settings.iter_mut().filter(|entry| paths.contains(&entry.path)) {
                entry.holders.retain(|other| other != holder);
            }
            entries.settle();
            Ok(())
        })
    }
}

/// What had to be done for a holder.
enum Was {
    Held,
    Set { before: i64, set: i64 },
}

/// Settings that are held. Dropping it gives them back, unless others hold them, too.
#[derive(Debug)]
pub struct Held {
    ledger: Ledger,
    holder: Holder,
    paths: Vec<PathBuf>,
    set: Vec<String>,
    lacking: Vec<String>,
}

impl Held {
    /// Has a holder hold all there are. Needs root.
    pub fn take(holder: Holder) -> Held {
        let mut held = Held::take_from(Ledger::of_host(), holder, &Setting::all());
        held.lacking.extend(sys::may_sample_unprivileged().then(|| OPEN_CLOCKS.to_owned()));
        held
    }

    fn take_from(ledger: Ledger, holder: Holder, settings: &[Setting]) -> Held {
        let mut held = Held { ledger: ledger.clone(), holder, paths: Vec::new(), set: Vec::new(), lacking: Vec::new() };
        let changed = ledger.change(|entries| {
            settings.iter().for_each(|setting| held.take_one(entries, setting));
            Ok(())
        });
        if let Err(error) = changed {
            held.lacking.push(format!("it cannot be noted who needs settings of this host: {error}"));
        }
        held
    }

    fn take_one(&mut self, entries: &mut Entries, setting: &Setting) {
        let name = setting.name();
        match self.ledger.hold(entries, setting, &self.holder) {
            Ok(None) => return,
            Ok(Some(Was::Held)) => {}
            Ok(Some(Was::Set { before, set })) => {
                self.set.push(format!("{name} is {set} for as long as anything needs that (it was {before})"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.lacking.extend(setting.lacking.map(str::to_owned));
            }
            Err(error) => return self.lacking.push(format!("{name} cannot be set to {}: {error}", setting.least)),
        }
        self.paths.push(setting.path.clone());
    }

    /// What was set.
    pub fn set(&self) -> &[String] {
        &self.set
    }

    /// What could not be had.
    pub fn lacking(&self) -> &[String] {
        &self.lacking
    }

    /// They are held for as long as the holder is there, whatever becomes of this process.
    pub fn keep(mut self) {
        self.paths.clear();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.paths.is_empty() {
            // Whoever opens the ledger next makes good what fails here.
            let _ = self.ledger.give_back(&self.paths, &self.holder);
        }
    }
}

/// Linux itself knows no level of `kernel.perf_event_paranoid` above 2; Debian's kernels do.
const OPEN_CLOCKS: &str = "this kernel gives ordinary programs clocks by perf_event_open(2), whatever \
                           kernel.perf_event_paranoid says: each may interrupt its CPU every 10us; a seccomp profile can refuse it";

/// Gives back what those held that are gone: killed processes, removed control groups.
pub fn settle() {
    let ledger = Ledger::of_host();
    if ledger.file.exists() {
        let _ = ledger.change(|_| Ok(()));
    }
}

/// Gives back what a container held, whose program has ended.
pub fn give_back_of_container(name: &str) {
    let ledger = Ledger::of_host();
    let is_its =
        |holder: &Holder| matches!(holder, Holder::Group { name: own, path, .. } if own == name && is_idle(path));
    if ledger.file.exists() {
        let _ = ledger.change(|entries| {
            entries.settings.iter_mut().for_each(|entry| entry.holders.retain(|holder| !is_its(holder)));
            entries.settle();
            Ok(())
        });
    }
}

/// Another runtime may have another container of that name.
fn is_idle(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.events")).is_ok_and(|events| events.lines().any(|line| line == "populated 0"))
}

/// A setting that is held, for whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingStatus {
    /// As sysctl(8) has it.
    pub name: String,
    /// What it was set to.
    pub set: i64,
    /// Its value now; another one is somebody else's word.
    pub value: Option<i64>,
    /// Its value before, which it is to have again.
    pub before: i64,
    /// What needs it.
    pub holders: Vec<String>,
}

/// What is held on this host. Needs no privilege.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// A ledger and a setting in a directory of its own.
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
            Setting { path: self.0.join("shield"), least: 1, lacking: Some("none") }
        }

        fn hold(&self, holder: Holder) -> Held {
            Held::take_from(self.ledger(), holder, &[self.setting()])
        }

        /// A control group is a directory here.
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
        // It is no news to the second.
        assert_eq!((second.set().len(), bench.value()), (0, 1));
        drop(first);
        assert_eq!((bench.value(), bench.is_blank()), (1, false));
        drop(second);
        assert_eq!((bench.value(), bench.is_blank()), (0, true));
    }

    #[test]
    fn what_the_administrator_has_set_stays() {
        let bench = Bench::new("before", 1);
        let held = bench.hold(own("first"));
        assert_eq!((held.set().len(), bench.is_blank()), (0, true));
        drop(held);
        assert_eq!(bench.value(), 1);

        // Meanwhile another value, which suits as well.
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
        bench.ledger().change(|_| Ok(())).unwrap();
        assert_eq!(bench.value(), 1);
        child.kill().unwrap();
        // It is dead before it is reaped, too.
        while holder.is_there() {
            std::thread::yield_now();
        }
        bench.ledger().change(|_| Ok(())).unwrap();
        assert_eq!((bench.value(), bench.is_blank()), (0, true));
        child.wait().unwrap();

        let container = bench.container("c");
        bench.hold(container.clone()).keep();
        assert_eq!(bench.value(), 1);
        let Holder::Group { path, .. } = &container else { panic!("{container:?}") };
        fs::remove_dir(path).unwrap();
        assert_eq!(container.to_string(), "container c, which is gone");
        // The next one finds it so, and sets it anew.
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
        let boot = fs::read_to_string(BOOT).unwrap();
        fs::write(&file, text.replace(boot.trim(), "another")).unwrap();
        fs::remove_dir(bench.0.join("c")).unwrap();
        // Somebody has switched it on in this one.
        bench.ledger().change(|_| Ok(())).unwrap();
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
        assert!(held.lacking()[0].starts_with("it cannot be noted who needs settings of this host: "));
        assert_eq!(bench.value(), 0);
    }

    #[test]
    fn a_process_is_told_by_its_start() {
        let words: Vec<String> = (4..=30).map(|field| field.to_string()).collect();
        let stat = |state: &str| format!("7 (a b) R) {state} {}", words.join(" "));
        assert_eq!(start_in(&stat("S")), Some(22));
        assert_eq!([start_in(&stat("Z")), start_in(&stat("X")), start_in("7")], [None; 3]);
        let own = own("own");
        assert!(own.is_there());
        let Holder::Process { id, start, .. } = own else { panic!() };
        assert!(!Holder::Process { name: "later".into(), id, start: start + 1 }.is_there());
    }
}
