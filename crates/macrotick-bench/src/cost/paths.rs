//! Splits a recorded path through the kernel: to the window handler, the handler, the pick, the switch.

use std::collections::HashSet;

use macrotick_lab::Symbols;

use crate::kit::trail::{callbacks_of, return_from, RUN};

/// The interrupt's first instruction.
pub const ENTRY: &str = "asm_sysvec_apic_timer_interrupt";
/// The window handler.
pub const HANDLER: &str = "mt_timer_fn";
const SCHEDULE: &str = "__schedule";
const SWITCH: &str = "__switch_to_asm";
const CLASSES: [&str; 6] = ["stop", OWN, "dl", "rt", "fair", "idle"];
const OWN: &str = "macrotick";

/// The phases of a path, in the order of execution.
pub const PHASES: [&str; 5] = ["to the handler", "handler", "to the pick", "pick", "to user space"];

/// The numbers of instructions of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// The instructions of each phase. Without a switch, the last phase is the whole way back.
    pub phases: [u64; 5],
    /// The class's own part of the pick. The rest belongs to the scheduler core and other classes.
    pub own: u64,
    /// The change of the running thread.
    pub effect: Effect,
}

/// The change of the running thread: its class before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// The thread did not change.
    Nothing,
    /// From another class to a thread of SCHED_TT.
    Begin,
    /// From a thread of SCHED_TT to another one of SCHED_TT.
    Change,
    /// From a thread of SCHED_TT to another class.
    End,
    /// Another change or more than one: kernel threads ran, or the interrupt came again, before user space was reached.
    Elsewhere,
}

impl Split {
    /// Returns the instructions from the interrupt's first one to the last one of the kernel.
    pub fn total(&self) -> u64 {
        self.phases.iter().sum()
    }
}

/// Splits paths. It knows the addresses of the kernel's functions.
pub struct Splitter<'a> {
    symbols: &'a Symbols,
    entry: u64,
    handler: u64,
    schedule: u64,
    switch: u64,
    callbacks: HashSet<u64>,
    own: HashSet<u64>,
    run: u64,
    puts: u64,
    sets: u64,
}

impl<'a> Splitter<'a> {
    /// Returns a splitter, or the name of a function that the kernel lacks.
    pub fn new(symbols: &'a Symbols) -> Result<Splitter<'a>, &'static str> {
        let address = |name: &'static str| symbols.address(name).ok_or(name);
        Ok(Splitter {
            symbols,
            entry: address(ENTRY)?,
            handler: address(HANDLER)?,
            schedule: address(SCHEDULE)?,
            switch: address(SWITCH)?,
            callbacks: callbacks_of(symbols, &CLASSES),
            own: callbacks_of(symbols, &[OWN]),
            run: address(RUN)?,
            puts: address("put_prev_task_macrotick")?,
            sets: address("set_next_task_macrotick")?,
        })
    }

    /// Splits a path. Returns `None` for a path without the handler, or that ends in it.
    pub fn split(&self, path: &[u64]) -> Option<Split> {
        let begin = path.iter().position(|&at| at == self.handler)?;
        let end = return_from(self.symbols, path, begin)?;
        let whole = path.len() as u64;
        let (before, handler) = (begin as u64, (end - begin) as u64);
        let switches = path[end..].iter().filter(|&&at| at == self.switch).count();
        let is_single = switches <= 1 && !path[1..].contains(&self.entry);
        let told = |effect| if is_single { effect } else { Effect::Elsewhere };
        let Some((pick, picked)) = self.find_pick(path, end) else {
            let phases = [before, handler, 0, 0, whole - end as u64];
            return Some(Split { phases, own: 0, effect: told(Effect::Nothing) });
        };
        let phases = [before, handler, (pick - end) as u64, (picked - pick) as u64, whole - picked as u64];
        let effect = told(self.effect(&path[pick..picked]));
        Some(Split { phases, own: self.own(path, pick, picked), effect })
    }

    /// Returns a range in the first switch after the handler. It goes from the first callback of a class to the end of
    /// the report to the windows.
    fn find_pick(&self, path: &[u64], from: usize) -> Option<(usize, usize)> {
        let find =
            |from: usize, wanted: u64| path[from..].iter().position(|&at| at == wanted).map(|after| from + after);
        let schedule = find(from, self.schedule)?;
        let switch = find(schedule, self.switch)?;
        let first = (schedule..switch).find(|&i| self.callbacks.contains(&path[i]))?;
        let told = (first..switch).rfind(|&i| path[i] == self.run)?;
        Some((first, return_from(self.symbols, path, told)?))
    }

