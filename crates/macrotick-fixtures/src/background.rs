//! Loads beside the tasks.

use macrotick_model::{Background, Load};

/// A process that computes without end.
pub fn hog(name: &str) -> Background {
    Background::named(name, Load::Hog)
}
