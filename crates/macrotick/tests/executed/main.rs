//! The tutorials and the how-tos, executed: each command, in order, with the output that the page shows.
//!
//! A page has files to save (`Save this as NAME`, then a block), and commands: blocks of `sh` and `console`. The output of
//! a command is the block of `text` after it, or the lines below it in a block of `console`.
//!
//! `tutorials` and `how_tos` have the pages. `calls` looks at the commands of all pages, without running them.

mod calls;
mod folder;
mod how_to;
mod how_tos;
mod output;
mod page;
mod script;
mod tutorials;
