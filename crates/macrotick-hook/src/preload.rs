//! Makes a container preload the library that turns SCHED_FIFO into SCHED_DS.

use std::path::Path;

use serde_json::{json, Value};

use crate::config::{array, object, read, text};
use crate::error::HookError;

/// The variable that the dynamic linker reads.
const VARIABLE: &str = "LD_PRELOAD=";

/// Returns an OCI configuration with the library mounted read-only, under the same path as on the host. The program of
/// the container preloads it before its other preloaded libraries.
pub fn add(config: &str, library: &Path) -> Result<String, HookError> {
    let mut config = read(config)?;
    let mount = json!({
        "destination": library,
        "type": "bind",
        "source": library,
        "options": ["bind", "ro", "nosuid", "nodev"],
    });
    let mounts = array(&mut config, "mounts")?;
    if !mounts.contains(&mount) {
        mounts.push(mount);
    }
    preload(array(object(&mut config, "process")?, "env")?, &library.to_string_lossy());
    Ok(text(config))
}

fn preload(environment: &mut Vec<Value>, library: &str) {
    let known = |entry: &Value| entry.as_str().and_then(|entry| Some(entry.strip_prefix(VARIABLE)?.to_owned()));
    let Some(at) = environment.iter().position(|entry| known(entry).is_some()) else {
        environment.push(Value::String(format!("{VARIABLE}{library}")));
        return;
    };
    let others = known(&environment[at]).unwrap_or_default();
    if others.split([':', ' ']).all(|one| one != library) {
        environment[at] = Value::String(format!("{VARIABLE}{library} {others}").trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "/usr/local/lib/libmacrotick-rt.so";

    fn environment(config: &str) -> Value {
        let once = add(config, Path::new(LIBRARY)).unwrap();
        assert_eq!(add(&once, Path::new(LIBRARY)).unwrap(), once);
        let config: Value = serde_json::from_str(&once).unwrap();
        let mount = config["mounts"].as_array().unwrap().last().unwrap();
        assert_eq!((&mount["source"], &mount["destination"]), (&json!(LIBRARY), &json!(LIBRARY)));
        config["process"]["env"].clone()
    }

    #[test]
    fn the_library_is_mounted_and_preloaded_once() {
        assert_eq!(environment("{}"), json!([format!("LD_PRELOAD={LIBRARY}")]));
        let others = r#"{"process": {"env": ["A=b", "LD_PRELOAD=/x.so"]}, "mounts": [{"destination": "/proc"}]}"#;
        assert_eq!(environment(others), json!(["A=b", format!("LD_PRELOAD={LIBRARY} /x.so")]));
        assert_eq!(environment(r#"{"process": {"env": ["LD_PRELOAD="]}}"#), json!([format!("LD_PRELOAD={LIBRARY}")]));
    }
}
