//! Systems.

use macrotick_model::{Duration, Namespace, SyncWindow, System, Task};

/// A system of these tasks, on CPU 0.
pub fn system(name: &str, tasks: Vec<Task>) -> System {
    System { tasks, ..System::named(name) }
}

/// The system of a description, which must be a valid one.
///
/// # Panics
///
/// It is not: the message is what a user is shown.
#[track_caller]
pub fn described(text: &str) -> System {
    System::parse(text, "fixture.yaml").unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

/// A network namespace with this address and length of the prefix.
pub fn namespace(name: &str, address: &str) -> Namespace {
    Namespace { name: name.into(), address: address.into() }
}

/// Sync windows at this offset of each period.
pub fn sync(period: Duration, offset: Duration, length: Duration, bound: Duration) -> SyncWindow {
    SyncWindow { period, offset, length, bound }
}
