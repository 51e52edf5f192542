//! The set-up of the host for a plan (`profile` of the description): interrupts, kernel threads, CPUs.
//!
//! All changes are decided before the first one, and each is read back. A record, which is a file that is valid until
//! the next boot, lists them with the values before. The record is written before the changes: the next start restores
//! the host after a crash ([`settle`]). One program at a time has a profile.
//!
//! The threads of receive queues are the exception: the kernel makes them when the switch of the device is on. Their
//! changes are decided then, as a second stage.
//!
//! A setting that the host does not have is no failure. A value that the kernel refuses is one, and all changes before
//! it are reverted. A value that another program has changed meanwhile stays as that program set it.
//!
//! | module | part |
//! |---|---|
//! | `access` | the host: files, threads, the record |
//! | `change` | one change, and its reversal |
//! | `request` | the needs of a plan: CPUs, devices, priorities |
//! | `interrupts`, `threads`, `queues`, `power`, `kernel` | the settings |
//! | `record` | the record of the changes |
//! | [`journal`] | single changes that outlive the program, and their undo |

mod access;
mod change;
mod fault;
mod interrupts;
pub mod journal;
mod kernel;
mod power;
mod queues;
mod record;
mod request;
#[cfg(test)]
mod tests;
mod threads;

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use macrotick_model::observation::{ProfileInForce, SettingInForce};
use macrotick_model::{CpuSet, Profile};

use crate::error::HostFailure;
use crate::settings::Holder;

use access::{Access, ThisHost, LATENCY, PROFILE};
use change::{is_missing, missing, Change};
pub use fault::ProfileFault;
use record::Record;
pub use request::Request;
use request::{Item, Needs, Wish};

/// The profile of a plan on this host. Dropping it restores the host.
pub struct InForce {
    access: Rc<dyn Access>,
    record: Record,
    observed: ProfileInForce,
    remarks: Vec<String>,
    partition: Option<CpuSet>,
    _latency: Option<File>,
}

impl InForce {
    /// Sets up the host. Returns `None` if the system has no profile, or one that changes nothing. Needs root.
    pub fn take(request: &Request, holder: Holder) -> Result<Option<InForce>, HostFailure> {
        InForce::take_from(Rc::new(ThisHost(PROFILE)), request, holder).map_err(HostFailure::profile)
    }

    fn take_from(access: Rc<dyn Access>, request: &Request, holder: Holder) -> Result<Option<InForce>, ProfileFault> {
        let Some(profile) = wanted(request) else { return Ok(None) };
        if !access.is_root() {
            return Err(ProfileFault::NotRoot);
        }
        record::settle(&*access);
        if let Some(other) = record::holder(&*access) {
            return Err(ProfileFault::Held(other));
        }
        let door = access.clone();
        let needs = Needs::of(request, profile, devices(profile, &*door)?, &*door)?;
        let items = first_stage(&needs)?;
        let mut force = InForce {
            record: Record::new(holder),
            access,
            observed: ProfileInForce { name: profile.like.name().into(), settings: Vec::new() },
            remarks: needs.remarks.clone(),
            partition: None,
            _latency: None,
        };
        force.commit(items)?;
        force.commit(threads::napi(&needs))?;
        force.limit_latency(&needs)?;
        force.divide(&needs);
        Ok(Some(force))
    }

    /// Returns the profile for the observation.
    pub fn observed(&self) -> &ProfileInForce {
        &self.observed
    }

