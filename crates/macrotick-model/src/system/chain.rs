//! Cause-effect chains.

use super::MAX_LONG_NAME;
use crate::keys::{object, Kind};
use crate::time::Duration;

object! {
    /// A cause-effect chain with at least one bound.
    pub struct Chain: "a chain" {
        "name" name: String [Kind::Name { most: MAX_LONG_NAME }], required = "The name of the chain, unique among chains.";
        "path" path: Vec<String> [Kind::List(&Kind::Text("tasks"))], required
            = "The names of at least two tasks, in order from cause to effect. No task follows itself.";
        "reaction" reaction: Option<Duration>, optional "none" = "Upper bound on the reaction time.";
        "age" age: Option<Duration>, optional "none" = "Upper bound on the data age.";
    }
}
