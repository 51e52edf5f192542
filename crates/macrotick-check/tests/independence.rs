//! The judge and the solvers share no code: neither depends on the other, and the solvers do not depend on the
//! analysis.

use std::path::Path;

/// Returns the dependencies of one of our crates, without those of its tests.
fn dependencies(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("Cargo.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("[dependencies]\n").expect("dependencies");
    let lines = rest.lines().take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.strip_suffix(".workspace = true")?.to_owned())).collect()
}

#[test]
fn the_judge_shares_no_code_with_the_solvers() {
    let ours = |name: &str| -> Vec<String> {
        dependencies(name).into_iter().filter(|other| other.starts_with("macrotick-")).collect()
    };
    assert_eq!(ours("macrotick-check"), ["macrotick-analysis", "macrotick-model"]);
    assert_eq!(ours("macrotick-analysis"), ["macrotick-model"]);
    assert_eq!(ours("macrotick-plan"), ["macrotick-model"]);
}
