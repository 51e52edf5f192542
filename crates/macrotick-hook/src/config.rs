//! A container's OCI configuration. Only the parts that the hook needs change; all others stay as they are.

use serde_json::{Map, Value};

use crate::error::HookError;

/// Decodes `config.json`.
pub(crate) fn read(config: &str) -> Result<Map<String, Value>, HookError> {
    serde_json::from_str(config).map_err(HookError::Config)
}

/// Encodes a configuration; the reverse of [`read`].
pub(crate) fn text(config: Map<String, Value>) -> String {
    format!("{:#}\n", Value::Object(config))
}

/// Returns the object of that name, and creates it if it is missing or null.
pub(crate) fn object<'a>(
    parent: &'a mut Map<String, Value>,
    name: &str,
) -> Result<&'a mut Map<String, Value>, HookError> {
    let value = parent.entry(name).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().ok_or_else(|| wrong_type(name, "object"))
}

/// Returns the array of that name, and creates it likewise.
pub(crate) fn array<'a>(parent: &'a mut Map<String, Value>, name: &str) -> Result<&'a mut Vec<Value>, HookError> {
    let value = parent.entry(name).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().ok_or_else(|| wrong_type(name, "array"))
}

fn wrong_type(name: &str, expected: &str) -> HookError {
    HookError::Config(serde::de::Error::custom(format!("`{name}` is not an {expected}")))
}
