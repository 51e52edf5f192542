//! `macrotick top`: a live view of the kernel's counters in the terminal.
//!
//! | module | part |
//! |---|---|
//! | `sample` | one reading of the status, and its difference to the one before |
//! | `events` | the changes that a user must see: misses, exhaustions, problems |
//! | `view` | the state of the view, and its keys |
//! | `draw` | the picture |
//! | `terminal` | the loop: reads, draws, waits for a key |

mod draw;
mod events;
mod sample;
mod terminal;
mod view;

pub use terminal::run;

#[cfg(test)]
mod tests;
