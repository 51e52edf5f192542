//! The devices of the host that a run configures, noted in a file that is valid until the next boot. If the run is
//! killed, the next one clears them.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::classifier::{Found, Side, CLOSED, FIRST, MAX_CLASSIFIERS};
use super::kernel::{Refusal, Shared};
use super::netlink::Netlink;
use super::present;
use super::qdisc::HANDLE;
use super::step::Place;
use crate::error::HostFailure;
use crate::lock::{runtime_path, Lock};
use crate::{proc, sys};

#[derive(Serialize, Deserialize)]
struct Note {
    boot: String,
    devices: Vec<String>,
}

/// A note about the devices that a run configures. Dropping it removes the note.
pub struct Noted {
    path: PathBuf,
}

impl Noted {
    /// Notes devices of the host before they are configured.
    pub fn write(devices: Vec<String>) -> Result<Noted, HostFailure> {
        let path = path();
        let note = Note { boot: proc::boot(), devices };
        let text = serde_json::to_string(&note).expect("a note is always JSON") + "\n";
        fs::write(&path, text).map_err(HostFailure::file("write", &path))?;
        Ok(Noted { path })
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn path() -> PathBuf {
    runtime_path(sys::user(), "-devices.json")
}

/// Clears the devices that a killed run has configured. The lock proves that no run is alive. The function restores no
/// earlier configuration, and ignores failures.
pub fn remove_left(_lock: &Lock) {
    let path = path();
    let Some(note) = fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str::<Note>(&text).ok()) else {
        return;
    };
    if let (true, Ok(netlink)) = (note.boot == proc::boot(), Netlink::open()) {
        let kernel: Shared = Rc::new(RefCell::new(netlink));
        note.devices.iter().for_each(|device| _ = clear(&kernel, device));
    }
    let _ = fs::remove_file(&path);
}

/// Deletes the root qdisc and the filters that a deployment has made on a device.
pub(super) fn clear(kernel: &Shared, device: &str) -> Result<(), Refusal> {
    let present = present::read(&mut *kernel.borrow_mut(), device, false)?;
    let place = Place { device, namespace: None, index: present.link.index };
    let send = |message: &super::Message| kernel.borrow_mut().send(message).map(drop);
    if present.root().is_some_and(|root| root.handle == HANDLE) {
        send(&place.delete_root(HANDLE).message)?;
    }
    // A run has no classifiers at ingress. Those there are of containers.
    let own = |found: &Found| {
        let ours = FIRST..FIRST + MAX_CLASSIFIERS as u16;
        found.side == Side::Egress && (found.preference == CLOSED || ours.contains(&found.preference))
    };
    let mut left = present.filters.len();
    for found in &present.filters {
        if let Some(filter) = found.filter.as_ref().filter(|_| own(found)) {
            send(&place.delete_filter(found.side, found.preference, filter).message)?;
            left -= 1;
        }
    }
    // Without filters it does nothing.
    if left == 0 && !present.filters.is_empty() && present.special() == Some("clsact") {
        send(&place.delete_clsact().message)?;
    }
    Ok(())
}