    /// Returns a line for each setting that changed, and for each one that the host does not have.
    pub fn changes(&self) -> impl Iterator<Item = String> + '_ {
        let name = &self.observed.name;
        let line = move |setting: &SettingInForce| match setting {
            SettingInForce { name: setting, absent: Some(reason), .. } => {
                Some(format!("profile `{name}`: {setting} is not set: {reason}"))
            }
            SettingInForce { name: setting, before: Some(before), value: Some(value), .. } if before != value => {
                Some(format!("profile `{name}`: {setting} is {value} until the end (before: {before})"))
            }
            _ => None,
        };
        self.observed.settings.iter().filter_map(line)
    }

    /// Returns remarks about priorities against the order of the plan.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Returns the CPUs that are to become an isolated partition. The caller makes it, with the processes in it.
    pub fn partition(&self) -> Option<&CpuSet> {
        self.partition.as_ref()
    }

    /// Decodes all items, and makes the changes.
    fn commit(&mut self, items: Vec<Item>) -> Result<(), ProfileFault> {
        let decoded: Vec<Decoded> =
            items.into_iter().map(|item| decode(item, &*self.access)).collect::<Result<_, _>>()?;
        let changes = decoded.iter().filter_map(|decoded| match decoded {
            Decoded::Change(_, change) => Some(Change::clone(change)),
            Decoded::Seen(_) => None,
        });
        let first = self.record.changes.len();
        self.record.changes.extend(changes);
        if self.record.changes.len() == first {
            self.observed.settings.extend(decoded.into_iter().filter_map(Decoded::seen));
            return Ok(());
        }
        self.record.write(&*self.access).map_err(ProfileFault::Record)?;
        let mut next = first;
        for decoded in decoded {
            let observed = match decoded {
                Decoded::Seen(seen) => seen,
                Decoded::Change(wish, _) => {
                    let observed = make(&mut self.record.changes[next], &wish, &*self.access)?;
                    next += 1;
                    observed
                }
            };
            self.observed.settings.push(observed);
        }
        self.record.write(&*self.access).map_err(ProfileFault::Record)
    }

    fn limit_latency(&mut self, needs: &Needs) -> Result<(), ProfileFault> {
        let Some(limit) = power::latency_limit(needs) else { return Ok(()) };
        let name = LATENCY.to_owned();
        let observed = match self.access.limit_latency(limit) {
            Ok(file) => {
                self._latency = Some(file);
                SettingInForce { name, value: Some(format!("{limit} us")), ..Default::default() }
            }
            Err(error) if is_missing(&error) => absent(name, missing(&error)),
            Err(source) => {
                let (key, value) = ("idle-latency", format!("{limit} us"));
                return Err(ProfileFault::Refused { name, value, key, off: off(key), source });
            }
        };
        self.observed.settings.push(observed);
        Ok(())
    }

    fn divide(&mut self, needs: &Needs) {
        if !needs.settings.partition {
            return;
        }
        let observed = match needs.absent_without_others("partition") {
            Some(Item::Absent { name, reason }) => absent(name, reason),
            _ => {
                self.partition = Some(needs.cpus.clone());
                let name = format!("cpuset partition of CPU {}", needs.cpus);
                SettingInForce { name, value: Some("isolated".into()), ..Default::default() }
            }
        };
        self.observed.settings.push(observed);
    }
}

impl Drop for InForce {
    fn drop(&mut self) {
        self.record.restore(&*self.access);
    }
}

/// Restores the host if the holder of a profile is gone. Returns whether there was one.
pub fn settle() -> bool {
    record::settle(&ThisHost(PROFILE))
}

/// Returns a remark about a profile without a living holder. Needs no privilege.
pub fn left() -> Option<String> {
    let holder = record::left(&ThisHost(PROFILE))?;
    Some(format!("the set-up of the host was not restored by {holder}: run `macrotick stop`"))
}

/// Returns the commands of a shell for the profile of a plan, and a comment for each setting that the host does not
/// have. Changes nothing. The threads of receive queues have no commands, because the kernel makes them later.
pub fn commands(request: &Request) -> Result<Vec<String>, HostFailure> {
    commands_from(&ThisHost(PROFILE), request).map_err(HostFailure::profile)
}

fn commands_from(access: &dyn Access, request: &Request) -> Result<Vec<String>, ProfileFault> {
    let Some(profile) = wanted(request) else { return Ok(Vec::new()) };
    let needs = Needs::of(request, profile, devices(profile, access)?, access)?;
    let mut lines = Vec::new();
    for item in first_stage(&needs)? {
        lines.extend(match decode(item, access)? {
            Decoded::Change(_, change) => Some(change.target.shell(&change.after)),
            Decoded::Seen(SettingInForce { name, absent: Some(reason), .. }) => Some(format!("# {name}: {reason}")),
            // The host has the value.
            Decoded::Seen(_) => None,
        });
    }
    if let Some(limit) = power::latency_limit(&needs) {
        // Eight digits: the kernel takes four bytes for a binary number.
        lines.push(format!("exec 9> {LATENCY}; printf %08x {limit} >&9"));
    }
    if needs.settings.partition && !needs.others.is_empty() {
        let cpus = crate::sys::cpu_list(needs.cpus.as_slice());
        lines.extend([
            "mkdir /sys/fs/cgroup/macrotick-partition".into(),
            format!("echo {cpus} > /sys/fs/cgroup/macrotick-partition/cpuset.cpus"),
            "echo isolated > /sys/fs/cgroup/macrotick-partition/cpuset.cpus.partition".into(),
        ]);
    }
    Ok(lines)
}

/// Returns the profile of a system, unless it changes nothing.
fn wanted<'a>(request: &Request<'a>) -> Option<&'a Profile> {
    request.system.profile.as_ref().filter(|profile| profile.changes_something(request.backend))
}

