//! Calls that the device must refuse, and calls that it must accept.

use macrotick_uapi::{
    self as abi, call, error, state, Device, Entity, Get, Install, Sized32, Start, Stats, Unbind, Wait, Window,
};

use super::Scenario;
use crate::check::{Check, Explain};
use crate::table::{send, Refusal, Table};
use crate::{ensure, ensure_eq, sys};

pub const ALL: &[Scenario] = &[
    Scenario::new("refuse_header", header),
    Scenario::new("refuse_entities", entities),
    Scenario::new("refuse_windows", windows),
    Scenario::new("refuse_overlap", overlap),
    Scenario::new("refuse_capacity", capacity),
    Scenario::new("refuse_lead", lead),
    Scenario::new("refuse_sync", sync),
    Scenario::new("refuse_sync_two_cpus", sync_two_cpus).on(2),
    Scenario::new("refuse_two_cpus", two_cpus).on(2),
    Scenario::new("refuse_offline_cpu", offline_cpu).on(2),
    Scenario::new("argument_sizes", sizes),
    Scenario::new("argument_pointers", pointers),
    Scenario::new("argument_flags", flags),
    Scenario::new("control_order", control_order),
    Scenario::new("get_round_trip", get_round_trip),
    Scenario::new("largest_table", largest_table),
];

const MS: u64 = 1_000_000;

/// Returns a valid table: a [0, 1 ms), b [1, 2 ms) of 10 ms.
fn right() -> Table {
    Table::new(10 * MS).window("a", 0, 0, MS, 3).window("b", 0, MS, MS, 3)
}

fn expect(device: &Device, what: &str, table: &Table, code: u32, index: u32, other: u32) -> Check {
    let wanted = Refusal { errno: libc::EINVAL, error: code, index, other };
    ensure_eq!(table.try_install(device), Err(wanted), "{what}");
    ensure_eq!(device.get().explain("get")?.state, state::EMPTY, "state after refusing {what}");
    Ok(())
}

fn accept(device: &Device, what: &str, table: &Table) -> Check {
    ensure_eq!(table.try_install(device), Ok(()), "{what}");
    device.remove().explain("remove")
}

fn header() -> Check {
    let device = Device::open()?;
    let table = right();
    let refused = |what: &str, code: u32, change: fn(&mut Install)| {
        let mut request = table.request();
        change(&mut request);
        let wanted = Refusal { errno: libc::EINVAL, error: code, index: 0, other: 0 };
        ensure_eq!(send(&device, request), Err(wanted), "{what}");
        Ok(())
    };
    refused("flags", error::HEADER, |request| request.flags = 2)?;
    refused("reserved", error::HEADER, |request| request.reserved = 1)?;
    refused("no entities", error::HEADER, |request| request.nr_entities = 0)?;
    refused("4097 entities", error::HEADER, |request| request.nr_entities = abi::MAX_ENTITIES + 1)?;
    refused("2^32 - 1 entities", error::HEADER, |request| request.nr_entities = u32::MAX)?;
    refused("no windows", error::HEADER, |request| request.nr_windows = 0)?;
    refused("2^20 + 1 windows", error::HEADER, |request| request.nr_windows = abi::MAX_WINDOWS + 1)?;
    refused("2^32 - 1 windows", error::HEADER, |request| request.nr_windows = u32::MAX)?;
    refused("CLOCK_REALTIME", error::CLOCK, |request| request.clockid = libc::CLOCK_REALTIME as u32)?;
    refused("CLOCK_BOOTTIME", error::CLOCK, |request| request.clockid = libc::CLOCK_BOOTTIME as u32)?;
    refused("clock 2^32 - 1", error::CLOCK, |request| request.clockid = u32::MAX)?;
    refused("no cycle", error::CYCLE, |request| request.cycle_ns = 0)?;
    refused("a cycle of 999 ns", error::CYCLE, |request| request.cycle_ns = abi::MIN_WINDOW_NS - 1)?;
    refused("an hour and a nanosecond", error::CYCLE, |request| request.cycle_ns = abi::MAX_CYCLE_NS + 1)?;
    refused("a cycle of 2^64 - 1", error::CYCLE, |request| request.cycle_ns = u64::MAX)?;
    // Values in the caller's error fields do not come back.
    let request =
        Install { error: 99, error_index: 98, error_other: 97, error_reserved: 96, flags: 2, ..right().request() };
    let wanted = Refusal { errno: libc::EINVAL, error: error::HEADER, index: 0, other: 0 };
    ensure_eq!(send(&device, request), Err(wanted), "stale error fields");
    accept(&device, "a cycle of an hour", &Table { cycle_ns: abi::MAX_CYCLE_NS, ..right() })
}

