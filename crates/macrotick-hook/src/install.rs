//! Adds the hook to engines: for podman in a file, for others in a container's OCI configuration.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{json, Value};

use crate::config::{array, object, read, text};
use crate::error::HookError;

/// The directory in which podman looks for hooks by default.
pub const DIRECTORY: &str = "/usr/share/containers/oci/hooks.d";
/// The stage in which the group exists but the program does not run, and the stage after the container's end.
const STAGES: [&str; 2] = ["createRuntime", "poststop"];
/// The arguments after the program's name.
const VERB: [&str; 2] = ["hook", "run"];
/// The time after which a runtime ends the hook, in seconds.
const TIMEOUT_S: u32 = 10;

/// Returns the hook in the form of OCI configurations and podman's files.
fn hook(program: &Path) -> Value {
    let args: Vec<&str> = std::iter::once("macrotick").chain(VERB).collect();
    json!({ "path": program, "args": args, "timeout": TIMEOUT_S })
}

/// Returns podman's file. It limits the hook to containers with an annotation of Macrotick.
fn podman_file(program: &Path) -> String {
    let file = json!({
        "version": "1.0.0",
        "hook": hook(program),
        "when": { "annotations": { "^macrotick\\.": ".*" } },
        "stages": STAGES,
    });
    format!("{file:#}\n")
}

/// Writes podman's file into a directory. Creates the directory if it is missing.
pub fn install(program: &Path, directory: &Path) -> Result<PathBuf, HookError> {
    fs::create_dir_all(directory).map_err(HookError::file("make", directory))?;
    let path = directory.join("macrotick.json");
    fs::write(&path, podman_file(program)).map_err(HookError::file("write", &path))?;
    Ok(path)
}

/// Returns an OCI configuration with the annotations and exactly one copy of the hook.
pub fn add(config: &str, program: &Path, annotations: &[(String, String)]) -> Result<String, HookError> {
    let mut config = read(config)?;
    for stage in STAGES {
        let hooks = array(object(&mut config, "hooks")?, stage)?;
        let ours = hook(program);
        if !hooks.contains(&ours) {
            hooks.push(ours);
        }
    }
    let all = object(&mut config, "annotations")?;
    for (key, value) in annotations {
        all.insert(key.clone(), Value::String(value.clone()));
    }
    Ok(text(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "/usr/bin/macrotick";

    #[test]
    fn podman_calls_the_hook_for_annotated_containers() {
        let file: Value = serde_json::from_str(&podman_file(Path::new(PROGRAM))).unwrap();
        assert_eq!(file["hook"]["args"], json!(["macrotick", "hook", "run"]));
        assert_eq!(file["hook"]["path"], PROGRAM);
        assert_eq!(file["when"], json!({ "annotations": { "^macrotick\\.": ".*" } }));
        assert_eq!(file["stages"], json!(["createRuntime", "poststop"]));
    }

    #[test]
    fn a_configuration_gets_the_hook_once_and_keeps_the_rest() {
        let config =
            r#"{"process": {"args": ["sh"]}, "hooks": {"createRuntime": [{"path": "/x"}]}, "annotations": null}"#;
        let annotations = [("macrotick.budget".to_owned(), "1ms".to_owned())];
        let once = add(config, Path::new(PROGRAM), &annotations).unwrap();
        assert_eq!(add(&once, Path::new(PROGRAM), &annotations).unwrap(), once);
        let config: Value = serde_json::from_str(&once).unwrap();
        assert_eq!(config["hooks"]["createRuntime"], json!([{ "path": "/x" }, hook(Path::new(PROGRAM))]));
        assert_eq!(config["hooks"]["poststop"], json!([hook(Path::new(PROGRAM))]));
        assert_eq!(config["annotations"], json!({ "macrotick.budget": "1ms" }));
        assert_eq!(config["process"]["args"], json!(["sh"]));
        assert!(add("{}", Path::new(PROGRAM), &[]).unwrap().contains("createRuntime"));
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        for config in ["", "[]", r#"{"hooks": 1}"#, r#"{"hooks": {"createRuntime": {}}}"#, r#"{"annotations": "x"}"#] {
            assert!(matches!(add(config, Path::new(PROGRAM), &[]), Err(HookError::Config(_))), "{config}");
        }
    }
}
