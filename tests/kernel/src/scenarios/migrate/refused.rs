//! Tables with such entities that the device must refuse or accept.

use macrotick_uapi::{self as abi, error, state, Device, Entity};

use crate::check::{Check, Explain};
use crate::ensure_eq;
use crate::table::{Refusal, Table};

const MS: u64 = 1_000_000;

fn refused(device: &Device, what: &str, table: &Table, error: u32, index: u32, other: u32) -> Check {
    let wanted = Refusal { errno: libc::EINVAL, error, index, other };
    ensure_eq!(table.try_install(device), Err(wanted), "{what}");
    ensure_eq!(device.get().explain("get")?.state, state::EMPTY, "state after refusing {what}");
    Ok(())
}

fn accepted(device: &Device, what: &str, table: &Table) -> Check {
    ensure_eq!(table.try_install(device), Ok(()), "{what}");
    device.remove().explain("remove")
}

/// Returns a table: `t` has [0, 1 ms) of 10 ms on CPU 0.
fn on_zero(flags: u32) -> Table {
    Table::new(10 * MS).window("t", 0, 0, MS, flags).migrate()
}

/// Checks the flags: a pool cannot migrate, but an entity with any reaction to misses can.
pub fn flags() -> Check {
    let device = Device::open()?;
    let with = |flags: u32, of_window: u32| {
        let mut table = on_zero(of_window);
        table.entities[0].flags |= flags;
        table
    };
    for flags in [abi::POOL, abi::POOL | abi::RR, abi::POOL | abi::SLACK, abi::RR, abi::SLACK] {
        refused(&device, "a pool that migrates", &with(flags, 0), error::ENTITY_FLAGS, 0, 0)?;
    }
    let two = with(abi::MISS_SIGNAL | abi::MISS_KILL, 3);
    refused(&device, "two policies and MIGRATE", &two, error::ENTITY_FLAGS, 0, 0)?;
    refused(&device, "the next flag", &with(abi::MIGRATE << 1, 3), error::ENTITY_FLAGS, 0, 0)?;
    for flags in [0, abi::MISS_SIGNAL, abi::MISS_KILL] {
        let table = with(flags, 3);
        accepted(&device, "windows on one CPU only", &table)?;
        table.install(&device)?;
        let mut entities = [Entity::default()];
        device.read(&mut entities, &mut []).explain("get")?;
        ensure_eq!(entities[0].flags, abi::MIGRATE | flags, "flags read back");
        device.remove().explain("remove")?;
    }
    Ok(())
}

/// Returns a table with one window of `t` on each CPU: offset and length.
fn both(zero: (u64, u64), one: (u64, u64)) -> Table {
    Table::new(10 * MS).window("t", 0, zero.0, zero.1, 3).migrate().window("t", 1, one.0, one.1, 3)
}

/// Checks windows at the same time. The refusal names the window that begins later (`index`) and the one before it
/// (`other`).
pub fn parallel() -> Check {
    let device = Device::open()?;
    let first = (0, MS);
    accepted(&device, "abutting windows on two CPUs", &both(first, (MS, MS)))?;
    accepted(&device, "abutting windows, the second CPU first", &both((MS, MS), first))?;
    accepted(&device, "abutting windows around the cycle", &both(first, (9 * MS, MS)))?;
    let clash = |what, table: &Table, index, other| refused(&device, what, table, error::WINDOW_PARALLEL, index, other);
    clash("a nanosecond at the same time", &both(first, (MS - 1, MS)), 1, 0)?;
    clash("a nanosecond, the second CPU first", &both((MS - 1, MS), first), 0, 1)?;
    clash("one inside of the other", &both(first, (MS / 4, MS / 4)), 1, 0)?;
    clash("one around the other", &both((MS / 4, MS / 4), first), 0, 1)?;
    let same =
        both(first, first).try_install(&device).map_err(|refusal| (refusal.error, refusal.index ^ refusal.other));
    ensure_eq!(same, Err((error::WINDOW_PARALLEL, 1)), "the same time");
    let many = on_zero(3).window("t", 0, 4 * MS, MS, 0).window("t", 1, 2 * MS, MS, 3);
    accepted(&device, "four windows", &many.clone().window("t", 1, 5 * MS, MS, 0))?;
    let last = many.window("t", 1, 5 * MS - 1, MS, 0);
    clash("the second window and the last", &last, 3, 1)?;
    let mut without = both(first, (MS, MS));
    without.entities[0].flags = 0;
    refused(&device, "two CPUs without MIGRATE", &without, error::WINDOW_MIGRATES, 1, 0)?;
    // Two entities may cross, because each is in one place at a time.
    let crossing = Table::new(10 * MS).window("a", 0, 0, MS, 3).migrate().window("a", 1, MS, MS, 0);
    let crossing = crossing.window("b", 0, MS, MS, 3).migrate().window("b", 1, 0, MS, 0).sorted();
    accepted(&device, "two entities that cross", &crossing)
}

/// Checks that a window is open during its lead, if it has a lead.
pub fn parallel_by_the_lead() -> Check {
    let device = Device::open()?;
    let us = |n: u64| n * 1000;
    let clash = |what, table: &Table, index, other| refused(&device, what, table, error::WINDOW_PARALLEL, index, other);
    let apart = |flags, lead| on_zero(3).window("t", 1, MS + us(20), MS, flags).lead(lead);
    accepted(&device, "a lead as long as the gap", &apart(3, us(20)))?;
    clash("a lead longer than the gap", &apart(3, us(20) + 1), 1, 0)?;
    accepted(&device, "no ACTIVATE, no lead", &apart(abi::DEADLINE, us(20) + 1))?;
    let around =
        |lead| Table::new(10 * MS).window("t", 0, 9 * MS, MS - us(20), 0).migrate().window("t", 1, 0, MS, 3).lead(lead);
    accepted(&device, "a lead around the cycle", &around(us(20)))?;
    clash("a lead around the cycle, too long", &around(us(20) + 1), 1, 0)?;
    let to_zero = |lead| on_zero(3).window("t", 1, 9 * MS, MS - us(20), 0).lead(lead);
    accepted(&device, "a lead around the cycle on the first CPU", &to_zero(us(20)))?;
    clash("a lead around the cycle on the first CPU, too long", &to_zero(us(20) + 1), 0, 1)
}

pub fn read_back() -> Check {
    let device = Device::open()?;
    let table = on_zero(3).window("t", 1, MS, MS, 0).window("plain", 1, 3 * MS, MS, 3).lead(1000);
    table.install(&device)?;
    let (mut entities, mut windows) = ([Entity::default(); 2], [abi::Window::default(); 3]);
    device.read(&mut entities, &mut windows).explain("get")?;
    ensure_eq!(entities[..], table.entities[..], "entities read back");
    ensure_eq!(windows[..], table.windows[..], "windows read back");
    let stats = device.stats(0).explain("stats")?;
    ensure_eq!((stats.nr_threads, stats.activations), (0, 0), "threads and activations before the start");
    Ok(())
}
