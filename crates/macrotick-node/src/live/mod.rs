//! A deployment under the backend `kernel`: a run without a fixed end and without records, which can be changed.
//!
//! [`supervise`] starts like a run (`run`). Then the supervisor sleeps (`serve`) until there is work:
//!
//! * a process ended (`run::supervisor`, `watch`)
//! * a request arrives (`control`)
//! * a change is in progress (`change`, decided in `possible` and `difference`)
//! * processes that left the deployment must end (`leaving`)
//! * a control group lost its values (`guard`)
//! * a job missed its deadline, and the miss is recorded (`flight`)
//!
//! The supervisor has one thread and waits for nothing else. It writes its state to a file (`macrotick_host::state`).
//! `status` reads this file and the device.

pub mod change;
pub mod changes;
pub mod control;
pub mod difference;
pub mod event;
mod flight;
pub mod group_status;
mod guard;
mod leaving;
mod possible;
pub mod reading;
mod serve;
pub mod status;
mod watch;

use macrotick_host::limits::OpenFiles;
use macrotick_host::lock::Lock;
use macrotick_host::net::slots;
use macrotick_host::profile::InForce;
use macrotick_host::settings::{self, Held};
use macrotick_host::state::{self, Directory};
use macrotick_host::sys;
use macrotick_host::HostFailure;
use macrotick_model::{Backend, Duration, Plan};

use crate::backend::kernel;
use crate::deployment::options::{Output, RunOptions};
use crate::deployment::Deployment;
use crate::error::NodeError;
use crate::live::changes::Changes;
use crate::live::control::{Answer, Listener, Request};
use crate::live::event::Event;
use crate::live::flight::Flight;
use crate::live::guard::Guard;
use crate::live::leaving::Leaving;
use crate::live::reading::Readings;
use crate::live::serve::Live;
use crate::live::watch::Watch;
use crate::process::rescuer::Rescuer;
use crate::process::signals::Signals;
use crate::run::{self, First};

/// The time limit for a supervisor to release its lock after SIGTERM.
const END_LIMIT: Duration = Duration::from_secs(5);

/// The part that [`stop`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A deployment, by its supervisor.
    Deployment,
    /// A table without a supervisor or runner.
    Table,
    /// Nothing was there.
    Nothing,
}

/// Returns the options of a deployment.
fn options() -> RunOptions {
    RunOptions { record_limit: Some(0), output: Output::Inherited, ..RunOptions::new(Backend::Kernel) }
}

/// Deploys a plan on this host. Keeps it until [`stop`] is called or a signal ends it ([`run`](crate::run())). Needs
/// root.
///
/// First it removes the remains of a killed supervisor. At its end, also after an error, nothing of the deployment is
/// left.
pub fn supervise(plan: &Plan, seed: u64, tell: &mut dyn FnMut(Event)) -> Result<(), NodeError> {
    deploy(plan, &RunOptions { seed, ..options() }, None, tell)
}

/// Deploys a plan like [`supervise`], and tells a [`Reading`](reading::Reading) of all jobs every second and at the end.
/// Ends by itself after a time, if it has one. The deployment cannot be changed.
pub fn soak(plan: &Plan, seed: u64, time: Option<Duration>, tell: &mut dyn FnMut(Event)) -> Result<(), NodeError> {
    let options = RunOptions { seed, record_limit: None, reading: Some(reading::EVERY), ..options() };
    deploy(plan, &options, time, tell)
}

