//! The texts of `macrotick explain` about keys.

use super::markdown::brief;
use super::{unlinked, Forms, Kind, Object};
use crate::parse::{nearest_name, old_key};

/// The length of the longest line.
const WIDTH: usize = 100;

/// A place where a key is allowed.
struct Place<'a> {
    path: String,
    kind: &'a Kind,
    otherwise: Option<Option<&'static str>>,
    about: &'static str,
}

/// Explains a key or a path of keys (`tasks.supply.deadline`): one paragraph for each place where it is allowed. An
/// empty key gives the keys of a system. For an unknown key, the error is a hint at the key that was probably meant, if
/// there is one.
pub fn explain(key: &str) -> Result<String, Option<String>> {
    let mut places = Vec::new();
    walk("", super::system_keys(), &mut places);
    walk("container: ", super::container_keys(), &mut places);
    if key.is_empty() {
        return Ok(inside(super::system_keys()));
    }
    let wanted = key.replace("[]", "");
    let matches = |place: &&Place| {
        let path = place.path.replace("[]", "");
        let path = path.strip_prefix("container: ").unwrap_or(&path);
        path == wanted || path.ends_with(&format!(".{wanted}"))
    };
    let found: Vec<String> = places.iter().filter(matches).map(paragraph).collect();
    if found.is_empty() {
        return Err(meant(&wanted, &places));
    }
    Ok(found.join("\n"))
}

/// Returns the present form of a key of an earlier language, or else the nearest key.
fn meant(wanted: &str, places: &[Place]) -> Option<String> {
    let now = old_key(wanted.rsplit('.').next().unwrap_or(wanted));
    let paths = || places.iter().map(|place| place.path.replace("[]", ""));
    let names: Vec<String> = match wanted.contains('.') {
        true => paths().collect(),
        false => paths().filter_map(|path| path.rsplit(['.', ' ']).next().map(String::from)).collect(),
    };
    let near = || nearest_name(wanted, names.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
    now.or_else(near)
}

/// Returns the mappings, words and forms with their names in the reference, each once.
pub(super) fn named() -> Vec<(&'static str, &'static Kind)> {
    fn visit(kind: &'static Kind, all: &mut Vec<(&'static str, &'static Kind)>) {
        let (what, inner): (&'static str, Vec<&'static Kind>) = match kind {
            Kind::List(of) => return visit(of, all),
            Kind::Object(object) if object.flat.is_empty() && object.keys.is_empty() => return,
            Kind::Object(object) => {
                let flat = object.flat.iter().flat_map(|flat| flat.forms.keys).map(|(_, kind, _)| kind);
                (object.what, flat.chain(object.keys.iter().map(|key| &key.kind)).collect())
            }
            Kind::Words(words) => (words.what, Vec::new()),
            Kind::Forms(forms) => {
                let plain = forms.plain.iter().map(|(kind, _)| kind);
                (forms.what, plain.chain(forms.keys.iter().map(|(_, kind, _)| kind)).collect())
            }
            _ => return,
        };
        if all.iter().all(|(other, _)| *other != what) {
            all.push((what, kind));
            inner.into_iter().for_each(|kind| visit(kind, all));
        }
    }
    let mut all = Vec::new();
    visit(super::system_keys(), &mut all);
    visit(super::container_keys(), &mut all);
    all
}

fn walk<'a>(path: &str, kind: &'a Kind, places: &mut Vec<Place<'a>>) {
    let join = |key: &str| match path.is_empty() || path.ends_with(' ') {
        true => format!("{path}{key}"),
        false => format!("{path}.{key}"),
    };
    match kind {
        Kind::List(of) => walk(&format!("{path}[]"), of, places),
        Kind::Object(Object { keys, flat, .. }) => {
            for (key, kind, about) in flat.iter().flat_map(|flat| flat.forms.keys) {
                places.push(Place { path: join(key), kind, otherwise: None, about });
                walk(&join(key), kind, places);
            }
            for key in *keys {
                let path = join(key.name);
                places.push(Place {
                    path: path.clone(),
                    kind: &key.kind,
                    otherwise: Some(key.otherwise),
                    about: key.about,
                });
                walk(&path, &key.kind, places);
            }
        }
        Kind::Forms(Forms { plain, words, keys, .. }) => {
            if let Some((kind, _)) = plain {
                walk(path, kind, places);
            }
            for (word, about) in *words {
                places.push(Place { path: join(word), kind: &Kind::Flag, otherwise: None, about });
            }
            for (key, kind, about) in *keys {
                places.push(Place { path: join(key), kind, otherwise: None, about });
                walk(&join(key), kind, places);
            }
        }
        Kind::Words(all) => {
            for (word, about) in all.words {
                places.push(Place { path: join(word), kind: &Kind::Flag, otherwise: None, about });
            }
        }
        _ => {}
    }
}

