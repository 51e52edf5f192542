//! The set-up of the host for a run (`profile` of the description).

use macrotick_host::lock::Lock;
use macrotick_host::net::left;
use macrotick_host::profile::{self, InForce, Request};
use macrotick_host::settings::Holder;
use macrotick_host::sys::{self, Standing};
use macrotick_host::{cgroup, network, HostFailure};
use macrotick_model::{Backend, Plan};

use crate::backend::gates;
use crate::deployment::options::{HostSettings, RunOptions};
use crate::deployment::Deployment;
use crate::error::NodeError;

/// Sets up the host. Returns `None` if the plan has no profile that changes something. With
/// [`HostSettings::Leave`], the host stays as it is, and a remark reports it.
pub fn take(
    deployment: &Deployment,
    options: &RunOptions,
    remarks: &mut Vec<String>,
) -> Result<Option<InForce>, HostFailure> {
    let system = &deployment.plan.system;
    let Some(profile) = system.profile.as_ref().filter(|profile| profile.changes_something(deployment.backend)) else {
        return Ok(None);
    };
    if options.host_settings == HostSettings::Leave {
        let name = profile.like.name();
        remarks
            .push(format!("the profile `{name}` is not in force: the run leaves the settings of the host as they are"));
        return Ok(None);
    }
    let online = sys::online_cpus()?;
    InForce::take(&request(deployment, &online), Holder::this_process(&system.name))
}

/// Returns the needs of a deployment. Only the backend `fifo` gives tasks priorities that compete with those of kernel
/// threads. Under the others, a window or a reservation comes first.
fn request<'a>(deployment: &'a Deployment, online: &'a [u32]) -> Request<'a> {
    let priority = |standing| match standing {
        Standing::Fifo(priority) if deployment.backend == Backend::Fifo => Some(priority),
        _ => None,
    };
    let priorities = deployment.tasks.iter().map(|task| priority(task.standing)).collect();
    Request { system: &deployment.plan.system, backend: deployment.backend, priorities, online }
}

/// Returns the commands of a shell that set up this host for a plan: for its namespaces, its profile and its interfaces.
/// Changes nothing.
pub fn set_up_commands(plan: &Plan, options: &RunOptions) -> Result<Vec<String>, NodeError> {
    let online = sys::online_cpus()?;
    let deployment = Deployment::decode(plan, options, &online)?;
    let mut commands = network::commands(&plan.system);
    commands.extend(profile::commands(&request(&deployment, &online))?);
    commands.extend(gates::commands(plan, options.backend)?);
    Ok(commands)
}

/// Restores the host after a killed run. The lock ensures that no other run uses the control groups.
pub fn restore_left(lock: &Lock) {
    left::remove_left(lock);
    if profile::settle() {
        cgroup::remove_left();
    }
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::ms;
    use macrotick_model::{Profile, SetUp};

    use super::*;
    use crate::deployment::samples::{plan, task, window};

    fn deployment(like: SetUp, backend: Backend) -> (Deployment, RunOptions) {
        let mut plan = plan(vec![task("a", ms(1), Some(70))], vec![window("a", 0, 200, true, true)]);
        plan.system.profile = Some(Profile::like(like));
        let options = RunOptions { host_settings: HostSettings::Leave, ..RunOptions::new(backend) };
        (Deployment::decode(&plan, &options, &[0]).unwrap(), options)
    }

    #[test]
    fn only_priorities_that_compete_count() {
        let priorities = |backend| request(&deployment(SetUp::RealTime, backend).0, &[0]).priorities;
        assert_eq!(priorities(Backend::Fifo), [Some(70)]);
        assert_eq!((priorities(Backend::User), priorities(Backend::Kernel)), (vec![None], vec![None]));
    }

    #[test]
    fn a_run_can_leave_the_host_as_it_is() {
        let remarks = |like| {
            let (deployment, options) = deployment(like, Backend::Fifo);
            let mut remarks = Vec::new();
            assert!(take(&deployment, &options, &mut remarks).unwrap().is_none());
            remarks
        };
        let text = "the profile `real-time` is not in force: the run leaves the settings of the host as they are";
        assert_eq!(remarks(SetUp::RealTime), [text]);
        assert_eq!(remarks(SetUp::None), [""; 0]);
    }

    #[test]
    fn the_commands_are_those_of_the_plan() {
        let (mut deployment, options) = deployment(SetUp::None, Backend::Fifo);
        assert_eq!(set_up_commands(&deployment.plan, &options).unwrap(), [""; 0]);
        let absent = vec!["no-such-dev".into()];
        deployment.plan.system.profile = Some(Profile { devices: absent, ..Profile::like(SetUp::RealTime) });
        let refused = set_up_commands(&deployment.plan, &options).unwrap_err().to_string();
        assert!(refused.starts_with("profile: there is no network device `no-such-dev` (`devices`): "), "{refused}");
    }
}
