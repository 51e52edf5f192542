//! Systems.

use macrotick_model::{Duration, Namespace, SyncWindow, System, Task};

/// Returns a system of these tasks, on CPU 0.
pub fn system(name: &str, tasks: Vec<Task>) -> System {
    System { tasks, ..System::named(name) }
}

/// Returns the system of a valid description.
///
/// # Panics
///
/// Panics if the description is invalid, with the message that a user would see.
#[track_caller]
pub fn described(text: &str) -> System {
    System::parse(text, "fixture.yaml").unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

/// Returns a network namespace with this address and prefix length.
pub fn namespace(name: &str, address: &str) -> Namespace {
    Namespace { name: name.into(), address: address.into(), host: None }
}

/// Returns sync windows at this offset of each period.
pub fn sync(period: Duration, offset: Duration, length: Duration, bound: Duration) -> SyncWindow {
    SyncWindow { period, offset, length, bound }
}
