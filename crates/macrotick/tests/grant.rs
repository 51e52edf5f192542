//! Reservations of an ordinary user through the helper, as macrotick-grant.socket starts it.
//!
//! The tests need root. They are reported as skipped without it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration as WallTime, Instant};

use macrotick_analysis::deadline::Task;
use macrotick_host::sys::{self, Tid};
use macrotick_host::{grants, proc};
use macrotick_model::Duration;

/// The longest wait for anything on a busy host.
const PATIENCE: WallTime = WallTime::from_secs(20);
/// Each test has a user of its own, because the account of a user is the same for all helpers of a host.
const USERS: u32 = 61_000;

/// The service with its limits, and a folder that any user can read.
struct Service {
    folder: PathBuf,
    user: u32,
    helpers: Arc<Mutex<Vec<Tid>>>,
}

impl Service {
    /// Starts it for a user with these limits. `None`: this user may not reserve, and the test ends.
    fn start(number: u32, limits: &str) -> Option<Service> {
        let usual = ["reserve", "--runtime", "1ms", "--period", "100ms", "true"];
        let tried = Command::new(env!("CARGO_BIN_EXE_macrotick")).args(usual).output().unwrap();
        if sys::user() != 0 || !tried.status.success() {
            eprintln!("skipped: needs root and SCHED_DEADLINE");
            return None;
        }
        let user = USERS + number;
        let folder = std::env::temp_dir().join(format!("macrotick-grant-test-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        mode(&folder, 0o755);
        // A copy by this process would be open for writing in the programs that other tests start meanwhile.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_macrotick")).arg(folder.join("macrotick")).status();
        assert!(copied.unwrap().success());
        mode(&folder.join("macrotick"), 0o755);
        let file = folder.join("grant.yaml");
        fs::write(&file, format!("users:\n  {user}: {{{limits}}}\n")).unwrap();
        mode(&file, 0o644);
        let listener = UnixListener::bind(folder.join("socket")).unwrap();
        mode(&folder.join("socket"), 0o666);
        let helpers = Arc::new(Mutex::new(Vec::new()));
        let started = helpers.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                // As in macrotick-grant@.service.
                let mut helper = Command::new("setpriv");
                helper.args(["--bounding-set", "-all,+sys_nice,+sys_ptrace", "--no-new-privs"]);
                helper.arg(env!("CARGO_BIN_EXE_macrotick")).args(["grant", "--limits"]).arg(&file);
                helper.stdin(Stdio::from(OwnedFd::from(connection.unwrap()))).stdout(Stdio::null());
                let mut helper = helper.stderr(Stdio::null()).spawn().unwrap();
                started.lock().unwrap().push(helper.id() as Tid);
                std::thread::spawn(move || helper.wait());
            }
        });
        Some(Service { folder, user, helpers })
    }

    /// Returns `macrotick reserve` of the user.
    fn reserve(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.folder.join("macrotick"));
        command.arg("reserve").args(words).env("MACROTICK_GRANT", self.folder.join("socket")).stdin(Stdio::null());
        command.uid(self.user).gid(self.user).current_dir("/");
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        told(&self.reserve(words).output().unwrap())
    }

    /// Returns a program of the user that sleeps.
    fn sleeper(&self) -> Running {
        let sleeper = Running::new(Command::new("sleep").arg("60").uid(self.user).gid(self.user));
        until("it sleeps", || proc::name(sleeper.id()).as_deref() == Some("sleep"));
        sleeper
    }

    /// Sends a text, and returns the answer.
    fn send(&self, text: &str) -> String {
        let mut socket = UnixStream::connect(self.folder.join("socket")).unwrap();
        socket.write_all(text.as_bytes()).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        // The helper may close the connection before it has read all, which is an error after the answer.
        let mut answer = String::new();
        BufReader::new(socket).read_line(&mut answer).unwrap();
        answer
    }

    /// Whether the account of the user is empty.
    fn has_nothing(&self) -> bool {
        grants::Grants::open(Path::new(grants::FOLDER)).unwrap().of(self.user).unwrap().is_empty()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn told(output: &Output) -> (Option<i32>, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(WallTime::from_millis(5));
    }
}

fn is_reserved(thread: Tid) -> bool {
    sys::sched_attr(thread).is_ok_and(|attr| attr.promised().is_some())
}

