//! The tables of keys in the reference.

use super::{Forms, Kind, Object, Words};

/// Returns the tables of the mappings and forms of a system and of a container, as pairs of name and text.
pub fn sections() -> Vec<(&'static str, String)> {
    super::explain::named().into_iter().map(|(name, kind)| (name, markdown(kind))).collect()
}

/// Makes the table of a mapping, of words, or of forms.
fn markdown(kind: &Kind) -> String {
    match kind {
        Kind::Object(object) => keys(object),
        Kind::Words(words) => self::words(words),
        Kind::Forms(forms) => self::forms(forms),
        _ => String::new(),
    }
}

fn keys(object: &Object) -> String {
    let mut text = "| key | value | default |\n|---|---|---|\n".to_string();
    for flat in object.flat {
        for (key, kind, about) in flat.forms.keys {
            let about = lower(about.trim_end_matches('.'));
            let otherwise = flat.otherwise.unwrap_or("required: one of them");
            text += &format!("| `{key}` | {}: {about} | {otherwise} |\n", brief(kind));
        }
    }
    for key in object.keys {
        let about = key.about.trim_end_matches('.');
        let value = format!("{}: {}", brief(&key.kind), lower(about));
        text += &format!("| `{}` | {value} | {} |\n", key.name, key.otherwise.unwrap_or("required"));
    }
    text
}

fn words(words: &Words) -> String {
    let mut text = "| word | meaning |\n|---|---|\n".to_string();
    for (word, about) in words.words {
        text += &format!("| `{word}` | {} |\n", lower(about.trim_end_matches('.')));
    }
    text
}

fn forms(forms: &Forms) -> String {
    let mut text = "| form | meaning |\n|---|---|\n".to_string();
    let mut row = |form: String, about: &str| text += &format!("| {form} | {} |\n", lower(about.trim_end_matches('.')));
    if let Some((kind, about)) = &forms.plain {
        row(brief(kind), about);
    }
    for (word, about) in forms.words {
        row(format!("`{word}`"), about);
    }
    for (key, kind, about) in forms.keys {
        row(format!("`{{{key}: `{}`}}`", brief(kind)), about);
    }
    text
}

/// Names a kind in few words.
pub(super) fn brief(kind: &Kind) -> String {
    match kind {
        Kind::Name { .. } => "name".into(),
        Kind::Text(what) => (*what).into(),
        Kind::Time { least, most } => match (least.as_nanos(), most.as_nanos()) {
            (i64::MIN | 1, i64::MAX) => "time".into(),
            (0, i64::MAX) => "time, 0ns or longer".into(),
            (_, i64::MAX) => format!("time, {least} or longer"),
            (1, _) => format!("time, up to {most}"),
            _ => format!("time, {least} to {most}"),
        },
        Kind::Integer { least, most } if *most == i64::from(u32::MAX) => format!("number, {least} or more"),
        Kind::Cpu => "CPU".into(),
        Kind::Size { least, most } => format!("size, {least} to {most}"),
        Kind::Speed => "speed".into(),
        Kind::Integer { least, most } => format!("number, {least} to {most}"),
        Kind::Flag => "`true` or `false`".into(),
        Kind::Words(words) => {
            let all: Vec<String> = words.words.iter().map(|(word, _)| format!("`{word}`")).collect();
            match all.split_last() {
                Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
                _ => all.concat(),
            }
        }
        Kind::List(of) => format!("list of {}", plural(of)),
        Kind::Object(Object { short: Some(short), keys, .. }) => {
            let key = keys.iter().find(|key| key.name == *short).expect("a key of the mapping");
            format!("{}, or a mapping", brief(&key.kind))
        }
        Kind::Object(object) => noun(object.what).into(),
        Kind::Forms(forms) => noun(forms.what).into(),
    }
}

fn plural(kind: &Kind) -> String {
    match kind {
        Kind::Cpu => "CPUs".into(),
        // The noun for the texts of a list is a plural in the table of keys.
        Kind::Text(what) => (*what).into(),
        Kind::Object(object) => several(noun(object.what)),
        Kind::Forms(forms) => several(noun(forms.what)),
        Kind::Words(words) => several(noun(words.what)),
        other => several(&brief(other)),
    }
}

/// Returns the plural of a noun, also of one such as "task of a group".
fn several(noun: &str) -> String {
    let (head, rest) = noun.split_once(" of ").map_or((noun, None), |(head, rest)| (head, Some(rest)));
    let head = if head.ends_with('s') { format!("{head}es") } else { format!("{head}s") };
    rest.map_or(head.clone(), |rest| format!("{head} of {rest}"))
}

fn noun(what: &str) -> &str {
    what.strip_prefix("a ").or(what.strip_prefix("an ")).unwrap_or(what)
}

/// Changes the first letter of a sentence for use after a colon.
fn lower(about: &str) -> String {
    let mut characters = about.chars();
    let first = characters.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    let rest = characters.as_str();
    match about.chars().nth(1) {
        Some(second) if second.is_uppercase() => about.into(),
        _ => first + rest,
    }
}
