//! Cause-effect chains.

use super::MAX_LONG_NAME;
use crate::keys::{object, Kind};
use crate::time::Duration;

object! {
    /// A cause-effect chain with at least one bound.
    pub struct Chain: "a chain" {
        "name" name: String [Kind::Name { most: MAX_LONG_NAME }], required = "Its name, unique among chains.";
        "path" path: Vec<String> [Kind::List(&Kind::Text("tasks"))], required
            = "Names of at least two different tasks, from cause to effect.";
        "reaction" reaction: Option<Duration>, optional "none" = "Bound on the reaction time.";
        "age" age: Option<Duration>, optional "none" = "Bound on the data age.";
    }
}
