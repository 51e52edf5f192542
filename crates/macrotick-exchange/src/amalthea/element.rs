//! An element of a model, its attributes, and its place.

use std::rc::Rc;

use super::document::Parsed;
use crate::findings::cut;

/// An element.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    node: roxmltree::Node<'a, 'a>,
    file: &'a Parsed<'a>,
}

/// The identity of an element in a model.
pub type Key = (usize, u32);

/// The reason why an element has no counterpart, with its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// File, line and path.
    pub place: String,
    /// The reason.
    pub reason: String,
}

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
const XMI: &str = "http://www.omg.org/XMI";
/// The most levels that a path looks at, and the most that it shows.
const MOST_LEVELS: usize = 256;
const MOST_SHOWN: usize = 6;

impl<'a> Element<'a> {
    /// Returns the outermost element of a file.
    pub fn root(file: &'a Parsed<'a>) -> Element<'a> {
        Element { node: file.document.root_element(), file }
    }

    /// Returns the name of the file.
    pub fn file(&self) -> &'a str {
        self.file.name
    }

    /// Returns the identity.
    pub fn key(&self) -> Key {
        (self.file.index, self.node.id().get())
    }

    /// Returns the name of the tag.
    pub fn tag(&self) -> &'a str {
        self.node.tag_name().name()
    }

    /// Returns the class that `xsi:type` gives, without the prefix. Otherwise the tag gives the class.
    pub fn kind(&self) -> &'a str {
        let written = self.node.attribute((XSI, "type")).map(|kind| kind.rsplit(':').next().unwrap_or(kind));
        written.unwrap_or_else(|| class_of(self.tag()))
    }

    /// Returns the name, which is empty if there is none.
    pub fn name(&self) -> &'a str {
        self.attribute("name").unwrap_or_default()
    }

    /// Returns the identifier that newer files have.
    pub fn id(&self) -> Option<&'a str> {
        self.node.attribute((XMI, "id"))
    }

    /// Returns an attribute without a namespace.
    pub fn attribute(&self, key: &str) -> Option<&'a str> {
        // The look-up by name alone would also find `xsi:type` for `type`.
        let mut attributes = self.node.attributes();
        attributes
            .find(|attribute| attribute.namespace().is_none() && attribute.name() == key)
            .map(|found| found.value())
    }

    /// Whether the element refers to others by this key.
    pub fn refers_to(self, key: &'a str) -> bool {
        self.attribute(key).is_some() || self.child(key).is_some()
    }

    /// Returns all elements within, in the order of the file.
    pub fn descendants(self) -> impl Iterator<Item = Element<'a>> {
        self.node.descendants().filter(|node| node.is_element()).map(move |node| Element { node, ..self })
    }

    /// Returns the elements directly within.
    pub fn elements(self) -> impl Iterator<Item = Element<'a>> {
        self.node.children().filter(|node| node.is_element()).map(move |node| Element { node, ..self })
    }

    /// Returns the elements directly within that have this tag.
    pub fn children(self, tag: &'a str) -> impl Iterator<Item = Element<'a>> {
        self.elements().filter(move |element| element.tag() == tag)
    }

    /// Returns the first element directly within that has this tag.
    pub fn child(self, tag: &'a str) -> Option<Element<'a>> {
        self.children(tag).next()
    }

    /// Returns the element around this one.
    pub fn parent(self) -> Option<Element<'a>> {
        self.node.parent_element().map(|node| Element { node, ..self })
    }

    /// Returns the path below the part of the model, such as `tasks.Fast.activityGraph.items(Group)`.
    pub fn path(self) -> String {
        let level = |element: Element| match (element.name(), element.node.attribute((XSI, "type"))) {
            ("", None) => element.tag().to_owned(),
            ("", Some(_)) => format!("{}({})", element.tag(), cut(element.kind())),
            (name, _) => format!("{}.{}", element.tag(), cut(name)),
        };
        let is_part = |element: &Element| element.parent().is_none_or(|parent| parent.parent().is_none());
        let inner = std::iter::successors(Some(self), |element| element.parent());
        let mut levels: Vec<Element> = inner.take_while(|one| !is_part(one)).take(MOST_LEVELS).collect();
        levels.reverse();
        let shown: Vec<String> = levels.iter().take(MOST_SHOWN).map(|one| level(*one)).collect();
        match levels.len() {
            0 => cut(self.tag()),
            count if count > MOST_SHOWN => format!("{}...{}", shown.join("."), level(self)),
            _ => shown.join("."),
        }
    }

    /// Returns file, line and path.
    pub fn place(self) -> String {
        format!("{}:{}: {}", self.file.name, self.file.line(self.node.range().start), self.path())
    }

    /// Returns a refusal at this place.
    pub fn refusal(self, reason: impl Into<String>) -> Refusal {
        Refusal { place: self.place(), reason: reason.into() }
    }

    /// Returns a refusal that several users of the element can have.
    pub fn shared_refusal(self, reason: impl Into<String>) -> Rc<Refusal> {
        Rc::new(self.refusal(reason))
    }
}

/// Returns the class that a tag determines, for elements without `xsi:type`. References name classes.
fn class_of(tag: &str) -> &str {
    match tag {
        "tasks" => "Task",
        "isrs" => "ISR",
        "runnables" => "Runnable",
        "processPrototypes" => "ProcessPrototype",
        "eventChains" => "EventChain",
        "eventChain" => "SubEventChain",
        "taskSchedulers" => "TaskScheduler",
        "interruptControllers" => "InterruptController",
        "featureCategories" => "HwFeatureCategory",
        "features" => "HwFeature",
        "cores" => "Core",
        "coreTypes" => "CoreType",
        "quartzes" => "Quartz",
        _ => "",
    }
}