fn entities() -> Check {
    let device = Device::open()?;
    let refused = |what: &str, code, index, other, change: fn(&mut Vec<Entity>)| {
        let mut table = right();
        change(&mut table.entities);
        expect(&device, what, &table, code, index, other)
    };
    refused("an empty name", error::ENTITY_NAME, 1, 0, |all| all[1].name = [0; 32])?;
    refused("an unterminated name", error::ENTITY_NAME, 0, 0, |all| all[0].name = [b'x'; 32])?;
    refused("flags", error::ENTITY_FLAGS, 1, 0, |all| all[1].flags = 1 << 31)?;
    refused("two policies", error::ENTITY_FLAGS, 0, 0, |all| all[0].flags = abi::MISS_SIGNAL | abi::MISS_KILL)?;
    refused("a pool that misses", error::ENTITY_FLAGS, 0, 0, |all| all[0].flags = abi::POOL | abi::MISS_KILL)?;
    refused("a pool that stops", error::ENTITY_FLAGS, 1, 0, |all| (all[1].flags, all[1].max_misses) = (abi::POOL, 1))?;
    refused("two orders", error::ENTITY_FLAGS, 0, 0, |all| all[0].flags = abi::POOL | abi::RR | abi::PRIORITY)?;
    refused("turns without a pool", error::ENTITY_FLAGS, 1, 0, |all| all[1].flags = abi::RR)?;
    refused("slack without a pool", error::ENTITY_FLAGS, 0, 0, |all| all[0].flags = abi::SLACK)?;
    refused("a slice without a pool", error::ENTITY_SLICE, 1, 0, |all| all[1].slice_ns = abi::SLICE_NS)?;
    refused("a slice of FIFO", error::ENTITY_SLICE, 1, 0, |all| {
        (all[1].flags, all[1].slice_ns) = (abi::POOL, 1 << 20)
    })?;
    refused("a short slice", error::ENTITY_SLICE, 0, 0, |all| {
        (all[0].flags, all[0].slice_ns) = (abi::POOL | abi::RR, abi::MIN_SLICE_NS - 1);
    })?;
    refused("a long slice", error::ENTITY_SLICE, 0, 0, |all| {
        (all[0].flags, all[0].slice_ns) = (abi::POOL | abi::PRIORITY, abi::MAX_SLICE_NS + 1);
    })?;
    refused("a pool that is activated", error::WINDOW_POOL, 0, 0, |all| all[0].flags = abi::POOL)?;
    refused("a name twice", error::ENTITY_TWICE, 1, 0, |all| all[1].name = all[0].name)?;
    refused("no window", error::ENTITY_IDLE, 2, 0, |all| {
        all.push(Entity { name: abi::name("c"), ..Default::default() });
    })?;
    let mut longest = right();
    longest.entities[0].name = abi::name(&"x".repeat(31));
    accept(&device, "a name of 31 bytes", &longest)
}

