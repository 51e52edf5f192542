//! The workspace builds with the Rust of Debian 13, which is the `rust-version` in `Cargo.toml`.

use std::process::Command;

use macrotick_fixtures::repository;
use serde_json::Value;

/// A version of Rust as numbers.
fn version(text: &str) -> Vec<u32> {
    text.split('.').map(|number| number.parse().unwrap()).collect()
}

#[test]
fn no_dependency_needs_a_newer_rust() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--offline", "--locked"]);
    cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]).current_dir(repository("."));
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let needs = |package: &Value| package["rust_version"].as_str().map(version);
    let own = packages.iter().find(|package| package["name"] == "macrotick").and_then(needs).unwrap();
    let newer = packages.iter().filter(|package| needs(package).is_some_and(|needed| needed[..2] > own[..2]));
    let newer: Vec<String> = newer.map(|package| format!("{} {}", package["name"], package["version"])).collect();
    assert!(newer.is_empty(), "`cargo update` finds older versions of {}", newer.join(", "));
    assert!(packages.len() > 100, "{}", packages.len());
}
