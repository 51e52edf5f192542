//! The slots of a container on the interfaces of the deployment (TDMA).
//!
//! The deployed description has the slots, and the planner and the judge have admitted them: by their sum, and by the
//! simulation of the gates. A container claims those of one group, and no two containers claim the same ones. The claim
//! is a note at the container's control group, and ends with it.
//!
//! A gate lets frames out by their priority. Frames of a container lose theirs on the way to the host. Classifiers at the
//! host's ends of the container's veths give all of them the priority of the slots.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use macrotick_host::budgets::{claim_slots, slot_claims};
use macrotick_host::cgroup::Existing;
use macrotick_host::net::slots::{classify, Classified, ClassifyFault};
use macrotick_host::net::{host_ends, Netlink, Shared};
use macrotick_host::settings::Holder;
use macrotick_host::state::Deployed;
use macrotick_host::{present, HostFailure};

use crate::error::{AnnotationFault, HookError};
use crate::request::SLOT;

/// Claims the slots of a group for the container with this process and control group. Its frames have the priority of
/// the slots as long as the result lives, or until the holder is gone.
pub fn claim(name: &str, pid: i32, group: &Existing, holder: &Holder) -> Result<Classified, HookError> {
    let fault = |fault| HookError::annotation(SLOT, name, fault);
    let deployed = present::deployed();
    let claims = slot_claims().map_err(HookError::host)?;
    let priority = check(name, group.path(), deployed.as_ref(), &claims).map_err(fault)?;
    let (host, ends) = ends(pid, fault)?;
    let classified = classify(&host, &ends, priority, holder.clone()).map_err(|error| match error {
        ClassifyFault::Host(failure) => HookError::from(failure),
        other => fault(AnnotationFault::Unclassified(other.to_string())),
    })?;
    // The claim ends with the group, which the runtime removes if the container does not start.
    claim_slots(group.path(), name).map_err(HookError::host)?;
    Ok(classified)
}

/// Checks a name against the deployment, and against the claims of other control groups. Returns the priority of the
/// frames.
fn check(
    name: &str,
    own: &Path,
    deployed: Option<&Deployed>,
    claims: &[(PathBuf, String)],
) -> Result<u8, AnnotationFault> {
    let deployed = deployed.ok_or(AnnotationFault::NoDeployment)?;
    if deployed.coming.is_some() {
        return Err(AnnotationFault::Changing);
    }
    let slots: Vec<_> = deployed.slot_devices.iter().filter(|slot| slot.group == name).collect();
    let Some(first) = slots.first() else {
        let mut groups: Vec<String> = deployed.slot_devices.iter().map(|slot| slot.group.clone()).collect();
        groups.dedup();
        return Err(AnnotationFault::NoSlot(groups));
    };
    if let Some((interface, namespace)) =
        slots.iter().find_map(|slot| Some((&slot.interface, slot.namespace.as_ref()?)))
    {
        return Err(AnnotationFault::SlotInside { interface: interface.clone(), namespace: namespace.clone() });
    }
    if slots.iter().any(|slot| slot.priority != first.priority) {
        return Err(AnnotationFault::SlotPriorities(slots.iter().map(|slot| slot.priority).collect()));
    }
    match claims.iter().find(|(path, claimed)| claimed == name && path != own) {
        Some((path, _)) => Err(AnnotationFault::SlotTaken(path.clone())),
        None => Ok(first.priority),
    }
}

/// Returns the kernel of the host, and the host's ends of the veths of a process's network namespace.
fn ends(pid: i32, fault: impl Fn(AnnotationFault) -> HookError) -> Result<(Shared, Vec<String>), HookError> {
    let open = |process: &str| {
        let path = PathBuf::from(format!("/proc/{process}/ns/net"));
        File::open(&path).map_err(HookError::file("open", path))
    };
    let (own, inside) = (open("self")?, open(&pid.to_string())?);
    let number = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    if number(&own) == number(&inside) {
        return Err(fault(AnnotationFault::HostNetwork));
    }
    let connect = |socket: io::Result<Netlink>| -> Result<Shared, HookError> {
        let socket = socket.map_err(HostFailure::system("opening a netlink socket"));
        Ok(Rc::new(RefCell::new(socket.map_err(HookError::host)?)))
    };
    let (host, container) = (connect(Netlink::open())?, connect(Netlink::open_in(&inside))?);
    let found = host_ends(&host, &container, &inside).map_err(|reason| fault(AnnotationFault::NoVeth(reason)))?;
    Ok((host, found))
}

