//! The gates of an interface: planned, or a gate list by hand.

use crate::gates::GateEntry;
use crate::keys::{required, Field, Forms, Found, Key, Kind, Object, Text};
use crate::parse::{Context, Node};
use crate::time::Duration;

/// The gates of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gates {
    /// The planner makes the gate list.
    Planned,
    /// A gate list by hand. It starts at the epoch and repeats.
    Given(Vec<GateEntry>),
}

impl Gates {
    const FORMS: &'static Forms = &Forms {
        what: "`gates`",
        plain: Some((
            Kind::List(&GateEntry::KIND),
            "A gate list by hand: intervals in order, from the epoch on. The cycle is a multiple of their sum.",
        )),
        words: &[("planned", "The planner makes the gate list, from flows, slots and the class `sync`.")],
        keys: &[],
    };
}

impl Field for Gates {
    const KIND: Kind = Kind::Forms(Self::FORMS);

    fn read(cx: &mut Context, node: &Node, path: &str, _: &Kind) -> Self {
        if node.scalar() == Some("planned") {
            return Gates::Planned;
        }
        if node.is_list() {
            return Gates::Given(Field::read(cx, node, path, &Kind::List(&GateEntry::KIND)));
        }
        match node.scalar() {
            Some(text) if in_tc(text).is_none() => cx.unknown(node, path, "gates", vec!["planned", LIST]),
            text => {
                let what = text.map_or(node.kind().into(), |text| format!("`{text}`"));
                let text = format!("`gates` must be `planned` or a list, this is {what}");
                cx.refuse(path, node.at, text, Some(format!("write `{LIST}`")));
            }
        }
        Self::unread()
    }

    fn unread() -> Self {
        Gates::Planned
    }

    fn write(&self) -> Text {
        match self {
            Gates::Planned => Text::Word("planned".into()),
            Gates::Given(entries) => entries.write(),
        }
    }

    fn check(&self, path: &str, key: &str, _: &Kind, found: &mut Found) {
        if let Gates::Given(entries) = self {
            entries.check(path, key, &Kind::List(&GateEntry::KIND), found);
        }
    }
}

/// The form of a list of gates, in hints.
const LIST: &str = "[{length: TIME, open: [CLASS, ...]}, ...]";

impl GateEntry {
    const OBJECT: &'static Object = &Object {
        what: "an interval",
        short: None,
        flat: &[],
        keys: &[
            Key {
                name: "length",
                kind: Kind::LENGTH,
                otherwise: None,
                about: "Length of the interval, at least the time of the shortest frame on the link.",
            },
            Key {
                name: "open",
                kind: Kind::List(&Kind::Text("classes")),
                otherwise: None,
                about: "The names of the classes that may send. The gates of all others are closed.",
            },
        ],
    };
}

impl Field for GateEntry {
    const KIND: Kind = Kind::Object(Self::OBJECT);

    fn read(cx: &mut Context, node: &Node, path: &str, _: &Kind) -> Self {
        if let Some(text) = node.scalar() {
            let length = in_tc(text).map_or("TIME".into(), |length| length.to_string());
            let hint = format!("write `{{length: {length}, open: [CLASS, ...]}}`, with the names of the open classes");
            cx.refuse(path, node.at, format!("an interval must be a mapping, this is `{text}`"), Some(hint));
            return Self::unread();
        }
        let Some(fields) = cx.fields(node, path, Self::OBJECT) else { return Self::unread() };
        let length = required(cx, &fields, Self::OBJECT.key("length"), "the interval");
        let open = match fields.get("open").and_then(|node| Some((node, mask(node.scalar()?)?))) {
            Some((node, mask)) => {
                let text = format!("`open` must be a list of classes, this is the mask `{mask}`");
                let hint = "write the names of the open classes, as in `open: [NAME, ...]`";
                cx.refuse(&fields.path_of("open"), node.at, text, Some(hint.into()));
                Vec::new()
            }
            None => required(cx, &fields, Self::OBJECT.key("open"), "the interval"),
        };
        GateEntry { length, open }
    }

    fn unread() -> Self {
        GateEntry { length: Duration::unread(), open: Vec::new() }
    }

    fn write(&self) -> Text {
        Text::Map(vec![("length", self.length.write()), ("open", self.open.write())])
    }

    fn check(&self, path: &str, _: &str, _: &Kind, found: &mut Found) {
        self.length.check(&format!("{path}.length"), "length", &Kind::LENGTH, found);
    }
}

/// Returns the text of a mask of gates, if it is one.
fn mask(text: &str) -> Option<&str> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(text)
}

/// Returns the length of an entry in the form of tc(8): `S 01 300000`, with or without `sched-entry` before it.
fn in_tc(text: &str) -> Option<Duration> {
    let mut words = text.split_whitespace().skip_while(|word| *word == "sched-entry");
    let (command, gates, length, end) = (words.next()?, words.next()?, words.next()?, words.next());
    let command = command.len() == 1 && command.bytes().all(|byte| byte.is_ascii_uppercase());
    let length = length.parse().ok().map(Duration::from_nanos)?;
    (command && mask(gates).is_some() && end.is_none()).then_some(length)
}
