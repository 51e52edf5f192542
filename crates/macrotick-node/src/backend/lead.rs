//! The lead in force: the lead of the description, or a lead that suits this host. Also checks whether short windows
//! suit this host.
//!
//! A table of its own measures the host before the system's table is installed. It has one job without a lead per CPU,
//! above a thread that never sleeps. The phase of the job sweeps over the kernel's tick. The lead must cover the
//! longest time from a nominal instant to the job's first instruction.

use std::sync::atomic::{AtomicBool, Ordering};

use macrotick_host::device;
use macrotick_host::sys;
use macrotick_model::{CpuTable, Duration, Lead, LeadInForce, Plan, Window};
use macrotick_uapi::{self as uapi, Device, Sized32};

use crate::error::NodeError;
use crate::error::Refusal;

/// The tick expires on multiples of this time, or on multiples of a multiple of it.
const GRID: Duration = Duration::from_millis(1);
/// The shift of a job in the grid, compared with the job before.
const STEP: Duration = Duration::from_nanos(250);
/// The time before a grid point at which the first job starts.
const AHEAD: Duration = Duration::from_micros(25);
/// The number of grid periods left for the start.
const START_MARGIN: i64 = 10;
const WINDOW: Duration = Duration::from_micros(200);
/// The number of jobs on each CPU: from 20 us before the tick to 20 us after it, and the warm-up before them.
const JOBS: usize = WARM_UP + 160;
/// The number of first jobs that do not count, because they suffer from page faults and cold caches.
const WARM_UP: usize = 20;
/// The name of the entity that measures.
const PROBE: &str = "lead-probe";

/// A window that is shorter than this is compared with the time that the host takes to start a job.
const SHORT: Duration = Duration::from_micros(50);

/// The result of the measurement for a plan on this host.
pub struct Found {
    /// The lead in force. `None`: the system has no lead.
    pub lead: Option<LeadInForce>,
    /// Remarks for the observation.
    pub remarks: Vec<String>,
}

/// Chooses the lead of a plan on this host, which must have no table installed. Also checks that the host starts the
/// jobs of short windows before these windows end. Returns an error if it usually does not, and a remark if it
/// sometimes may not. A CPU that needs neither result is not measured.
pub fn find(plan: &Plan) -> Result<Found, NodeError> {
    let auto = matches!(plan.system.lead, Some(Lead::Auto(_)));
    let mut measured = Vec::new();
    for table in plan.tables.iter().filter(|table| !table.windows.is_empty()) {
        let shortest = shortest(plan, table);
        if auto || shortest.is_some() {
            measured.push((table.cpu, shortest, measure(&device::open()?, table.cpu)?));
        }
    }
    let needed = measured.iter().map(|(.., latenesses)| with_margin(latenesses.longest)).max();
    let lead = in_force(plan, needed.filter(|_| auto));
    let mut remarks = Vec::new();
    for (cpu, shortest, latenesses) in &measured {
        if let Some(window) = shortest {
            remarks.extend(judge(*cpu, window, latenesses, lead.map(|lead| lead.lead))?);
        }
    }
    Ok(Found { lead, remarks })
}

/// Returns the shortest window in which a job starts, if it is shorter than [`SHORT`].
fn shortest<'a>(plan: &Plan, table: &'a CpuTable) -> Option<&'a Window> {
    let is_task = |name: &str| plan.system.task(name).is_some();
    let begins = table.windows.iter().filter(|window| window.activate && is_task(&window.task));
    begins.min_by_key(|window| window.length).filter(|window| window.length < SHORT)
}

/// Checks whether a job starts in its window, with a lead or without.
///
/// A lead that covers the host's lateness leaves the whole window for the job. With a shorter lead the job is late by
/// the shortfall. The window's own interrupt then adds the whole lateness of the host.
fn judge(
    cpu: u32,
    window: &Window,
    latenesses: &Latenesses,
    lead: Option<Duration>,
) -> Result<Option<String>, NodeError> {
    let taken = |lateness: Duration| match lead {
        None => lateness,
        Some(lead) if lead >= lateness => Duration::ZERO,
        Some(lead) => lateness + (lateness - lead),
    };
    let (task, length) = (window.task.clone(), window.length);
    let (usual, needed) = (with_margin(latenesses.usual), with_margin(latenesses.longest));
    if length < taken(usual) {
        return Err(NodeError::ShortWindow { task, length, cpu, needed, lead });
    }
    let beside = lead.map_or(String::new(), |lead| format!(", and the lead is {lead}"));
    Ok((length < taken(needed)).then(|| {
        format!(
            "task `{task}`: its window of {length} may be over before its job begins, where that meets an interrupt: CPU {cpu} \
             takes {usual}, and up to {needed}{beside}"
        )
    }))
}

/// Returns the lead of a plan on a host that needs `needed`. Without a measurement it is the whole time that the plan
/// keeps free.
pub fn in_force(plan: &Plan, needed: Option<Duration>) -> Option<LeadInForce> {
    match plan.system.lead? {
        Lead::Fixed(lead) => Some(LeadInForce { lead, kept_free: lead, needed: None }),
        Lead::Auto(at_most) => {
            Some(LeadInForce { lead: needed.map_or(at_most, |needed| needed.min(at_most)), kept_free: at_most, needed })
        }
    }
}

/// Adds one half, and rounds up to whole microseconds. Refills, and interrupts of many sleeps, take longer than the
/// tick, but do not occur during the measurement.
fn with_margin(longest: Duration) -> Duration {
    let us = 1000;
    let ns = longest.as_nanos() + longest.as_nanos() / 2;
    Duration::from_nanos((ns + us - 1) / us * us)
}

