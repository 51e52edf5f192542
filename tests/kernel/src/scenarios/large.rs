//! Tables as large as they may be: what a call takes.

use macrotick_uapi::{self as abi, Device, Entity, Window};

use super::{is_slow, Scenario};
use crate::check::{Check, Explain};
use crate::sys;
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[Scenario::new("large_entities", entities).within(60_000)];

const SECOND: u64 = 1_000_000_000;

/// A window for each of so many entities; their names differ at the end only.
fn many_entities(count: u32, prefix: &str) -> Table {
    let mut table = Table::new(u64::from(count) * 10 * abi::MIN_WINDOW_NS);
    for index in 0..count {
        let name = abi::name(&format!("{prefix}-the-entity-number-{index:04}"));
        table.entities.push(Entity { name, ..Default::default() });
        let offset_ns = u64::from(index) * 10 * abi::MIN_WINDOW_NS;
        let length_ns = abi::MIN_WINDOW_NS;
        table.windows.push(Window { offset_ns, length_ns, entity: index, flags: abi::ACTIVATE, ..Default::default() });
    }
    table
}

fn took<T>(call: impl FnOnce() -> Check<T>) -> Check<u64> {
    let begin = sys::now_ns();
    call()?;
    Ok(sys::now_ns() - begin)
}

/// The time of a table grows with its entities, and not with their square.
fn entities() -> Check {
    let device = Device::open()?;
    let (first, second) = (many_entities(abi::MAX_ENTITIES, "a"), many_entities(abi::MAX_ENTITIES, "b"));
    // On the usual kernel an instruction takes 4 ns here.
    let limit = if is_slow() { 2 * SECOND } else { 80_000_000 };
    let swap = |table: &Table| table.swap(&device).map_err(|refusal| format!("swap: {refusal:?}"));
    let calls = [
        ("installing it", took(|| first.install(&device))?),
        ("a swap to others", took(|| swap(&second))?),
        ("a swap to the same", took(|| swap(&second))?),
        ("starting it", took(|| device.start(sys::now_ns() + SECOND / 100).explain("start"))?),
        ("a swap while it runs", took(|| swap(&first))?),
    ];
    calls.iter().for_each(|(what, ns)| println!("# {what}, {} entities: {ns} ns", abi::MAX_ENTITIES));
    for (what, ns) in calls {
        ensure!(ns < limit, "{what} took {ns} ns");
    }
    let mut twice = many_entities(abi::MAX_ENTITIES, "c");
    twice.entities[4000].name = twice.entities[17].name;
    device.remove().explain("remove")?;
    let refused = twice.try_install(&device).map_err(|refusal| (refusal.error, refusal.index, refusal.other));
    ensure_eq!(refused, Err((abi::error::ENTITY_TWICE, 4000, 17)), "a name twice");
    Ok(())
}
