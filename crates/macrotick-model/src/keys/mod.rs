//! The table of keys: everything that a description can contain, declared together with its types.
//!
//! [`object!`], [`forms!`] and [`words!`] declare a type of the description together with its keys. For each key, the
//! table has the kind of its value, the range, the default, and one sentence. Several things are generated from the
//! table: the decoder, the rules of single values, the emitter, the tables of `docs/reference/description.md`, the JSON
//! Schema and `macrotick explain`.

mod check;
mod explain;
mod forms;
mod markdown;
mod object;
mod schema;
mod text;
mod values;
mod words;

pub use explain::explain;
pub(crate) use forms::forms;
pub use markdown::sections;
pub(crate) use object::object;
pub use schema::schema;
pub(crate) use schema::time as time_pattern;
pub(crate) use text::Text;
pub(crate) use words::words;

pub(crate) use check::Found;

use crate::parse::{Context, Fields, Node};
use crate::time::Duration;
use crate::units::Size;

/// The kind of the value of a key.
#[derive(Debug)]
pub enum Kind {
    /// A name with a limited number of bytes.
    Name {
        /// The largest number of bytes.
        most: usize,
    },
    /// Any text. The string is the noun for it in the reference.
    Text(&'static str),
    /// A time within a range, both ends included.
    Time {
        /// The shortest time.
        least: Duration,
        /// The longest time.
        most: Duration,
    },
    /// A whole number within a range, both ends included.
    Integer {
        /// The least number.
        least: i64,
        /// The greatest number.
        most: i64,
    },
    /// The number of a CPU.
    Cpu,
    /// A number of bytes within a range, both ends included.
    Size {
        /// The smallest size.
        least: Size,
        /// The largest size.
        most: Size,
    },
    /// The speed of a link, from [`MIN`](crate::Speed::MIN) to [`MAX`](crate::Speed::MAX).
    Speed,
    /// `true` or `false`.
    Flag,
    /// One of some words.
    Words(&'static Words),
    /// A list with items of this kind.
    List(&'static Kind),
    /// A mapping.
    Object(&'static Object),
    /// One of several forms.
    Forms(&'static Forms),
}

impl Kind {
    /// Any time.
    pub const TIME: Kind = Kind::Time { least: Duration::from_nanos(i64::MIN), most: Duration::from_nanos(i64::MAX) };
    /// A time longer than zero.
    pub const LENGTH: Kind = Kind::Time { least: Duration::from_nanos(1), most: Duration::from_nanos(i64::MAX) };
    /// A list of CPUs.
    pub const CPUS: Kind = Kind::List(&Kind::Cpu);
    /// Any size from one byte on.
    pub const SIZE: Kind = Kind::Size { least: Size::from_bytes(1), most: Size::MAX };
    /// The highest number of a CPU that Linux supports.
    const LAST_CPU: i64 = 8191;

    /// Returns the range of a whole number, both ends included; `None` for other kinds.
    pub(crate) fn range(&self) -> Option<(i64, i64)> {
        match *self {
            Kind::Integer { least, most } => Some((least, most)),
            Kind::Cpu => Some((0, Kind::LAST_CPU)),
            _ => None,
        }
    }
}

/// A mapping: its keys, each at most once.
#[derive(Debug)]
pub struct Object {
    /// The noun with its article: `a task`.
    pub what: &'static str,
    /// The key with a list or a word as its value that can replace the whole mapping.
    pub short: Option<&'static str>,
    /// Forms with keys in the mapping itself. The mapping has exactly one of these keys.
    pub flat: &'static [Flat],
    /// Its keys, in the order of the reference.
    pub keys: &'static [Key],
}

/// Forms with keys that stand in a mapping among others.
#[derive(Debug)]
pub struct Flat {
    /// The forms, without words and without a plain value.
    pub forms: &'static Forms,
    /// The text of the default if none of their keys is present; `None` if one is required.
    pub otherwise: Option<&'static str>,
}

/// A key of a mapping.
#[derive(Debug)]
pub struct Key {
    /// Its spelling.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// The text of its default; `None` if the key is required.
    pub otherwise: Option<&'static str>,
    /// Its meaning in one sentence.
    pub about: &'static str,
}

/// One of several words.
#[derive(Debug)]
pub struct Words {
    /// The noun with its article: `a reaction to a miss`.
    pub what: &'static str,
    /// Each word with its meaning.
    pub words: &'static [(&'static str, &'static str)],
}

/// One of several forms: a plain value, a word, or a mapping with exactly one of some keys.
#[derive(Debug)]
pub struct Forms {
    /// The noun with its article: `a workload`.
    pub what: &'static str,
    /// The kind and the meaning of the plain value.
    pub plain: Option<(Kind, &'static str)>,
    /// Each word with its meaning.
    pub words: &'static [(&'static str, &'static str)],
    /// Each key with the kind and the meaning of its value.
    pub keys: &'static [(&'static str, Kind, &'static str)],
}

/// A value of a description. The decoder reports a value that it cannot read, marks it as broken and uses a
/// placeholder. No rule is applied to a placeholder.
pub(crate) trait Field: Sized {
    /// The kind if the key does not give one.
    const KIND: Kind;

    /// Reads the value at `path`.
    fn read(cx: &mut Context, node: &Node, path: &str, kind: &Kind) -> Self;

    /// Returns the placeholder for a value that cannot be read.
    fn unread() -> Self;

    /// Returns the value in its written form.
    fn write(&self) -> Text;

    /// Checks the rules of the value by itself. `key` is its name in messages.
    fn check(&self, path: &str, key: &str, kind: &Kind, found: &mut Found);

    /// Whether the value is the default, which need not be written.
    fn is_left_out(&self) -> bool {
        false
    }

    /// Puts the values of a list in order: CPUs are sorted.
    fn arrange(_items: &mut [Self]) {}
}

/// Removes the links of a sentence of the table, because they are relative to the reference. `[text](to)` becomes the
/// text, or after "see" the path of the page in the repository.
pub(crate) fn unlinked(about: &str) -> String {
    let mut text = String::new();
    let mut rest = about;
    while let Some((before, link)) = rest.split_once('[') {
        match link.split_once("](").and_then(|(shown, to)| Some((shown, to.split_once(')')?))) {
            Some((shown, (to, after))) if !shown.contains(['[', ']']) => {
                text += before;
                text += &shown_without_link(before, shown, to);
                rest = after;
            }
            _ => {
                text += before;
                text.push('[');
                rest = link;
            }
        }
    }
    text + rest
}

fn shown_without_link(before: &str, shown: &str, to: &str) -> String {
    if !before.ends_with("see ") {
        return shown.into();
    }
    match (to.strip_prefix("../"), to.starts_with('#')) {
        (Some(page), _) => format!("docs/{page}"),
        (None, true) => format!("docs/reference/description.md{to}"),
        (None, false) => format!("docs/reference/{to}"),
    }
}

/// Returns the keys of the description of a system.
pub fn system_keys() -> &'static Kind {
    &const { Kind::Object(crate::System::OBJECT) }
}

/// Returns the keys of the description of a container.
pub fn container_keys() -> &'static Kind {
    &const { Kind::Object(crate::Container::OBJECT) }
}

/// The kind of a key without a value of its own.
pub(crate) const BARE: Kind = Kind::Object(&Object { what: "`{}`", short: None, flat: &[], keys: &[] });

/// Reads the empty mapping of such a key.
pub(crate) fn read_bare(cx: &mut Context, node: &Node, path: &str) {
    if !node.is_empty_map() {
        let key = cx.key_of(path);
        cx.refuse(path, node.at, format!("`{key}` must be `{{}}`"), Some(format!("write `{key}: {{}}`")));
    }
}

/// Reads the value of an optional key.
pub(crate) fn optional<T: Field>(cx: &mut Context, fields: &Fields, key: &Key) -> Option<T> {
    match fields.get(key.name) {
        Some(node) => Some(T::read(cx, node, &fields.path_of(key.name), &key.kind)),
        None => {
            cx.excuse(fields, key.name);
            None
        }
    }
}

/// Reads the value of a required key. `what` is the noun for its mapping.
pub(crate) fn required<T: Field>(cx: &mut Context, fields: &Fields, key: &Key, what: &str) -> T {
    match cx.require(fields, key.name, what) {
        Some(node) => T::read(cx, node, &fields.path_of(key.name), &key.kind),
        None => T::unread(),
    }
}

impl Object {
    /// Returns the names of all keys of the mapping.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let flat = self.flat.iter().flat_map(|flat| flat.forms.keys).map(|(key, ..)| *key);
        self.keys.iter().map(|key| key.name).chain(flat)
    }

    /// Returns the key of that name. Panics if there is none.
    pub(crate) fn key(&self, name: &str) -> &Key {
        self.keys.iter().find(|key| key.name == name).expect("a key of the table")
    }

    /// Returns the noun for the mapping without its article, and with the name of the instance if it has one: task
    /// `control`.
    pub(crate) fn whose(&self, fields: &Fields) -> String {
        let noun = self.what.strip_prefix("a ").or(self.what.strip_prefix("an "));
        // The name identifies a task of a group: messages leave out "of a group".
        let noun = noun.map(|noun| noun.split(" of ").next().unwrap_or(noun));
        match (noun, fields.name()) {
            (Some(noun), Some(name)) => format!("{noun} `{name}`"),
            (Some(noun), None) => format!("the {noun}"),
            (None, _) => self.what.into(),
        }
    }
}

/// Collects the entries that are present. The entries of `flat` forms come after the name, if there is one.
pub(crate) fn beside_name(entries: Vec<Option<(&'static str, Text)>>, flat: Vec<Text>) -> Vec<(&'static str, Text)> {
    let mut entries: Vec<_> = entries.into_iter().flatten().collect();
    let place = usize::from(entries.first().is_some_and(|(key, _)| *key == "name"));
    let of_form = |form| match form {
        Text::Map(entries) => entries,
        _ => unreachable!("forms without words and plain values are mappings"),
    };
    entries.splice(place..place, flat.into_iter().flat_map(of_form));
    entries
}

/// Returns the mapping, or its short form.
pub(crate) fn shortened(mut entries: Vec<(&'static str, Text)>, object: &Object) -> Text {
    match &entries[..] {
        [(key, _)] if Some(*key) == object.short => entries.remove(0).1,
        _ => Text::Map(entries),
    }
}
