//! Containers that ask to be admitted.

use macrotick_fixtures::us;
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
fn mistakes_are_told_at_their_place() {
    for (source, expected) in [
        ("container: web\nbudget: 1ms\n", "the description of a container has no `criticality`"),
        ("criticality: 2\nbudget: 1ms\n", "the description of a container has no `container`"),
        ("container: web\ncriticality: 2\n", "has neither `budget` nor `tasks`: nothing says how much it needs"),
        ("container: web\ncriticality: 2\nbudget: 5us\n", "budget 5us is shorter than 10us"),
        ("container: web\ncriticality: 2\nbudget: 10500ns\n", "budget 10500ns is no whole number of microseconds"),
        ("container: web\ncriticality: 2\nbudget: 1ms\ncpus: [1, 0, 1]\n", "CPU 1 is listed twice"),
        ("container: web\ncriticality: 2\nbudget: 1ms\nlead: 2ms\n", "lead 2ms is out of range: 1us to 1ms"),
        ("container: web\ncriticality: 2\nbudget: 1ms\nlead: 0us\n", "lead 0ns is out of range: 1us to 1ms"),
        (
            "container: web\ncriticality: 2\nbudget: 1ms\nlead: 20500ns\n",
            "lead 20500ns is no whole number of microseconds",
        ),
        ("container: Web\ncriticality: 2\nbudget: 1ms\n", "the name `Web` holds 'W'"),
        ("container: web\ncriticality: 2\nbudget: 1ms\ncpu: 1\n", "unknown key `cpu` in the description of a container"),
        (
            "container: web\ncriticality: 2\ntasks: [{name: t, period: 5ms, wcet: 1ms, cpu: 1}]\n",
            "task `t` has a `cpu`, which is the container's business",
        ),
        (
            "container: web\ncriticality: 2\ntasks: [{name: t, period: 5ms, wcet: 1ms}, {name: t, period: 5ms, wcet: 0us}]\n",
            "duplicate name `t`: another task of the container has it already",
        ),
        ("", "the description is empty"),
        ("- x\n", "the description of a container must be a mapping, this is a list"),
    ] {
        let told = refusal(source);
        assert!(told.contains(expected) && told.contains("c.yaml:"), "{source}: {told}");
    }
}
