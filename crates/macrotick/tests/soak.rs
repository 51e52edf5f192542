//! A soak in the lab: counted, killed, continued after a power cut, refused.
//!
//! The tests run shell scripts in the guest (`told`). A background process of a script ignores SIGINT, so that SIGTERM ends
//! a soak here.

mod told;

use serde_json::Value;
use told::{folder, Told};

/// The functions of all scripts. `soak` starts one in the background, and returns when it runs.
const SHELL: &str = r#"
soak() { # NAME OPTIONS
    macrotick soak run /tmp/$1.yaml --state /tmp/state $2 > /tmp/log 2>&1 &
    soak=$!
    until grep -q ' run from ' /tmp/log; do
        kill -0 $soak 2> /dev/null || { cat /tmp/log; return 1; }
        sleep 0.02
    done
}
"#;

/// Runs a script in the lab, with more options of `lab exec`.
fn run(options: &[&str], script: &str) -> Told {
    told::run(options, SHELL, script)
}

/// Returns the counts of a task.
fn task<'c>(counts: &'c Value, name: &str) -> &'c Value {
    let all = counts["tasks"].as_array().unwrap_or_else(|| panic!("no tasks in {counts}"));
    all.iter().find(|task| task["name"] == name).unwrap_or_else(|| panic!("no {name} in {counts}"))
}

fn count(counts: &Value, what: &str) -> u64 {
    counts[what].as_u64().unwrap_or_else(|| panic!("no {what} in {counts}"))
}

const CUT: &str = r#"
plan s 'tasks:\n  - {name: a, period: 1ms, wcet: 100us, run: {spin: 20us}}\n  - {name: b, period: 5ms, wcet: 500us, run: {spin: 300us}}\n'
soak s '--save-every 1s'
sleep 3.5
section running
macrotick soak report /tmp/state
section status
macrotick status --json
section metrics
macrotick export metrics
section change
macrotick apply /tmp/s.yaml 2>&1
echo "exit $?"
section second
macrotick soak run /tmp/s.yaml --state /tmp/state 2>&1
echo "exit $?"
kill -9 $soak
sleep 2
section cut
macrotick soak report /tmp/state --json
soak s '--duration 8s'
wait $soak
section end
tail -n 1 /tmp/log
section whole
macrotick soak report /tmp/state --json
section again
macrotick soak run /tmp/s.yaml --state /tmp/state --duration 8s
echo "exit $?"
section left
macrotick status
"#;

/// A killed supervisor is what a power cut leaves of the program: nothing that it does afterwards.
#[test]
#[ignore = "needs the lab"]
fn a_soak_goes_on_where_it_was_killed() {
    let told = run(&[], CUT);
    assert!(told.section("running").starts_with("soak       s, runs\n"), "{}", told.all);
    assert!(told.section("running").contains("\nno miss in "), "{}", told.all);
    // The lateness that the tasks tell in the memory that they share with the supervisor.
    let status = told.json("status");
    for entity in status["table"]["entities"].as_array().unwrap() {
        let lateness = ["latest_ns", "worst_ns"].map(|key| entity["lateness"][key].as_i64().unwrap_or(-1));
        assert!((1000..20_000).contains(&lateness[0]) && lateness[1] >= lateness[0], "{entity}");
        let name = entity["name"].as_str().unwrap();
        let metric = format!("macrotick_task_worst_lateness_seconds{{task=\"{name}\",cpu=\"0\"}} ");
        assert!(told.section("metrics").contains(&metric), "{}", told.all);
    }
    let refused = "a soak runs, and its counts are those of one plan: run `macrotick stop` first\nexit 3";
    assert!(told.section("change").contains(refused), "{}", told.all);
    assert!(told.section("second").contains("another soak counts in /tmp/state\nexit 3"), "{}", told.all);

    let cut = told.json("cut");
    let soaked = count(&cut, "soaked_ns");
    assert!((1_000_000_000..4_000_000_000).contains(&soaked) && cut["ended"].is_null(), "{cut}");
    assert_eq!(count(task(&cut, "a"), "activations"), soaked / 1_000_000, "{cut}");

    // The counts from before the cut are in the sum, and the cut took none of them.
    let whole = told.json("whole");
    assert_eq!(told.section("end"), "no miss in 9600 activations\n", "{}", told.all);
    for (name, jobs) in [("a", 8000), ("b", 1600)] {
        let task = task(&whole, name);
        assert_eq!(
            ["activations", "completed", "missed", "unrecorded", "strange"].map(|what| count(task, what)),
            [jobs, jobs, 0, 0, 0]
        );
        let in_histogram =
            |values: &Value| -> u64 { values.as_array().unwrap().iter().map(|pair| pair[1].as_u64().unwrap()).sum() };
        assert_eq!([in_histogram(&task["lateness"]), in_histogram(&task["response"])], [jobs, jobs]);
        let worst = task["worst_lateness"]["ns"].as_i64().unwrap();
        assert!((1000..20_000).contains(&worst), "{worst} ns late");
    }
    let pauses = &whole["pauses"];
    assert_eq!((count(pauses, "count"), count(pauses, "cuts")), (1, 1));
    let down = count(pauses, "down_ns");
    assert!((2_000_000_000..6_000_000_000).contains(&down), "{down} ns down");
    assert_eq!(whole["ended"], "the time is over");
    // Its time is over: it reports and deploys nothing.
    assert!(told.section("again").ends_with("no miss in 9600 activations\nexit 0\n"), "{}", told.all);
    assert!(told.section("left").contains("table      none"), "{}", told.all);
}