fn deploy(
    plan: &Plan,
    options: &RunOptions,
    time: Option<Duration>,
    tell: &mut dyn FnMut(Event),
) -> Result<(), NodeError> {
    let online = sys::online_cpus()?;
    let deployment = Deployment::decode(plan, options, &online)?;
    let lock = Lock::take(None)?;
    let directory = Directory::make()?;
    recover(&lock, tell)?;
    run::profile::restore_left(&lock);
    let signals = Signals::catch().map_err(NodeError::system("catching signals"))?;
    let (first, _files) = (First::raise(), OpenFiles::raise());
    let rescuer = first.rescuer()?;
    let listener = Listener::open(&directory)?;
    // The state is written before there is a table, to show the owner of the table.
    let state = serve::describe(&deployment, std::process::id(), 0);
    directory.tell(&state);
    directory.tell_plan(plan);
    let (run, epoch) = run::begin(deployment, options, &signals, &mut || {})?;
    rescuer.iter().for_each(Rescuer::rest);
    tell(Event::Started(epoch));
    run.gates.iter().for_each(|gates| tell(Event::Gates(gates.in_force().to_vec())));
    let guard = Guard::new(&run);
    let (watch, measured) = (Watch::new(&run), run.lead.and_then(|lead| lead.needed));
    let set = run.settings.as_ref().map_or(&[][..], Held::set);
    set.iter().for_each(|text| tell(Event::Remark(text.clone())));
    let changes = run.profile.iter().flat_map(InForce::changes);
    changes.for_each(|text| tell(Event::Remark(text)));
    let remarks = run.remarks();
    remarks.iter().for_each(|remark| tell(Event::Remark(remark.clone())));
    let flight = Flight::begin(&run).unwrap_or_else(|error| {
        tell(Event::Remark(format!("no miss is recorded: {}", error.with_reason())));
        None
    });
    let readings = options.reading.map(|_| Readings::new(&run, epoch, time));
    let mut live = Live {
        run,
        epoch,
        state,
        measured,
        watch,
        guard,
        flight,
        remarks,
        conversations: Vec::new(),
        change: None,
        leaving: Leaving::default(),
        readings,
        listener,
        directory,
        tell,
    };
    live.tell_state();
    let end = live.serve(&signals);
    rescuer.iter().for_each(Rescuer::look);
    let asker = live.end(end);
    drop(lock);
    if let Some(asker) = asker {
        asker.answer(&Answer::Stopped);
    }
    Ok(())
}

/// Requests a change to a plan from the supervisor on this host, and waits for it. Returns `None` if there is no
/// deployment. A refusal is [`NodeError::ChangeRefused`].
pub fn change(plan: &Plan) -> Result<Option<Changes>, NodeError> {
    match control::ask(&Request::Apply(plan.to_json()), &|| ())? {
        None => Ok(None),
        Some(Answer::Changed(changes)) => Ok(Some(changes)),
        Some(Answer::Refused { text, wrong_input }) => Err(NodeError::ChangeRefused { text, wrong_input }),
        Some(Answer::Stopped) => Err(NodeError::NoAnswer),
    }
}

/// Ends the deployment on this host. If it has no supervisor, removes the remains of a killed runner or supervisor:
/// table, control groups and network namespaces. A table with a living runner stays ([`HostFailure::Busy`]).
pub fn stop() -> Result<Stopped, NodeError> {
    let asked = match control::ask(&Request::Stop, &terminate_supervisor) {
        // The supervisor was ending already.
        Err(NodeError::NoAnswer) => None,
        asked => asked?,
    };
    if let Some(Answer::Stopped) = asked {
        settings::settle();
        slots::settle();
        return Ok(Stopped::Deployment);
    }
    let lock = take_lock_of_ending()?;
    let removed = kernel::remove_left(&lock)?;
    state::remove_left();
    settings::settle();
    slots::settle();
    run::profile::restore_left(&lock);
    Ok(if removed { Stopped::Table } else { Stopped::Nothing })
}

/// Sends SIGTERM to the supervisor. A supervisor that cannot get to a request still gets a signal.
fn terminate_supervisor() {
    if let Some(supervisor) = Lock::holder(sys::user()) {
        sys::signal(supervisor as sys::Tid, libc::SIGTERM);
    }
}

/// Takes the lock. A supervisor that ends after a signal holds it a little longer.
fn take_lock_of_ending() -> Result<Lock, NodeError> {
    let give_up = sys::now() + END_LIMIT;
    loop {
        match Lock::take(None) {
            Err(HostFailure::Busy { .. }) if state::read(sys::user()).is_some() && sys::now() < give_up => {
                sys::sleep(Duration::from_millis(20));
            }
            result => return Ok(result?),
        }
    }
}

/// Removes the remains of a killed supervisor. The lock proves that no supervisor lives, and the state file proves that
/// there was one. A table of another program stays, and makes the start fail.
fn recover(lock: &Lock, tell: &mut dyn FnMut(Event)) -> Result<(), NodeError> {
    let Some(left) = state::read(sys::user()) else { return Ok(()) };
    let names = status::entity_names()?;
    let coming = left.coming.as_ref().map(|coming| &coming.entities);
    let is_own = names.is_empty() || names == left.entities || Some(&names) == coming;
    if is_own && kernel::remove_left(lock)? {
        let text =
            format!("removed the remains of process {}, the killed supervisor of `{}`", left.supervisor, left.system);
        tell(Event::Remark(text));
    }
    Ok(())
}