/// Returns the network devices of a profile. Without a list, these are all that have hardware.
fn devices(profile: &Profile, access: &dyn Access) -> Result<Vec<String>, ProfileFault> {
    let all = access.names(Path::new("/sys/class/net"));
    if profile.devices.is_empty() {
        return Ok(all
            .into_iter()
            .filter(|name| access.target(&interrupts::device(name).join("device")).is_some())
            .collect());
    }
    match profile.devices.iter().find(|name| !all.contains(name)) {
        Some(device) => Err(ProfileFault::NoDevice { device: device.clone(), there: all.join(", ") }),
        None => Ok(profile.devices.clone()),
    }
}

/// Returns the settings of the first stage, in the order in which they are made.
fn first_stage(needs: &Needs) -> Result<Vec<Item>, ProfileFault> {
    let mut items = Vec::new();
    let mut own = Vec::new();
    for device in &needs.devices {
        let numbers = interrupts::of_device(needs.access, device);
        if numbers.is_empty() && (needs.interrupts.is_some() || needs.settings.interrupt_affinity) {
            items.push(Item::absent(format!("interrupts of {device}"), "the device has no interrupt"));
        }
        own.extend(numbers);
    }
    items.extend(threads::interrupts(needs, &own));
    items.extend(threads::softirqs(needs));
    items.extend(threads::napi_switches(needs));
    items.extend(interrupts::affinities(needs, &own));
    items.extend(queues::steering(needs));
    items.extend(kernel::shields(needs));
    items.extend(kernel::delays(needs));
    items.extend(power::idle_states(needs));
    items.extend(power::governors(needs)?);
    Ok(items)
}

/// An item with the present value of the host.
enum Decoded {
    Change(Box<Wish>, Box<Change>),
    Seen(SettingInForce),
}

impl Decoded {
    fn seen(self) -> Option<SettingInForce> {
        match self {
            Decoded::Seen(seen) => Some(seen),
            Decoded::Change(..) => None,
        }
    }
}

fn decode(item: Item, access: &dyn Access) -> Result<Decoded, ProfileFault> {
    let wish = match item {
        Item::Absent { name, reason } => return Ok(Decoded::Seen(absent(name, reason))),
        Item::Wish(wish) => wish,
    };
    let name = wish.target.name();
    match wish.target.get(access) {
        Ok(now) if wish.target.same(&now, &wish.value) => {
            let value = Some(now.to_string());
            Ok(Decoded::Seen(SettingInForce { name, before: value.clone(), value, absent: None }))
        }
        Ok(before) => {
            let change = Change { target: wish.target.clone(), before, after: wish.value.clone(), seen: None };
            Ok(Decoded::Change(Box::new(wish), Box::new(change)))
        }
        Err(error) if is_missing(&error) => Ok(Decoded::Seen(absent(name, missing(&error)))),
        Err(source) => Err(refused(&wish, source)),
    }
}

/// Makes a change and reads it back.
fn make(change: &mut Change, wish: &Wish, access: &dyn Access) -> Result<SettingInForce, ProfileFault> {
    let name = wish.target.name();
    match wish.target.set(access, &wish.value) {
        Ok(()) => {}
        Err(error) if is_missing(&error) => return Ok(absent(name, missing(&error))),
        Err(error) if wish.may_refuse && is_refusal(&error) => {
            return Ok(absent(name, format!("the kernel does not let it move: {error}")));
        }
        Err(source) => return Err(refused(wish, source)),
    }
    let now = wish.target.get(access).map_err(|source| refused(wish, source))?;
    let is_kept = wish.target.same(&now, &wish.value);
    let (before, value) = (Some(change.before.to_string()), Some(now.to_string()));
    change.seen = Some(now);
    match (is_kept, value) {
        (true, value) => Ok(SettingInForce { name, before, value, absent: None }),
        (false, value) => Err(ProfileFault::NotKept {
            name,
            value: wish.value.to_string(),
            now: value.unwrap_or_default(),
            key: wish.key,
            off: off(wish.key),
        }),
    }
}

/// Whether the kernel says that an interrupt cannot move.
fn is_refusal(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EIO | libc::EINVAL))
}

fn refused(wish: &Wish, source: std::io::Error) -> ProfileFault {
    let (name, value) = (wish.target.name(), wish.value.to_string());
    ProfileFault::Refused { name, value, key: wish.key, off: off(wish.key), source }
}

fn absent(name: String, reason: String) -> SettingInForce {
    SettingInForce { name, absent: Some(reason), ..Default::default() }
}

/// Returns the value with which a key leaves the host as it is.
fn off(key: &str) -> &'static str {
    match key {
        "interrupts" | "softirqs" | "idle-latency" | "governor" => "keep",
        _ => "false",
    }
}
