//! The golden schedules in the lab. A selftest of the kernel plays them.
//!
//! `MACROTICK_SEED=n` changes their order and the instants at which they start. `MACROTICK_BLESS=1` writes the played
//! timelines instead of comparing them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use macrotick_kernel_tests::boot;
use macrotick_lab::progress::Terminal;
use macrotick_lab::{command, source, Arch, Flavor, Layout};

const GUEST: &str = env!("CARGO_BIN_EXE_macrotick-kernel-tests");
const SELFTESTS: &str = "tools/testing/selftests";
const PROGRAM: &str = "golden_schedules";
const SEED: &str = "MACROTICK_SEED";
/// The line between a case and its timeline.
const SEPARATOR: &str = "---";

struct Schedule {
    path: PathBuf,
    text: String,
}

impl Schedule {
    fn target(&self) -> String {
        format!("/golden/{}", self.path.file_name().expect("a name").to_string_lossy())
    }

    /// Returns the number of CPUs that the schedule needs: for windows, sync windows, and pinned threads.
    fn cpus(&self) -> u32 {
        let names = |cpu: &u32| [format!(" cpu {cpu} "), format!(" on {cpu}:")];
        (1..8).rfind(|cpu| names(cpu).iter().any(|name| self.text.contains(name))).map_or(1, |cpu| cpu + 1)
    }
}

fn directory(layout: &Layout) -> PathBuf {
    layout.kernel().join("overlay").join(SELFTESTS).join("sched_macrotick")
}

fn schedules(layout: &Layout) -> Vec<Schedule> {
    let entries = std::fs::read_dir(directory(layout).join("golden")).expect("golden schedules");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: PathBuf| Schedule { text: std::fs::read_to_string(&path).expect("a text"), path };
    paths.into_iter().map(read).collect()
}

/// Compiles the program like make in `tools/testing/selftests`, with the contract's header and the libc of the compiler.
fn compile(arch: Arch, layout: &Layout, dir: &Path) -> PathBuf {
    let stock = source::unpack(layout, &mut Terminal::new()).expect("the kernel's source").tree.join(SELFTESTS);
    let copies = dir.join("sched_macrotick");
    std::fs::create_dir_all(&copies).expect("a directory");
    std::fs::copy(stock.join("kselftest.h"), dir.join("kselftest.h")).expect("kselftest.h");
    let (gcc, package) = arch.tool("gcc");
    let mut gcc = Command::new(command::find(&gcc, package).expect("`make setup`"));
    gcc.args(["-O2", "-Wall", "-Werror", "-static", "-isystem"]).arg(layout.kernel().join("overlay/include/uapi"));
    for name in ["golden_schedules.c", "schedule.c", "schedule.h"] {
        std::fs::copy(directory(layout).join(name), copies.join(name)).expect("a source");
        gcc.args(name.ends_with(".c").then_some(copies.join(name)));
    }
    command::output(gcc.arg("-o").arg(dir.join(PROGRAM))).unwrap_or_else(|error| panic!("{error}"));
    dir.join(PROGRAM)
}

/// The result of one test in a TAP stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    is_ok: bool,
    /// The played timeline of a test that failed because of it.
    played: Option<String>,
}

/// Returns the verdict of each test, if the number of tests is as announced and no test is missing.
fn verdicts(tap: &str) -> Option<BTreeMap<&str, Verdict>> {
    let (mut plan, mut played, mut verdicts) = (None, None::<String>, BTreeMap::new());
    for line in tap.lines() {
        let is_ok = line.starts_with("ok ");
        if let Some(number) = line.strip_prefix("1..") {
            plan = number.parse().ok();
        } else if line == "# played:" {
            played = Some(String::new());
        } else if let Some(text) = line.strip_prefix("#   ") {
            played.iter_mut().for_each(|played| *played += &format!("{text}\n"));
        } else if is_ok || line.starts_with("not ok ") {
            let name = line.split_whitespace().last()?;
            verdicts.insert(name, Verdict { is_ok: is_ok && !line.contains("# SKIP"), played: played.take() });
        }
    }
    (plan == Some(verdicts.len())).then_some(verdicts)
}