fn windows() -> Check {
    let device = Device::open()?;
    let refused = |what: &str, code, index, other, change: fn(&mut Vec<Window>)| {
        let mut table = right();
        change(&mut table.windows);
        expect(&device, what, &table, code, index, other)
    };
    refused("flags", error::WINDOW_FLAGS, 0, 0, |all| all[0].flags = 8)?;
    refused("a bound", error::WINDOW_FLAGS, 1, 0, |all| all[1].bound_ns = 1)?;
    refused("CPU 4096", error::WINDOW_CPU, 1, 0, |all| all[1].cpu = 4096)?;
    refused("CPU 2^32 - 1", error::WINDOW_CPU, 0, 0, |all| all[0].cpu = u32::MAX)?;
    refused("entity 2", error::WINDOW_ENTITY, 1, 0, |all| all[1].entity = 2)?;
    refused("entity 2^32 - 1", error::WINDOW_ENTITY, 0, 0, |all| all[0].entity = u32::MAX)?;
    refused("no length", error::WINDOW_LENGTH, 0, 0, |all| all[0].length_ns = 0)?;
    refused("999 ns", error::WINDOW_LENGTH, 1, 0, |all| all[1].length_ns = 999)?;
    refused("offset at the cycle's end", error::WINDOW_RANGE, 1, 0, |all| all[1].offset_ns = 10 * MS)?;
    refused("a nanosecond beyond the cycle", error::WINDOW_RANGE, 1, 0, |all| all[1].offset_ns = 9 * MS + 1)?;
    refused("length 2^64 - 1", error::WINDOW_RANGE, 1, 0, |all| all[1].length_ns = u64::MAX)?;
    refused("offset 2^64 - 1", error::WINDOW_RANGE, 1, 0, |all| all[1].offset_ns = u64::MAX)?;
    refused("the same offset", error::WINDOW_ORDER, 1, 0, |all| all[1].offset_ns = 0)?;
    refused("unsorted", error::WINDOW_ORDER, 1, 0, |all| all.swap(0, 1))?;
    let mut last = right();
    last.windows[1].offset_ns = 9 * MS;
    accept(&device, "a window up to the cycle's end", &last)
}

fn overlap() -> Check {
    let device = Device::open()?;
    let mut table = right();
    accept(&device, "abutting windows of two entities", &table)?;
    table.windows[0].length_ns += 1;
    expect(&device, "one nanosecond of overlap", &table, error::WINDOW_OVERLAP, 1, 0)?;
    let same = Table::new(10 * MS).window("a", 0, 0, MS, 3).window("a", 0, MS, MS, 0);
    accept(&device, "abutting windows of one entity", &same)?;
    let mut three = right().window("a", 0, 3 * MS, MS, 0);
    three.windows[1].length_ns = 2 * MS + 1;
    expect(&device, "overlap with the third", &three, error::WINDOW_OVERLAP, 2, 1)
}

fn capacity() -> Check {
    let device = Device::open()?;
    let full = |length| Table::single(10 * MS, 0, 0, length);
    accept(&device, "95 percent", &full(9_500_000))?;
    expect(&device, "a nanosecond more", &full(9_500_001), error::CAPACITY, 0, 0)?;
    let sum = Table::new(10 * MS).window("a", 0, 0, 5 * MS, 0).window("b", 0, 5 * MS, 4_500_001, 0);
    expect(&device, "a nanosecond more in two", &sum, error::CAPACITY, 0, 0)?;
    // The limit is exactly 95 % of a cycle that is no multiple of 1000 ns, without rounding.
    let odd = |length| Table::single(10_000_999, 0, 0, length);
    accept(&device, "95 percent of an odd cycle", &odd(9_500_000))
}

