//! Programs of tasks and processes in a description.

use macrotick_fixtures::described;
use macrotick_model::{Load, Program, System, Workload};

fn system(program: &str) -> System {
    let text = format!(
        "system: s\ntasks:\n  - {{name: a, period: 10ms, wcet: 1ms, run: {{program: {program}}}}}\nload:\n  \
         - {{name: l, program: {program}}}\n"
    );
    let system = described(&text);
    assert_eq!(described(&system.to_yaml()), system);
    system
}

fn both(program: &str) -> [Program; 2] {
    let system = system(program);
    match (&system.tasks[0].run, &system.load[0].run) {
        (Workload::Program(task), Load::Program(load)) => [task.clone(), load.clone()],
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_may_stand_for_all() {
    let expected = Program::new(["/bin/control", "-x"]);
    assert_eq!(both("[/bin/control, -x]"), [expected.clone(), expected.clone()]);
    assert_eq!(both("{command: [/bin/control, -x]}"), [expected.clone(), expected]);
    assert!(system("[/bin/control, -x]").to_yaml().contains("run: {program: [\"/bin/control\", \"-x\"]}"));
}

#[test]
fn variables_are_pairs() {
    let program = &both("{command: [x], env: [\"A=1\", \"B=c=d\", \"EMPTY=\"]}")[0];
    assert_eq!(program.variables().collect::<Vec<_>>(), [("A", "1"), ("B", "c=d"), ("EMPTY", "")]);
}
