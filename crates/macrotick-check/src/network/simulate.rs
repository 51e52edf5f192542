//! The simulator: given frames through the gates of one port.

use std::fmt;

use macrotick_model::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gates::MAX_CLASSES;
use super::port::{Frame, Gating, Guard, Port};
use super::queues::Queues;
use super::{qdisc, wire};

/// The reason why frames cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// The link has no speed.
    #[error("interface `{interface}`: the speed of the link is zero: give it in bits per second")]
    Speed {
        /// The interface.
        interface: String,
    },
    /// The port has too few or too many classes.
    #[error("interface `{interface}`: {classes} traffic classes, but 1 to {MAX_CLASSES} are possible")]
    Classes {
        /// The interface.
        interface: String,
        /// The number of classes.
        classes: usize,
    },
    /// The kernel's qdisc has no mode without a guard band.
    #[error("interface `{interface}`: sch_taprio has a guard band always: use the guard `kernel` or `wire`")]
    Guard {
        /// The interface.
        interface: String,
    },
    /// A frame has a class that the port does not have.
    #[error("interface `{interface}`, frame {frame}: no class has the number {class}: there are {classes}")]
    Class {
        /// The interface.
        interface: String,
        /// The place of the frame in the input.
        frame: usize,
        /// The number of its class.
        class: usize,
        /// The number of classes.
        classes: usize,
    },
    /// The instants could leave the range of the clock.
    #[error("interface `{interface}`: the frames could be sent more than 2^62 ns from the zero of the clock")]
    TooFar {
        /// The interface.
        interface: String,
    },
}

/// The reason why a port does not send a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Loss {
    /// The content is longer than the limit of its class.
    MaxSdu {
        /// The bytes of content.
        bytes: u32,
        /// The limit.
        limit: u32,
    },
    /// The frame is longer than each window of its class.
    TooLong {
        /// The bytes that the gate counts.
        bytes: u64,
        /// The bytes that fit into the longest window.
        limit: u64,
    },
    /// The queue was full.
    QueueFull {
        /// The frames that it holds.
        limit: usize,
    },
    /// The frame waits for ever: no window is long enough for it or for the first frame of its queue.
    Blocked,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::MaxSdu { bytes, limit } => {
                write!(f, "the frame has {bytes} bytes of content, but its class allows {limit}")
            }
            Loss::TooLong { limit: 0, .. } => write!(f, "the gate of the class never opens"),
            Loss::TooLong { bytes, limit } => {
                write!(f, "the frame has {bytes} bytes, but the longest window has room for {limit}")
            }
            Loss::QueueFull { limit } => write!(f, "the queue was full with {limit} frames"),
            Loss::Blocked => write!(f, "no window is long enough for the first frame of the queue"),
        }
    }
}

/// The result for one frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fate", rename_all = "kebab-case")]
pub enum Fate {
    /// The port sent it.
    Sent {
        /// The instant at which its preamble started.
        #[serde(rename = "start_ns", with = "instant")]
        #[schemars(with = "i64")]
        start: Instant,
        /// The instant after its frame check sequence.
        #[serde(rename = "end_ns", with = "instant")]
        #[schemars(with = "i64")]
        end: Instant,
        /// The time from its arrival to the start.
        waited: Duration,
        /// The time by which it ended after its gate had closed; zero for a frame in time.
        overrun: Duration,
    },
    /// The port did not send it.
    Lost {
        /// The reason.
        reason: Loss,
    },
}

/// The result for all frames of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassResult {
    /// The class.
    pub name: String,
    /// The number of frames.
    pub frames: usize,
    /// The number of frames that the port did not send.
    pub lost: usize,
    /// The number of frames that ended after their gate had closed.
    pub late: usize,
    /// The longest time by which one did.
    pub overrun: Duration,
    /// The longest time from arrival to start.
    pub waited: Duration,
    /// The place in the input of the frame that waited longest, if the port sent one.
    pub longest: Option<usize>,
    /// The most frames that waited at the same time.
    pub queued: usize,
    /// The time on the wire, with preamble and gap.
    pub busy: Duration,
    /// That time as a share of the time from the first arrival to the end of the last frame, 0 to 1.
    pub utilisation: f64,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simulation {
    /// One per frame, in the order of the input.
    pub fates: Vec<Fate>,
    /// One per class, in the order of the port.
    pub classes: Vec<ClassResult>,
}

