//! A gate list on its clock. All questions are answered by arithmetic, whatever the number of cycles before the answer.

use macrotick_model::{Duration, GateList, Instant};

/// The most traffic classes of an interface (`TC_MAX_QUEUE` in the kernel).
pub const MAX_CLASSES: usize = 16;

/// The longest cycle that the kernel accepts.
const MAX_CYCLE: i64 = i32::MAX as i64;

/// The reason why a gate list cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// There is no traffic class, or there are more than the kernel has.
    #[error("interface `{interface}`: {classes} traffic classes, but 1 to {MAX_CLASSES} are possible")]
    Classes {
        /// The interface.
        interface: String,
        /// The number of classes.
        classes: usize,
    },
    /// The list has no entries.
    #[error("interface `{interface}`: the gate list has no entries; without a gate list, all gates are open")]
    Empty {
        /// The interface.
        interface: String,
    },
    /// The length of an entry is not positive.
    #[error("interface `{interface}`, entry {entry}: the length {length} is not positive")]
    Length {
        /// The interface.
        interface: String,
        /// The place of the entry, from 0.
        entry: usize,
        /// Its length.
        length: Duration,
    },
    /// The lengths do not sum up to the cycle.
    #[error("interface `{interface}`: the entries sum up to {sum}ns, but the cycle is {cycle}")]
    Sum {
        /// The interface.
        interface: String,
        /// The sum of the lengths in nanoseconds.
        sum: i128,
        /// The cycle.
        cycle: Duration,
    },
    /// The kernel does not accept so long a cycle.
    #[error("interface `{interface}`: the cycle {cycle} is too long: the kernel accepts at most 2147483647ns")]
    Cycle {
        /// The interface.
        interface: String,
        /// The cycle.
        cycle: Duration,
    },
    /// An entry opens a class that the interface does not have.
    #[error("interface `{interface}`, entry {entry}: no traffic class is named `{class}`: use one of {}", .known.join(", "))]
    UnknownClass {
        /// The interface.
        interface: String,
        /// The place of the entry, from 0.
        entry: usize,
        /// The unknown name.
        class: String,
        /// The names that exist.
        known: Vec<String>,
    },
}

/// One entry: its start within the cycle, and the classes that it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    start: i64,
    length: i64,
    /// One bit per class.
    open: u32,
}

/// An uninterrupted time with the gate of a class open. It can reach into the next cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenWindow {
    start: i64,
    length: i64,
}

/// The part of the clock in which one entry is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// The entry, from 0.
    pub entry: usize,
    /// The first instant.
    pub begin: i64,
    /// The instant after the last one.
    pub end: i64,
}

/// A gate list that repeats on a clock. Classes have numbers: their places in the list of the port, from 0.
///
/// The list is valid at every instant, before and after the epoch, unless [`from`](Gates::from) gives a begin. The
/// kernel opens all gates before a list begins, and has no guard band then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gates {
    epoch: i64,
    cycle: i64,
    begin: Option<i64>,
    entries: Vec<Entry>,
    /// Per class, in ascending order of start. Empty for a class that never opens, and for one that never closes.
    windows: Vec<Vec<OpenWindow>>,
    /// Per class, whether all entries open it.
    always: Vec<bool>,
}

