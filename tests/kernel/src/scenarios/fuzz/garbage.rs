//! Calls with arguments that make little sense. The kernel must refuse most of them.

use macrotick_uapi::{call, Bind, Device, Get, Install, Notify, Recorder, Sized32, Start, Stats, Unbind, Wait};

use crate::board::Board;
use crate::check::Check;
use crate::group::Group;
use crate::random::Random;
use crate::table::Table;

/// The words of the scratch memory: the argument, and then the targets of its pointers.
const WORDS: usize = 8192;
const TARGET: usize = WORDS / 2;

/// Memory for arguments, in which the kernel writes. Hardly any other random address is mapped. If a process dies
/// because one is, another process replaces it.
#[derive(Clone, Copy)]
pub struct Scratch(Board);

impl Scratch {
    /// Allocates zeroed memory.
    pub fn new() -> Scratch {
        Scratch(Board::new(WORDS))
    }

    fn address(&self, word: usize) -> u64 {
        self.0.word(word).as_ptr() as u64
    }

    /// Puts a structure at the beginning. Returns its length in words of 8 bytes.
    fn put<T: Copy>(&self, structure: T) -> usize {
        const { assert!(size_of::<T>() % 8 == 0 && align_of::<T>() <= 8 && size_of::<T>() / 8 < TARGET) };
        // SAFETY: inside the mapping, aligned; other processes have their own mappings.
        unsafe { self.0.word(0).as_ptr().cast::<T>().write(structure) };
        size_of::<T>() / 8
    }

    /// Sends a call to the device with an argument that is nearly right.
    pub fn send(&self, device: &Device, table: &Table, random: &mut Random) -> Result<(), i32> {
        let (number, words) = self.argument(table, random);
        for _ in 0..random.below(4) {
            let word = random.below(words as u64 + 1) as usize;
            let value = self.value(random);
            // Half of a word changes for fields of 4 bytes.
            let old = self.0.get(word);
            self.0.set(word, *random.pick(&[value, old & 0xffff_ffff | value << 32, old >> 32 << 32 | value >> 32]));
        }
        if random.below(4) == 0 {
            let size = *random.pick(&[0, 4, 8, 16, 8 * words as u64 - 4, 8 * words as u64 + 8, 4096, 4097, u64::MAX]);
            self.0.set(0, self.0.get(0) >> 32 << 32 | size & 0xffff_ffff);
        }
        let pointer = if random.below(32) == 0 { self.value(random) } else { self.address(0) };
        // SAFETY: none, see above; no other code relies on a fuzzer's process.
        unsafe { device.raw(number, pointer) }
    }

    /// Prepares a call with its argument. Returns the call and the argument's length.
    fn argument(&self, table: &Table, random: &mut Random) -> (u32, usize) {
        let name = table.entities.first().map_or([0; 32], |entity| entity.name);
        let (entities, windows) = (self.address(TARGET), self.address(TARGET + TARGET / 2));
        match random.below(20) {
            0..=3 => (call::INSTALL, self.put(table.request())),
            4 => {
                let recorder = Recorder { nr_events: self.value(random) as u32, ..Default::default() };
                (call::RECORD, self.put(recorder.sized()))
            }
            5 => (call::START, self.put(Start { epoch_ns: self.value(random), ..Default::default() }.sized())),
            6..=8 => {
                let get = Get { nr_entities: 8, nr_windows: 16, entities, windows, ..Default::default() };
                (call::GET, self.put(get.sized()))
            }
            9..=10 => (call::STATS, self.put(Stats::default().sized())),
            11..=12 => (call::NOTIFY, self.put(Notify { eventfd: -1, ..Default::default() }.sized())),
            13..=15 => (call::BIND, self.put(Bind { pidfd: -1, name, ..Default::default() }.sized())),
            16 => (call::UNBIND, self.put(Unbind { pidfd: -1, ..Default::default() }.sized())),
            17 => (call::WAIT, self.put(Wait::default().sized())),
            18 => (*random.pick(&[call::STOP, call::REMOVE, call::INSTALL]), self.put(Install::default().sized())),
            _ => (random.number() as u32, self.put(Install::default().sized())),
        }
    }

    /// Returns a number at an edge, an address of the scratch memory, or an address that is not mapped.
    fn value(&self, random: &mut Random) -> u64 {
        let small = random.below(40);
        let edge = 1u64 << random.below(64);
        let scratch = self.address(TARGET) + small;
        let kernel = 0xffff_8880_0000_0000;
        *random.pick(&[0, 1, 3, small, edge, edge - 1, edge.wrapping_neg(), u64::MAX, scratch, kernel, 1 << 63 | small])
    }
}

/// Writes or reads a file of a group. Most writes fail.
pub fn write(group: &Group, random: &mut Random) -> Check {
    let length = *random.pick(&[0, 1, 2, 30, 31, 32, 33, 200, 4095, 4096, 5000]);
    let text = |random: &mut Random| -> String {
        (0..length).map(|_| *random.pick(&['a', 'b', ' ', '\0', '\n', '/', '\u{7f}', 'é'])).collect()
    };
    const NUMBERED: [&str; 3] = ["cpu.ds.budget", "cpu.ds.priority", "cpu.ds.lead"];
    match random.below(10) {
        0..=2 => group.set("cpu.tt.entity", &text(random)),
        8 => group.set(random.pick::<&str>(&NUMBERED), &text(random)),
        9 => {
            let numbers = ["0=100 0=", "1-0=100", "0-3,=50", "=", "99999999999999999999", "0-63=200", "-1", "1=\n"];
            group.set(random.pick::<&str>(&NUMBERED), random.pick::<&str>(&numbers))
        }
        3..=4 => group.get("cpu.tt.entity").map(drop),
        5 => group.set("cgroup.procs", &text(random)),
        6 => group.set("cgroup.threads", random.pick::<&str>(&["0", "-1", "1", "4294967296"])),
        _ => group.set("cpu.tt.entity", random.pick::<&str>(&["a", "b\n", "c\n\n", " a", "\n", "none"])),
    }
}
