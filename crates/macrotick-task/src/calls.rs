//! The calls of `include/macrotick.h`, as `bindings/macrotick.c` exports them.

use std::ffi::{c_char, c_int};

use crate::{Job, Stats};

extern "C" {
    pub fn macrotick_join(name: *const c_char) -> c_int;
    pub fn macrotick_ready() -> c_int;
    pub fn macrotick_wait(job: *mut Job) -> c_int;
    pub fn macrotick_stats(stats: *mut Stats) -> c_int;
    pub fn macrotick_leave() -> c_int;
}
