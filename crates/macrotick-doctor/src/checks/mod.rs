//! All checks, by the part of the host.
//!
//! | module | part |
//! |---|---|
//! | `kernel` | the kernel: version, class, options, command line |
//! | `threads` | the kernel's threads, and priorities |
//! | `interrupts` | interrupts: their threads and CPUs |
//! | `scheduling` | CPUs of the plan, and the work of others on them |
//! | `power` | frequency, idle states, siblings, thermal limits |
//! | `memory` | page faults and the work of the memory management |
//! | `clock` | clocks, their synchronisation, and measured delays |
//! | `observing` | tracers, consoles, audit |
//! | `network` | interfaces with gates, and the network's work |
//! | `judging` | judgements that several checks share |

mod clock;
mod flows;
mod interrupts;
mod judging;
mod kernel;
mod memory;
mod network;
mod observing;
mod options;
mod power;
mod scheduling;
mod threads;

use crate::check::Check;

pub use options::read as options_read;

/// Returns all checks.
pub fn all() -> impl Iterator<Item = &'static Check> {
    let parts: [&[Check]; 10] = [
        &kernel::CHECKS,
        &threads::CHECKS,
        &interrupts::CHECKS,
        &scheduling::CHECKS,
        &power::CHECKS,
        &memory::CHECKS,
        &clock::CHECKS,
        &observing::CHECKS,
        &network::CHECKS,
        &flows::CHECKS,
    ];
    parts.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_ranks_are_unique_and_texts_are_sentences() {
        let (mut names, mut ranks) = (BTreeSet::new(), BTreeSet::new());
        for check in all() {
            assert!(names.insert(check.name), "{}", check.name);
            assert!(ranks.insert(check.rank), "{}: rank {}", check.name, check.rank);
            for text in [check.states, check.why] {
                assert!(text.ends_with('.') && !text.ends_with(".."), "{}: {text}", check.name);
            }
        }
        assert!(names.len() >= 65, "{}", names.len());
    }
}
