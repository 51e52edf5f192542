//! `macrotick admit` and the values that a description leaves open, as a user sees them. No kernel of ours is needed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SYSTEM: &str = "system: plant
cpus: [0, 1]
tasks:
  - {name: control, period: 10ms, wcet: 1ms, cpu: 0}
groups:
  - name: vision
    criticality: 3
    cpus: [0]
    tasks:
      - {name: filter, period: 20ms, wcet: 900us}
      - {name: watch, period: 40ms, wcet: 100us}
  - {name: guests, criticality: 1, budget: 750us}
";
const CONTAINER: &str = "container: logger
criticality: 2
cpus: [1]
tasks:
  - {name: sample, period: 10ms, wcet: 150us, deadline: 8ms}
";

/// Makes a folder for one test, below the target folder, with files in it.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(path.join(name), text).unwrap());
    path
}

/// Returns exit status, output and errors.
fn macrotick(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_macrotick")).args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn admit(folder: &Path, containers: &[&str]) -> (Option<i32>, String, String) {
    macrotick(folder, &[&["admit", "--system", "s.yaml"], containers].concat())
}

/// Returns the output without the time that the call took.
fn timeless(output: &str) -> &str {
    let (answer, time) = output.split_once("\nanswered in ").unwrap_or_else(|| panic!("no time in {output}"));
    assert!(time.ends_with(" us\n"), "{time}");
    answer
}

