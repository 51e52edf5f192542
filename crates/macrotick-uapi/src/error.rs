//! The reasons for which a table is refused: `enum macrotick_error`, in [`Install::error`](crate::Install::error).
//!
//! The call fails with `EINVAL`, unless the text has another error. "Index" and "other" are
//! [`error_index`](crate::Install::error_index) and [`error_other`](crate::Install::error_other). They are indices into
//! the entities or the windows.

/// No fault of the table: the call succeeded, or failed for another reason (`EPERM`, `EFAULT`, `ENOMEM`).
pub const NONE: u32 = 0;
/// The flags, reserved fields or counts are invalid.
pub const HEADER: u32 = 1;
/// The clock is not one of those that tables can use.
pub const CLOCK: u32 = 2;
/// The cycle is zero or too long.
pub const CYCLE: u32 = 3;
/// The name of entity "index" is empty or not terminated.
pub const ENTITY_NAME: u32 = 4;
/// Entities "index" and "other" have the same name.
pub const ENTITY_TWICE: u32 = 5;
/// Entity "index" has flags.
pub const ENTITY_FLAGS: u32 = 6;
/// No window serves entity "index".
pub const ENTITY_IDLE: u32 = 7;
/// Window "index" has unknown flags.
pub const WINDOW_FLAGS: u32 = 8;
/// The CPU of window "index" does not exist or is not online. `EBUSY` if it was taken offline during the call.
pub const WINDOW_CPU: u32 = 9;
/// The entity of window "index" does not exist.
pub const WINDOW_ENTITY: u32 = 10;
/// Window "index" is shorter than [`MIN_WINDOW_NS`](crate::MIN_WINDOW_NS).
pub const WINDOW_LENGTH: u32 = 11;
/// Window "index" reaches beyond the cycle.
pub const WINDOW_RANGE: u32 = 12;
/// Windows "index" and "other" are not sorted by CPU and offset.
pub const WINDOW_ORDER: u32 = 13;
/// Windows "index" and "other" overlap.
pub const WINDOW_OVERLAP: u32 = 14;
/// Windows "index" and "other" serve one entity on two CPUs.
pub const WINDOW_MIGRATES: u32 = 15;
/// The windows and leads of a CPU take more than [`CAP_PERMILLE`](crate::CAP_PERMILLE) of it; "index" is the first of
/// these windows.
pub const CAPACITY: u32 = 16;
/// A table is installed already; the call fails with `EBUSY`.
pub const INSTALLED: u32 = 17;
/// The lead is longer than [`MAX_LEAD_NS`](crate::MAX_LEAD_NS).
pub const LEAD: u32 = 18;
/// There is less than the lead between windows "other" and "index", which has `ACTIVATE`.
pub const WINDOW_LEAD: u32 = 19;
/// Entity "index" has threads, and was entity "other" of the previous table on another CPU; the call fails with
/// `EBUSY`.
pub const SWAP_CPU: u32 = 20;
/// Entity "index" has a slice but is no pool with threads in turns, or the slice is out of range.
pub const ENTITY_SLICE: u32 = 21;
/// Window "index" has flags, but its entity is a pool.
pub const WINDOW_POOL: u32 = 22;
/// Entity "index" has threads. It is a pool, or has slack, in only one of the two tables; the call fails with `EBUSY`.
pub const SWAP_POOL: u32 = 23;
/// Window "index" has [`SYNC`](crate::SYNC) and an entity or another flag, or the table is not on `CLOCK_TAI`.
pub const WINDOW_SYNC: u32 = 24;
/// The bound of window "index" is zero, or leaves less than [`MIN_WINDOW_NS`](crate::MIN_WINDOW_NS) of it.
pub const SYNC_BOUND: u32 = 25;
/// The CPU of window "index" does not have the same windows with [`SYNC`](crate::SYNC) as the first CPU. "Other" is the
/// first one that differs; both are zero if the first CPU has none.
pub const SYNC_CPU: u32 = 26;
/// The running table is on another clock; the call fails with `EBUSY`.
pub const SWAP_CLOCK: u32 = 27;
/// `SCHED_DEADLINE` has admitted tasks with "other" per mille of one CPU, and they may run on the CPU of window
/// "index". That window is the first of its CPU. The table leaves less than the tasks need. The call fails with
/// `EBUSY`.
pub const BANDWIDTH: u32 = 28;
/// Windows `index` and `other` of an entity with [`MIGRATE`](crate::MIGRATE) are open at the same time, leads included.
pub const WINDOW_PARALLEL: u32 = 29;
/// The budgets of control groups are "other" per mille of the CPU of window "index", the first window of its CPU.
/// Together with the windows this exceeds [`CAP_PERMILLE`](crate::CAP_PERMILLE). The call fails with `EBUSY`.
pub const BUDGETS: u32 = 30;
