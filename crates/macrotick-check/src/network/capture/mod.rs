//! The judge of captures: it reads the frames of a pcapng or pcap file, and compares their time stamps with the gates.

mod classify;
mod judge;
mod packet;
mod phase;
mod plan;
mod reader;
mod sequence;

pub use classify::{Classifier, ParseRuleError, Rule, UnknownClass};
pub use judge::{
    judge_capture, Bursts, CaptureVerdict, ClassCapture, Expectation, FlowCapture, FlowRule, Gaps, Offsets, Outside,
    Stray, StrayKind,
};
pub use packet::{Packet, Vlan};
pub use phase::Fit;
pub use plan::{PlanRefusal, PlannedPort, Settings};
pub use reader::{Capture, CaptureError, CapturedFrame};
pub use sequence::{Numbering, Sequence, Width};
