//! The single values of mappings.

use std::collections::BTreeSet;

use super::check::out_of_range;
use super::{Field, Found, Kind, Text};
use crate::cpus::CpuSet;
use crate::parse::{Context, Node};
use crate::time::Duration;
use crate::units::{Size, Speed};

/// The placeholder for a time that cannot be read. Rules that depend on it are not applied.
const UNREAD: Duration = Duration::from_secs(1);

impl Field for Duration {
    const KIND: Kind = Kind::LENGTH;

    fn read(cx: &mut Context, node: &Node, path: &str, _: &Kind) -> Self {
        cx.duration(node, path).unwrap_or(UNREAD)
    }

    fn unread() -> Self {
        UNREAD
    }

    fn write(&self) -> Text {
        Text::Word(self.to_string())
    }

    fn check(&self, path: &str, key: &str, kind: &Kind, found: &mut Found) {
        found.time(path, key, *self, kind);
    }
}

impl Field for Size {
    const KIND: Kind = Kind::SIZE;

    fn read(cx: &mut Context, node: &Node, path: &str, _: &Kind) -> Self {
        cx.quantity(node, path).unwrap_or_else(Self::unread)
    }

    fn unread() -> Self {
        Size::from_bytes(64)
    }

    fn write(&self) -> Text {
        Text::Word(self.to_string())
    }

    fn check(&self, path: &str, key: &str, kind: &Kind, found: &mut Found) {
        if let &Kind::Size { least, most } = kind {
            found.between(path, key, *self, least, most);
        }
    }
}

impl Field for Speed {
    const KIND: Kind = Kind::Speed;

    fn read(cx: &mut Context, node: &Node, path: &str, _: &Kind) -> Self {
        cx.quantity(node, path).unwrap_or_else(Self::unread)
    }

    fn unread() -> Self {
        Speed::VIRTUAL
    }

    fn write(&self) -> Text {
        Text::Word(self.to_string())
    }

    fn check(&self, path: &str, key: &str, _: &Kind, found: &mut Found) {
        found.between(path, key, *self, Speed::MIN, Speed::MAX);
    }
}

impl Field for bool {
    const KIND: Kind = Kind::Flag;

    fn read(cx: &mut Context, node: &Node, path: &str, _: &Kind) -> Self {
        cx.boolean(node, path).unwrap_or_default()
    }

    fn unread() -> Self {
        false
    }

    fn write(&self) -> Text {
        Text::Flag(*self)
    }

    fn check(&self, _: &str, _: &str, _: &Kind, _: &mut Found) {}

    fn is_left_out(&self) -> bool {
        !self
    }
}

impl Field for String {
    const KIND: Kind = Kind::Text("text");

    fn read(cx: &mut Context, node: &Node, path: &str, _: &Kind) -> Self {
        cx.text(node, path).map_or_else(Self::unread, String::from)
    }

    fn unread() -> Self {
        "unread".into()
    }

    fn write(&self) -> Text {
        Text::Word(self.clone())
    }

    fn check(&self, path: &str, _: &str, kind: &Kind, found: &mut Found) {
        if let &Kind::Name { most } = kind {
            found.name(path, self, most);
        }
    }
}

/// Whole numbers. A number out of range becomes the placeholder when it is read, because the type may not hold it.
macro_rules! integers {
    ($($type:ty),*) => {
        $(impl Field for $type {
            const KIND: Kind = Kind::Integer { least: <$type>::MIN as i64, most: <$type>::MAX as i64 };

            fn read(cx: &mut Context, node: &Node, path: &str, kind: &Kind) -> Self {
                let Some(number) = cx.integer(node, path) else { return Self::unread() };
                let (least, most) = kind.range().expect("a number has a range");
                match Self::try_from(number) {
                    Ok(value) if (least..=most).contains(&number) => value,
                    _ => {
                        cx.refuse(path, node.at, out_of_range(cx.key_of(path), number, least, most), None);
                        Self::unread()
                    }
                }
            }

            fn unread() -> Self {
                1
            }

            fn write(&self) -> Text {
                Text::Number((*self).into())
            }

            fn check(&self, path: &str, key: &str, kind: &Kind, found: &mut Found) {
                found.integer(path, key, (*self).into(), kind);
            }

            fn arrange(items: &mut [Self]) {
                items.sort_unstable();
            }
        })*
    };
}

integers!(u8, i8, u32);

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;

    fn read(cx: &mut Context, node: &Node, path: &str, kind: &Kind) -> Self {
        Some(T::read(cx, node, path, kind))
    }

    fn unread() -> Self {
        None
    }

    fn write(&self) -> Text {
        self.as_ref().expect("what is left out is not written").write()
    }

    fn check(&self, path: &str, key: &str, kind: &Kind, found: &mut Found) {
        if let Some(value) = self {
            value.check(path, key, kind, found);
        }
    }

    fn is_left_out(&self) -> bool {
        self.is_none()
    }
}

impl<T: Field> Field for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);

    fn read(cx: &mut Context, node: &Node, path: &str, kind: &Kind) -> Self {
        let Some(list) = cx.list(node, path) else { return Vec::new() };
        if list.is_empty() && matches!(kind, Kind::List(Kind::Cpu)) {
            cx.refuse(path, node.at, "no CPU is listed", Some("leave it out".into()));
        }
        let mut items = Vec::with_capacity(list.len());
        for (index, node) in list.iter().enumerate() {
            let path = format!("{path}[{index}]");
            cx.place(&path, node.at);
            items.push(T::read(cx, node, &path, of(kind)));
        }
        T::arrange(&mut items);
        items
    }

    fn unread() -> Self {
        Vec::new()
    }

    fn write(&self) -> Text {
        Text::List(self.iter().map(T::write).collect())
    }

    fn check(&self, path: &str, _: &str, kind: &Kind, found: &mut Found) {
        for (index, item) in self.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let key = path.rsplit('.').next().unwrap_or(&path);
            item.check(&path, key.split('[').next().unwrap_or(key), of(kind), found);
        }
    }

    fn is_left_out(&self) -> bool {
        self.is_empty()
    }
}

fn of(kind: &Kind) -> &Kind {
    match kind {
        Kind::List(of) => of,
        other => other,
    }
}

/// A set does not show duplicates, so its decoder looks for them.
impl Field for CpuSet {
    const KIND: Kind = Kind::CPUS;

    fn read(cx: &mut Context, node: &Node, path: &str, kind: &Kind) -> Self {
        let cpus = Vec::<u32>::read(cx, node, path, kind);
        let mut seen = BTreeSet::new();
        if let Some(twice) = cpus.iter().find(|cpu| !seen.insert(**cpu)) {
            cx.report(path, node.at, format!("CPU {twice} is listed twice"), None);
        }
        cpus.into_iter().collect()
    }

    fn unread() -> Self {
        CpuSet::default()
    }

    fn write(&self) -> Text {
        Text::List(self.as_slice().iter().map(u32::write).collect())
    }

    fn check(&self, path: &str, key: &str, kind: &Kind, found: &mut Found) {
        self.as_slice().iter().for_each(|cpu| cpu.check(path, key, of(kind), found));
    }

    fn is_left_out(&self) -> bool {
        self.is_empty()
    }
}
