//! The analysis of groups against a simulator, against what must hold of any such analysis, and by hand.

mod admission;
mod by_hand;
mod draw;
mod exhaustive;
mod properties;
mod sim;
mod soundness;