fn lead() -> Check {
    let device = Device::open()?;
    let us = |n: u64| n * 1000;
    let apart = |lead| right().window("c", 0, 2 * MS + us(20), MS, 3).lead(lead);
    expect(&device, "longer than the longest", &right().lead(abi::MAX_LEAD_NS + 1), error::LEAD, 0, 0)?;
    expect(&device, "no room at all", &right().lead(1), error::WINDOW_LEAD, 1, 0)?;
    let continued = |lead| {
        let mut table = apart(lead);
        table.windows[1].flags = abi::DEADLINE;
        table
    };
    accept(&device, "as long as the gap, no ACTIVATE behind an abutting window", &continued(us(20)))?;
    expect(&device, "longer than the gap", &continued(us(20) + 1), error::WINDOW_LEAD, 2, 1)?;
    let around = |lead| Table::single(10 * MS, 0, us(5), MS).window("b", 0, 9 * MS, us(990), 0).lead(lead);
    accept(&device, "around the cycle", &around(us(15)))?;
    expect(&device, "too long around the cycle", &around(us(15) + 1), error::WINDOW_LEAD, 0, 1)?;
    let alone = |lead| Table::single(10 * MS, 0, MS, 9 * MS).lead(lead);
    accept(&device, "one window", &alone(us(500)))?;
    expect(&device, "95 percent with the lead", &alone(us(500) + 1), error::CAPACITY, 0, 0)?;
    alone(us(7)).install(&device)?;
    ensure_eq!(device.get().explain("get")?.lead_ns, us(7), "lead read back");
    Ok(())
}

/// Returns [`right`] on `CLOCK_TAI`, with a sync window [5, 6 ms) and a bound of half a millisecond.
fn synced() -> Table {
    right().sync(0, 5 * MS, MS, 500_000)
}

fn sync() -> Check {
    let device = Device::open()?;
    let refused = |what: &str, code, change: fn(&mut Window)| {
        let mut table = synced();
        change(&mut table.windows[2]);
        expect(&device, what, &table, code, 2, 0)
    };
    accept(&device, "a sync window", &synced())?;
    refused("a sync window with ACTIVATE", error::WINDOW_SYNC, |window| window.flags |= abi::ACTIVATE)?;
    refused("a sync window with unknown flags", error::WINDOW_SYNC, |window| window.flags |= 8)?;
    refused("a sync window with an entity", error::WINDOW_SYNC, |window| window.entity = 1)?;
    refused("no bound", error::SYNC_BOUND, |window| window.bound_ns = 0)?;
    refused("a bound up to 999 ns", error::SYNC_BOUND, |window| window.bound_ns = 1_000_000 - 999)?;
    refused("a bound of 2^32 - 1", error::SYNC_BOUND, |window| window.bound_ns = u32::MAX)?;
    refused("no length", error::SYNC_BOUND, |window| window.length_ns = 0)?;
    refused("beyond the cycle", error::WINDOW_RANGE, |window| window.offset_ns = 9 * MS + 1)?;
    let mut widest = synced();
    widest.windows[2].bound_ns = 1_000_000 - abi::MIN_WINDOW_NS as u32;
    accept(&device, "a bound down to the shortest window", &widest)?;
    let monotonic = Table { clock: libc::CLOCK_MONOTONIC, ..synced() };
    expect(&device, "a sync window on CLOCK_MONOTONIC", &monotonic, error::WINDOW_SYNC, 2, 0)?;
    let without = Table { clock: libc::CLOCK_TAI, ..right() };
    expect(&device, "CLOCK_TAI without a sync window", &without, error::SYNC_CPU, 0, 0)?;
    // The limit is 95 % of the shortest cycle: the window's bound is not available.
    let full = |length| Table::single(10 * MS, 0, 0, length).sync(0, 9_400_000, 600_000, 200_000);
    accept(&device, "95 percent of the shortest cycle", &full(9_310_000))?;
    expect(&device, "a nanosecond more", &full(9_310_001), error::CAPACITY, 0, 0)?;
    synced().install(&device)?;
    let mut windows = [Window::default(); 3];
    let get = device.read(&mut [], &mut windows).explain("get")?;
    ensure_eq!(windows[..], synced().windows[..], "windows read back");
    ensure_eq!(get.clockid, libc::CLOCK_TAI as u32, "the clock read back");
    Ok(())
}