#[cfg(test)]
mod tests {
    use macrotick_host::state::{Coming, SlotDevice};

    use super::*;

    fn deployed(groups: &[&str]) -> Deployed {
        let slot = |group: &&str| SlotDevice {
            group: (*group).into(),
            interface: "wire".into(),
            device: "eth1".into(),
            namespace: None,
            priority: 5,
        };
        Deployed {
            supervisor: 7,
            system: "s".into(),
            entities: Vec::new(),
            groups: Vec::new(),
            gates: Vec::new(),
            slots: Vec::new(),
            slot_devices: groups.iter().map(slot).collect(),
            reserved: Vec::new(),
            changes: 0,
            coming: None,
            promised: Vec::new(),
            blocks: Vec::new(),
            remarks: Vec::new(),
        }
    }

    #[test]
    fn slots_are_those_of_the_deployment_and_of_one_container() {
        let own = Path::new("/sys/fs/cgroup/own");
        let told = |name: &str, deployed: Option<&Deployed>, claims: &[(PathBuf, String)]| {
            check(name, own, deployed, claims).map_err(|fault| fault.to_string())
        };
        let some = deployed(&["a", "a", "b"]);
        assert_eq!(told("a", Some(&some), &[]), Ok(5));
        assert_eq!(told("a", Some(&some), &[(own.into(), "a".into()), ("/other".into(), "b".into())]), Ok(5));
        let taken = told("a", Some(&some), &[("/sys/fs/cgroup/other".into(), "a".into())]);
        assert_eq!(
            taken.unwrap_err(),
            "the container in /sys/fs/cgroup/other has these slots: no two containers share slots"
        );
        let none = told("c", Some(&some), &[]).unwrap_err();
        assert!(
            none.starts_with("the deployed system has no such slots; it has those of a, b. `macrotick admit"),
            "{none}"
        );
        assert!(told("c", Some(&deployed(&[])), &[])
            .unwrap_err()
            .starts_with("the deployed system has no such slots. "));
        assert!(told("a", None, &[]).unwrap_err().starts_with("no deployment runs on this host"));
        let coming = Coming { system: "t".into(), entities: Vec::new(), instant_ns: 1 };
        let changing = Deployed { coming: Some(coming), ..some };
        assert!(told("a", Some(&changing), &[]).unwrap_err().starts_with("a change of the deployment is in progress"));
    }
    #[test]
    fn slots_are_on_devices_of_the_host_and_have_one_priority() {
        let told = |change: fn(&mut SlotDevice)| {
            let mut some = deployed(&["a", "b", "a"]);
            change(&mut some.slot_devices[2]);
            check("a", Path::new("/own"), Some(&some), &[]).map_err(|fault| fault.to_string())
        };
        assert_eq!(told(|slot| slot.interface = "other".into()), Ok(5));
        let inside = told(|slot| slot.namespace = Some("macrotick-left".into())).unwrap_err();
        let said = "the slots are on interface `wire`, inside network namespace `macrotick-left`, which frames of";
        assert!(inside.starts_with(said), "{inside}");
        let two = told(|slot| slot.priority = 6).unwrap_err();
        assert_eq!(
            two,
            "the slots have classes of different priorities (5, 6), and a frame has one: give them one class"
        );
    }

    #[test]
    fn the_network_of_the_host_is_refused() {
        let refused = ends(std::process::id() as i32, |fault| HookError::annotation(SLOT, "a", fault)).err().unwrap();
        let said = "annotation macrotick.slot: a: the container has the network of the host";
        assert!(refused.to_string().starts_with(said), "{refused}");
    }
}