impl Gates {
    /// Decodes a gate list for a port with these traffic classes.
    ///
    /// # Errors
    ///
    /// Refuses a list that breaks a rule of [`GateList`], or has a longer cycle than the kernel accepts.
    pub fn new(classes: &[&str], list: &GateList, epoch: Instant) -> Result<Gates, GateError> {
        let interface = || list.interface.clone();
        if classes.is_empty() || classes.len() > MAX_CLASSES {
            return Err(GateError::Classes { interface: interface(), classes: classes.len() });
        }
        if list.entries.is_empty() {
            return Err(GateError::Empty { interface: interface() });
        }
        for (entry, gate) in list.entries.iter().enumerate() {
            if gate.length <= Duration::ZERO {
                return Err(GateError::Length { interface: interface(), entry, length: gate.length });
            }
        }
        let sum = list.entries.iter().map(|gate| i128::from(gate.length.as_nanos())).sum();
        if sum != i128::from(list.cycle.as_nanos()) {
            return Err(GateError::Sum { interface: interface(), sum, cycle: list.cycle });
        }
        if list.cycle.as_nanos() > MAX_CYCLE {
            return Err(GateError::Cycle { interface: interface(), cycle: list.cycle });
        }
        let mut entries = Vec::new();
        let mut start = 0;
        for (entry, gate) in list.entries.iter().enumerate() {
            let length = gate.length.as_nanos();
            entries.push(Entry { start, length, open: mask(classes, list, entry, &gate.open)? });
            start += length;
        }
        let (cycle, epoch) = (list.cycle.as_nanos(), epoch.as_nanos());
        let opens = |class: usize| move |entry: &Entry| entry.open & (1 << class) != 0;
        let always: Vec<bool> = (0..classes.len()).map(|class| entries.iter().all(opens(class))).collect();
        let windows = (0..classes.len())
            .map(|class| if always[class] { Vec::new() } else { merge(&entries, cycle, opens(class)) })
            .collect();
        Ok(Gates { epoch, cycle, begin: None, entries, windows, always })
    }

    /// Returns the same gates as the kernel starts them when it gets the list at `now`. They start at the epoch if that
    /// is in the future, else at the next start of a cycle. All gates are open before.
    pub fn from(mut self, now: Instant) -> Gates {
        let now = now.as_nanos();
        // As in `taprio_get_start_time()`, a cycle that starts right now is over.
        self.begin = Some(if self.epoch > now { self.epoch } else { self.cycle_start(now) + self.cycle });
        self
    }

    /// Returns the same gates with another epoch.
    pub fn at(self, epoch: Instant) -> Gates {
        Gates { epoch: epoch.as_nanos(), ..self }
    }

    /// Returns the time from the last opening of a class to an instant. If the gate is closed and the next opening is
    /// nearer than the last closing, the time counts from the next opening, and is negative. `None` for a class that
    /// never opens or never closes.
    pub fn since_opening(&self, class: usize, at: Instant) -> Option<Duration> {
        let offset = self.offset(at.as_nanos());
        let since = |window: &OpenWindow| (offset - window.start).rem_euclid(self.cycle);
        let last = self.windows[class].iter().min_by_key(|window| since(window))?;
        let until = self.windows[class].iter().map(|window| (window.start - offset).rem_euclid(self.cycle)).min()?;
        let after = since(last) - last.length;
        Some(Duration::from_nanos(if after >= 0 && until < after { -until } else { since(last) }))
    }

    /// Returns the cycle.
    pub fn cycle(&self) -> Duration {
        Duration::from_nanos(self.cycle)
    }

    /// Returns the instant of cycle 0.
    pub fn epoch(&self) -> Instant {
        Instant::from_nanos(self.epoch)
    }

    /// Returns the number of the cycle in which an instant is. Cycles before the epoch are negative.
    pub fn cycle_of(&self, at: Instant) -> i64 {
        (i128::from(at.as_nanos()) - i128::from(self.epoch)).div_euclid(i128::from(self.cycle)) as i64
    }

    /// Returns the time from the start of its cycle to an instant.
    pub fn offset_of(&self, at: Instant) -> Duration {
        Duration::from_nanos(self.offset(at.as_nanos()))
    }

    /// Whether the gate of a class is open at an instant.
    pub fn is_open(&self, class: usize, at: Instant) -> bool {
        self.open(class, at.as_nanos())
    }

    /// Returns the instant at which the open gate of a class closes; `None` if it never closes or is closed.
    pub fn closes(&self, class: usize, at: Instant) -> Option<Instant> {
        self.window(class, at.as_nanos()).map(|(_, end)| Instant::from_nanos(end))
    }

