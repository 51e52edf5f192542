//! Every example of `docs/reference/description.md` is a valid description after its gaps are filled.

use macrotick_model::System;

const TASKS: &str = "tasks:
  - {name: sensor, period: 10ms, wcet: 1ms}
  - {name: control, period: 10ms, wcet: 600us}
  - {name: actuator, period: 10ms, wcet: 1ms}
";

#[test]
fn examples_of_the_reference_are_valid() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/description.md");
    let text = std::fs::read_to_string(path).expect("the reference");
    let blocks: Vec<&str> =
        text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert!(blocks.len() >= 7, "only {} examples found", blocks.len());
    for block in blocks {
        let mut source = String::new();
        if !block.starts_with("system:") {
            source += "system: doc\n";
        }
        if !format!("\n{block}").contains("\ntasks:\n") {
            source += TASKS;
        }
        source += block;
        System::parse(&source, "example.yaml").unwrap_or_else(|errors| panic!("{source}\n{errors}"));
    }
}
