//! Tests of the lab with a real guest. They need QEMU and a kernel: `make test` runs them.

use std::process::Command;

use macrotick_lab::progress::{Progress, Quiet};
use macrotick_lab::{
    Complaint, Death, Flavor, GuestJob, GuestOutcome, GuestStatus, Lab, LabError, Layout, NicModel, Nics, PathRequest,
    Symbols,
};
use macrotick_model::Duration;

fn lab() -> Lab {
    let layout = Layout::find().expect("tests run inside a checkout");
    Lab::with_agent(layout, env!("CARGO_BIN_EXE_macrotick-lab"))
}

fn shell(script: &str) -> GuestJob {
    GuestJob::new(Flavor::Patched, ["/bin/sh", "-c", script])
}

fn run(job: &GuestJob) -> Result<GuestOutcome, LabError> {
    lab().run(job, &mut Quiet, &mut |_| {})
}

#[test]
#[ignore = "needs the lab"]
fn a_job_brings_back_its_status_output_and_files() {
    let mut job = shell("cat /in/file; echo $WORD >&2; cp /in/file /tmp/out; exit 3");
    job.env.push(("WORD".into(), "said".into()));
    job.files.push(("/in/file".into(), b"content\n".to_vec()));
    job.collect = vec!["/tmp/out".into(), "/tmp/absent".into()];
    let outcome = run(&job).unwrap();
    assert_eq!(outcome.status, GuestStatus::Exited(3));
    assert_eq!(outcome.stdout_text(), "content\n");
    assert_eq!(outcome.stderr_text(), "said\n");
    assert_eq!(outcome.files.into_iter().collect::<Vec<_>>(), [("/tmp/out".to_owned(), b"content\n".to_vec())]);
}

#[test]
#[ignore = "needs the lab"]
fn two_runs_are_the_same_to_the_nanosecond() {
    // cat reads the kernel's clock; cyclictest's histogram has every latency.
    let job = shell("cyclictest -q -m -p 90 -i 1000 -l 200 -h 50; cat /proc/uptime /proc/timer_list | grep -w now");
    let say = || run(&job).unwrap().stdout_text();
    let first = say();
    assert!(first.contains("nsecs") && first.contains("# Max Latencies"), "{first}");
    assert_eq!(first, say());
}

#[test]
#[ignore = "needs the lab"]
fn two_boots_are_the_same_to_the_nanosecond() {
    // The kernel draws the layout of the address space at random.
    let job = shell("cat /proc/self/maps /proc/sys/kernel/random/uuid; cat /proc/timer_list | grep -w now");
    let boot = || lab().resuming(false).run(&job, &mut Quiet, &mut |_| {}).unwrap().stdout_text();
    let (first, second) = (boot(), boot());
    assert!(first.contains("[stack]") && first.contains("nsecs"), "{first}");
    assert_eq!(first, second);
}

#[test]
#[ignore = "needs the lab"]
fn paths_are_recorded_and_the_run_stays_the_same() {
    let mut job = shell("cyclictest -q -m -p 90 -i 1000 -l 50 -h 50; cat /proc/timer_list | grep -w now");
    let unwatched = run(&job).unwrap();
    assert!(unwatched.paths.is_empty());

    let kernel = lab().build_kernel(Flavor::Patched, &mut Quiet).unwrap();
    let symbols = Symbols::read(&kernel.system_map).unwrap();
    let address = |name: &str| symbols.address(name).unwrap_or_else(|| panic!("no {name}"));
    let (entry, through) = (address("entry_SYSCALL_64"), address("__x64_sys_clock_nanosleep"));
    job.paths = Some(PathRequest { entry, through, skip: 2, count: 5 });
    let watched = run(&job).unwrap();
    assert_eq!(watched.stdout_text(), unwatched.stdout_text());
    assert_eq!(watched.paths.len(), 5);
    for path in &watched.paths {
        assert_eq!(path[0], entry);
        assert!(path.contains(&through));
        // It went to sleep, and the timer woke it up.
        for function in ["__schedule", "hrtimer_interrupt", "__switch_to_asm"] {
            assert!(path.contains(&address(function)), "no {function}");
        }
    }
}

