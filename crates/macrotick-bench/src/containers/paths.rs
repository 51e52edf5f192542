//! Splits recorded paths through the kernel, to find the cost of picks and refills of SCHED_DS.

use std::collections::HashSet;
use std::ops::Range;

use macrotick_lab::Symbols;

use crate::kit::trail::{callbacks_of, return_from, RUN_GROUPS};

/// The interrupt's first instruction.
pub const INTERRUPT: &str = "asm_sysvec_apic_timer_interrupt";
/// The system call's first instruction.
pub const CALL: &str = "entry_SYSCALL_64";
/// The callback by which the scheduler core asks SCHED_DS for its next thread.
pub const PICK: &str = "pick_task_macrotick_ds";
const HANDLER: &str = "mt_ds_timer_fn";
/// Called when a server period starts: the groups get their budgets again.
const OPEN: &str = "mt_ds_open_all";
/// Called when a group's budget is exhausted.
const CLOSE: &str = "mt_ds_close";
const SCHEDULE: &str = "__schedule";
const SWITCH: &str = "__switch_to_asm";
const CLASSES: [&str; 7] = ["stop", "macrotick", OWN, "dl", "rt", "fair", "idle"];
const OWN: &str = "macrotick_ds";

/// One choice of the next thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Instructions from the first callback of a class to the end of the reports to windows and groups. In between, the
    /// previous thread is put back and charged, and the next thread is picked and set.
    pub all: i64,
    /// The instructions of SCHED_DS and of the functions that it calls.
    pub own: i64,
}

/// One interrupt of the budgets' timer that refills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refill {
    /// Instructions of the handler.
    pub length: i64,
    /// Budgets that were exhausted since the previous refill.
    pub groups: usize,
}

/// The actions of the budgets' timer interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handled {
    /// Interrupts that refilled groups with an exhausted budget.
    pub refills: Vec<Refill>,
    /// Instructions of each handler that found an exhausted budget and refilled no group.
    pub ends: Vec<i64>,
}

/// Splits paths. It knows the addresses of the kernel's functions.
pub struct Reader<'a> {
    symbols: &'a Symbols,
    handler: u64,
    open: u64,
    close: u64,
    schedule: u64,
    switch: u64,
    pick: u64,
    run: u64,
    callbacks: HashSet<u64>,
    own: HashSet<u64>,
}

impl<'a> Reader<'a> {
    /// Returns a reader, or the name of a function that the kernel lacks.
    pub fn new(symbols: &'a Symbols) -> Result<Reader<'a>, &'static str> {
        let address = |name: &'static str| symbols.address(name).ok_or(name);
        Ok(Reader {
            symbols,
            handler: address(HANDLER)?,
            open: address(OPEN)?,
            close: address(CLOSE)?,
            schedule: address(SCHEDULE)?,
            switch: address(SWITCH)?,
            pick: address(PICK)?,
            run: address(RUN_GROUPS)?,
            callbacks: callbacks_of(symbols, &CLASSES),
            own: callbacks_of(symbols, &[OWN]),
        })
    }

    /// Returns the picks in which the scheduler core asked SCHED_DS.
    pub fn picks(&self, path: &[u64]) -> Vec<Pick> {
        let begins = (0..path.len()).filter(|&i| path[i] == self.schedule);
        begins.filter_map(|begin| self.pick(path, begin)).collect()
    }

    fn pick(&self, path: &[u64], begin: usize) -> Option<Pick> {
        let switch = path[begin..].iter().position(|&at| at == self.switch).map(|after| begin + after);
        let end = switch.into_iter().chain(return_from(self.symbols, path, begin)).min()?;
        let questions = || (begin..end).filter(|&i| self.callbacks.contains(&path[i]));
        let first = questions().next()?;
        let told = (first..end).rfind(|&i| path[i] == self.run)?;
        let last = return_from(self.symbols, path, told)?;
        if !path[first..last].contains(&self.pick) {
            return None;
        }
        let own = questions().filter(|&i| self.own.contains(&path[i]));
        let answers: usize = own.filter_map(|at| Some(return_from(self.symbols, path, at)? - at)).sum();
        Some(Pick { all: (last - first) as i64, own: (answers + last - told) as i64 })
    }