fn sync_two_cpus() -> Check {
    let device = Device::open()?;
    let both = |offset, length, bound| synced().window("c", 1, 0, MS, 3).sync(1, offset, length, bound);
    accept(&device, "the same on both CPUs", &both(5 * MS, MS, 500_000))?;
    let differs = |what, table: &Table| expect(&device, what, table, error::SYNC_CPU, 4, 2);
    differs("another offset", &both(5 * MS + 1, MS, 500_000))?;
    differs("another length", &both(5 * MS, MS + 1, 500_000))?;
    differs("another bound", &both(5 * MS, MS, 500_001))?;
    let none = synced().window("c", 1, 0, MS, 3);
    expect(&device, "none on the second CPU", &none, error::SYNC_CPU, 3, 2)?;
    let more = both(5 * MS, MS, 500_000).sync(1, 8 * MS, MS, 1);
    expect(&device, "one more on the second CPU", &more, error::SYNC_CPU, 5, 2)?;
    both(5 * MS, MS, 500_000).install(&device)?;
    let mut windows = [Window::default(); 5];
    device.read(&mut [], &mut windows).explain("get")?;
    ensure_eq!(windows[..], both(5 * MS, MS, 500_000).windows[..], "windows read back");
    Ok(())
}

fn two_cpus() -> Check {
    let device = Device::open()?;
    let table = Table::new(10 * MS).window("a", 0, 0, MS, 3).window("a", 1, 5 * MS, MS, 0);
    expect(&device, "one entity on two CPUs", &table, error::WINDOW_MIGRATES, 1, 0)?;
    let table = Table::new(10 * MS).window("b", 1, 0, MS, 3).window("a", 0, 0, MS, 3);
    expect(&device, "CPUs unsorted", &table, error::WINDOW_ORDER, 1, 0)?;
    let table = Table::new(10 * MS).window("a", 0, 0, MS, 3).window("b", 1, 0, 9_600_000, 3);
    expect(&device, "the second CPU too full", &table, error::CAPACITY, 1, 0)?;
    let both = Table::new(10 * MS).window("a", 0, 0, 9_500_000, 3).window("b", 1, 0, 9_500_000, 3);
    accept(&device, "95 percent of each", &both)
}

fn offline_cpu() -> Check {
    let device = Device::open()?;
    sys::set_online(1, false).explain("take CPU 1 off line")?;
    let on_one = Table::new(10 * MS).window("a", 0, 0, MS, 3).window("b", 1, 0, MS, 3);
    expect(&device, "a window on an offline CPU", &on_one, error::WINDOW_CPU, 1, 0)?;
    right().install(&device)?;
    sys::set_online(1, true).explain("bring CPU 1 back")?;
    ensure_eq!(on_one.try_install(&device).map_err(|refusal| refusal.error), Err(error::INSTALLED), "a second table");
    device.remove().explain("remove")?;
    accept(&device, "once the CPU is back", &on_one)
}

/// Makes a call with a structure and a tail, and a size that covers both.
fn with_tail<T: Sized32>(device: &Device, call: u32, arg: T, size: u32, poison: Option<usize>) -> Result<(), i32> {
    let bytes = std::mem::size_of::<T>();
    let mut buffer = vec![0u64; 1024];
    // SAFETY: the buffer is larger than every structure, and aligned.
    unsafe { buffer.as_mut_ptr().cast::<T>().write(arg) };
    // SAFETY: u64 may be read as bytes.
    let raw = unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<u8>(), 8192) };
    raw[..4].copy_from_slice(&size.to_ne_bytes());
    if let Some(at) = poison {
        raw[bytes + at] = 1;
    }
    // SAFETY: the buffer is writable and longer than any size that is accepted.
    unsafe { device.raw(call, buffer.as_mut_ptr() as u64) }
}

