//! Compares files of the tree with the types that they are made from, such as the JSON Schemas of the documents. It
//! also compares documents with the schemas. `MACROTICK_BLESS=1` writes the files again.

use std::path::{Path, PathBuf};

use jsonschema::Resource;
use schemars::generate::SchemaSettings;
use schemars::transform::{transform_subschemas, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The side of a schema. A key that is optional for readers of a document is always there for its writer.
pub enum Side {
    /// The schema of documents that we read.
    Read,
    /// The schema of documents that we write.
    Written,
}

/// Returns a path below the root of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Returns the text of a file that must exist, by its path below the root of the repository.
pub fn read_tree(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Compares a file of the tree with the text that its types make, or writes it.
pub fn hold(path: &str, expected: &str) {
    if std::env::var_os("MACROTICK_BLESS").is_some() {
        // Another test may read the file at the same time. The rename makes it always find a whole file.
        let partial = repository(&format!("{path}.partial"));
        let written = std::fs::write(&partial, expected).and_then(|()| std::fs::rename(&partial, repository(path)));
        written.unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    assert!(read_tree(path) == expected, "{path} differs from the types: MACROTICK_BLESS=1 writes it again");
}

/// Compares the schema of a document, by the name of its file: `plan` is in `schema/plan.schema.json`.
pub fn hold_schema<T: JsonSchema>(name: &str, title: &str, side: Side) {
    let settings = SchemaSettings::draft2020_12();
    let settings = match side {
        Side::Read => settings.for_deserialize(),
        Side::Written => settings.for_serialize(),
    };
    let mut schema = settings.with_transform(OneLine).into_generator().into_root_schema_for::<T>();
    schema.insert("title".into(), title.into());
    hold(&file(name), &(serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"));
}

fn file(name: &str) -> String {
    format!("schema/{name}.schema.json")
}

/// Puts descriptions on one line, because doc comments are wrapped for the source. It also replaces Rust's `None`.
#[derive(Clone)]
struct OneLine;

impl Transform for OneLine {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            let line: Vec<&str> = text.split_whitespace().collect();
            *text = line.join(" ").replace("`None`", "`null`");
        }
        transform_subschemas(self, schema);
    }
}

/// Returns the objections of a schema against a document; an empty list accepts it.
pub fn refusals(name: &str, document: &Value) -> Vec<String> {
    let schema = |name| serde_json::from_str::<Value>(&read_tree(&file(name))).expect("a schema is JSON");
    let system = Resource::from_contents(schema("system")).expect("a schema");
    let beside = "json-schema:///system.schema.json";
    let validator = jsonschema::options().with_resource(beside, system).build(&schema(name)).expect("a schema");
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path)).collect()
}