const BOOT: &str = r#"
plan s 'tasks:\n  - {name: a, period: 1ms, wcet: 100us, run: {spin: 20us}}\n'
soak s '--save-every 1s'
sleep 2.5
section counts
cat /tmp/state/counts.json
section plan
cat /tmp/state/plan.json
section cut
# The machine ends here, and the soak with it.
"#;

const AFTER: &str = r#"
plan s 'tasks:\n  - {name: a, period: 1ms, wcet: 100us, run: {spin: 20us}}\n'
cp -r "$disk" /tmp/state
soak s '--duration 4s'
wait $soak
section whole
macrotick soak report /tmp/state --json
section text
macrotick soak report /tmp/state
"#;

/// Two boots of a machine: the second one has the files that the first one had on its disk when it ended.
#[test]
#[ignore = "needs the lab"]
fn a_soak_goes_on_after_the_machine_was_reset() {
    let first = run(&[], BOOT);
    let before = first.json("counts");
    assert!(count(task(&before, "a"), "activations") >= 1000, "{}", first.all);
    let disk = folder("soak-disk");
    std::fs::write(disk.join("counts.json"), first.section("counts")).unwrap();
    // A cut in the middle of a save leaves such a file.
    std::fs::write(disk.join("counts.json.partial"), "{\"version\"").unwrap();
    std::fs::write(disk.join("plan.json"), first.section("plan")).unwrap();
    let path = disk.to_str().unwrap();
    let second = run(&["--file", path], &format!("disk={path}\n{AFTER}"));
    let whole = second.json("whole");
    let task = task(&whole, "a");
    assert_eq!([count(task, "activations"), count(task, "missed")], [4000, 0], "{}", second.all);
    assert_eq!(whole["began_unix_ns"], before["began_unix_ns"]);
    // The clock of this machine restarts at each boot.
    assert_eq!([count(&whole["pauses"], "cuts"), count(&whole["pauses"], "unknown")], [1, 1]);
    assert!(second.section("text").contains("the clock went back to 2026-01-01T"), "{}", second.all);
}

const BAD: &str = r#"
plan m 'server-period: 10ms\ntasks:\n  - {name: dies, period: 20ms, wcet: 1ms, on-miss: restart, run: {spin: {uniform: {min: 100us, max: 1200us}}}}\n  - {name: keeps, period: 20ms, wcet: 1ms, run: {spin: 100us}}\ngroups:\n  - {name: web, budget: 1ms, priority: 5, serve-fifo: true, cpus: [0], run: [{name: hog, hog: {}, fifo: 50}]}\n'
soak m '--save-every 1s'
sleep 4
kill -TERM $soak
wait $soak
code=$?
section ended
echo "exit $code"
cat /tmp/log
section counts
macrotick soak report /tmp/state --json
section left
macrotick status
"#;

#[test]
#[ignore = "needs the lab"]
fn misses_restarts_and_used_up_budgets_are_counted() {
    let told = run(&[], BAD);
    let ended = told.section("ended");
    assert!(ended.starts_with("exit 1\n") && ended.contains("ended: SIGTERM"), "{}", told.all);
    let counts = told.json("counts");
    let (dies, keeps) = (task(&counts, "dies"), task(&counts, "keeps"));
    // About one job in six does not end. The kernel and the records agree.
    let (missed, restarted) = (count(dies, "missed"), count(dies, "restarted"));
    assert!(missed >= 15 && count(dies, "kernel_missed").abs_diff(missed) <= 1, "{}", told.all);
    assert!(restarted >= 15 && dies["missed_unix_ns"].is_i64(), "{}", told.all);
    assert!(count(dies, "activations") >= 150 && count(dies, "strange") == 0, "{}", told.all);
    assert_eq!([count(keeps, "missed"), count(keeps, "unrecorded")], [0, 0], "{}", told.all);
    assert_eq!(count(keeps, "activations"), count(keeps, "completed"));
    assert!(count(&counts["groups"][0], "exhaustions") > 100, "{}", told.all);
    assert!(told.section("left").contains("table      none"), "{}", told.all);
}

