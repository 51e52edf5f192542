//! Random tables, most of which are right.

use macrotick_uapi as abi;

use crate::random::Random;
use crate::table::Table;

/// The entities' names.
pub const NAMES: [&str; 3] = ["a", "b", "c"];

/// Up to six windows of some entities on so many CPUs, on a grid of `u` nanoseconds.
pub fn table(random: &mut Random, u: u64, cpus: u32) -> Table {
    let mut table = Table::new(20 * u + random.below(1000));
    let mut at = [0u64; 16];
    // An entity has one CPU, and keeps it in a swap: mostly the same one.
    let homes: [u64; 3] = std::array::from_fn(|entity| entity as u64 + u64::from(random.below(4) == 0));
    for _ in 0..1 + random.below(6) {
        let entity = random.below(3) as usize;
        let stray = u64::from(random.below(32) == 0);
        let cpu = ((homes[entity] + stray) % u64::from(cpus)) as usize;
        let name = NAMES[entity];
        let begin = at[cpu] + random.below(3) * u;
        let length = abi::MIN_WINDOW_NS + random.below(3 * u);
        at[cpu] = begin + length;
        table = table.window(name, cpu as u32, begin, length, random.below(4) as u32);
        table = table.misses(random.below(3) as u32, random.below(4) as u32);
    }
    if random.below(2) == 0 {
        table = table.lead(random.below(u / 2));
    }
    for index in 0..table.entities.len() {
        if random.below(4) == 0 {
            make_pool(&mut table, index, random);
        }
    }
    if random.below(4) == 0 {
        let at = at.iter().max().copied().unwrap_or(0);
        let bound = random.below(u) as u32;
        table = (0..cpus).fold(table, |table, cpu| table.sync(cpu, at, 2 * u, bound));
    }
    table.sorted()
}

/// Mostly one that is taken.
fn make_pool(table: &mut Table, index: usize, random: &mut Random) {
    let order = *random.pick(&[0, abi::RR, abi::PRIORITY, abi::RR | abi::PRIORITY]);
    let slack = *random.pick(&[0, abi::SLACK]);
    let slice_ns = *random.pick(&[0, 0, abi::MIN_SLICE_NS, abi::SLICE_NS]);
    let entity = &mut table.entities[index];
    (entity.flags, entity.max_misses, entity.slice_ns) = (abi::POOL | order | slack, 0, slice_ns);
    for window in table.windows.iter_mut().filter(|window| window.entity as usize == index) {
        window.flags = 0;
    }
}
