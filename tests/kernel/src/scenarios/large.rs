//! The largest possible tables: the duration of calls, and how long interrupts are disabled.

use macrotick_uapi::{self as abi, Device, Entity, Window};

use super::{is_slow, unit_ns, Scenario};
use crate::board::{Board, Job, Log};
use crate::check::{Check, Explain};
use crate::process::{self, periodic, Child};
use crate::sys;
use crate::table::Table;
use crate::{ensure, ensure_eq};

pub const ALL: &[Scenario] = &[
    Scenario::new("large_entities", entities).within(60_000),
    Scenario::new("large_first_thread", || first_thread(0)).punctual().within(120_000),
    Scenario::new("large_first_thread_migrating", || first_thread(abi::MIGRATE)).punctual().within(120_000),
    Scenario::new("large_numbers", || numbers(0)),
    Scenario::new("large_numbers_migrating", || numbers(abi::MIGRATE)),
    Scenario::new("large_numbers_of_two_cpus", numbers_of_two_cpus).on(2),
    Scenario::new("large_numbers_across_swaps", across_swaps).punctual(),
];

const SECOND: u64 = 1_000_000_000;

/// Returns a table with one window for each of this many entities. Their names differ only at the end.
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

/// Checks that the duration of a call grows with the number of entities, and not with its square.
fn entities() -> Check {
    let device = Device::open()?;
    let (first, second) = (many_entities(abi::MAX_ENTITIES, "a"), many_entities(abi::MAX_ENTITIES, "b"));
    // On a kernel without debugging an instruction takes 4 ns here.
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

/// A thread that wakes up every 200 us and records its greatest lateness.
struct Witness {
    board: Board,
    _child: Child,
}

impl Witness {
    fn new() -> Check<Witness> {
        let board = Board::new(2);
        let child = process::fork(|| {
            sys::prefault();
            if let Err(errno) = sys::under_fifo_on(0, 99) {
                return errno;
            }
            let mut next = sys::now_ns();
            loop {
                next += 200_000;
                sys::sleep_until(next);
                let late = sys::now_ns() - next;
                board.set(0, board.get(0).max(late));
                board.set(1, 1);
            }
        });
        ensure!(sys::eventually(SECOND, || board.get(1) == 1), "no witness: {}", child.describe());
        Ok(Witness { board, _child: child })
    }

    /// Returns the greatest lateness while something happens.
    fn late(&self, happens: impl FnOnce() -> Check) -> Check<u64> {
        self.board.set(0, 0);
        happens()?;
        sys::sleep(1_000_000);
        Ok(self.board.get(0))
    }
}

/// A block of windows: one of entity `t`, and the rest of an entity without threads.
const BLOCK: u32 = 8192;
/// The distance of the windows of `t`, in nanoseconds.
const BLOCK_NS: u64 = 70_000 + BLOCK as u64 * 1100;

/// Returns a table with this many windows, as dense as possible.
fn many_windows(count: u32, flags: u32) -> Table {
    let mut table = Table::new(u64::from(count.div_ceil(BLOCK)) * BLOCK_NS);
    for (name, flags) in [("t", flags), ("idle", 0)] {
        table.entities.push(Entity { name: abi::name(name), flags, ..Default::default() });
    }
    let window = |index: u32| {
        let (block, place) = (u64::from(index / BLOCK) * BLOCK_NS, u64::from(index % BLOCK));
        let (offset_ns, length_ns) = match place {
            0 => (block, 60_000),
            place => (block + 70_000 + place * 1100, abi::MIN_WINDOW_NS),
        };
        Window { offset_ns, length_ns, entity: u32::from(place > 0), flags: abi::ACTIVATE, ..Default::default() }
    };
    table.windows = (0..count).map(window).collect();
    table
}

/// Returns a witness's lateness while the first thread is bound, at two places of the table, and while another table is
/// staged.
fn late_beside(witness: &Witness, count: u32, flags: u32) -> Check<[u64; 3]> {
    let device = Device::open()?;
    let table = many_windows(count, flags);
    table.install(&device)?;
    let epoch = device.start(sys::now_ns() + SECOND / 100).explain("start")?;
    let mut late = [0; 3];
    let far_from_t = || sys::sleep_until(epoch + (sys::now_ns() - epoch).div_ceil(BLOCK_NS) * BLOCK_NS + BLOCK_NS / 2);
    // Each bind is in the last part of a cycle.
    for (round, cycles) in [2, 5].into_iter().enumerate() {
        sys::sleep_until(epoch + cycles * table.cycle_ns.max(100_000_000) - table.cycle_ns / 8);
        let (ready, log) = (Board::new(1), Log::new(16));
        let member = process::fork(|| process::wait_once_bound(ready, log));
        ensure!(sys::eventually(SECOND, || ready.get(0) == 1), "no thread: {}", member.describe());
        let pidfd = sys::pidfd_open(member.pid, 0).explain("pidfd")?;
        far_from_t();
        late[round] = witness.late(|| device.bind(pidfd, "t").explain("bind"))?;
        ensure!(sys::eventually(SECOND, || log.count() > 0), "no job of the first thread");
        for job in log.jobs() {
            let nominal = epoch + job.number * BLOCK_NS;
            ensure_eq!(job.nominal_ns, nominal, "nominal instant of job {}", job.number);
        }
        let stats = device.stats(0).explain("stats")?;
        ensure_eq!((stats.misses, stats.lost, stats.skipped), (0, 0, 0), "misses, lost and skipped");
        member.kill(SECOND)?;
    }
    sys::sleep(table.cycle_ns);
    far_from_t();
    late[2] = witness.late(|| many_windows(64, flags).swap(&device).map(drop).map_err(|error| format!("{error:?}")))?;
    device.remove().explain("remove")?;
    Ok(late)
}

/// Checks that windows that pass without threads cost other threads no time when the first thread comes. The comparison
/// is with windows that are as dense: the timer looks sixteen windows ahead.
fn first_thread(flags: u32) -> Check {
    // With windows of 1 us, the debug kernel only handles timer interrupts.
    if is_slow() {
        return Ok(());
    }
    let witness = Witness::new()?;
    let few = late_beside(&witness, BLOCK, flags)?;
    // The kernel sorts the windows of an entity that may migrate, which takes long in the emulator.
    for count in [32_768, if flags == 0 { abi::MAX_WINDOWS } else { 131_072 }] {
        let (mut is_good, mut told) = (false, String::new());
        // A rare delay, such as a tick beside the witness, does not come in each of three attempts.
        for _ in 0..3 {
            let many = late_beside(&witness, count, flags)?;
            told = format!("a witness beside {count} windows is {many:?} ns late, beside {BLOCK} {few:?}");
            println!("# {told}");
            // The thread is bound twice, and the smaller lateness counts.
            let worst = many[2].max(many[0].min(many[1]));
            let more = worst.saturating_sub(few.into_iter().max().unwrap_or_default());
            // The limit is 2 us at 1 ns per instruction, but an instruction takes 4 ns here.
            is_good = more <= 8_000;
            if is_good {
                break;
            }
        }
        ensure!(is_good, "{told}");
    }
    Ok(())
}

/// Returns a table with windows of three entities in turn. `t` has `flags`, and releases in two of three windows.
fn in_turn(u: u64, windows: u64, flags: u32) -> Table {
    let table = (0..windows).fold(Table::new(windows * u), |table, index| {
        let name = ["t", "b", "c"][index as usize % 3];
        let releases = name != "t" || index % 9 != 0;
        table.window(name, 0, index * u, u / 2, if releases { abi::ACTIVATE } else { 0 })
    });
    let mut table = table;
    table.entities[0].flags = flags;
    table
}

/// Returns the nominal instant of a job of `t` in such a table.
fn nominal_in_turn(u: u64, windows: u64, epoch: u64, number: u64) -> u64 {
    let of_t: Vec<u64> = (0..windows).filter(|index| index % 3 == 0 && index % 9 != 0).collect();
    let count = of_t.len() as u64;
    epoch + number / count * windows * u + of_t[(number % count) as usize] * u
}

/// Runs a thread of `t` for this many units. Returns when it had joined, and its jobs, at least two.
fn visit(u: u64, units: u64, round: u64) -> Check<(u64, Vec<Job>)> {
    let log = Log::new(256);
    let member = periodic("t", log, u / 10)?;
    let joined = sys::now_ns();
    sys::sleep(units * u);
    member.kill(SECOND)?;
    let jobs = log.jobs();
    ensure!(jobs.len() >= 2, "{} jobs in round {round}", jobs.len());
    Ok((joined, jobs))
}

/// Checks threads that come and go with standstills of all lengths between them: each job has the number of its window.
fn numbers(flags: u32) -> Check {
    const WINDOWS: u64 = 100;
    let (u, device) = (unit_ns(), Device::open()?);
    in_turn(u, WINDOWS, flags).install(&device)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    for round in 0..8u64 {
        let before = sys::now_ns();
        let (joined, jobs) = visit(u, 20, round)?;
        for job in &jobs {
            let nominal = nominal_in_turn(u, WINDOWS, epoch, job.number);
            ensure_eq!(job.nominal_ns, nominal, "nominal instant of job {} in round {round}", job.number);
        }
        let first = jobs[0].nominal_ns;
        ensure!(first >= before.saturating_sub(u), "first job at {first}, joined after {before}");
        ensure!(is_slow() || first <= joined + 8 * u, "first job at {first}, joined before {joined}");
        sys::sleep((round * round * 17 + 3) * u);
    }
    Ok(())
}

/// Checks the same with windows on two CPUs in turn.
fn numbers_of_two_cpus() -> Check {
    const WINDOWS: u64 = 60;
    let (u, device) = (10 * unit_ns(), Device::open()?);
    let table = (0..WINDOWS).fold(Table::new(WINDOWS * u), |table, index| {
        let flags = if index % 4 < 3 { abi::ACTIVATE } else { 0 };
        let table = table.window("t", (index % 2) as u32, index * u, u / 2, flags);
        // MIGRATE is set on the entity that was added last, which is `t` here.
        let table = if index == 0 { table.migrate() } else { table };
        let other = (index + 1) % 2;
        table.window(&format!("b{other}"), other as u32, index * u, u / 4, abi::ACTIVATE)
    });
    table.sorted().install(&device)?;
    let epoch = device.start(sys::now_ns() + 10 * u).explain("start")?;
    let releases: Vec<u64> = (0..WINDOWS).filter(|index| index % 4 < 3).collect();
    for round in 0..6u64 {
        let (_, jobs) = visit(u, 40, round)?;
        for job in jobs {
            let count = releases.len() as u64;
            let at = job.number / count * WINDOWS + releases[(job.number % count) as usize];
            ensure_eq!(job.nominal_ns, epoch + at * u, "nominal instant of job {} in round {round}", job.number);
        }
        sys::sleep((round * round * 29 + 3) * u);
    }
    Ok(())
}

/// Checks that the job numbers continue across swaps, with and without threads.
fn across_swaps() -> Check {
    let (u, device) = (unit_ns(), Device::open()?);
    let table = |windows: u64| in_turn(u, windows, 0).window("other", 0, windows * u - u / 4, u / 8, abi::ACTIVATE);
    let per_cycle = |windows: u64| (0..windows).filter(|index| index % 3 == 0 && index % 9 != 0).count() as u64;
    let sizes = [60, 30, 90, 45];
    table(sizes[0]).install(&device)?;
    let (mut epoch, mut base) = (device.start(sys::now_ns() + 10 * u).explain("start")?, 0);
    for (round, windows) in sizes.into_iter().enumerate() {
        // Every other round has no thread.
        if round % 2 == 0 {
            let (_, jobs) = visit(u, 20, round as u64)?;
            for job in jobs {
                ensure!(job.number >= base, "job {} in round {round}, which begins with {base}", job.number);
                let nominal = nominal_in_turn(u, windows, epoch, job.number - base);
                ensure_eq!(job.nominal_ns, nominal, "nominal instant of job {} in round {round}", job.number);
            }
        }
        sys::sleep((37 + 150 * (round as u64 % 2)) * u);
        let next = sizes[(round + 1) % sizes.len()];
        let swap_ns = table(next).swap(&device).map_err(|refusal| format!("swap: {refusal:?}"))?;
        base += (swap_ns - epoch) / (windows * u) * per_cycle(windows);
        epoch = swap_ns;
        sys::sleep_until(epoch + 5 * u);
    }
    Ok(())
}