#[test]
fn a_container_that_fits_is_told_its_place() {
    let folder = folder("admit-fits", &[("s.yaml", SYSTEM), ("c.yaml", CONTAINER)]);
    let (code, output, errors) = admit(&folder, &["c.yaml"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    // 150 us in three budgets: 2450 us at most until the first, and 2500 us at most for each of the other two.
    assert_eq!(
        timeless(&output),
        "system `plant`: 2 CPUs, 1 window in 10ms, 2 groups with budgets of 2500us

logger: admitted on CPU 1, budget 50us of every 2500us, priority 50
  task sample: priority 1, response 7500us (exact), deadline 8ms
  as a group of the system:
  - name: logger
    budget: 50us
    criticality: 2
    cpus: [1]
    serve-fifo: true
    tasks:
      - {name: sample, period: 10ms, wcet: 150us, deadline: 8ms, release-jitter: 0ns, priority: 1, cpu: 1}
"
    );
}

/// A slot of a container needs a class of its own, room among the slots and frames, and gates that keep all rules.
#[test]
fn slots_are_admitted_by_their_sum_and_by_the_gates() {
    let system = format!(
        "{SYSTEM}network:
  classes: [{{name: vision, priority: 6}}, {{name: logger, priority: 5}}, {{name: rest}}]
  interfaces: [{{name: wire, device: eth1, speed: 100Mb/s, gates: planned}}]
  slots: [{{group: vision, period: 5ms, length: 1ms, offset: 1ms}}]
"
    );
    let asked = |slots: &str| format!("{CONTAINER}slots: [{slots}]\n");
    let fits = asked("{period: 5ms, length: 2ms}");
    let folder = folder("admit-slots", &[("s.yaml", &system), ("c.yaml", &fits)]);
    let (code, output, errors) = admit(&folder, &["c.yaml"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{output}");
    assert!(output.contains("  slot on wire: 2ms of every 5ms from 2ms on, for class `logger`\n"), "{output}");
    let added =
        "  with these slots of its network:\n  - group: logger\n    class: logger\n    period: 5ms\n    length: 2ms\n";
    assert!(output.contains(added), "{output}");
    let refused = |system: &str, slots: &str| {
        std::fs::write(folder.join("s.yaml"), system).unwrap();
        std::fs::write(folder.join("c.yaml"), asked(slots)).unwrap();
        let (code, output, errors) = admit(&folder, &["c.yaml"]);
        assert_eq!((code, errors.as_str()), (Some(1), ""), "{output}");
        output
    };
    let output = refused(&system, "{period: 5ms, length: 4500us}");
    assert!(
        output.contains("the slots of interface `wire` need 5500us of every 5ms: `vision` 1ms of 5ms, `logger`"),
        "{output}"
    );
    // Their sum is small enough, but no place is free for so long.
    let output = refused(&system, "{period: 2500us, length: 1600us}");
    assert!(
        output.contains("the slots of group `logger` on interface `wire`, 1600us of every 2500us, fit at no offset"),
        "{output}"
    );
    let output = refused(&system, "{period: 5ms, length: 1ms, class: vision}");
    assert!(output.contains("have slots for the same class `vision` on interface `wire`"), "{output}");
    let output = refused(SYSTEM, "{period: 5ms, length: 1ms}");
    assert!(output.contains("the system has no `network`: there is no interface for its slots"), "{output}");
    // A plan has fixed gates.
    std::fs::write(folder.join("s.yaml"), &system).unwrap();
    assert_eq!(macrotick(&folder, &["plan", "s.yaml", "--output", "plan.json"]).0, Some(0));
    let (code, _, errors) = macrotick(&folder, &["admit", "--system", "plan.json", "c.yaml"]);
    assert!(code == Some(2) && errors.contains("slots need new gates, and so the description"), "{errors}");
}

/// The lead is added to the container's tasks, and to the group that the container becomes.
#[test]
fn a_lead_is_part_of_what_a_container_needs() {
    let led = CONTAINER.replace("cpus: [1]\n", "cpus: [1]\nlead: 30us\n");
    let folder = folder("admit-lead", &[("s.yaml", SYSTEM), ("c.yaml", &led)]);
    let (code, output, errors) = admit(&folder, &["c.yaml"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    // 180 in three budgets.
    assert!(output.contains("logger: admitted on CPU 1, budget 60us of every 2500us, priority 50\n"), "{output}");
    assert!(output.contains("    serve-fifo: true\n    lead: 30us\n    tasks:\n"), "{output}");
    assert!(output.contains("{name: sample, period: 10ms, wcet: 150us,"), "{output}");
}

/// The printed group gives the same answer in the description, with the values that were found for the other groups.
#[test]
fn what_is_printed_can_be_written_into_the_description() {
    let folder = folder("admit-written", &[("s.yaml", SYSTEM), ("c.yaml", CONTAINER)]);
    let written = |system: &str, base: &str| {
        let (_, output, errors) = macrotick(&folder, &["admit", "--system", base, "c.yaml"]);
        let (answer, group) = timeless(&output).split_once("  as a group of the system:\n").unwrap_or_else(|| {
            panic!("{output}{errors}");
        });
        std::fs::write(folder.join("w.yaml"), format!("{system}{group}")).unwrap();
        let (code, output, errors) = macrotick(&folder, &["check", "w.yaml"]);
        assert_eq!(code, Some(0), "{output}{errors}");
        let (_, task) = answer.split_once("  task ").unwrap();
        assert!(output.contains(&format!(": task {task}")), "{answer}\n{output}");
    };
    // Priorities follow from criticality.
    written(SYSTEM, "s.yaml");
    // The priorities are given; a plan has them, too.
    assert_eq!(macrotick(&folder, &["plan", "s.yaml", "-o", "p.json"]).0, Some(0));
    let found = SYSTEM
        .replace("    criticality: 3\n", "    criticality: 3\n    priority: 66\n")
        .replace("criticality: 1,", "criticality: 1, priority: 33,");
    written(&found, "p.json");
    std::fs::write(folder.join("s.yaml"), &found).unwrap();
    written(&found, "s.yaml");
    // With the first group, starts also keep a distance from refills: the windows differ from those without a group.
    let moved = "system: s\ncpus: [0, 1, 2]\nmacrotick: 250us\ntasks:\n  \
                 - {name: t0, period: 20ms, wcet: 4500us, deadline: 5603us}\n  \
                 - {name: t1, period: 2ms, wcet: 477us, offset: 0us}\n  \
                 - {name: t2, period: 4ms, wcet: 897us, deadline: 3400us}\n  \
                 - {name: t3, period: 4ms, wcet: 1323us}\n  \
                 - {name: t4, period: 10ms, wcet: 1688us, deadline: 9277us, offset: 9750us}\n  \
                 - {name: t5, period: 4ms, wcet: 1477us}\n";
    let container = "container: cx\ncriticality: 0\ntasks:\n  - {name: t0, period: 100ms, wcet: 995us}\n";
    std::fs::write(folder.join("s.yaml"), moved).unwrap();
    std::fs::write(folder.join("c.yaml"), container).unwrap();
    written(&format!("{moved}groups:\n"), "s.yaml");
}

/// A description without a group.
const BARE: &str = "system: bare\ncpus: [0, 1]\ntasks:\n  - {name: control, period: 10ms, wcet: 300us, cpu: 0}\n";

/// There are 99 priorities: if there are more tasks, several share the lowest.
#[test]
fn more_tasks_than_priorities_are_given_those_that_there_are() {
    let task = |task| format!("  - {{name: s{task}, period: {}ms, wcet: 50us}}\n", 1000 + 7 * task);
    let tasks: String = (0..120).map(task).collect();
    let container = format!("container: many\ncriticality: 9\ntasks:\n{tasks}");
    let group = format!("{BARE}groups:\n- name: many\n  criticality: 9\n  cpus: [0]\n  tasks:\n{tasks}");
    let folder = folder("admit-many", &[("s.yaml", BARE), ("c.yaml", &container), ("g.yaml", &group)]);
    let (code, output, errors) = admit(&folder, &["c.yaml"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{output}");
    let (_, printed) = timeless(&output).split_once("as a group of the system:\n").unwrap();
    let described = printed.lines().filter(|line| line.contains("- {name: s"));
    let priority = |line: &str| line.split_once("priority: ")?.1.split(',').next()?.parse().ok();
    let priorities: Vec<u32> = described.filter_map(priority).collect();
    let lowest = priorities.iter().filter(|priority| **priority == 1).count();
    assert_eq!((priorities.len(), priorities.iter().max(), lowest), (120, Some(&99), 22), "{printed}");
    std::fs::write(folder.join("w.yaml"), format!("{BARE}groups:\n{printed}")).unwrap();
    for (verb, file) in [("check", "w.yaml"), ("plan", "g.yaml"), ("check", "g.yaml")] {
        let (code, output, errors) = macrotick(&folder, &[verb, file]);
        assert_eq!(code, Some(0), "{verb} {file}: {output}{errors}");
    }
}

#[test]
fn a_shorter_server_period_is_proposed_for_a_container() {
    let container = "container: ecat\ncriticality: 9\ncpus: [0]\ntasks:\n  - {name: loop, period: 1ms, wcet: 150us}\n";
    let folder = folder("admit-period", &[("s.yaml", BARE), ("c.yaml", container)]);
    let (code, output, errors) = admit(&folder, &["c.yaml"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{output}");
    let remark = "  remark: group `ecat` needs 78 % of CPU 0 with a server period of 2500us for a load of 15 %: \
                  `server-period: 500us` needs 26 % instead\n";
    assert!(output.contains(remark), "{output}");
}

#[test]
fn a_refusal_has_its_numbers() {
    let slow = CONTAINER.replace("wcet: 150us", "wcet: 5ms");
    let large = "container: large\ncriticality: 2\nbudget: 2ms\n";
    let folder = folder("admit-refused", &[("s.yaml", SYSTEM), ("c.yaml", &slow), ("large.yaml", large)]);
    let (code, output, errors) = admit(&folder, &["c.yaml", "large.yaml"]);
    assert_eq!((code, errors.as_str()), (Some(1), ""));
    let (_, answers) = timeless(&output).split_once("\n\n").unwrap();
    assert_eq!(
        answers,
        "logger: refused
  CPU 1: task `sample` of group `logger` is late by 508us with a budget of 1623us, its deadline is 8ms

large: refused
  CPU 0: windows of 1ms per 10ms, budgets of 126us (`vision`) + 2ms (`large`) + 750us (`guests`) per 2500us and a reserve of \
         5.0 % are too much: budgets must sum up to 755us less
  CPU 1: budgets of 2ms (`large`) + 750us (`guests`) per 2500us and a reserve of 5.0 % are too \
         much: budgets must sum up to 377us less
"
    );
}

/// There is time enough for all tasks, but not at once, and groups come first.
#[test]
fn a_container_leaves_tasks_of_sched_deadline_in_time() {
    let camera =
        "  - {name: camera, period: 100ms, wcet: 1ms, deadline: 5ms, supply: {deadline: {runtime: 2ms, cpus: [1]}}}\n";
    let system =
        SYSTEM.replace("groups:\n", &format!("{camera}groups:\n")).replace("budget: 750us", "budget: 750us, cpus: [1]");
    let with = |budget| format!("container: large\ncriticality: 2\nbudget: {budget}\ncpus: [1]\n");
    let files = [("s.yaml", system.as_str()), ("small.yaml", &with("100us")), ("large.yaml", &with("1ms"))];
    let folder = folder("admit-deadline", &files);
    let (code, output, errors) = admit(&folder, &["small.yaml"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{output}");
    let (code, output, errors) = admit(&folder, &["large.yaml"]);
    assert_eq!((code, errors.as_str()), (Some(1), ""), "{output}");
    let (_, answer) = timeless(&output).split_once("\n\n").unwrap();
    assert_eq!(
        answer,
        "large: refused
  CPU 1: SCHED_DEADLINE tasks `camera` behind windows and budgets of 1750us per 2500us: in 5ms the tasks may need 2ms, \
         and are sure to get 750us
"
    );
}

/// The second one does not fit beside the first.
#[test]
fn containers_are_answered_one_beside_the_other() {
    let half = |name: &str| format!("container: {name}\ncriticality: 2\ncpus: [1]\nbudget: 1200us\n");
    let (one, two) = (half("one"), half("two"));
    let folder = folder("admit-both", &[("s.yaml", SYSTEM), ("one.yaml", &one), ("two.yaml", &two)]);
    assert_eq!(admit(&folder, &["two.yaml"]).0, Some(0));
    let (code, output, _) = macrotick(&folder, &["admit", "--system", "s.yaml", "one.yaml", "two.yaml", "--json"]);
    assert_eq!(code, Some(1));
    let answers: serde_json::Value = serde_json::from_str(&output).unwrap();
    let (one, two) = (&answers["containers"][0], &answers["containers"][1]);
    assert_eq!((&one["name"], &one["answer"], &one["budget"]), (&"one".into(), &"admitted".into(), &"1200us".into()));
    assert_eq!((&two["answer"], &two["reasons"][0]["reason"]), (&"refused".into(), &"cpu-full".into()));
    assert!(two["reasons"][0]["text"].as_str().unwrap().contains("1200us (`one`)"), "{two}");
}

/// A more important container fits because the budget of a less important group grows.
#[test]
fn what_has_to_change_is_said() {
    let grows =
        SYSTEM.replace("    criticality: 3\n", "    criticality: 1\n    may-grow: true\n    budget: 300us\n").replace(
            "{name: filter, period: 20ms, wcet: 900us}",
            "{name: filter, period: 20ms, wcet: 900us, deadline: 8600us}",
        );
    let grows = grows.replace("criticality: 1, budget", "criticality: 0, budget");
    let urgent = "container: urgent\ncriticality: 5\ncpus: [0]\nbudget: 500us\n";
    let folder = folder("admit-changes", &[("s.yaml", &grows), ("c.yaml", urgent)]);
    let (code, output, errors) = admit(&folder, &["c.yaml"]);
    assert_eq!(code, Some(0), "{output}{errors}");
    assert!(output.contains("before it starts:\n    group vision: budget on CPU 0 from 300us to 434us\n"), "{output}");
}

#[test]
fn wrong_input_is_told_at_its_place() {
    let folder = folder("admit-wrong", &[("s.yaml", SYSTEM)]);
    let expect = |container: String, expected: &str| {
        std::fs::write(folder.join("c.yaml"), container).unwrap();
        let (code, output, errors) = admit(&folder, &["c.yaml"]);
        assert_eq!((code, output.as_str(), errors.as_str()), (Some(2), "", expected));
    };
    expect(
        CONTAINER.replace("[1]", "[7]"),
        "error: container `logger`: there is no CPU 7
 --> c.yaml:3:7
  |
3 | cpus: [7]
  |       ^

1 error in c.yaml
",
    );
    expect(
        CONTAINER.replace("deadline: 8ms", "at-refills: true, period: 3ms").replace("period: 10ms, ", ""),
        "error: task `sample` of `logger` arrives at refills: period 3ms is no multiple of the server period of 2500us
 --> c.yaml:5:59
  |
5 |   - {name: sample, wcet: 150us, at-refills: true, period: 3ms}
  |                                                           ^^^

1 error in c.yaml
",
    );
    expect(
        CONTAINER.replace("logger", "guests"),
        "error: there are two groups `guests`
 --> c.yaml:1:12
  |
1 | container: guests
  |            ^^^^^^
  = hint: the host has a group of that name: give it another one

1 error in c.yaml
",
    );
    expect(
        CONTAINER.replace("logger", "control"),
        "error: duplicate name `control`: another task, group or process has this name
 --> c.yaml:1:12
  |
1 | container: control
  |            ^^^^^^^
  = hint: give it another one

1 error in c.yaml
",
    );
    expect(
        CONTAINER.replace("cpus: [1]", "priority: 7"),
        "error: the priorities of the system's groups follow from their criticality
 --> c.yaml:3:11
  |
3 | priority: 7
  |           ^
  = hint: leave it out: it follows from `criticality`

1 error in c.yaml
",
    );
}

/// On a kernel without budgets, the error states the alternative. The build machine may have budgets: then there is an
/// answer.
#[test]
fn a_host_without_budgets_is_named_as_the_reason() {
    let folder = folder("admit-here", &[("c.yaml", CONTAINER)]);
    let (code, _, errors) = macrotick(&folder, &["admit", "c.yaml"]);
    if !Path::new("/proc/sys/kernel/sched_ds_period_us").exists() {
        assert_eq!(code, Some(3));
        assert!(errors.starts_with("error: this kernel has no groups with a budget"), "{errors}");
        assert!(errors.contains("`macrotick admit --system FILE`"), "{errors}");
    }
}

#[test]
fn what_a_description_leaves_open_is_found_shown_and_kept_in_the_plan() {
    let folder = folder("open-found", &[("s.yaml", SYSTEM)]);
    let (code, output, errors) = macrotick(&folder, &["plan", "s.yaml", "-o", "p.json"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(
        output.contains(
            "\ngroup vision: priority 66, 126us of 2500us on CPU 0
  priority  2  900us of 20ms  filter
  priority  1  100us of 40ms  watch
group guests: priority 33, 750us of 2500us on CPU 0, 1
"
        ),
        "{output}"
    );
    // The check of the plan and that of the description give the same result.
    let of_plan = macrotick(&folder, &["check", "p.json"]);
    assert_eq!(of_plan, macrotick(&folder, &["check", "s.yaml"]));
    assert!(of_plan.1.contains("group vision: priority 66, budget 126us on CPU 0, guaranteed 126us"), "{}", of_plan.1);
    let plan = std::fs::read_to_string(folder.join("p.json")).unwrap();
    std::fs::write(folder.join("less.json"), plan.replace("\"126us\"", "\"125us\"")).unwrap();
    let (code, output, _) = macrotick(&folder, &["check", "less.json"]);
    assert!(code == Some(1) && output.contains("of group `vision` is late by"), "{output}");
}

#[test]
fn what_cannot_be_found_is_told_at_its_place() {
    let late = SYSTEM.replace("wcet: 900us}", "wcet: 900us, deadline: 1ms}");
    let folder = folder("open-refused", &[("s.yaml", &late)]);
    for verb in ["plan", "check"] {
        let (code, _, errors) = macrotick(&folder, &[verb, "s.yaml"]);
        assert_eq!(code, Some(1), "{errors}");
        assert_eq!(
            errors,
            "error: no budget is enough for group `vision`: CPU 0: task `filter` of group `vision` is late by 1279us with a \
             budget of 2121us, its deadline is 1ms
  --> s.yaml:10:16
   |
10 |       - {name: filter, period: 20ms, wcet: 900us, deadline: 1ms}
   |                ^^^^^^

1 error in s.yaml
"
        );
    }
}

/// The example's comment states its purpose.
#[test]
fn the_example_fits_beside_the_other_one() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments = ["admit", "--system", "examples/groups.yaml", "examples/container.yaml"];
    let (code, output, errors) = macrotick(&repository, &arguments);
    assert_eq!(code, Some(0), "{output}{errors}");
    assert!(output.contains("\nlogger: admitted on CPU 0, "), "{output}");
}
