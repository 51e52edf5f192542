//! The JSON Schemas of the types with their own serialisation: times, jobs, and descriptions with their parts. The
//! schemas of all other types are derived.

use std::borrow::Cow;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};

use crate::keys::time_pattern;
use crate::observation::Job;
use crate::system::{Group, Slot, System, Task};
use crate::time::Duration;

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = time_pattern(Duration::from_nanos(i64::MIN));
        json_schema!({"type": "string", "pattern": pattern, "description": "A length of time with its unit."})
    }
}

impl JsonSchema for Job {
    fn schema_name() -> Cow<'static, str> {
        "Job".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = <(u64, i64, Option<i64>, Option<i64>)>::json_schema(generator);
        let about =
            "One activation of a task: its number since the epoch, from 0, then its nominal instant, its first and its \
                     last instruction in nanoseconds since the epoch. An event that did not happen is null.";
        schema.insert("description".into(), about.into());
        schema
    }
}

/// Refers to the schema that the table of keys generates, in a file in the same folder.
macro_rules! described {
    ($($type:ident: $place:literal),*) => {
        $(impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"$ref": concat!("system.schema.json", $place)})
            }
        })*
    };
}

described!(
    System: "",
    Task: "#/properties/tasks/items",
    Group: "#/properties/groups/items",
    Slot: "#/properties/network/properties/slots/items"
);
