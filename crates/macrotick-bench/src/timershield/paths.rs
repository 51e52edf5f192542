//! Splits a recorded path through the kernel of a task that goes to sleep.

use macrotick_lab::Symbols;

/// The first instruction of a system call.
pub const ENTRY: &str = "entry_SYSCALL_64";
/// A function that every sleep of a task calls.
pub const SLEEP: &str = "do_nanosleep";
const INTERRUPT: &str = "asm_sysvec_apic_timer_interrupt";
const ENQUEUE: &str = "enqueue_hrtimer";
const EXPIRE: &str = "hrtimer_interrupt";
const WAKE: &str = "hrtimer_wakeup";
const SCHEDULE: &str = "__schedule";
const SWITCH: &str = "__switch_to_asm";
/// The hook in the scheduler; the pristine kernel lacks it.
const HOOK: &str = "__timershield_run";

/// The instructions of the parts of a path; `None` for a missing part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The enqueue of the sleep's timer.
    pub enqueue: Option<i64>,
    /// From the interrupt's handler to the wake-up of a task at the end of its sleep.
    pub expiry: Option<i64>,
    /// From the scheduler's start to the switch to another task.
    pub switch: Option<i64>,
    /// TimerShield's part of the switch.
    pub own: Option<i64>,
}

/// Splits paths.
pub struct Splitter<'a> {
    symbols: &'a Symbols,
    sleep: u64,
    interrupt: u64,
    enqueue: u64,
    expire: u64,
    wake: u64,
    schedule: u64,
    switch: u64,
    hook: Option<u64>,
}

impl<'a> Splitter<'a> {
    /// Returns a splitter, or the name of a function that the kernel lacks.
    pub fn new(symbols: &'a Symbols) -> Result<Splitter<'a>, &'static str> {
        let address = |name: &'static str| symbols.address(name).ok_or(name);
        Ok(Splitter {
            symbols,
            sleep: address(SLEEP)?,
            interrupt: address(INTERRUPT)?,
            enqueue: address(ENQUEUE)?,
            expire: address(EXPIRE)?,
            wake: address(WAKE)?,
            schedule: address(SCHEDULE)?,
            switch: address(SWITCH)?,
            hook: symbols.address(HOOK),
        })
    }

    /// Returns the parts of a path from the system call to the next return to user space, of any task. If an interrupt
    /// comes before the switch, enqueue and switch are missing, because they would contain it.
    pub fn split(&self, path: &[u64]) -> Parts {
        let expiry = self.expiry(path);
        let to_switch = self.find(path, 0, self.switch).map(|switch| &path[..switch]);
        let Some(to_switch) = to_switch.filter(|path| !path.contains(&self.interrupt)) else {
            return Parts { expiry, ..Default::default() };
        };
        let after_sleep = |wanted| self.find(to_switch, self.find(to_switch, 0, self.sleep)?, wanted);
        let schedule = after_sleep(self.schedule);
        Parts {
            enqueue: after_sleep(self.enqueue).and_then(|at| self.length(path, at)),
            expiry,
            switch: schedule.map(|at| (to_switch.len() - at) as i64),
            own: schedule.and_then(|at| self.length(path, self.find(to_switch, at, self.hook?)?)),
        }
    }

    fn find(&self, path: &[u64], from: usize, wanted: u64) -> Option<usize> {
        path[from..].iter().position(|&at| at == wanted).map(|after| from + after)
    }

    /// Returns the instructions from the entry of a function to its return, including the functions that it calls.
    fn length(&self, path: &[u64], begin: usize) -> Option<i64> {
        let caller = self.symbols.function(path[begin.checked_sub(1)?])?;
        path[begin..].iter().position(|&at| self.symbols.function(at) == Some(caller)).map(|n| n as i64)
    }

    /// Returns `None` if the first wake-up does not come from the handler.
    fn expiry(&self, path: &[u64]) -> Option<i64> {
        let wake = self.find(path, 0, self.wake)?;
        let begin = path[..wake].iter().rposition(|&at| at == self.expire)?;
        let length = (wake - begin) as i64;
        self.length(path, begin).is_none_or(|whole| whole > length).then_some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str =
        "100 T entry_SYSCALL_64\n200 t do_nanosleep\n300 T hrtimer_start_range_ns\n400 t enqueue_hrtimer\n\
        500 T timerqueue_add\n600 t __schedule\n700 T __switch_to_asm\n800 T asm_sysvec_apic_timer_interrupt\n\
        900 T hrtimer_interrupt\na00 t __run_hrtimer\nb00 t hrtimer_wakeup\n";

    fn split_with(more: &str, parts: &[&[u64]]) -> Parts {
        let symbols = Symbols::parse(&format!("{MAP}{more}"));
        Splitter::new(&symbols).unwrap().split(&parts.concat())
    }

    fn split(parts: &[&[u64]]) -> Parts {
        split_with("", parts)
    }

    const TO_SLEEP: [u64; 8] = [0x100, 0x200, 0x300, 0x400, 0x500, 0x501, 0x402, 0x301];
    const SWITCHED: [u64; 5] = [0x600, 0x601, 0xc00, 0x602, 0x700];
    const WOKEN: [u64; 6] = [0x800, 0x900, 0xa00, 0xb00, 0xa01, 0x901];

    #[test]
    fn parts_are_counted_with_what_they_call() {
        let all = Parts { enqueue: Some(4), expiry: Some(2), switch: Some(4), own: None };
        assert_eq!(split(&[&TO_SLEEP, &SWITCHED, &WOKEN]), all);
        let with_hook = split_with("c00 T __timershield_run\n", &[&TO_SLEEP, &SWITCHED, &WOKEN]);
        assert_eq!(with_hook, Parts { own: Some(1), ..all });
        assert_eq!(split(&[&TO_SLEEP, &SWITCHED]).expiry, None);
    }

    #[test]
    fn an_interrupted_path_has_neither_enqueue_nor_switch() {
        let parts = split(&[&TO_SLEEP, &WOKEN, &SWITCHED]);
        assert_eq!(parts, Parts { expiry: Some(2), ..Default::default() });
        assert_eq!(split(&[&TO_SLEEP]), Parts::default());
    }

    #[test]
    fn who_is_woken_up_after_the_handler_does_not_count() {
        let handled = [0x800, 0x900, 0x902, 0x801];
        let deferred = [0xa00, 0xb00, 0xa01];
        assert_eq!(split(&[&TO_SLEEP, &SWITCHED, &handled, &deferred]).expiry, None);
        assert_eq!(split(&[&TO_SLEEP, &SWITCHED, &handled, &WOKEN]).expiry, Some(2));
    }

    #[test]
    fn a_function_that_is_missing_is_named() {
        assert_eq!(Splitter::new(&Symbols::parse("1 T entry_SYSCALL_64\n")).err(), Some(SLEEP));
    }
}