    /// Returns the class's own instructions of a pick. They are its callbacks, and the windows' part when the scheduler
    /// core reports the next thread.
    fn own(&self, path: &[u64], pick: usize, picked: usize) -> u64 {
        let questions = (pick..picked).filter(|&i| self.own.contains(&path[i]));
        let answers: usize = questions.filter_map(|at| Some(return_from(self.symbols, path, at)? - at)).sum();
        let told = path[pick..picked].iter().skip_while(|&&at| at != self.run);
        (answers + told.count()) as u64
    }

    fn effect(&self, pick: &[u64]) -> Effect {
        let called = |callback: u64| pick.contains(&callback);
        match (called(self.puts), called(self.sets)) {
            (false, true) => Effect::Begin,
            (true, true) => Effect::Change,
            (true, false) => Effect::End,
            (false, false) => Effect::Elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "100 T asm_sysvec_apic_timer_interrupt\n200 t hrtimer_run\n300 t mt_timer_fn\n400 T mt_advance\n\
        500 t __schedule\n600 t pick_task_macrotick\n700 t put_prev_task_macrotick\n800 t set_next_task_macrotick\n\
        900 T __switch_to_asm\na00 t put_prev_task_fair\nb00 T mt_run\n";

    /// The report of the choice to the windows: two instructions, and two back in the scheduler core.
    const TOLD: [u64; 4] = [0xb00, 0xb01, 0x503, 0x504];

    fn split(path: &[u64]) -> Option<Split> {
        let symbols = Symbols::parse(MAP);
        Splitter::new(&symbols).unwrap().split(path)
    }

    /// Two instructions to the handler; three in it, one of them in a function that it calls; one back.
    const HANDLED: [u64; 6] = [0x100, 0x200, 0x300, 0x400, 0x301, 0x201];

    #[test]
    fn a_path_without_a_switch_has_no_pick() {
        let split = split(&HANDLED).unwrap();
        assert_eq!(split, Split { phases: [2, 3, 0, 0, 1], own: 0, effect: Effect::Nothing });
        assert_eq!(split.total(), 6);
    }

    #[test]
    fn the_pick_goes_from_the_first_question_to_behind_what_is_told() {
        let questions = [0x500, 0x501, 0x600, 0x502, 0xa00, 0x502, 0x800, 0x801, 0x502];
        let begin = split(&[&HANDLED[..], &questions, &TOLD, &[0x900, 0x505]].concat()).unwrap();
        assert_eq!(begin, Split { phases: [2, 3, 3, 9, 4], own: 5, effect: Effect::Begin });
    }

    #[test]
    fn the_effect_is_who_was_put_and_who_is_next() {
        let effect = |questions: &[u64]| {
            let path = [&HANDLED[..], &[0x500], questions, &[0x502], &TOLD, &[0x900]].concat();
            split(&path).unwrap().effect
        };
        let effect_and_more = |more: &[u64]| {
            let path = [&HANDLED[..], &[0x500, 0x600, 0x502, 0x800, 0x502], &TOLD, &[0x900], more].concat();
            split(&path).unwrap().effect
        };
        assert_eq!(effect(&[0x600, 0x502, 0x700, 0x502, 0x800]), Effect::Change);
        assert_eq!(effect(&[0x600, 0x502, 0x700]), Effect::End);
        assert_eq!(effect(&[0x600]), Effect::Elsewhere);
        assert_eq!(effect_and_more(&[0x501, 0x900]), Effect::Elsewhere);
        assert_eq!(effect_and_more(&[0x501, 0x100]), Effect::Elsewhere);
        assert_eq!(effect_and_more(&[0x501]), Effect::Begin);
    }

    #[test]
    fn what_is_cut_or_unknown_is_no_path() {
        assert_eq!(split(&[0x100, 0x200]), None);
        assert_eq!(split(&[0x100, 0x200, 0x300, 0x400]), None);
        assert_eq!(split(&[0x300, 0x301]), None);
        let symbols = Symbols::parse("100 T asm_sysvec_apic_timer_interrupt\n");
        assert_eq!(Splitter::new(&symbols).err(), Some(HANDLER));
    }
}
