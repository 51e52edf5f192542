//! The one table of keys: what a description may say, declared where its types are.
//!
//! [`object!`], [`forms!`] and [`words!`] declare a type of the description together with its keys: for each the kind of its
//! value, the range, what holds where it is left out, and one sentence. From that come the decoder, the rules of single values,
//! the emitter, the tables of `docs/system-yaml.md`, the JSON Schema and `macrotick explain`.

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

/// What stands under a key.
#[derive(Debug)]
pub enum Kind {
    /// A name of at most so many bytes.
    Name {
        /// The most bytes.
        most: usize,
    },
    /// Any text; what it is, in words.
    Text(&'static str),
    /// A time within a range, both ends included.
    Time {
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// A whole number within a range, both ends included.
    Integer {
        /// The least.
        least: i64,
        /// The greatest.
        most: i64,
    },
    /// The number of a CPU.
    Cpu,
    /// `true` or `false`.
    Flag,
    /// One of some words.
    Words(&'static Words),
    /// A list, each item of this kind.
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
    /// Some numbers of CPUs.
    pub const CPUS: Kind = Kind::List(&Kind::Cpu);
    /// The highest number of a CPU that any Linux supports.
    const LAST_CPU: i64 = 8191;

    /// The range of a whole number, both ends included; `None`: it is something else.
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
    /// What it is, in words: `a task`.
    pub what: &'static str,
    /// The key whose value, a list, may stand for the whole mapping.
    pub short: Option<&'static str>,
    /// Forms whose keys stand in the mapping itself, just one of them.
    pub flat: &'static [Flat],
    /// Its keys, in the order of the reference.
    pub keys: &'static [Key],
}

/// Forms whose keys stand in a mapping among others.
#[derive(Debug)]
pub struct Flat {
    /// The forms; they have neither words nor a plain value.
    pub forms: &'static Forms,
    /// What holds where none of their keys is there; `None`: one must be.
    pub otherwise: Option<&'static str>,
}

/// A key of a mapping.
#[derive(Debug)]
pub struct Key {
    /// How it is spelt.
    pub name: &'static str,
    /// What stands under it.
    pub kind: Kind,
    /// What holds where it is left out; `None`: it may not be.
    pub otherwise: Option<&'static str>,
    /// What it says, in one sentence.
    pub about: &'static str,
}

/// One of several words.
#[derive(Debug)]
pub struct Words {
    /// What they are, in words: `a reaction to a miss`.
    pub what: &'static str,
    /// Each word, and what it says.
    pub words: &'static [(&'static str, &'static str)],
}

/// One of several forms: a plain value, a word, or a mapping with just one of some keys.
#[derive(Debug)]
pub struct Forms {
    /// What it is, in words: `a workload`.
    pub what: &'static str,
    /// The plain value, and what it says.
    pub plain: Option<(Kind, &'static str)>,
    /// Each word, and what it says.
    pub words: &'static [(&'static str, &'static str)],
    /// Each key, what stands under it, and what that says.
    pub keys: &'static [(&'static str, Kind, &'static str)],
}

/// A value of a description. What cannot be read is told and marked as broken, and something stands for it, on which no rule
/// is applied.
pub(crate) trait Field: Sized {
    /// What it is where the key says no more.
    const KIND: Kind;

    /// Reads it. `path` is where it stands.
    fn read(cx: &mut Context, node: &Node, path: &str, kind: &Kind) -> Self;

    /// Stands for what could not be read.
    fn unread() -> Self;

    /// Writes it.
    fn write(&self) -> Text;

    /// The rules of the value by itself. `key` is what messages call it.
    fn check(&self, path: &str, key: &str, kind: &Kind, found: &mut Found);

    /// Whether it is what holds where the key is left out, so that it need not be written.
    fn is_left_out(&self) -> bool {
        false
    }

    /// What becomes of several in a list: CPUs are sorted.
    fn arrange(_items: &mut [Self]) {}
}

/// A sentence of the table without its links, which are the reference's: `[text](to)` is the text, and where that says
/// nothing by itself the file that it leads to.
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
    let to = match to.strip_prefix('#') {
        Some(anchor) => format!("docs/system-yaml.md#{anchor}"),
        None => format!("docs/{to}"),
    };
    match shown {
        "how" | "why" => to,
        "see below" => format!("see {to}"),
        _ if before.ends_with("see ") => to,
        _ => shown.into(),
    }
}

/// What a description of a system says.
pub fn system_keys() -> &'static Kind {
    &const { Kind::Object(crate::System::OBJECT) }
}

/// What a description of a container says.
pub fn container_keys() -> &'static Kind {
    &const { Kind::Object(crate::Container::OBJECT) }
}

/// Under a key of which nothing else is to say.
pub(crate) const BARE: Kind = Kind::Object(&Object { what: "`{}`", short: None, flat: &[], keys: &[] });

/// Reads what stands under such a key.
pub(crate) fn read_bare(cx: &mut Context, node: &Node, path: &str) {
    if !node.is_empty_map() {
        let key = cx.key_of(path);
        cx.refuse(path, node.at, format!("nothing is to say of `{key}`"), Some(format!("write `{key}: {{}}`")));
    }
}

/// Reads the value of a key that may be left out.
pub(crate) fn optional<T: Field>(cx: &mut Context, fields: &Fields, key: &Key) -> Option<T> {
    match fields.get(key.name) {
        Some(node) => Some(T::read(cx, node, &fields.path_of(key.name), &key.kind)),
        None => {
            cx.excuse(fields, key.name);
            None
        }
    }
}

/// Reads the value of a key that may not be left out; `what` is its mapping, in words.
pub(crate) fn required<T: Field>(cx: &mut Context, fields: &Fields, key: &Key, what: &str) -> T {
    match cx.require(fields, key.name, what) {
        Some(node) => T::read(cx, node, &fields.path_of(key.name), &key.kind),
        None => T::unread(),
    }
}

impl Object {
    /// All keys that may stand in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let flat = self.flat.iter().flat_map(|flat| flat.forms.keys).map(|(key, ..)| *key);
        self.keys.iter().map(|key| key.name).chain(flat)
    }

    /// The key of that name, which the code that asks knows to be there.
    pub(crate) fn key(&self, name: &str) -> &Key {
        self.keys.iter().find(|key| key.name == name).expect("a key of the table")
    }

    /// The mapping without an article, and with its name where it has one: task `control`.
    pub(crate) fn whose(&self, fields: &Fields) -> String {
        let noun = self.what.strip_prefix("a ").or(self.what.strip_prefix("an "));
        // A task of a group is told by its name, not by its group's kind.
        let noun = noun.map(|noun| noun.split(" of ").next().unwrap_or(noun));
        match (noun, fields.name()) {
            (Some(noun), Some(name)) => format!("{noun} `{name}`"),
            (Some(noun), None) => format!("the {noun}"),
            (None, _) => self.what.into(),
        }
    }
}

/// The entries that are there, with what is `flat` behind the name, where there is one.
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

/// A mapping, or what is short for it.
pub(crate) fn shortened(mut entries: Vec<(&'static str, Text)>, object: &Object) -> Text {
    match &entries[..] {
        [(key, _)] if Some(*key) == object.short => entries.remove(0).1,
        _ => Text::Map(entries),
    }
}
