//! The calls of `include/macrotick.h` and `include/macrotick-express.h`, as `bindings/macrotick.c` exports them.

use std::ffi::{c_char, c_int, c_void};

use crate::express::Layout;
use crate::{Job, Stats};

extern "C" {
    pub fn macrotick_join(name: *const c_char) -> c_int;
    pub fn macrotick_ready() -> c_int;
    pub fn macrotick_wait(job: *mut Job) -> c_int;
    pub fn macrotick_stats(stats: *mut Stats) -> c_int;
    pub fn macrotick_leave() -> c_int;
    pub fn macrotick_express_open(
        express: *mut Layout,
        interface: *const c_char,
        queue: u32,
        port: u16,
        mode: u32,
    ) -> c_int;
    pub fn macrotick_express_receive(express: *mut Layout, frame: *mut c_void, size: u32) -> c_int;
    pub fn macrotick_express_send(express: *mut Layout, frame: *const c_void, length: u32) -> c_int;
    pub fn macrotick_express_close(express: *mut Layout);
}
