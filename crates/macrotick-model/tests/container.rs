//! Containers that ask to be admitted.

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

/// What the schema says of a mistake.
enum Schema {
    /// It refuses it, too.
    Refuses,
    /// It takes it, since that is what it knows nothing of.
    Takes(&'static str),
}
use Schema::{Refuses, Takes};

/// Of times, which are text to a schema.
const RANGE: &str = "no pattern says that a time is too long, too short, or no whole number of something";

#[test]
fn mistakes_are_told_at_their_place() {
    for (source, expected, schema) in [
        ("container: web\nbudget: 1ms\n", "the description of a container has no `criticality`", Refuses),
        ("criticality: 2\nbudget: 1ms\n", "the description of a container has no `container`", Refuses),
        (
            "container: web\ncriticality: 2\n",
            "has neither `budget` nor `tasks`: nothing says how much it needs",
            Takes("either of two keys may be left out, but not both"),
        ),
        ("container: web\ncriticality: 2\nbudget: 5us\n", "budget 5us is shorter than 10us", Takes(RANGE)),
        (
            "container: web\ncriticality: 2\nbudget: 10500ns\n",
            "budget 10500ns is no whole number of microseconds",
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
            "lead 20500ns is no whole number of microseconds",
            Takes(RANGE),
        ),
        ("container: Web\ncriticality: 2\nbudget: 1ms\n", "the name `Web` holds 'W'", Refuses),
        (
            "container: web\ncriticality: 2\nbudget: 1ms\ncpu: 1\n",
            "unknown key `cpu` in the description of a container",
            Refuses,
        ),
        (
            "container: web\ncriticality: 2\ntasks: [{name: t, period: 5ms, wcet: 1ms, cpu: 1}]\n",
            "task `t` has a `cpu`, which is the container's business",
            Takes("a task of a container is one of a group, which may say its CPU"),
        ),
        (
            "container: web\ncriticality: 2\ntasks: [{name: t, period: 5ms, wcet: 1ms}, {name: t, period: 5ms, wcet: 1us}]\n",
            "duplicate name `t`: another task of the container has it already",
            Takes("no two names may be alike"),
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