/// Checks a call with all sizes. `first` is the size of the structure's first version, in bytes: fields that were added
/// later are zero if they are missing.
fn try_sizes<T: Sized32>(device: &Device, call: (&str, u32), first: u32, arg: T, good: Result<(), i32>) -> Check {
    let ((what, call), full) = (call, std::mem::size_of::<T>() as u32);
    for size in [0, 1, 4, first - 8, first - 1] {
        ensure_eq!(with_tail(device, call, arg, size, None), Err(libc::EINVAL), "{what} with size {size}");
    }
    for size in first..=full {
        ensure_eq!(with_tail(device, call, arg, size, None), good, "{what} with size {size}");
    }
    for size in [full + 1, full + 8, 4096] {
        ensure_eq!(with_tail(device, call, arg, size, None), good, "{what} with size {size} and zeroes");
        let last = (size - full - 1) as usize;
        for at in [0, last] {
            let tail = with_tail(device, call, arg, size, Some(at));
            ensure_eq!(tail, Err(libc::E2BIG), "{what} with size {size} and a one at {at}");
        }
    }
    for size in [4097, 1 << 20, u32::MAX] {
        ensure_eq!(with_tail(device, call, arg, size, None), Err(libc::E2BIG), "{what} with size {size}");
    }
    Ok(())
}

fn sizes() -> Check {
    let device = Device::open()?;
    let bad = Install { flags: 2, ..right().request() };
    let me = abi::Bind { pidfd: -1, ..Default::default() };
    let none = abi::Unbind { pidfd: -1, ..Default::default() };
    try_sizes(&device, ("install", call::INSTALL), 72, bad, Err(libc::EINVAL))?;
    try_sizes(&device, ("start", call::START), 16, Start::default(), Err(libc::ENOENT))?;
    try_sizes(&device, ("get", call::GET), 56, Get::default(), Ok(()))?;
    try_sizes(&device, ("stats", call::STATS), 104, Stats::default(), Err(libc::ENOENT))?;
    let notify = abi::Notify { eventfd: -1, ..Default::default() };
    try_sizes(&device, ("notify", call::NOTIFY), 16, notify, Err(libc::ENOENT))?;
    try_sizes(&device, ("record", call::RECORD), 16, abi::Recorder::default(), Err(libc::EINVAL))?;
    try_sizes(&device, ("bind", call::BIND), 48, me, Err(libc::ENOENT))?;
    try_sizes(&device, ("unbind", call::UNBIND), 16, none, Err(libc::ENOTCONN))?;
    try_sizes(&device, ("wait", call::WAIT), 32, Wait::default(), Err(libc::ENOTCONN))?;
    let table = right();
    ensure_eq!(with_tail(&device, call::INSTALL, table.request(), 4096, None), Ok(()), "a table in a larger structure");
    device.remove().explain("remove")
}

/// Reads the table to addresses outside of this process's memory.
fn read_nowhere(device: &Device, get: Get) -> Result<(), i32> {
    let mut get = get.sized();
    // SAFETY: the structure is writable, and no memory is mapped at its pointers.
    unsafe { device.raw(call::GET, &mut get as *mut Get as u64) }
}

fn pointers() -> Check {
    let device = Device::open()?;
    let calls = [
        call::INSTALL,
        call::START,
        call::GET,
        call::STATS,
        call::NOTIFY,
        call::RECORD,
        call::BIND,
        call::UNBIND,
        call::WAIT,
    ];
    for call in calls {
        for pointer in [0, 8, 0x1000, 0x7fff_ffff_f000, 0xffff_8000_0000_0000, 0xffff_ffff_ffff_fff8] {
            // SAFETY: no address of ours.
            let result = unsafe { device.raw(call, pointer) };
            ensure_eq!(result, Err(libc::EFAULT), "call {call:#x} with {pointer:#x}");
        }
    }
    let table = right();
    for pointer in [0, 0x1000, 0xffff_8000_0000_0000, u64::MAX - 7] {
        let request = Install { entities: pointer, ..table.request() };
        ensure_eq!(
            send(&device, request).map_err(|refusal| refusal.errno),
            Err(libc::EFAULT),
            "entities at {pointer:#x}"
        );
        let request = Install { windows: pointer, ..table.request() };
        ensure_eq!(
            send(&device, request).map_err(|refusal| refusal.errno),
            Err(libc::EFAULT),
            "windows at {pointer:#x}"
        );
    }
    let request = Install { nr_entities: abi::MAX_ENTITIES, entities: 0, ..table.request() };
    ensure_eq!(send(&device, request).map_err(|refusal| refusal.errno), Err(libc::EFAULT), "4096 entities nowhere");
    table.install(&device)?;
    let get = Get { nr_entities: 2, nr_windows: 2, entities: 8, windows: 8, ..Default::default() };
    ensure_eq!(read_nowhere(&device, get), Err(libc::EFAULT), "get to a bad address");
    for nr in [3, 0x08, 0x0f, 0x13, 0x20, 0xff] {
        let call = (call::INSTALL & !0xff) | nr;
        if nr == 3 {
            continue;
        }
        // SAFETY: there is no such call.
        ensure_eq!(unsafe { device.raw(call, 0) }, Err(libc::ENOTTY), "call {nr:#x}");
    }
    // SAFETY: a terminal's call.
    ensure_eq!(unsafe { device.raw(libc::TCGETS as u32, 0) }, Err(libc::ENOTTY), "TCGETS");
    Ok(())
}

