//! The bridge without gates, and with gates at its egress port or at its ingress ports (sections 4.1.2 and 4.2.2 of the
//! paper).

use macrotick_model::{GivenWindow, InterfaceEnd, Plan, System};

/// Where the bridge has gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bridge {
    /// Nowhere: the default bridge of Linux.
    Default,
    /// At the port towards the receiver.
    Egress,
    /// At the links from the sender and from the flood.
    Ingress,
}

impl Bridge {
    pub const ALL: [Bridge; 3] = [Bridge::Default, Bridge::Egress, Bridge::Ingress];

    /// Returns the name, as a continuation of the load's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Bridge::Default => "",
            Bridge::Egress => ", scheduled egress",
            Bridge::Ingress => ", scheduled ingress",
        }
    }

    /// Returns the system of a plan with the gates of this bridge. Its table is that of the plan: the planner would order
    /// other jobs differently around the jobs of a flow.
    pub fn around(self, plan: &Plan, gates: &System) -> System {
        let mut system = plan.system.clone();
        if self == Bridge::Default {
            return system;
        }
        system.table = Some(windows(plan));
        system.network = gates.network.clone();
        let is_egress = |end: &InterfaceEnd| matches!(end, InterfaceEnd::Port(_));
        if let Some(network) = &mut system.network {
            network.interfaces.retain(|interface| is_egress(&interface.end) == (self == Bridge::Egress));
        }
        system
    }
}

fn windows(plan: &Plan) -> Vec<GivenWindow> {
    let all = plan.tables.iter().flat_map(|table| table.windows.iter().map(|window| (table.cpu, window)));
    let given = |(cpu, window): (u32, &macrotick_model::Window)| GivenWindow {
        task: window.task.clone(),
        cpu,
        offset: window.offset,
        length: window.length,
        activate: window.activate,
        deadline: window.deadline,
    };
    all.map(given).collect()
}