    /// Returns the actions of the interrupts in consecutive paths.
    ///
    /// The length of a refill does not depend on the number of groups. The number comes from the budgets that were
    /// exhausted before it.
    pub fn handled(&self, paths: &[Vec<u64>]) -> Handled {
        let mut handled = Handled::default();
        let mut ended = 0;
        for path in paths {
            let mut rest = 0;
            for begin in (0..path.len()).filter(|&i| path[i] == self.handler) {
                let Some(end) = return_from(self.symbols, path, begin) else { continue };
                ended += self.ends(path, rest..begin);
                let ends_here = self.ends(path, begin..end);
                ended += ends_here;
                let length = (end - begin) as i64;
                if path[begin..end].contains(&self.open) {
                    handled.refills.extend((ended > 0).then_some(Refill { length, groups: ended }));
                    ended = 0;
                } else if ends_here > 0 {
                    handled.ends.push(length);
                }
                rest = end;
            }
            ended += self.ends(path, rest..path.len());
        }
        handled
    }

    /// Returns the number of budgets that are exhausted in a part of a path.
    fn ends(&self, path: &[u64], part: Range<usize>) -> usize {
        path[part].iter().filter(|&&at| at == self.close).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "100 T asm_sysvec_apic_timer_interrupt\n200 t __run_hrtimer\n300 t mt_ds_timer_fn\n\
        400 T mt_ds_open_all\n480 T mt_ds_close\n4c0 T mt_ds_link\n4e0 T mt_ds_account\n500 t __schedule\n\
        600 t pick_task_macrotick_ds\n700 t put_prev_task_macrotick_ds\n800 t set_next_task_fair\n\
        900 T __switch_to_asm\na00 T schedule\nb00 T mt_run\nc00 T mt_ds_run\n";

    /// The end of a budget: two instructions.
    const END: [u64; 2] = [0x4e0, 0x480];
    /// The scheduler core's reports of its choice: two instructions for windows, two for groups.
    const TOLD: [u64; 5] = [0xb00, 0xb01, 0x505, 0xc00, 0xc01];

    fn with<T>(read: impl Fn(&Reader) -> T) -> T {
        let symbols = Symbols::parse(MAP);
        read(&Reader::new(&symbols).unwrap())
    }

    fn interrupt(handler: &[u64]) -> Vec<u64> {
        [&[0x100, 0x200, 0x300], handler, &[0x301, 0x201]].concat()
    }

    #[test]
    fn a_refill_refills_the_budgets_that_were_used_up_since_the_last_one() {
        let refill = [&END[..], &[0x400, 0x401]].concat();
        let elsewhere = [0xa00, 0x500, 0xc00, 0x4e0, 0x480, 0x501];
        let paths = [interrupt(&END), [interrupt(&refill), elsewhere.to_vec()].concat(), interrupt(&[0x400])];
        let handled = with(|reader| reader.handled(&paths));
        assert_eq!(handled.refills, [Refill { length: 6, groups: 2 }, Refill { length: 3, groups: 1 }]);
        assert_eq!(handled.ends, [4]);
    }

    #[test]
    fn an_interrupt_that_refills_nobody_does_not_count() {
        let linked = interrupt(&[0x4c0]);
        assert_eq!(with(|reader| reader.handled(&[linked.clone(), interrupt(&[0x400])])), Handled::default());
    }

    #[test]
    fn a_pick_ends_where_it_has_been_told_before_the_switch() {
        let questions = [0xa00, 0x500, 0x600, 0x601, 0x501, 0x700, 0x502, 0x800, 0x801, 0x503];
        let path = [&questions[..], &TOLD, &[0x504, 0x900, 0x505, 0xa01]].concat();
        assert_eq!(with(|reader| reader.picks(&path)), [Pick { all: 13, own: 5 }]);
        let without_switch = [&[0xa00, 0x500, 0x600, 0x601, 0x501], &TOLD[..], &[0x502, 0xa01, 0x900]].concat();
        assert_eq!(with(|reader| reader.picks(&without_switch)), [Pick { all: 8, own: 4 }]);
    }

    #[test]
    fn picks_that_do_not_reach_the_class_do_not_count() {
        assert_eq!(with(|reader| reader.picks(&[0xa00, 0x500, 0x800, 0x801, 0x502, 0xb00, 0xc00, 0x503, 0x900])), []);
    }

    #[test]
    fn a_function_that_is_missing_is_named() {
        assert_eq!(Reader::new(&Symbols::parse("1 T schedule\n")).err(), Some(HANDLER));
    }
}
