//! The backends: the kernel class with its pools, groups and domains, or a dispatcher in user space.

pub mod budget_groups;
pub mod dispatcher;
pub mod domains;
pub mod gates;
pub mod kernel;
pub mod lead;
pub mod pools;
mod table;
