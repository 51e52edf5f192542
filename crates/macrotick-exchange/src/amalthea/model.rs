//! All files as one model, and the references between elements.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::HashMap;

use super::document::Parsed;
use super::element::{Element, Refusal};
use crate::findings::cut;

/// The elements that references can name.
pub struct Model<'a> {
    roots: Vec<Element<'a>>,
    /// Elements by the identifier that newer files have.
    by_id: HashMap<&'a str, Found<'a>>,
    /// Elements by class and name. The name stands alone, and behind that of the element around it.
    by_name: HashMap<(&'a str, Cow<'a, str>), Found<'a>>,
}

#[derive(Clone, Copy)]
enum Found<'a> {
    One(Element<'a>),
    Several,
}

impl<'a> Model<'a> {
    /// Collects the elements of all files.
    ///
    /// # Errors
    ///
    /// If a file has another outermost element, or leaves a part of the model to a file that only it names.
    pub fn new(files: &'a [Parsed<'a>]) -> Result<Model<'a>, Refusal> {
        let roots: Vec<Element> = files.iter().map(Element::root).collect();
        let mut model = Model { roots, by_id: HashMap::new(), by_name: HashMap::new() };
        for root in model.roots.clone() {
            if root.tag() != "Amalthea" {
                return Err(root.refusal(format!("the file has `{}` in place of `Amalthea`", cut(root.tag()))));
            }
            if let Some(part) = root.elements().find(|part| part.attribute("href").is_some()) {
                return Err(part.refusal("another file has this part: let each file begin with `Amalthea`"));
            }
            root.descendants().for_each(|element| model.add(element));
        }
        Ok(model)
    }

    fn add(&mut self, element: Element<'a>) {
        if let Some(id) = element.id() {
            put(self.by_id.entry(id), element);
        }
        let (kind, name) = (element.kind(), element.name());
        if kind.is_empty() || name.is_empty() {
            return;
        }
        put(self.by_name.entry((kind, Cow::Borrowed(name))), element);
        // Only features are named together with their category.
        if let Some(parent) = element.parent().filter(|_| kind == "HwFeature") {
            put(self.by_name.entry((kind, Cow::Owned(format!("{}/{name}", parent.name())))), element);
        }
    }

    /// Returns the elements with this tag in one part of all files, such as `tasks` of `swModel`.
    pub fn all<'m>(&'m self, part: &'a str, tag: &'a str) -> impl Iterator<Item = Element<'a>> + 'm {
        self.part(part).flat_map(move |part| part.children(tag))
    }

    /// Returns one part of all files, such as `hwModel`.
    pub fn part<'m>(&'m self, part: &'a str) -> impl Iterator<Item = Element<'a>> + 'm {
        self.roots.iter().flat_map(move |root| root.children(part))
    }

    /// Returns a refusal about a part that no file has, at the first file.
    pub fn refusal(&self, part: &str, reason: impl Into<String>) -> Refusal {
        let file = self.roots.first().map(|root| format!("{}: ", root.file())).unwrap_or_default();
        Refusal { place: file + part, reason: reason.into() }
    }

    /// Returns the elements that an element refers to: by an attribute with a list, or by elements with `href`.
    pub fn targets(&self, element: Element<'a>, key: &'a str) -> Result<Vec<Element<'a>>, Refusal> {
        let listed = element.attribute(key).into_iter().flat_map(str::split_ascii_whitespace);
        let linked = element.children(key).filter_map(|child| child.attribute("href"));
        let all = listed.chain(linked);
        all.map(|reference| self.target(reference).map_err(|reason| element.refusal(format!("`{key}`: {reason}"))))
            .collect()
    }

    /// Returns the one element that an element refers to, if it refers to any.
    pub fn target_of(&self, element: Element<'a>, key: &'a str) -> Result<Option<Element<'a>>, Refusal> {
        let targets = self.targets(element, key)?;
        match targets[..] {
            [] => Ok(None),
            [target] => Ok(Some(target)),
            _ => Err(element.refusal(format!("`{key}` names {} elements in place of one", targets.len()))),
        }
    }

    /// Returns the element of a reference: `NAME?type=CLASS`, or an identifier. A file can stand before `#`.
    fn target(&self, reference: &str) -> Result<Element<'a>, String> {
        // Names are encoded, so they contain no `#`.
        let fragment = reference.rsplit('#').next().unwrap_or(reference);
        let by_id = self.by_id.get(fragment);
        let found = by_id.or_else(|| {
            let (name, kind) = fragment.split_once("?type=")?;
            let name = decoded(name);
            let named = |kind| self.by_name.get(&(kind, Cow::Owned(name.clone())));
            // Older files give chains within others the class of those around them.
            named(kind).or_else(|| named("SubEventChain").filter(|_| kind == "EventChain"))
        });
        match found {
            Some(Found::One(element)) => Ok(*element),
            Some(Found::Several) => Err(format!("several elements are `{}`", cut(fragment))),
            None => Err(format!("no element is `{}`", cut(fragment))),
        }
    }
}

fn put<'a, K>(entry: Entry<K, Found<'a>>, element: Element<'a>) {
    match entry {
        Entry::Vacant(vacant) => {
            vacant.insert(Found::One(element));
        }
        Entry::Occupied(mut occupied) => {
            occupied.insert(Found::Several);
        }
    }
}

/// Decodes a name of a reference: `+` is a space, and `%` stands before two hexadecimal digits of a byte.
fn decoded(name: &str) -> String {
    let digit = |byte: &u8| (*byte as char).to_digit(16);
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, others @ ..] = rest {
        let coded = match (*first, others) {
            (b'%', [high, low, ..]) => digit(high).zip(digit(low)),
            _ => None,
        };
        match (coded, *first) {
            (Some((high, low)), _) => bytes.push((high * 16 + low) as u8),
            (None, b'+') => bytes.push(b' '),
            (None, byte) => bytes.push(byte),
        }
        rest = if coded.is_some() { &others[2..] } else { others };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded() {
        assert_eq!(decoded("Task+1%2F%C3%A4"), "Task 1/\u{e4}");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