const FULL: &str = r#"
plan s 'tasks:\n  - {name: a, period: 1ms, wcet: 100us, run: {spin: 20us}}\n'
plan t 'tasks:\n  - {name: a, period: 2ms, wcet: 100us, run: {spin: 20us}}\n'
mkdir /tmp/state
mount -t tmpfs -o size=256k tmpfs /tmp/state
soak s '--save-every 1s'
sleep 3.2
dd if=/dev/zero of=/tmp/state/filler bs=1k 2> /dev/null
sleep 2
kill -TERM $soak
wait $soak
code=$?
section full
echo "exit $code"
cat /tmp/log
section saved
macrotick soak report /tmp/state --json
rm /tmp/state/filler
soak s '--duration 3s'
wait $soak
section freed
macrotick soak report /tmp/state --json
refuse() {
    section $1
    macrotick soak run /tmp/$2.yaml --state $3 2>&1
    echo "exit $?"
}
refuse other t /tmp/state
refuse foreign s /etc
printf '{' > /tmp/state/counts.json
refuse damaged s /tmp/state
section nothing
macrotick soak report /tmp 2>&1
echo "exit $?"
"#;

#[test]
#[ignore = "needs the lab"]
fn a_disk_without_room_and_foreign_files_are_told_and_lose_no_count() {
    let told = run(&[], FULL);
    let full = told.section("full");
    let reason = "cannot write /tmp/state/counts.json: No space left on device (os error 28)";
    assert!(full.starts_with("exit 3\n"), "{}", told.all);
    assert!(full.contains(&format!("{reason}; the counts stay in memory until a later save\n")), "{}", told.all);
    // The counts that could not be saved are on the terminal, before the error.
    let report = full.find("no miss in ").unwrap_or_else(|| panic!("{}", told.all));
    assert!(full.ends_with(&format!("error: {reason}\n")) && full[report..].contains("error: "), "{}", told.all);
    let (saved, freed) = (told.json("saved"), told.json("freed"));
    assert!(count(task(&saved, "a"), "activations") >= 1000, "{}", told.all);
    assert_eq!(count(task(&freed, "a"), "activations"), 3000, "{}", told.all);
    for (name, reason) in [
        ("other", "error: /tmp/state has the counts of another system or plan"),
        ("foreign", "error: /etc is not the directory of a soak: it has `"),
        ("damaged", "error: cannot read the counts in /tmp/state/counts.json: EOF while parsing an object"),
        ("nothing", "error: there are no counts of a soak in /tmp\n"),
    ] {
        let text = told.section(name);
        assert!(text.contains(reason) && text.ends_with("exit 2\n"), "{name}: {text}");
    }
}

const LONG: &str = r#"
plan s 'tasks:\n  - {name: a, period: 100us, wcet: 14us, run: {spin: 2us}}\n  - {name: b, period: 100us, wcet: 14us, run: {spin: 2us}}\n  - {name: c, period: 100us, wcet: 14us, run: {spin: 2us}}\n  - {name: d, period: 100us, wcet: 14us, run: {spin: 2us}}\n  - {name: e, period: 100us, wcet: 14us, run: {spin: 2us}}\n'
soak s '--duration 201s --save-every 1s'
sleep 10
section early
macrotick soak report /tmp/state --json
wait $soak
code=$?
section end
echo "exit $code"
tail -n 1 /tmp/log
section late
macrotick soak report /tmp/state --json
"#;

#[test]
#[ignore = "needs the lab, takes long"]
fn full_ten_million_activations_without_a_miss_in_constant_memory() {
    let told = run(&["--wall-limit", "7200s"], LONG);
    assert_eq!(told.section("end"), "exit 0\nno miss in 10050000 activations\n", "{}", told.all);
    let (early, late) = (told.json("early"), told.json("late"));
    let memory = |counts: &Value, which: &str| count(&counts["memory"], which);
    let (before, most) = (memory(&early, "latest_kib"), memory(&late, "largest_kib"));
    assert!(before > 4096 && count(task(&early, "a"), "activations") >= 70_000, "{}", told.all);
    // A reading is in memory for a moment, and the histograms touch a page for each new range of values. One byte for
    // each job would be 9.5 MB.
    assert!(most <= before + 6144, "{before} KiB, then up to {most} KiB");
    // The document has a line for each distinct value of three digits, and not for each job.
    assert!(told.section("late").len() < 100_000, "{} bytes", told.section("late").len());
}