/// The latenesses of the jobs on a CPU.
struct Latenesses {
    /// The median.
    usual: Duration,
    /// The longest.
    longest: Duration,
}

fn measure(device: &Device, cpu: u32) -> Result<Latenesses, NodeError> {
    install(device, cpu)?;
    let done = AtomicBool::new(false);
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = sys::pin(0, &[cpu]);
            while !done.load(Ordering::Relaxed) {
                compute();
            }
        });
        let probe = scope.spawn(|| run_jobs(device));
        let started = device.start(epoch());
        // Without a start the probe would wait without end. Removing the table ends its wait.
        let removed = if started.is_err() { device.remove() } else { Ok(()) };
        let measured = probe.join().unwrap_or(Err(libc::EINTR));
        done.store(true, Ordering::Relaxed);
        started.and(removed).and(measured)
    });
    let _ = device.remove();
    measured.map_err(|errno| device::failed("measure the lead", errno).into())
}

/// Computes for some microseconds. It does not use the processor's pause instruction, which is expensive in a virtual
/// machine. In the lab each pause leaves the translated code, and a measurement would take a minute.
fn compute() {
    for round in 0..5000 {
        std::hint::black_box(round);
    }
}

fn install(device: &Device, cpu: u32) -> Result<(), NodeError> {
    let entity = uapi::Entity { name: uapi::name(PROBE), ..Default::default() };
    let window = uapi::Window { length_ns: WINDOW.as_nanos() as u64, cpu, flags: uapi::ACTIVATE, ..Default::default() };
    let mut install = uapi::Install {
        clockid: libc::CLOCK_MONOTONIC as u32,
        nr_entities: 1,
        nr_windows: 1,
        cycle_ns: (GRID + STEP).as_nanos() as u64,
        entities: &raw const entity as u64,
        windows: &raw const window as u64,
        ..Default::default()
    }
    .sized();
    device.call(&mut install).map_err(|errno| match install.error {
        uapi::error::INSTALLED => NodeError::Refused(Refusal::Installed),
        _ => device::failed("install the table that measures the lead", errno).into(),
    })
}

fn epoch() -> u64 {
    let grid = GRID.as_nanos();
    ((sys::now().as_nanos() / grid + START_MARGIN) * grid - AHEAD.as_nanos()) as u64
}

fn run_jobs(device: &Device) -> Result<Latenesses, i32> {
    device.bind(-1, PROBE)?;
    let mut latenesses = Vec::with_capacity(JOBS);
    for job in 0..JOBS {
        let wait = device.wait()?;
        let late = sys::now().as_nanos() - wait.nominal_ns as i64;
        if job >= WARM_UP {
            latenesses.push(late);
        }
    }
    device.unbind(-1)?;
    latenesses.sort_unstable();
    let at = |place: usize| Duration::from_nanos(latenesses[place]);
    Ok(Latenesses { usual: at(latenesses.len() / 2), longest: at(latenesses.len() - 1) })
}

/// Returns the lead in force, or zero if there is none.
pub fn length(lead: Option<LeadInForce>) -> Duration {
    lead.map_or(Duration::ZERO, |lead| lead.lead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_a_half_in_whole_microseconds() {
        assert_eq!(with_margin(Duration::from_nanos(4000)), Duration::from_micros(6));
        assert_eq!(with_margin(Duration::from_nanos(4001)), Duration::from_micros(7));
    }

    /// The host takes 4 us usually (6 us with the margin), and 8 us at most (12 us with the margin).
    #[test]
    fn a_lead_that_is_too_short_leaves_a_short_window_nothing() {
        let us = Duration::from_micros;
        let latenesses = Latenesses { usual: us(4), longest: us(8) };
        let judged = |length, lead: Option<i64>| {
            let window = Window::new("a", us(20), us(length));
            judge(0, &window, &latenesses, lead.map(us))
                .map(|remark| remark.is_some())
                .map_err(|error| error.to_string())
        };
        assert_eq!((judged(6, None), judged(12, None)), (Ok(true), Ok(false)));
        assert!(judged(5, None).unwrap_err().contains("up to 12us; give it a longer wcet, or the system a lead"));
        assert_eq!((judged(6, Some(12)), judged(6, Some(20))), (Ok(false), Ok(false)));
        assert_eq!(judged(6, Some(6)), Ok(true));
        assert!(judged(6, Some(5))
            .unwrap_err()
            .contains("and the lead is 5us; give it a longer wcet, or the system a longer lead"));
        assert_eq!(
            (judged(11, Some(1)), judged(23, Some(1)), judged(10, Some(1)).is_err()),
            (Ok(true), Ok(false), true)
        );
    }

    #[test]
    fn a_measured_lead_stays() {
        let us = Duration::from_micros;
        let plan = |lead| {
            let mut plan = crate::deployment::samples::plan(Vec::new(), Vec::new());
            plan.system.lead = lead;
            plan
        };
        let measured = Some(us(6));
        let beside = |lead, measured| in_force(&plan(lead), measured).map(|lead| lead.lead);
        assert_eq!(beside(None, measured), None);
        assert_eq!(beside(Some(Lead::Fixed(us(3))), measured), Some(us(3)));
        assert_eq!(beside(Some(Lead::Auto(us(20))), measured), Some(us(6)));
        assert_eq!(beside(Some(Lead::Auto(us(4))), measured), Some(us(4)));
        assert_eq!(beside(Some(Lead::Auto(us(20))), None), Some(us(20)));
    }
}
