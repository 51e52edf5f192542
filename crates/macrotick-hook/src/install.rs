//! Telling engines of the hook: podman by a file, others in a container's OCI configuration.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{json, Value};

use crate::config::{array, object, read, text};
use crate::error::HookError;

/// Where podman looks for hooks without being told.
pub const DIRECTORY: &str = "/usr/share/containers/oci/hooks.d";
/// The moment at which the group exists, and the program is not yet executed; and the one when all of it is over.
const STAGES: [&str; 2] = ["createRuntime", "poststop"];
/// The words that follow the program's name.
const VERB: [&str; 2] = ["hook", "run"];
/// A runtime ends a hook that takes longer, in seconds.
const TIMEOUT_S: u32 = 10;

/// The hook as OCI configurations and podman's files have it.
fn hook(program: &Path) -> Value {
    let args: Vec<&str> = std::iter::once("macrotick").chain(VERB).collect();
    json!({ "path": program, "args": args, "timeout": TIMEOUT_S })
}

/// Podman's file: the hook is for containers with an annotation of ours, and no others.
fn podman_file(program: &Path) -> String {
    let file = json!({
        "version": "1.0.0",
        "hook": hook(program),
        "when": { "annotations": { "^macrotick\\.": ".*" } },
        "stages": STAGES,
    });
    format!("{file:#}\n")
}

/// Writes podman's file into a directory, which is made if need be.
pub fn install(program: &Path, directory: &Path) -> Result<PathBuf, HookError> {
    fs::create_dir_all(directory).map_err(HookError::file("make", directory))?;
    let path = directory.join("macrotick.json");
    fs::write(&path, podman_file(program)).map_err(HookError::file("write", &path))?;
    Ok(path)
}

/// An OCI configuration with the hook, once, and with annotations.
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