    /// Returns how early or late an instant is for the closed gate of a class. These are the time until the next
    /// opening, and the time since the last closing. `None` if the gate is open or never opens.
    pub fn distance(&self, class: usize, at: Instant) -> Option<(Duration, Duration)> {
        let at = at.as_nanos();
        if self.open(class, at) {
            return None;
        }
        let next = self.next_window(class, at, -1)?;
        let offset = self.offset(at);
        let since = |window: &OpenWindow| (offset - window.start - window.length).rem_euclid(self.cycle);
        let since = self.windows[class].iter().map(since).min()?;
        Some((Duration::from_nanos(next - at), Duration::from_nanos(since)))
    }

    /// Whether the list has not started: all gates are open, and there is no guard band.
    pub(crate) fn before(&self, at: i64) -> bool {
        self.begin.is_some_and(|begin| at < begin)
    }

    pub(crate) fn open(&self, class: usize, at: i64) -> bool {
        self.before(at) || self.entries[self.interval(at).entry].open & (1 << class) != 0
    }

    /// Returns the number of entries.
    pub(crate) fn entries(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn always(&self, class: usize) -> bool {
        self.always[class]
    }

    /// Returns the entry that is valid at an instant. Before the list begins, that is one of a list that runs already.
    pub(crate) fn interval(&self, at: i64) -> Interval {
        let (start, offset) = (self.cycle_start(at), self.offset(at));
        let entry = self.entries.partition_point(|entry| entry.start <= offset) - 1;
        let Entry { start: begin, length, .. } = self.entries[entry];
        Interval { entry, begin: start + begin, end: start + begin + length }
    }

    /// Returns the time from the start of an entry to the closing of a class, as `gate_duration` in the kernel. It is
    /// zero for a class that the entry does not open, and the cycle for one that never closes.
    pub(crate) fn duration(&self, class: usize, entry: usize) -> i64 {
        let Entry { start, open, .. } = self.entries[entry];
        match open & (1 << class) {
            0 => 0,
            _ if self.always[class] => self.cycle,
            _ => self.around(class, start).map_or(0, |window| self.rest(window, start)),
        }
    }

    /// Returns the longest time that the gate of a class is open at a stretch, as `max_open_gate_duration` in the
    /// kernel. It is zero for a class that never opens, and the cycle for one that never closes.
    pub(crate) fn longest(&self, class: usize) -> i64 {
        if self.always[class] {
            return self.cycle;
        }
        self.windows[class].iter().map(|window| window.length).max().unwrap_or(0)
    }

    /// Returns start and end of the open window of a class around an instant. `None` if it is closed or never closes.
    pub(crate) fn window(&self, class: usize, at: i64) -> Option<(i64, i64)> {
        let offset = self.offset(at);
        let end = at + self.rest(self.around(class, offset)?, offset);
        let length = self.around(class, offset)?.length;
        Some((end - length, end))
    }

    /// Returns the first instant after `at` at which a window of a class starts that is longer than `need`.
    pub(crate) fn next_window(&self, class: usize, at: i64, need: i64) -> Option<i64> {
        let (start, offset) = (self.cycle_start(at), self.offset(at));
        let fits = |window: &&OpenWindow| window.length > need;
        let windows = &self.windows[class];
        let later = windows.iter().filter(fits).find(|window| window.start > offset).map(|window| start + window.start);
        later.or_else(|| windows.iter().find(fits).map(|window| start + self.cycle + window.start))
    }

    /// Returns start and end of the windows of a class in one cycle from its start. Empty if it never opens or closes.
    pub(crate) fn windows(&self, class: usize) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.windows[class].iter().map(|window| (window.start, window.start + window.length))
    }