fn paragraph(place: &Place) -> String {
    let Place { path, kind, otherwise, about } = place;
    let is_word = matches!(kind, Kind::Flag) && otherwise.is_none();
    let key = path.rsplit(['.', ' ']).next().unwrap_or(path);
    // A name of a mapping or form that equals its key explains nothing.
    let brief = match (brief(kind), kind) {
        (brief, Kind::Forms(_)) if brief.replace('`', "") == key => "one of several forms".into(),
        (brief, _) if brief.replace('`', "") == key => "mapping".into(),
        (brief, _) => brief,
    };
    let default = match otherwise {
        _ if is_word => "a word".to_string(),
        None => format!("{brief} (one of several forms)"),
        Some(None) => format!("{brief}, required"),
        Some(Some(default)) => format!("{brief}; default: {}", default.replace('`', "")),
    };
    let below = if is_word { String::new() } else { inside(kind) };
    let head = wrapped(&format!("{path}: {}", unlinked(&default).replace('`', "")), 2);
    format!("{head}{}{below}", wrapped(&format!("  {}", unlinked(about)), 2))
}

/// Breaks a line that is too long; the continuation lines have this indent.
fn wrapped(line: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut width = 0;
    let first = line.len() - line.trim_start().len();
    for word in line.split_whitespace() {
        let length = word.chars().count();
        if width == 0 {
            text += &" ".repeat(first);
            width = first;
        } else if width + 1 + length > WIDTH {
            text += &format!("\n{}", " ".repeat(indent));
            width = indent;
        } else {
            text.push(' ');
            width += 1;
        }
        text += word;
        width += length;
    }
    text + "\n"
}

/// Lists the keys of a mapping, or the forms of a value, one per line.
fn inside(kind: &Kind) -> String {
    let rows: Vec<(String, &str)> = match kind {
        Kind::List(of) => return inside(of),
        Kind::Object(object) => {
            let flat = object.flat.iter().flat_map(|flat| flat.forms.keys);
            let flat = flat.map(|(key, _, about)| (key.to_string(), *about));
            object.keys.iter().map(|key| (key.name.to_string(), key.about)).chain(flat).collect()
        }
        Kind::Words(words) => words.words.iter().map(|(word, about)| (word.to_string(), *about)).collect(),
        Kind::Forms(forms) => {
            let plain = forms.plain.iter().map(|(kind, about)| (format!("({})", brief(kind)), *about));
            let words = forms.words.iter().map(|(word, about)| (word.to_string(), *about));
            plain.chain(words).chain(forms.keys.iter().map(|(key, _, about)| (format!("{key}:"), *about))).collect()
        }
        _ => Vec::new(),
    };
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let row = |(name, about): &(String, &str)| {
        let about = wrapped(&format!("{}{}", " ".repeat(width + 6), unlinked(about)), width + 6);
        format!("    {name:width$}  {}", about.trim_start())
    };
    rows.iter().map(row).collect()
}
