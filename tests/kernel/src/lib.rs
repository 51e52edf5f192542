//! Tests of the scheduling class in the kernel (`kernel/overlay/kernel/sched/macrotick`).
//!
//! The binary runs inside a guest of the lab. [`runner`] runs every scenario of [`scenarios`] in its own process and
//! prints one line for each, `name: ok` or `name: FAILED reason`. The host tests in `tests/` start the guest. They
//! require exactly one line `ok` for every name of the same list: a scenario that did not run cannot pass.
//!
//! The scenarios call the kernel as an unfriendly program would. [`macrotick_uapi`] has the raw structures and calls,
//! with nanoseconds as plain integers. Thus a scenario can pass sizes, pointers and values that no library would pass.

pub mod board;
pub mod boot;
pub mod check;
pub mod console;
pub mod group;
pub mod host;
pub mod machine;
pub mod process;
pub mod random;
pub mod runner;
pub mod scenarios;
pub mod scx;
pub mod slab;
pub mod sys;
pub mod table;
pub mod taprio;
pub mod trace;
pub mod wire;