    fn around(&self, class: usize, offset: i64) -> Option<OpenWindow> {
        let inside = |window: &&OpenWindow| (offset - window.start).rem_euclid(self.cycle) < window.length;
        self.windows[class].iter().find(inside).copied()
    }

    fn rest(&self, window: OpenWindow, offset: i64) -> i64 {
        window.length - (offset - window.start).rem_euclid(self.cycle)
    }

    fn offset(&self, at: i64) -> i64 {
        (i128::from(at) - i128::from(self.epoch)).rem_euclid(i128::from(self.cycle)) as i64
    }

    fn cycle_start(&self, at: i64) -> i64 {
        at.saturating_sub(self.offset(at))
    }
}

fn mask(classes: &[&str], list: &GateList, entry: usize, open: &[String]) -> Result<u32, GateError> {
    let mut mask = 0;
    for name in open {
        let Some(class) = classes.iter().position(|class| class == name) else {
            let known = classes.iter().map(|class| class.to_string()).collect();
            let (interface, class) = (list.interface.clone(), name.clone());
            return Err(GateError::UnknownClass { interface, entry, class, known });
        };
        mask |= 1 << class;
    }
    Ok(mask)
}

/// Joins the entries that open a class without interruption, also around the end of the cycle. At least one entry does
/// not open it.
fn merge(entries: &[Entry], cycle: i64, opens: impl Fn(&Entry) -> bool) -> Vec<OpenWindow> {
    let mut windows: Vec<OpenWindow> = Vec::new();
    for entry in entries.iter().filter(|entry| opens(entry)) {
        match windows.last_mut() {
            Some(last) if last.start + last.length == entry.start => last.length += entry.length,
            _ => windows.push(OpenWindow { start: entry.start, length: entry.length }),
        }
    }
    if let [first, .., last] = &mut windows[..] {
        if first.start == 0 && last.start + last.length == cycle {
            last.length += first.length;
            windows.remove(0);
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use macrotick_model::GateEntry;

    use super::*;

    fn list(entries: &[(i64, &[&str])]) -> GateList {
        let cycle = entries.iter().map(|(length, _)| length).sum();
        let entries = entries.iter().map(|(length, open)| GateEntry {
            length: Duration::from_nanos(*length),
            open: open.iter().map(|class| class.to_string()).collect(),
        });
        GateList { interface: "left".into(), cycle: Duration::from_nanos(cycle), entries: entries.collect() }
    }

    fn gates(entries: &[(i64, &[&str])], epoch: i64) -> Gates {
        Gates::new(&["a", "b", "c"], &list(entries), Instant::from_nanos(epoch)).unwrap()
    }

    #[test]
    fn windows_touch_and_wrap_around() {
        // a: [0,20) [90,100) is one window of 30 from 90. b: [20,90). c always.
        let gates = gates(&[(10, &["a", "c"]), (10, &["a", "c"]), (70, &["b", "c"]), (10, &["a", "c"])], 5);
        assert_eq!(gates.windows(0).collect::<Vec<_>>(), [(90, 120)]);
        assert_eq!((gates.longest(0), gates.longest(1), gates.longest(2)), (30, 70, 100));
        assert_eq!([0, 1, 2, 3].map(|entry| gates.duration(0, entry)), [20, 10, 0, 30]);
        assert_eq!([0, 2].map(|entry| gates.duration(2, entry)), [100, 100]);
        // The epoch is at 5: the window of cycle 0 that began before it is [-5, 25).
        assert_eq!(gates.window(0, 5), Some((-5, 25)));
        assert_eq!((gates.open(0, 24), gates.open(0, 25), gates.open(1, 25)), (true, false, true));
        assert_eq!(gates.next_window(0, 25, 0), Some(95));
        assert_eq!(gates.next_window(0, 95, 0), Some(195));
        assert_eq!((gates.next_window(0, 25, 29), gates.next_window(0, 25, 30)), (Some(95), None));
        assert_eq!(gates.window(2, 7), None);
    }

    #[test]
    fn cycles_before_and_far_after_the_epoch() {
        let gates = gates(&[(40, &["a"]), (60, &["b"])], 1_000_000_000);
        let far = 1_000_000_000 + 100 * 1_000_000_000_000_000;
        assert_eq!(gates.interval(far + 39), Interval { entry: 0, begin: far, end: far + 40 });
        assert_eq!(gates.interval(far + 40), Interval { entry: 1, begin: far + 40, end: far + 100 });
        assert_eq!(gates.interval(999_999_999), Interval { entry: 1, begin: 999_999_940, end: 1_000_000_000 });
        assert_eq!(gates.cycle_of(Instant::from_nanos(999_999_999)), -1);
        assert_eq!(gates.offset_of(Instant::from_nanos(999_999_999)), Duration::from_nanos(99));
    }

    #[test]
    fn the_kernel_begins_at_the_epoch_or_with_the_next_cycle() {
        let at = |epoch, now| gates(&[(40, &["a"]), (60, &["b"])], epoch).from(Instant::from_nanos(now)).begin.unwrap();
        assert_eq!((at(500, 0), at(500, 499)), (500, 500));
        // At the epoch itself, the kernel waits for the next cycle.
        assert_eq!((at(500, 500), at(500, 599), at(500, 600), at(500, 1_234)), (600, 600, 700, 1_300));
        let gates = gates(&[(40, &["a"]), (60, &["b"])], 500).from(Instant::from_nanos(0));
        assert_eq!((gates.open(1, 499), gates.open(1, 500), gates.open(0, 500)), (true, false, true));
    }

    #[test]
    fn distance_from_the_windows_of_a_class() {
        let gates = gates(&[(40, &["a"]), (60, &["b"])], 0);
        let distance = |class, at| {
            gates.distance(class, Instant::from_nanos(at)).map(|(early, late)| (early.as_nanos(), late.as_nanos()))
        };
        assert_eq!((distance(0, 39), distance(0, 40), distance(0, 99)), (None, Some((60, 0)), Some((1, 59))));
        assert_eq!((distance(1, 0), distance(1, 39)), (Some((40, 0)), Some((1, 39))));
        assert_eq!(distance(2, 0), None);
    }

    #[test]
    fn refuses_lists_that_break_a_rule() {
        let refuse = |list: &GateList| Gates::new(&["a", "b"], list, Instant::default()).unwrap_err().to_string();
        assert_eq!(
            refuse(&list(&[])),
            "interface `left`: the gate list has no entries; without a gate list, all gates are open"
        );
        assert_eq!(
            refuse(&list(&[(10, &["a"]), (0, &[])])),
            "interface `left`, entry 1: the length 0ns is not positive"
        );
        let mut short = list(&[(10, &["a"])]);
        short.cycle = Duration::from_nanos(11);
        assert_eq!(refuse(&short), "interface `left`: the entries sum up to 10ns, but the cycle is 11ns");
        assert_eq!(
            refuse(&list(&[(10, &["a", "z"])])),
            "interface `left`, entry 0: no traffic class is named `z`: use one of a, b"
        );
        assert_eq!(
            refuse(&list(&[(3_000_000_000, &["a"])])),
            "interface `left`: the cycle 3s is too long: the kernel accepts at most 2147483647ns"
        );
        let huge = list(&[(1, &["a"])]);
        let huge =
            GateList { entries: vec![GateEntry { length: Duration::from_nanos(i64::MAX), open: vec![] }; 3], ..huge };
        assert_eq!(
            refuse(&huge),
            "interface `left`: the entries sum up to 27670116110564327421ns, but the cycle is 1ns"
        );
        let none = Gates::new(&[], &list(&[(10, &[])]), Instant::default()).unwrap_err().to_string();
        assert_eq!(none, "interface `left`: 0 traffic classes, but 1 to 16 are possible");
    }
}