fn flags() -> Check {
    let device = Device::open()?;
    right().install(&device)?;
    let mut start = Start { flags: 1, ..Default::default() };
    ensure_eq!(device.call(&mut start), Err(libc::EINVAL), "start with flags");
    let mut start = Start { epoch_ns: u64::MAX, ..Default::default() };
    ensure_eq!(device.call(&mut start), Err(libc::EINVAL), "an epoch of 2^64 - 1");
    let get = Get { flags: 1, ..Default::default() };
    ensure_eq!(read_nowhere(&device, get), Err(libc::EINVAL), "get with flags");
    let bind = abi::Bind { pidfd: -1, name: abi::name("a"), ..Default::default() };
    for (what, mut bind) in [
        ("flags", abi::Bind { flags: 1, ..bind }),
        ("reserved", abi::Bind { reserved: 1, ..bind }),
        ("an unterminated name", abi::Bind { name: [b'a'; 32], ..bind }),
    ] {
        ensure_eq!(device.call(&mut bind), Err(libc::EINVAL), "bind with {what}");
    }
    let mut unbind = Unbind { flags: 1, pidfd: -1, ..Default::default() };
    ensure_eq!(device.call(&mut unbind), Err(libc::EINVAL), "unbind with flags");
    let mut unbind = Unbind { reserved: 1, pidfd: -1, ..Default::default() };
    ensure_eq!(device.call(&mut unbind), Err(libc::EINVAL), "unbind with reserved");
    let mut notify = abi::Notify { flags: 1, eventfd: -1, ..Default::default() };
    ensure_eq!(device.call(&mut notify), Err(libc::EINVAL), "notify with flags");
    let mut wait = Wait { flags: 1, ..Default::default() };
    ensure_eq!(device.call(&mut wait), Err(libc::EINVAL), "wait with flags");
    ensure_eq!(device.stats(2).map(drop), Err(libc::ENOENT), "stats of entity 2 of 2");
    ensure_eq!(device.stats(u32::MAX).map(drop), Err(libc::ENOENT), "stats of entity 2^32 - 1");
    Ok(())
}

fn control_order() -> Check {
    let device = Device::open()?;
    ensure_eq!(device.start(0), Err(libc::ENOENT), "start without a table");
    ensure_eq!(device.stop(), Err(libc::ENOENT), "stop without a table");
    ensure_eq!(device.remove(), Err(libc::ENOENT), "remove without a table");
    ensure_eq!(device.stats(0).map(drop), Err(libc::ENOENT), "stats without a table");
    ensure_eq!(device.get().explain("get")?.state, state::EMPTY, "state without a table");
    let table = right();
    table.install(&device)?;
    ensure_eq!(device.get().explain("get")?.state, state::STOPPED, "state once installed");
    let twice = Refusal { errno: libc::EBUSY, error: error::INSTALLED, index: 0, other: 0 };
    ensure_eq!(table.try_install(&device), Err(twice), "install twice");
    ensure_eq!(device.stop(), Ok(()), "stop before the start");
    let epoch = device.start(sys::now_ns() + MS).explain("start")?;
    let get = device.get().explain("get")?;
    ensure_eq!((get.state, get.epoch_ns), (state::RUNNING, epoch), "state and epoch while it runs");
    ensure_eq!(device.start(0), Err(libc::EBUSY), "start twice");
    ensure_eq!(table.try_install(&device), Err(twice), "install while one runs");
    ensure_eq!(device.stop(), Ok(()), "stop");
    let get = device.get().explain("get")?;
    ensure_eq!((get.state, get.epoch_ns), (state::STOPPED, 0), "state and epoch once stopped");
    ensure_eq!(device.stop(), Ok(()), "stop twice");
    device.start(0).explain("start again")?;
    ensure_eq!(device.remove(), Ok(()), "remove while it runs");
    ensure_eq!(device.remove(), Err(libc::ENOENT), "remove twice");
    // The table remains when the descriptor that installed it is closed.
    table.install(&Device::open()?)?;
    ensure_eq!(device.get().explain("get")?.nr_windows, 2, "windows after the installer has closed");
    Ok(())
}