/// A process that ends with the test.
struct Running(Child);

impl Running {
    fn new(command: &mut Command) -> Running {
        Running(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn id(&self) -> Tid {
        self.0.id() as Tid
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_of_a_user_runs_in_its_reservation_until_it_ends() {
    let Some(service) = Service::start(1, "bandwidth-ppm: 20000, least-period: 1ms") else { return };
    let words = ["--runtime", "2ms", "--period", "100ms", "--", "sleep", "60"];
    let mut program = Running::new(service.reserve(&words).stderr(Stdio::null()));
    let id = program.id();
    until("it sleeps", || is_reserved(id) && proc::name(id).as_deref() == Some("sleep"));
    let ms = Duration::from_millis;
    let now = sys::sched_attr(id).unwrap();
    assert_eq!(now.promised(), Some(Task { wcet: ms(2), deadline: ms(100), period: ms(100) }));
    assert!(now.resets_on_fork() && proc::users_of(id) == Some([service.user; 4]));
    // The whole limit is taken.
    let (code, text) = service.run(&["--runtime", "1ms", "--period", "100ms", "true"]);
    let said = format!("the limit of user {} is 2.0 %, of which 2.0 % are taken", service.user);
    assert!(code == Some(1) && text.contains(&said), "{code:?} {text}");
    program.0.kill().unwrap();
    program.0.wait().unwrap();
    until("the account is empty", || service.has_nothing());
    let (code, text) = service.run(&["--runtime", "2ms", "--period", "100ms", "--", "sh", "-c", "echo out; exit 7"]);
    assert!(code == Some(7) && text.starts_with("out\n2ms in each 100ms"), "{code:?} {text}");
    assert!(text.contains("granted by macrotick-grant"), "{text}");
}

#[test]
fn a_running_process_of_a_user_is_as_before_however_the_command_ends() {
    let Some(service) = Service::start(2, "bandwidth-ppm: 20000, least-period: 1ms") else { return };
    let program = service.sleeper();
    let (id, pid) = (program.id(), program.id().to_string());
    let before = (sys::sched_attr(id).unwrap(), sys::affinity(id).unwrap());
    for (signal, code) in [(2, Some(0)), (15, Some(0)), (9, None)] {
        let words = ["--runtime", "2ms", "--period", "100ms", "--pid", &pid];
        let mut command = Running::new(service.reserve(&words).stderr(Stdio::null()));
        until("it is reserved", || is_reserved(id));
        sys::signal(command.id(), signal);
        assert_eq!(command.0.wait().unwrap().code(), code, "signal {signal}");
        until("it is as before", || (sys::sched_attr(id).unwrap(), sys::affinity(id).unwrap()) == before);
        until("the account is empty", || service.has_nothing());
    }
}

#[test]
fn a_killed_helper_leaves_nothing_and_the_command_says_so() {
    let Some(service) = Service::start(3, "bandwidth-ppm: 20000, least-period: 1ms") else { return };
    let program = service.sleeper();
    let (id, pid) = (program.id(), program.id().to_string());
    let before = sys::sched_attr(id).unwrap();
    let words = ["--runtime", "2ms", "--period", "100ms", "--pid", &pid];
    let command = service.reserve(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it is reserved", || is_reserved(id));
    sys::kill(*service.helpers.lock().unwrap().last().unwrap());
    let (code, text) = told(&command.wait_with_output().unwrap());
    assert!(code == Some(3) && text.contains("macrotick-grant has ended without a word"), "{code:?} {text}");
    until("it is as before", || sys::sched_attr(id).unwrap() == before);
    assert!(service.has_nothing(), "a killed helper counts no more");
}

#[test]
fn beyond_its_limits_a_user_gets_nothing() {
    let Some(service) = Service::start(4, "bandwidth-ppm: 20000, least-period: 10ms, cpus: [0]") else { return };
    let (foreign, own) = (Running::new(Command::new("sleep").arg("60")), service.sleeper());
    let (foreign_id, own_id) = (foreign.id().to_string(), own.id().to_string());
    let gone = i32::MAX.to_string();
    for (words, code, said) in [
        (&["--runtime", "3ms", "--period", "100ms", "true"][..], 1, "it would take 3.0 % of a CPU by its deadline"),
        (&["--runtime", "1ms", "--deadline", "10ms", "--period", "100ms", "true"], 1, "it would take 10.0 % of a CPU"),
        (&["--runtime", "20us", "--period", "9ms", "true"], 1, "--period 9ms is shorter than 10ms"),
        (&["--runtime", "1ms", "--period", "100ms", "--reclaim", "true"], 1, "may not use --reclaim"),
        (&["--runtime", "1ms", "--period", "100ms", "--pid", &foreign_id], 1, "does not belong to user"),
        (&["--runtime", "1ms", "--period", "100ms", "--pid", &gone], 2, "there is no process"),
    ] {
        let (told_code, text) = service.run(words);
        assert!(told_code == Some(code) && text.contains(said), "{words:?}: {told_code:?} {text}");
    }
    assert!(!is_reserved(foreign.id()));
    if sys::online_cpus().unwrap().len() > 1 {
        let (code, text) = service.run(&["--runtime", "1ms", "--period", "100ms", "--pid", &own_id]);
        assert!(code == Some(1) && text.contains("may reserve on CPU 0"), "{code:?} {text}");
    }
    assert!(!is_reserved(own.id()) && service.has_nothing());
    let mut stranger = service.reserve(&["--runtime", "1ms", "--period", "100ms", "true"]);
    let (code, text) = told(&stranger.uid(service.user + 100).output().unwrap());
    assert!(code == Some(1) && text.contains("may not reserve: neither the user nor one of its groups"), "{text}");
    let mut without = service.reserve(&["--runtime", "1ms", "--period", "100ms", "true"]);
    let (code, text) = told(&without.env("MACROTICK_GRANT", "/nonexistent").output().unwrap());
    assert!(code == Some(3) && text.contains("let the administrator start macrotick-grant.socket"), "{text}");
}

/// The test itself is root, which has no limits in the file.
#[test]
fn what_is_no_request_of_a_user_is_refused() {
    let Some(service) = Service::start(5, "bandwidth-ppm: 20000, least-period: 1ms") else { return };
    assert!(service.send("{}\n").contains("user 0 may not reserve"));
    let file = service.folder.join("grant.yaml");
    fs::write(&file, "users:\n  root: {bandwidth-ppm: 20000, least-period: 1ms}\n").unwrap();
    let ask = r#"{"version":1,"thread":1,"runtime":"1ms","period":"100ms","deadline":"100ms","reclaim":false,"overrun-signal":false,"cpus":null}"#;
    let long = "x".repeat(1 << 15);
    let twice = format!("{ask}\n{ask}\n");
    for (text, said) in [
        ("", "there is none"),
        ("\n", "the request is not understood"),
        ("{}\n", "missing field"),
        (ask, "has no end within"),
        (&long, "has no end within"),
        (&twice, "more follows its line"),
        (&(ask.replacen(":1,", ":2,", 1) + "\n"), "version 2 of the messages"),
        (&(ask.replacen("\"thread\":1", "\"thread\":-7", 1) + "\n"), "-7 is no thread"),
        (&(ask.replacen("null", "null,\"more\":1", 1) + "\n"), "unknown field `more`"),
    ] {
        let answer = service.send(text);
        assert!(answer.starts_with("{\"refused\":") && answer.contains(said), "{said}: {answer}");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(service.send(&format!("{ask}\n")).contains("that no other user can write"));
    // A peer that sends nothing keeps no helper.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let mut silent = UnixStream::connect(service.folder.join("socket")).unwrap();
    let mut answer = String::new();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    silent.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("the request is not understood"), "{answer}");
}

/// Without a connection, the command of the unit says where one comes from.
#[test]
fn the_command_of_the_unit_needs_a_connection() {
    let unit = macrotick_fixtures::read_tree("packaging/systemd/macrotick-grant@.service");
    let words = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/macrotick ")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    let (code, text) = told(&command.args(words.split_whitespace()).stdin(Stdio::null()).output().unwrap());
    assert!(code == Some(2) && text.contains("standard input is no Unix socket"), "{code:?} {text}");
    assert!(unit.contains("\nStandardInput=socket\n") && unit.contains("\nStandardOutput=journal\n"), "{unit}");
}