#[test]
#[ignore = "needs the lab"]
fn a_resumed_machine_runs_as_a_booted_one() {
    let job = shell("cyclictest -q -m -p 90 -i 1000 -l 100 -h 50");
    let latencies = |resuming| {
        let outcome = lab().resuming(resuming).run(&job, &mut Quiet, &mut |_| {}).unwrap();
        let text = outcome.stdout_text();
        text.lines().find(|line| line.starts_with("# Max Latencies")).expect("cyclictest reports").to_owned()
    };
    assert_eq!(latencies(false), latencies(true));
}

/// QEMU's main loop must not look at the clock of a virtual CPU that has halted and not counted its last instructions.
/// Without `turns.c`, nearly every one of these runs differs.
#[test]
#[ignore = "needs the lab"]
fn a_slow_host_changes_no_time() {
    let library = std::env::temp_dir().join(format!("macrotick-slow-halt-{}.so", std::process::id()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slow_halt.c");
    let built = Command::new("gcc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).status().unwrap();
    assert!(built.success());
    let script = "cyclictest -q -m -p 90 -i 200 -l 3000 -h 50; cat /proc/timer_list | grep -w now";
    let say = |slow: bool| {
        let mut lab = Command::new(env!("CARGO_BIN_EXE_macrotick-lab"));
        lab.args(["run", "patched", "/bin/sh", "-c", script]);
        if slow {
            lab.env("LD_PRELOAD", &library);
        }
        String::from_utf8(lab.output().unwrap().stdout).unwrap()
    };
    let usual = say(false);
    assert!(usual.contains("nsecs") && usual.contains("# Max Latencies"), "{usual}");
    for _ in 0..3 {
        assert_eq!(say(true), usual);
    }
    std::fs::remove_file(&library).unwrap();
}

#[test]
#[ignore = "needs the lab"]
fn several_cpus_are_online() {
    let mut job = shell("nproc");
    job.cpus = 3;
    job.shift = 2;
    assert_eq!(run(&job).unwrap().stdout_text(), "3\n");
}

#[test]
#[ignore = "needs the lab"]
fn progress_arrives_before_the_end() {
    let mut job = shell("for i in 1 2 3; do macrotick live step-$i; done");
    job.live = true;
    let mut lines = Vec::new();
    let outcome = lab().run(&job, &mut Quiet, &mut |line| lines.push(line.to_owned())).unwrap();
    assert!(outcome.status.success());
    assert_eq!(lines, ["step-1", "step-2", "step-3"]);
}

/// Records the progress reports.
#[derive(Default)]
struct Notes {
    titles: Vec<String>,
    ticks: u32,
    ended: usize,
}

impl Progress for Notes {
    fn begin(&mut self, what: &str) {
        self.titles.push(what.to_owned());
    }
    fn advance(&mut self, _done: u64, _total: u64) {}
    fn tick(&mut self) {
        self.ticks += 1;
    }
    fn end(&mut self) {
        self.ended += 1;
    }
}

#[test]
#[ignore = "needs the lab"]
fn a_run_with_a_title_is_told_while_it_goes_on() {
    let mut job = shell("sleep 1");
    run(&job).unwrap(); // builds and boots first, which is reported, too
    job.title = Some("sleep".into());
    let mut notes = Notes::default();
    lab().run(&job, &mut notes, &mut |_| {}).unwrap();
    assert_eq!((notes.titles, notes.ended), (vec!["sleep".to_owned()], 1));
    assert!(notes.ticks > 0);
}

#[test]
#[ignore = "needs the lab"]
fn a_panic_is_told_with_its_line_and_the_console() {
    let error = run(&shell("echo c > /proc/sysrq-trigger")).unwrap_err();
    let LabError::Died { death: Death::Panic(line), tail, dir } = &error else { panic!("{error}") };
    assert!(line.contains("sysrq triggered crash"), "{line}");
    assert!(tail.contains("Call Trace"), "{tail}");
    assert!(dir.join("console").exists());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
#[ignore = "needs the lab"]
fn a_guest_that_leaves_early_is_no_success() {
    let error = run(&shell("echo b > /proc/sysrq-trigger; sleep 1")).unwrap_err();
    let LabError::Died { death: Death::Silent, dir, .. } = &error else { panic!("{error}") };
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
#[ignore = "needs the lab"]
fn a_guest_beyond_its_wall_limit_is_stopped() {
    let mut job = shell("while :; do :; done");
    job.wall_limit = Duration::from_secs(5);
    let error = run(&job).unwrap_err();
    let LabError::WallLimit { dir, .. } = &error else { panic!("{error}") };
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
#[ignore = "needs the lab"]
fn a_program_that_does_not_exist_is_named() {
    let error = run(&GuestJob::new(Flavor::Patched, ["/no/such/program"])).unwrap_err();
    assert!(matches!(&error, LabError::Agent(text) if text.contains("/no/such/program")), "{error}");
}

#[test]
#[ignore = "needs the lab"]
fn a_complaint_on_the_console_fails_a_job_that_succeeded() {
    let complain = "echo 'WARNING: CPU: 0 PID: 1 at made/up.c:1' > /dev/kmsg; sleep 1";
    let error = run(&shell(&format!("dmesg -n 8; {complain}"))).unwrap_err();
    let LabError::Console { findings, dir } = &error else { panic!("{error}") };
    assert_eq!(findings[0].kind, Complaint::Warning);
    std::fs::remove_dir_all(dir).unwrap();

    let mut allowed = shell(&format!("dmesg -n 8; {complain}"));
    allowed.allow_complaints = true;
    assert_eq!(run(&allowed).unwrap().complaints.len(), 1);
}

/// Three namespaces with a card each send pings around, and the guest has one CPU and four queues per card.
#[test]
#[ignore = "needs the lab and the kernel net"]
fn full_cards_on_one_hub_reach_each_other_and_two_runs_are_the_same() {
    const SCRIPT: &str = r#"set -e
        for n in 0 1 2; do
            /sbin/ip netns add n$n; /sbin/ip link set eth$n netns n$n
            /sbin/ip -n n$n addr add 10.0.0.$((n + 1))/24 dev eth$n; /sbin/ip -n n$n link set eth$n up
        done
        sleep 5
        for from in 0 1 2; do
            for to in 0 1 2; do [ $from = $to ] || /sbin/ip netns exec n$from ping -c 3 10.0.0.$((to + 1)); done
        done
        /sbin/ip netns exec n0 ping -q -i 0.001 -s 1400 -c 300 10.0.0.2
        for n in 0 1 2; do /sbin/ip netns exec n$n ls /sys/class/net/eth$n/queues; done
        nproc; grep -w now /proc/timer_list"#;
    for model in NicModel::ALL {
        let mut job = GuestJob::new(Flavor::Net, ["/bin/sh", "-c", SCRIPT]);
        job.nics = Some(Nics { model, count: 3, queues: 4 });
        if !model.is_there().unwrap() {
            let refused = run(&job).unwrap_err();
            assert!(matches!(refused, LabError::NoNic { model: name } if name == model.name()), "{refused}");
            println!("skipped: the installed QEMU has no {}", model.name());
            continue;
        }
        let say = || {
            let outcome = run(&job).unwrap();
            assert!(outcome.status.success(), "{}{}", outcome.stdout_text(), outcome.stderr_text());
            outcome.stdout_text()
        };
        // Frames that depended on the host's clock once came in the first second after a resume.
        let text = say();
        (0..3).for_each(|_| assert_eq!(text, say()));
        let count = |part: &str| text.matches(part).count();
        assert_eq!((count(" 0% packet loss"), count("tx-3\n")), (7, 3), "{text}");
        assert!(text.contains("\n1\n") && text.contains("nsecs"), "{text}");
    }
}
