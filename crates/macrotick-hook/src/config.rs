//! A container's OCI configuration, as far as it is changed here: whatever else is in it stays.

use serde_json::{Map, Value};

use crate::error::HookError;

/// Decodes `config.json`.
pub(crate) fn read(config: &str) -> Result<Map<String, Value>, HookError> {
    serde_json::from_str(config).map_err(HookError::Config)
}

/// The reverse of [`read`].
pub(crate) fn text(config: Map<String, Value>) -> String {
    format!("{:#}\n", Value::Object(config))
}

/// The object of that name, made where it is not or is null.
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

/// The array of that name, made likewise.
pub(crate) fn array<'a>(parent: &'a mut Map<String, Value>, name: &str) -> Result<&'a mut Vec<Value>, HookError> {
    let value = parent.entry(name).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().ok_or_else(|| wrong_type(name, "array"))
}

fn wrong_type(name: &str, expected: &str) -> HookError {
    HookError::Config(serde::de::Error::custom(format!("`{name}` is no {expected}")))
}
