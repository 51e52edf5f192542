//! Random tables. Most of them are valid.

use macrotick_uapi as abi;

use crate::random::Random;
use crate::table::Table;

/// The names of the entities.
pub const NAMES: [&str; 3] = ["a", "b", "c"];

/// The place of an entity's windows.
#[derive(Clone, Copy)]
struct Home {
    cpu: u64,
    migrates: bool,
    /// The end of the last window: two windows of an entity at the same time are refused.
    end: u64,
}

/// Draws the CPUs of the entities. Most entities have one CPU, usually the same one, and keep it in a swap. The last
/// entity usually has windows on all CPUs.
fn homes(random: &mut Random) -> [Home; 3] {
    std::array::from_fn(|entity| {
        let cpu = entity as u64 + u64::from(random.below(4) == 0);
        let migrates = random.below(8) == 0 || entity == 2 && random.below(4) > 0;
        Home { cpu, migrates, end: 0 }
    })
}

/// Makes a table with up to six windows on this many CPUs, on a grid of `u` nanoseconds.
pub fn table(random: &mut Random, u: u64, cpus: u32) -> Table {
    let mut table = Table::new(20 * u + random.below(1000));
    let mut at = [0u64; 16];
    let mut homes = homes(random);
    for _ in 0..1 + random.below(6) {
        let entity = random.below(3) as usize;
        let home = &mut homes[entity];
        let elsewhere = if home.migrates { random.below(u64::from(cpus)) } else { u64::from(random.below(32) == 0) };
        let cpu = ((home.cpu + elsewhere) % u64::from(cpus)) as usize;
        let name = NAMES[entity];
        // Some windows are at the same time.
        let earliest = if home.migrates && random.below(16) > 0 { at[cpu].max(home.end) } else { at[cpu] };
        let begin = earliest + random.below(3) * u;
        let length = abi::MIN_WINDOW_NS + random.below(3 * u);
        (at[cpu], home.end) = (begin + length, begin + length);
        table = table.window(name, cpu as u32, begin, length, random.below(4) as u32);
        table = table.misses(random.below(3) as u32, random.below(4) as u32);
    }
    for (name, _) in NAMES.iter().zip(homes).filter(|(_, home)| home.migrates) {
        table.entities.iter_mut().filter(|one| one.name == abi::name(name)).for_each(|one| one.flags |= abi::MIGRATE);
    }
    if random.below(2) == 0 {
        table = table.lead(random.below(u / 2));
    }
    for index in 0..table.entities.len() {
        let migrates = table.entities[index].flags & abi::MIGRATE != 0;
        if !migrates && random.below(4) == 0 {
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

/// Makes an entity a pool, usually a valid one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_migrate_and_are_hardly_ever_at_two_places() {
        let mut random = Random::new(1);
        let (mut moving, mut parallel) = (0, 0);
        for table in (0..1000).map(|_| table(&mut random, 100_000, 2)) {
            let migrates = |one: &&abi::Window| table.entities[one.entity as usize].flags & abi::MIGRATE != 0;
            let windows = table.windows.iter().filter(|one| one.flags & abi::SYNC == 0);
            let windows: Vec<&abi::Window> = windows.filter(migrates).collect();
            let pairs = || windows.iter().flat_map(|one| windows.iter().map(move |other| (one, other)));
            let others = || pairs().filter(|(one, other)| one.entity == other.entity && one.cpu < other.cpu);
            let meets = |one: &abi::Window, other: &abi::Window| {
                one.offset_ns < other.offset_ns + other.length_ns && other.offset_ns < one.offset_ns + one.length_ns
            };
            moving += u32::from(others().next().is_some());
            parallel += u32::from(others().any(|(one, other)| meets(one, other)));
        }
        assert!(
            moving > 150 && parallel > 0 && parallel < moving / 5,
            "{moving} tables, {parallel} with parallel windows"
        );
    }
}
