//! The common parts of experiments: pages and figures, guests and their programs, task sets, and readers of the
//! kernel's paths.

pub mod aims;
pub mod bench;
pub mod board;
pub mod clock;
pub mod disk;
pub mod draw;
pub mod footprint;
pub mod group;
pub mod hostile;
pub mod lab;
pub mod loads;
pub mod netns;
pub mod policy;
pub mod process;
pub mod provenance;
pub mod round;
pub mod scale;
pub mod trail;
pub mod variant;
