//! Tests of the scheduling class in the kernel (`kernel/overlay/kernel/sched/macrotick`).
//!
//! The binary runs inside a guest of the lab: [`runner`] gives every scenario of [`scenarios`] a process of its own,
//! and prints one line per scenario, `name: ok` or `name: FAILED reason`. The host tests in `tests/` boot the guest,
//! and demand exactly one line `ok` for every name of the same list, so that a scenario that did not run cannot pass.
//!
//! The scenarios speak to the kernel as an unfriendly program would: [`macrotick_uapi`] has the raw structures and
//! calls, with nanoseconds as plain integers, because sizes, pointers and values that no library would pass are part of
//! what is tested.

pub mod board;
pub mod boot;
pub mod check;
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
pub mod trace;
