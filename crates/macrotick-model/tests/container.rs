//! Containers that ask for admission.

use macrotick_fixtures::{refusals, us};
use macrotick_model::Container;

fn refusal(source: &str) -> String {
    Container::parse(source, "c.yaml").expect_err("a mistake").to_string()
}

#[test]
fn what_is_left_out_is_open() {
    let least = Container::parse("container: web\ncriticality: 2\nbudget: 50us\n", "c.yaml").unwrap();
    assert_eq!((&*least.name, least.criticality, least.budget), ("web", 2, Some(us(50))));
    assert_eq!((least.priority, least.lead, least.may_grow), (None, None, false));
    assert!(least.cpus.is_empty() && least.tasks.is_empty());
    let all = "container: web\ncriticality: 2\npriority: 9\ncpus: [3, 1]\nmay-grow: true\nlead: 30us\ntasks:\n  \
               - {name: t, period: 5ms, wcet: 1ms, deadline: 4ms, release-jitter: 1us, at-refills: true}\n";
    let all = Container::parse(all, "c.yaml").unwrap();
    assert_eq!((all.priority, &all.cpus[..], all.budget, all.may_grow), (Some(9), &[1, 3][..], None, true));
    assert_eq!((all.tasks[0].priority, all.tasks[0].at_refills), (None, true));
    assert_eq!(all.lead, Some(us(30)));
}

#[test]
fn slots_are_those_of_the_containers_group() {
    let text =
        "container: web\ncriticality: 2\nbudget: 50us\nslots:\n  - {period: 6ms, length: 1ms}\n  - {period: 3ms, \
                length: 20us, offset: 1ms, class: fast, interface: wire}\n";
    assert_eq!(refusals("container", &serde_yaml_ng::from_str(text).unwrap()), [""; 0]);
    let slots: Vec<_> = Container::parse(text, "c.yaml").unwrap().slots().collect();
    let names: Vec<_> = slots.iter().map(|slot| (&*slot.group, &*slot.class, slot.interface.as_deref())).collect();
    assert_eq!(names, [("web", "web", None), ("web", "fast", Some("wire"))]);
    assert_eq!((slots[0].offset, slots[1].offset), (None, Some(us(1000))));
    let told = refusal("container: web\ncriticality: 2\nbudget: 50us\nslots: [{period: 6ms}]\n");
    assert!(told.contains("has no `length`"), "{told}");
}

/// The reaction of the schema to a mistake.
enum Schema {
    /// The schema reports the mistake, too.
    Refuses,
    /// The schema accepts the document, for the reason in the string.
    Takes(&'static str),
}
use Schema::{Refuses, Takes};

/// The reason for mistakes in times, which are text to a schema.
const RANGE: &str = "a pattern cannot limit times, or require whole numbers of a unit";

#[test]
fn mistakes_are_told_at_their_place() {
    for (source, expected, schema) in [
        ("container: web\nbudget: 1ms\n", "the description of a container has no `criticality`", Refuses),
        ("criticality: 2\nbudget: 1ms\n", "the description of a container has no `container`", Refuses),
        (
            "container: web\ncriticality: 2\n",
            "has neither `budget` nor `tasks`: its budget is unknown",
            Takes("one of two keys is required"),
        ),
        ("container: web\ncriticality: 2\nbudget: 5us\n", "budget 5us is shorter than 10us", Takes(RANGE)),
        (
            "container: web\ncriticality: 2\nbudget: 10500ns\n",
            "budget 10500ns is not a whole number of microseconds",
            Takes(RANGE),
        ),
        ("container: web\ncriticality: 2\nbudget: 1ms\ncpus: [1, 0, 1]\n", "CPU 1 is listed twice", Refuses),
        (
            "container: web\ncriticality: 2\nbudget: 1ms\nlead: 2ms\n",
            "lead 2ms is out of range: 1us to 1ms",
            Takes(RANGE),
        ),
        ("container: web\ncriticality: 2\nbudget: 1ms\nlead: 0us\n", "lead 0ns is out of range: 1us to 1ms", Refuses),
        (
            "container: web\ncriticality: 2\nbudget: 1ms\nlead: 20500ns\n",
            "lead 20500ns is not a whole number of microseconds",
            Takes(RANGE),
        ),
        ("container: Web\ncriticality: 2\nbudget: 1ms\n", "the name `Web` contains 'W'", Refuses),
        (
            "container: web\ncriticality: 2\nbudget: 1ms\ncpu: 1\n",
            "unknown key `cpu` in the description of a container",
            Refuses,
        ),
        (
            "container: web\ncriticality: 2\ntasks: [{name: t, period: 5ms, wcet: 1ms, cpu: 1}]\n",
            "task `t` has a `cpu`, but all tasks run on the CPU of the container",
            Takes("tasks of containers have the schema of tasks of groups, with `cpu`"),
        ),
        (
            "container: web\ncriticality: 2\ntasks: [{name: t, period: 5ms, wcet: 1ms}, {name: t, period: 5ms, wcet: 1us}]\n",
            "duplicate name `t`: another task of the container has this name",
            Takes("all names must be different"),
        ),
        ("", "the description is empty", Refuses),
        ("- x\n", "the description of a container must be a mapping, this is a list", Refuses),
    ] {
        let told = refusal(source);
        assert!(told.contains(expected) && told.contains("c.yaml:"), "{source}: {told}");
        let refused = refusals("container", &serde_yaml_ng::from_str(source).expect("YAML"));
        match schema {
            Refuses => assert_ne!(refused, [""; 0], "the schema takes {source}"),
            Takes(why) => assert_eq!(refused, [""; 0], "{source} ({why})"),
        }
    }
}
