//! Who dispatches: the kernel class, with what it serves beside tasks, or a dispatcher in user space.

pub mod budget_groups;
pub mod dispatcher;
pub mod domains;
pub mod kernel;
pub mod lead;
pub mod pools;
mod table;
