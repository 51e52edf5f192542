//! Recorded paths through the kernel, taken apart: what picks and refills of SCHED_DS cost in them.

use std::collections::HashSet;

use macrotick_lab::Symbols;

use crate::bench::trail::{callbacks_of, return_from};

/// The interrupt's first instruction.
pub const INTERRUPT: &str = "asm_sysvec_apic_timer_interrupt";
/// The system call's first instruction.
pub const CALL: &str = "entry_SYSCALL_64";
/// The class's answer when the scheduler core asks what to run.
pub const PICK: &str = "pick_task_macrotick_ds";
const HANDLER: &str = "mt_ds_timer_fn";
/// A group that had nothing left, and has threads that are ready, is among those with a budget again.
const LINK: &str = "link_server";
const SCHEDULE: &str = "__schedule";
const SWITCH: &str = "__switch_to_asm";
const CLASSES: [&str; 7] = ["stop", "macrotick", OWN, "dl", "rt", "fair", "idle"];
const OWN: &str = "macrotick_ds";

/// One choice of what runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Instructions from the first question to a class to the last answer: who ran is put back, who is next is picked and set.
    pub all: i64,
    /// Those of SCHED_DS, with what they call.
    pub own: i64,
}

/// One interrupt of the budgets' timer that refills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refill {
    /// Instructions of the handler.
    pub length: i64,
    /// Exhausted groups that it refilled.
    pub groups: usize,
}

/// Takes paths apart. It knows the kernel's functions.
pub struct Reader<'a> {
    symbols: &'a Symbols,
    handler: u64,
    link: u64,
    schedule: u64,
    switch: u64,
    pick: u64,
    callbacks: HashSet<u64>,
    own: HashSet<u64>,
}

impl<'a> Reader<'a> {
    /// `Err` names the function that the kernel lacks.
    pub fn new(symbols: &'a Symbols) -> Result<Reader<'a>, &'static str> {
        let address = |name: &'static str| symbols.address(name).ok_or(name);
        Ok(Reader {
            symbols,
            handler: address(HANDLER)?,
            link: address(LINK)?,
            schedule: address(SCHEDULE)?,
            switch: address(SWITCH)?,
            pick: address(PICK)?,
            callbacks: callbacks_of(symbols, &CLASSES),
            own: callbacks_of(symbols, &[OWN]),
        })
    }

    /// The picks in which SCHED_DS was asked.
    pub fn picks(&self, path: &[u64]) -> Vec<Pick> {
        let begins = (0..path.len()).filter(|&i| path[i] == self.schedule);
        begins.filter_map(|begin| self.pick(path, begin)).collect()
    }

    fn pick(&self, path: &[u64], begin: usize) -> Option<Pick> {
        let switch = path[begin..].iter().position(|&at| at == self.switch).map(|after| begin + after);
        let end = switch.into_iter().chain(return_from(self.symbols, path, begin)).min()?;
        let questions = || (begin..end).filter(|&i| self.callbacks.contains(&path[i]));
        let (first, last) = (questions().next()?, return_from(self.symbols, path, questions().next_back()?)?);
        if !path[first..last].contains(&self.pick) {
            return None;
        }
        let own = questions().filter(|&i| self.own.contains(&path[i]));
        let own = own.filter_map(|at| Some((return_from(self.symbols, path, at)? - at) as i64)).sum();
        Some(Pick { all: (last - first) as i64, own })
    }

    /// The interrupts that refilled groups without budget.
    pub fn refills(&self, path: &[u64]) -> Vec<Refill> {
        let begins = (0..path.len()).filter(|&i| path[i] == self.handler);
        let refill = |begin: usize| {
            let handler = &path[begin..return_from(self.symbols, path, begin)?];
            let groups = handler.iter().filter(|&&at| at == self.link).count();
            (groups > 0).then_some(Refill { length: handler.len() as i64, groups })
        };
        begins.filter_map(refill).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "100 T asm_sysvec_apic_timer_interrupt\n200 t __run_hrtimer\n300 t mt_ds_timer_fn\n\
        400 t link_server\n500 t __schedule\n600 t pick_task_macrotick_ds\n700 t put_prev_task_macrotick_ds\n\
        800 t set_next_task_fair\n900 T __switch_to_asm\na00 T schedule\n";

    fn with<T>(read: impl Fn(&Reader) -> T) -> T {
        let symbols = Symbols::parse(MAP);
        read(&Reader::new(&symbols).unwrap())
    }

    #[test]
    fn a_refill_is_the_whole_handler_that_links_servers() {
        let path = [0x100, 0x200, 0x300, 0x301, 0x400, 0x401, 0x302, 0x400, 0x303, 0x201, 0x300, 0x301, 0x202];
        let refills = with(|reader| reader.refills(&path));
        assert_eq!(refills, [Refill { length: 7, groups: 2 }]);
    }

    #[test]
    fn a_pick_ends_with_the_last_answer_before_the_switch() {
        let path = [0xa00, 0x500, 0x600, 0x601, 0x501, 0x700, 0x502, 0x800, 0x801, 0x503, 0x900, 0x504, 0xa01];
        assert_eq!(with(|reader| reader.picks(&path)), [Pick { all: 7, own: 3 }]);
        let without_switch = [0xa00, 0x500, 0x600, 0x601, 0x501, 0xa01, 0x900];
        assert_eq!(with(|reader| reader.picks(&without_switch)), [Pick { all: 2, own: 2 }]);
    }

    #[test]
    fn picks_that_do_not_reach_the_class_do_not_count() {
        assert_eq!(with(|reader| reader.picks(&[0xa00, 0x500, 0x800, 0x801, 0x502, 0x900])), []);
    }

    #[test]
    fn a_function_that_is_missing_is_named() {
        assert_eq!(Reader::new(&Symbols::parse("1 T schedule\n")).err(), Some(HANDLER));
    }
}