fn get_round_trip() -> Check {
    let device = Device::open()?;
    let table = right().window("a", 0, 7 * MS, MS, abi::DEADLINE).window("b", 0, 9 * MS, MS, 0);
    table.install(&device)?;
    let counts = device.get().explain("get")?;
    ensure_eq!((counts.nr_entities, counts.nr_windows), (2, 4), "counts");
    ensure_eq!((counts.clockid, counts.cycle_ns), (libc::CLOCK_MONOTONIC as u32, 10 * MS), "clock and cycle");
    let read = |entities: usize, windows: usize| {
        let mut into = (vec![Entity::default(); 8], vec![Window::default(); 8]);
        device.read(&mut into.0[..entities], &mut into.1[..windows]).map(|get| (get, into))
    };
    ensure_eq!(read(1, 4).map(drop), Err(libc::ENOSPC), "too few entities");
    ensure_eq!(read(2, 3).map(drop), Err(libc::ENOSPC), "too few windows");
    ensure_eq!(read(0, 3).map(drop), Err(libc::ENOSPC), "too few windows, no entities");
    for (entities, windows) in [(2, 4), (8, 8), (0, 4), (2, 0)] {
        let (get, into) = read(entities, windows).explain("get")?;
        ensure_eq!((get.nr_entities, get.nr_windows), (2, 4), "counts with {entities} and {windows}");
        let (no_entities, no_windows) = (vec![Entity::default(); 2], vec![Window::default(); 4]);
        let wanted = if entities > 0 { &table.entities } else { &no_entities };
        ensure_eq!(&into.0[..2], wanted.as_slice(), "entities with {entities} and {windows}");
        let wanted = if windows > 0 { &table.windows } else { &no_windows };
        ensure_eq!(&into.1[..4], wanted.as_slice(), "windows with {entities} and {windows}");
        ensure!(into.1[4] == Window::default(), "wrote beyond the count");
    }
    Ok(())
}

fn largest_table() -> Check {
    let device = Device::open()?;
    let mut table = Table::new(u64::from(abi::MAX_WINDOWS) * 2000);
    table.entities.push(Entity { name: abi::name("t"), ..Default::default() });
    table.windows = (0..u64::from(abi::MAX_WINDOWS))
        .map(|i| Window { offset_ns: i * 2000, length_ns: 1000, flags: 1, ..Default::default() })
        .collect();
    table.install(&device)?;
    let get = device.get().explain("get")?;
    ensure_eq!(get.nr_windows, abi::MAX_WINDOWS, "windows");
    let mut names = Table::new(u64::from(abi::MAX_ENTITIES) * 2000);
    device.remove().explain("remove")?;
    for i in 0..u64::from(abi::MAX_ENTITIES) {
        names.entities.push(Entity { name: abi::name(&format!("entity {i}")), ..Default::default() });
        let window = Window { offset_ns: i * 2000, length_ns: 1000, entity: i as u32, ..Default::default() };
        names.windows.push(window);
    }
    accept(&device, "4096 entities", &names)
}