/// Sends frames through a port. They can be in any order; those that arrive at the same instant keep their order.
///
/// The cost depends on the frames and on the entries of the list, and not on the time between the frames.
///
/// # Errors
///
/// Refuses a link without speed, a wrong number of classes, an unknown class, a qdisc without guard band, and instants
/// that could overflow.
pub fn simulate(port: &Port, frames: &[Frame]) -> Result<Simulation, SimulationError> {
    validate(port, frames)?;
    let mut queues = Queues::new(port, frames);
    match port.gating {
        Gating::Link => wire::run(&mut queues),
        Gating::Qdisc => qdisc::run(&mut queues),
    }
    let longest = queues.longest.clone();
    let fates = queues.finish();
    let classes = summarise(port, frames, &fates, &longest);
    Ok(Simulation { fates, classes })
}

/// Checks everything that the simulation relies on. Its sums then cannot overflow. This is because a frame starts at
/// most one cycle and the time of all frames after the last arrival or the frame before it.
fn validate(port: &Port, frames: &[Frame]) -> Result<(), SimulationError> {
    let interface = || port.name.clone();
    if port.link.speed == 0 {
        return Err(SimulationError::Speed { interface: interface() });
    }
    let classes = port.classes.len();
    if classes == 0 || classes > MAX_CLASSES {
        return Err(SimulationError::Classes { interface: interface(), classes });
    }
    if port.gating == Gating::Qdisc && port.guard == Guard::None {
        return Err(SimulationError::Guard { interface: interface() });
    }
    if let Some(frame) = frames.iter().position(|frame| frame.class >= classes) {
        let class = frames[frame].class;
        return Err(SimulationError::Class { interface: interface(), frame, class, classes });
    }
    let wire = |frame: &Frame| port.link.time(port.link.wire_bytes(frame.content, frame.tagged)).as_nanos();
    let each = frames.iter().map(wire).max().unwrap_or(0);
    let cycle = port.gates.as_ref().map_or(0, |gates| gates.cycle().as_nanos());
    let sums = frames.len() as i128 * (i128::from(each) + 2 * i128::from(cycle)) + 4 * i128::from(cycle);
    let far = frames.iter().map(|frame| i128::from(frame.at.as_nanos()).abs()).max().unwrap_or(0);
    if sums + far > 1 << 62 {
        return Err(SimulationError::TooFar { interface: interface() });
    }
    Ok(())
}

fn summarise(port: &Port, frames: &[Frame], fates: &[Fate], queued: &[usize]) -> Vec<ClassResult> {
    let first = frames.iter().map(|frame| frame.at).min().unwrap_or_default();
    let last = frames.iter().zip(fates).map(|(frame, fate)| match fate {
        Fate::Sent { end, .. } => *end,
        Fate::Lost { .. } => frame.at,
    });
    let span = (last.max().unwrap_or_default() - first).as_secs_f64();
    let empty = |(class, queued): (&super::Class, &usize)| ClassResult {
        name: class.name.clone(),
        frames: 0,
        lost: 0,
        late: 0,
        overrun: Duration::ZERO,
        waited: Duration::ZERO,
        longest: None,
        queued: *queued,
        busy: Duration::ZERO,
        utilisation: 0.0,
    };
    let mut classes: Vec<ClassResult> = port.classes.iter().zip(queued).map(empty).collect();
    for (number, (frame, fate)) in frames.iter().zip(fates).enumerate() {
        let result = &mut classes[frame.class];
        result.frames += 1;
        let Fate::Sent { waited, overrun, .. } = fate else {
            result.lost += 1;
            continue;
        };
        result.late += usize::from(*overrun > Duration::ZERO);
        result.overrun = result.overrun.max(*overrun);
        if result.longest.is_none() || *waited > result.waited {
            (result.longest, result.waited) = (Some(number), *waited);
        }
        result.busy += port.link.time(port.link.wire_bytes(frame.content, frame.tagged));
    }
    for class in &mut classes {
        class.utilisation = if span > 0.0 { class.busy.as_secs_f64() / span } else { 0.0 };
    }
    classes
}

/// The form of instants in results: whole nanoseconds on the clock of the gates.
mod instant {
    use macrotick_model::Instant;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(instant: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(instant.as_nanos())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
        i64::deserialize(deserializer).map(Instant::from_nanos)
    }
}
