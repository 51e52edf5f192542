//! The selftests of the kernel's source, compiled with the host's compiler.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use macrotick_lab::cache::{self, Key, Lock};
use macrotick_lab::progress::Terminal;
use macrotick_lab::{command, libraries, source, Layout};

use super::selftests::DIRECTORIES;

const OPTIONS: [&str; 5] = ["-O2", "-w", "-s", "-pthread", "-D_GNU_SOURCE"];
/// `pthread_exit` and `pthread_cancel` open libgcc_s when they are called. The linker option makes it a listed
/// dependency.
const LIBRARIES: [&str; 4] = ["-lrt", "-lm", "-Wl,--no-as-needed", "-lgcc_s"];

/// The programs, and the shared libraries that they need.
pub struct Compiled {
    pub programs: Vec<PathBuf>,
    pub libraries: BTreeSet<String>,
}

/// Compiles all programs of the directories, unless they are up to date.
pub fn selftests(layout: &Layout) -> Compiled {
    let tree = source::unpack(layout, &mut Terminal::new()).expect("the kernel's source").tree;
    let selftests = tree.join("tools/testing/selftests");
    let dir = layout.of_version().join("selftests");
    let _lock = Lock::take(&layout.of_version().join("selftests.lock")).expect("a lock");
    let sources = sources(&selftests);
    let key = key(&selftests, &sources);
    if !cache::is_fresh(&dir.join("stamp"), &key) {
        cache::remove(&dir).expect("an old directory can be removed");
        fs::create_dir_all(&dir).expect("a new directory");
        sources.iter().for_each(|source| compile(&selftests, source, &dir));
        cache::stamp(&dir.join("stamp"), &key).expect("a stamp");
    }
    let programs: Vec<PathBuf> = sources.iter().map(|source| target(source, &dir)).collect();
    let libraries = programs.iter().flat_map(|program| libraries::of(program).expect("`make setup`")).collect();
    Compiled { programs, libraries }
}

/// Returns the sources that are a program each.
fn sources(selftests: &Path) -> Vec<PathBuf> {
    let in_directory = |name: &&str| {
        let entries = fs::read_dir(selftests.join(name)).expect("a directory of selftests");
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let files = DIRECTORIES.iter().flat_map(in_directory);
    let mut sources: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|ext| ext == "c")).collect();
    sources.sort();
    sources
}

fn key(selftests: &Path, sources: &[PathBuf]) -> String {
    let compiler = command::output(gcc().arg("--version")).expect("gcc");
    let headers = ["kselftest.h", "kselftest_harness.h", "futex/include/futextest.h", "futex/include/logging.h"];
    let headers = headers.iter().map(|name| selftests.join(name));
    let options = OPTIONS.iter().chain(&LIBRARIES).fold(Key::new().with(compiler), |key, option| key.with(option));
    let read = |key: Key, path: PathBuf| key.with_file(&path).expect("a source");
    headers.chain(sources.iter().cloned()).fold(options, read).finish()
}

fn gcc() -> Command {
    Command::new(command::find("gcc", "gcc").expect("`make setup`"))
}

fn compile(selftests: &Path, source: &Path, dir: &Path) {
    let mut gcc = gcc();
    gcc.args(OPTIONS).arg("-I").arg(selftests).arg("-I").arg(selftests.join("futex/include"));
    gcc.arg("-o").arg(target(source, dir)).arg(source).args(LIBRARIES);
    command::output(&mut gcc).unwrap_or_else(|error| panic!("{error}"));
}

fn target(source: &Path, dir: &Path) -> PathBuf {
    dir.join(source.file_stem().expect("a source has a name"))
}
