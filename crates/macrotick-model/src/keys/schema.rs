//! The JSON Schema (2020-12) of a description. It has no rules between values: the decoder checks those.

use serde_json::{json, Map, Value};

use super::{unlinked, Forms, Kind, Object, Words};
use crate::time::Duration;

/// The pattern of a time with its unit.
const TIME: &str = "[0-9]+(\\.[0-9]+)? ?(ns|us|\u{b5}s|\u{3bc}s|ms|s|min)$";
/// The pattern of a size with its unit.
const SIZE: &str = "^[0-9]+ ?(B|KiB)$";
/// The pattern of a speed with its unit.
const SPEED: &str = "^(?=.*[1-9])[0-9]+(\\.[0-9]+)? ?(Mb/s|Gb/s)$";
/// The pattern of a name.
const NAME: &str = "^[a-z0-9_][a-z0-9_.-]*$";

/// Returns the schema of a kind of document, with this title.
pub fn schema(kind: &Kind, title: &str) -> Value {
    let mut schema = of(kind);
    let head = schema.as_object_mut().expect("a schema is a mapping");
    head.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    head.insert("title".into(), title.into());
    schema
}

fn of(kind: &Kind) -> Value {
    match kind {
        // A text can look like a number or a flag to YAML.
        Kind::Name { most } => json!({"type": ["string", "number", "boolean"], "pattern": NAME, "maxLength": most}),
        Kind::Text(_) => json!({"type": ["string", "number", "boolean"]}),
        Kind::Time { least, .. } => json!({"type": "string", "pattern": time(*least)}),
        Kind::Size { .. } => json!({"type": "string", "pattern": SIZE}),
        Kind::Speed => json!({"type": "string", "pattern": SPEED}),
        Kind::Integer { .. } | Kind::Cpu => {
            let (least, most) = kind.range().expect("the range of a whole number");
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Words(words) => self::words(words),
        Kind::List(of @ Kind::Cpu) => json!({"type": "array", "items": self::of(of), "uniqueItems": true}),
        Kind::List(of) => json!({"type": "array", "items": self::of(of)}),
        Kind::Object(object) => self::object(object),
        Kind::Forms(forms) => self::forms(forms),
    }
}

/// Returns the pattern of times from `least` on. A pattern cannot limit the longest time.
pub(crate) fn time(least: Duration) -> String {
    match least.as_nanos() {
        1.. => format!("^(?=.*[1-9]){TIME}"),
        0 => format!("^{TIME}"),
        _ => format!("^-?{TIME}"),
    }
}

fn described(mut schema: Value, about: &str) -> Value {
    let head = schema.as_object_mut().expect("a schema is a mapping");
    head.insert("description".into(), unlinked(about).into());
    schema
}

fn object(object: &Object) -> Value {
    let mut properties: Map<String, Value> =
        object.keys.iter().map(|key| (key.name.into(), described(of(&key.kind), key.about))).collect();
    let required: Vec<&str> = object.keys.iter().filter(|key| key.otherwise.is_none()).map(|key| key.name).collect();
    let mut schema = json!({"type": "object", "required": required, "additionalProperties": false});
    let head = schema.as_object_mut().expect("a schema is a mapping");
    for flat in object.flat {
        for (key, kind, about) in flat.forms.keys {
            properties.insert((*key).into(), described(of(kind), about));
        }
        let has = |(key, ..): &(&str, Kind, &str)| json!({"required": [key]});
        let mut one: Vec<Value> = flat.forms.keys.iter().map(has).collect();
        if flat.otherwise.is_some() {
            one.push(json!({"not": {"anyOf": one.clone()}}));
        }
        head.insert("oneOf".into(), one.into());
    }
    head.insert("properties".into(), properties.into());
    match object.keys.iter().find(|key| Some(key.name) == object.short) {
        Some(key) => json!({"anyOf": [described(of(&key.kind), key.about), schema]}),
        None => schema,
    }
}

fn words(words: &Words) -> Value {
    let all: Vec<&str> = words.words.iter().map(|(word, _)| *word).collect();
    json!({"enum": all})
}

fn forms(forms: &Forms) -> Value {
    let plain = forms.plain.iter().map(|(kind, about)| described(of(kind), about));
    let words = forms.words.iter().map(|(word, about)| json!({"const": word, "description": unlinked(about)}));
    let keys = forms.keys.iter().map(|(key, kind, about)| {
        let properties = Map::from_iter([((*key).into(), described(of(kind), about))]);
        json!({"type": "object", "properties": properties, "required": [key], "additionalProperties": false})
    });
    json!({"anyOf": plain.chain(words).chain(keys).collect::<Vec<_>>()})
}
