//! Tests of network deployments (`macrotick_host::net`) on a real kernel.
//!
//! The binary runs inside a guest of the lab. It runs every scenario of [`scenarios`] in its own process, and prints
//! one line for each, `name: ok` or `name: FAILED`. The host test in `tests/` starts the guest, and requires exactly one
//! line `ok` for every name of the same list.

pub mod container;
pub mod pair;
pub mod scenarios;
