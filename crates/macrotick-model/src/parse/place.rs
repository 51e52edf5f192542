//! Findings of others, who look at what was read only later, at their places in the text.

use super::{read, Context, Node};
use crate::container::Container;
use crate::diagnostic::Diagnostics;
use crate::system::System;
use crate::validate::Problem;

/// What somebody else found in a description: the path of a value, such as `groups[1].budget`, what is wrong, and what
/// would mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The path. Where the value was left out, what is around it is shown.
    pub at: String,
    /// What is wrong, and why.
    pub message: String,
    /// What would mend it.
    pub hint: Option<String>,
}

impl System {
    /// Findings about a description that was read without an error, at their places in its text.
    pub fn refuse(source: &str, path: &str, findings: Vec<Finding>) -> Diagnostics {
        refuse(source, path, findings, |cx, root| drop(cx.system(root)))
    }
}

impl Container {
    /// Findings about a description that was read without an error, at their places in its text.
    pub fn refuse(source: &str, path: &str, findings: Vec<Finding>) -> Diagnostics {
        refuse(source, path, findings, |cx, root| drop(cx.container(root)))
    }
}

/// Reads it once more, for the places: they are of no use to anybody else, so nobody carries them along.
fn refuse(source: &str, path: &str, findings: Vec<Finding>, decode: fn(&mut Context, &Node)) -> Diagnostics {
    let placed = read(source, |cx, root| {
        decode(cx, root);
        for Finding { at, message, hint } in findings {
            cx.apply(Problem { at, needs: Vec::new(), message, hint });
        }
        None::<()>
    });
    Diagnostics::new(path, source, placed.err().unwrap_or_default())
}