/// Plays all schedules that need this many CPUs, and compares or blesses them.
fn play(arch: Arch, cpus: u32) {
    let layout = Layout::find().expect("a checkout");
    let program = compile(arch, &layout, &layout.on(arch).lab().join(format!("selftest-{cpus}")));
    let mut schedules = schedules(&layout);
    schedules.retain(|schedule| schedule.cpus() == cpus);
    assert!(!schedules.is_empty(), "no golden schedules for {cpus} CPUs");
    let seed = std::env::var(SEED).ok();
    if let Some(seed) = &seed {
        schedules.sort_by_cached_key(|schedule| hash(&(seed, &schedule.path)));
    }
    let words = [format!("/{PROGRAM}")].into_iter().chain(schedules.iter().map(Schedule::target));
    let mut job = boot::job(Flavor::Patched, cpus, words);
    job.shift = 0;
    job.env.extend(seed.map(|seed| (SEED.into(), seed)));
    job.files = schedules.iter().map(|schedule| (schedule.target(), schedule.text.clone().into_bytes())).collect();
    job.files.push((format!("/{PROGRAM}"), std::fs::read(program).expect("a program")));
    let outcome = boot::run_on(arch, GUEST, &job);
    let tap = outcome.stdout_text();
    let verdicts = verdicts(&tap).unwrap_or_else(|| panic!("{tap}"));
    let is_blessed = |schedule: &Schedule| match verdicts.get(schedule.target().as_str()) {
        Some(Verdict { is_ok: true, .. }) => true,
        Some(Verdict { played: Some(played), .. }) if std::env::var_os("MACROTICK_BLESS").is_some() => {
            let (input, _) = schedule.text.split_once(&format!("{SEPARATOR}\n")).unwrap_or((&schedule.text, ""));
            std::fs::write(&schedule.path, format!("{input}{SEPARATOR}\n{played}")).is_ok()
        }
        _ => false,
    };
    assert!(schedules.iter().all(is_blessed), "{tap}");
    assert!(outcome.complaints.is_empty(), "{:?}", outcome.complaints);
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[test]
#[ignore = "needs the lab"]
fn golden_schedules_on_one_cpu() {
    play(Arch::X86_64, 1);
}

#[test]
#[ignore = "needs the lab"]
fn golden_schedules_on_two_cpus() {
    play(Arch::X86_64, 2);
}

#[test]
#[ignore = "needs the lab, takes long"]
fn full_arm64_golden_schedules() {
    play(Arch::Arm64, 1);
    play(Arch::Arm64, 2);
}

#[test]
fn golden_schedules_are_complete() {
    let all = schedules(&Layout::find().expect("a checkout"));
    assert!(all.iter().any(|one| one.cpus() == 1) && all.iter().any(|one| one.cpus() == 2));
    for Schedule { path, text } in all {
        assert!(text.contains(&format!("\n{SEPARATOR}\ncpu 0 |")), "{}: not blessed", path.display());
    }
}

#[test]
fn tap_is_read() {
    let tap = "TAP version 13\n1..3\nok 1 /golden/a.txt\n# expected:\n#   cpu 0 |..|\n# played:\n#   cpu 0 |a.|\n\
               #   a 0@0\nnot ok 2 /golden/b.txt\nok 3 # SKIP /golden/c.txt\n# Totals: pass:1\n";
    let played = Some("cpu 0 |a.|\na 0@0\n".to_owned());
    let wanted = [
        ("/golden/a.txt", Verdict { is_ok: true, played: None }),
        ("/golden/b.txt", Verdict { is_ok: false, played }),
        ("/golden/c.txt", Verdict::default()),
    ];
    assert!(verdicts(tap).unwrap().into_iter().eq(wanted));
    assert_eq!(verdicts("1..2\nok 1 /golden/a.txt\n"), None);
}
