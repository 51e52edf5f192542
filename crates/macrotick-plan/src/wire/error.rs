//! The reasons why flows have no plan.

use macrotick_model::Duration;

/// The reason why flows over a switched network have no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WireError {
    /// No links lead from the sender to the receiver. This is a proof.
    #[error("flow `{flow}`: no links lead from `{from}` to `{to}`")]
    NoRoute {
        /// The flow.
        flow: String,
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
    },
    /// The frame arrives too late even on an empty network. This is a proof.
    #[error("flow `{flow}`: on an empty network, its frame takes {least} from `{from}` to `{to}`, and the deadline is {deadline}")]
    TooFar {
        /// The flow.
        flow: String,
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
        /// The shortest time from the ready instant to the arrival.
        least: Duration,
        /// The deadline.
        deadline: Duration,
    },
    /// A frame is longer than its period. This is a proof.
    #[error("flow `{flow}`: its frame takes {time} on the link from `{from}` to `{to}`, and its period is {period}")]
    TooLong {
        /// The flow.
        flow: String,
        /// The node that sends.
        from: String,
        /// The node that receives.
        to: String,
        /// The time on the link.
        time: Duration,
        /// The period.
        period: Duration,
    },
    /// Two frames must cross a link, and meet there with all instants. The distances between their instants repeat with
    /// the greatest common divisor of the periods. This is a proof.
    #[error(
        "flows `{flow}` and `{other}` meet on the link from `{from}` to `{to}` at some time: their frames take {time} \
         there, and the greatest common divisor of their periods is {common}"
    )]
    Clash {
        /// The flow with the shorter period.
        flow: String,
        /// The other one.
        other: String,
        /// The node that sends.
        from: String,
        /// The node that receives.
        to: String,
        /// The time of both frames on the link.
        time: Duration,
        /// The greatest common divisor of their periods.
        common: Duration,
    },
    /// The frames that must cross a link take more than all of its time. This is a proof.
    #[error("the {flows} flows that must cross the link from `{from}` to `{to}` take {:.1} % of its time", .load * 100.0)]
    Overload {
        /// The node that sends.
        from: String,
        /// The node that receives.
        to: String,
        /// The number of flows.
        flows: usize,
        /// The share of time, more than 1.
        load: f64,
    },
    /// The search has found no instants for a flow. Others can exist.
    #[error("flow `{flow}`: no room was found; the fullest link of its route, from `{from}` to `{to}`, is busy for {:.1} % of the time", .load * 100.0)]
    NotFound {
        /// The flow.
        flow: String,
        /// The node that sends on the fullest link.
        from: String,
        /// The node that receives there.
        to: String,
        /// The share of time that planned frames take there, 0 to 1.
        load: f64,
    },
}

impl WireError {
    /// Whether no plan exists at all.
    pub fn is_proof(&self) -> bool {
        !matches!(self, WireError::NotFound { .. })
    }
}
