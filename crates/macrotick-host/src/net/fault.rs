//! The reason why a device could not be configured, with a remedy.

use std::fmt;

use super::kernel::Refusal;

/// The reason why a deployment failed. All its changes were reverted, unless `left` says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployFault {
    /// The device.
    pub device: String,
    /// The failed step, after "cannot".
    pub step: String,
    /// The reason.
    pub reason: Reason,
    /// The remedy, if one is known.
    pub remedy: Option<String>,
    /// The parts of the former state that could not be restored, with the command that restores each.
    pub left: Vec<String>,
}

/// The kind of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The wanted state does not fit the device, or contradicts itself. Nothing was changed.
    Unfit(String),
    /// The kernel refused a message.
    Refused(Refusal),
    /// The state that was read back is another one.
    Differs(String),
    /// The gates did not start in time.
    Late,
}

impl DeployFault {
    /// Makes the failure of a check before the first change.
    pub(super) fn unfit(device: &str, step: &str, reason: String, remedy: Option<String>) -> Box<DeployFault> {
        let (device, step) = (device.to_owned(), step.to_owned());
        Box::new(DeployFault { device, step, reason: Reason::Unfit(reason), remedy, left: Vec::new() })
    }

    /// Makes the failure of a step. `needs` are the options of the kernel that the step needs.
    pub(super) fn refused(device: &str, step: &str, refusal: Refusal, needs: &str) -> Box<DeployFault> {
        let (remedy, reason) = (remedy(device, &refusal, needs), Reason::Refused(refusal));
        Box::new(DeployFault { device: device.into(), step: step.into(), reason, remedy, left: Vec::new() })
    }
}

impl fmt::Display for DeployFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device `{}`: cannot {}: ", self.device, self.step)?;
        match &self.reason {
            Reason::Unfit(reason) => f.write_str(reason)?,
            Reason::Refused(refusal) => write!(f, "{refusal}")?,
            Reason::Differs(found) => write!(f, "the kernel has {found} afterwards")?,
            Reason::Late => f.write_str("the gates did not start in time")?,
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        if !self.left.is_empty() {
            write!(f, "; the former state is not restored: {}", self.left.join("; "))?;
        }
        Ok(())
    }
}

impl std::error::Error for DeployFault {}

/// Returns what helps after a refusal.
fn remedy(device: &str, refusal: &Refusal, needs: &str) -> Option<String> {
    let text = refusal.text.as_deref().unwrap_or_default();
    if refusal.errno == libc::EPERM {
        return Some("it needs root (CAP_NET_ADMIN in the namespace of the device)".into());
    }
    if text.contains("Multi-queue device is required") {
        let create = format!("`ip link add {device} numtxqueues 4 numrxqueues 4 type veth ...`");
        return Some(format!("create a virtual device with more queues: {create}"));
    }
    if text.contains("greater than number of HW queues") || text.contains("queue") && refusal.errno == libc::EINVAL {
        return Some(format!("give the device more queues: `ethtool -L {device} combined N`"));
    }
    (refusal.errno == libc::ENOENT && !needs.is_empty()).then(|| format!("the kernel needs {needs}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(errno: i32, words: Option<&str>, needs: &str) -> String {
        let refusal = Refusal { errno, text: words.map(str::to_owned) };
        DeployFault::refused("eth0", "add taprio", refusal, needs).to_string()
    }

    #[test]
    fn a_failure_has_device_step_reason_and_remedy() {
        assert_eq!(
            text(libc::ENOENT, Some("Specified qdisc kind is unknown"), "CONFIG_NET_SCH_TAPRIO"),
            "device `eth0`: cannot add taprio: No such file or directory (os error 2): Specified qdisc kind is unknown; \
             the kernel needs CONFIG_NET_SCH_TAPRIO"
        );
        assert_eq!(
            text(libc::EPERM, None, "CONFIG_NET_SCH_TAPRIO"),
            "device `eth0`: cannot add taprio: Operation not permitted (os error 1); it needs root (CAP_NET_ADMIN in the \
             namespace of the device)"
        );
        assert_eq!(
            text(libc::EOPNOTSUPP, Some("Multi-queue device is required"), ""),
            "device `eth0`: cannot add taprio: Operation not supported (os error 95): Multi-queue device is required; \
             create a virtual device with more queues: `ip link add eth0 numtxqueues 4 numrxqueues 4 type veth ...`"
        );
    }

    #[test]
    fn what_is_left_is_named() {
        let mut fault = DeployFault::unfit("eth0", "set the gates", "no entry".into(), None);
        fault.left = vec!["`tc qdisc del dev eth0 root`".into()];
        let said = "device `eth0`: cannot set the gates: no entry; the former state is not restored: \
                    `tc qdisc del dev eth0 root`";
        assert_eq!(fault.to_string(), said);
    }
}
