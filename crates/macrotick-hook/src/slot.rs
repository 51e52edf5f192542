//! The slots of a container on the interfaces of the deployment (TDMA).
//!
//! The deployed description has the slots, and the planner and the judge have admitted them: by their sum, and by the
//! simulation of the gates. A container claims those of one group, and no two containers claim the same ones. The claim
//! is a note at the container's control group, and ends with it.

use std::path::{Path, PathBuf};

use macrotick_host::budgets::{claim_slots, slot_claims};
use macrotick_host::cgroup::Existing;
use macrotick_host::present;
use macrotick_host::state::Deployed;

use crate::error::{AnnotationFault, HookError};
use crate::request::SLOT;

/// Claims the slots of a group for the container with this control group.
pub fn claim(name: &str, group: &Existing) -> Result<(), HookError> {
    let fault = |fault| HookError::annotation(SLOT, name, fault);
    let deployed = present::deployed();
    let claims = slot_claims().map_err(HookError::host)?;
    check(name, group.path(), deployed.as_ref(), &claims).map_err(fault)?;
    claim_slots(group.path(), name).map_err(HookError::host)
}

/// Checks a name against the deployment, and against the claims of other control groups.
fn check(
    name: &str,
    own: &Path,
    deployed: Option<&Deployed>,
    claims: &[(PathBuf, String)],
) -> Result<(), AnnotationFault> {
    let deployed = deployed.ok_or(AnnotationFault::NoDeployment)?;
    if deployed.coming.is_some() {
        return Err(AnnotationFault::Changing);
    }
    if deployed.slots.iter().all(|slot| slot.group != name) {
        let mut groups: Vec<String> = deployed.slots.iter().map(|slot| slot.group.clone()).collect();
        groups.dedup();
        return Err(AnnotationFault::NoSlot(groups));
    }
    match claims.iter().find(|(path, claimed)| claimed == name && path != own) {
        Some((path, _)) => Err(AnnotationFault::SlotTaken(path.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use macrotick_host::state::Coming;
    use macrotick_model::{Duration, Slot};

    use super::*;

    fn deployed(groups: &[&str]) -> Deployed {
        let slot = |group: &&str| Slot {
            group: (*group).into(),
            class: "c".into(),
            interface: None,
            period: Duration::from_millis(6),
            length: Duration::from_millis(1),
            offset: None,
        };
        Deployed {
            supervisor: 7,
            system: "s".into(),
            entities: Vec::new(),
            groups: Vec::new(),
            gates: Vec::new(),
            slots: groups.iter().map(slot).collect(),
            reserved: Vec::new(),
            changes: 0,
            coming: None,
            promised: Vec::new(),
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
        assert_eq!(told("a", Some(&some), &[]), Ok(()));
        assert_eq!(told("a", Some(&some), &[(own.into(), "a".into()), ("/other".into(), "b".into())]), Ok(()));
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
}
