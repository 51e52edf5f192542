//! Findings of later stages about a description, at their places in its text.

use super::{read, Context, Node};
use crate::container::Container;
use crate::diagnostic::Diagnostics;
use crate::system::System;
use crate::validate::Problem;

/// A finding of a later stage about a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The path of the value, such as `groups[1].budget`. For a default, the place is the mapping around it.
    pub at: String,
    /// The error and its reason.
    pub message: String,
    /// A way to correct it.
    pub hint: Option<String>,
}

impl System {
    /// Shows findings about a description, which was read without an error before, at their places in its text.
    pub fn refuse(source: &str, path: &str, findings: Vec<Finding>) -> Diagnostics {
        refuse(source, path, findings, |cx, root| drop(cx.system(root)))
    }
}

impl Container {
    /// Shows findings about a description, which was read without an error before, at their places in its text.
    pub fn refuse(source: &str, path: &str, findings: Vec<Finding>) -> Diagnostics {
        refuse(source, path, findings, |cx, root| drop(cx.container(root)))
    }
}

/// Reads the text again to find the places. Only errors need them, so the system does not contain them.
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
