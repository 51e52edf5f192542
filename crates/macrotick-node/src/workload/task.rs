//! The process of a task with a built-in workload.

use std::io;
use std::net::UdpSocket;
use std::process::ExitCode;

use macrotick_host::sys;
use macrotick_model::{ExecutionTime, OnMiss, UdpReceive, UdpSend, Workload};
use serde::{Deserialize, Serialize};

use crate::block::abi::{self, JobInfo};
use crate::workload::calibration::{spin, Calibration};
use crate::workload::random::Random;

/// The hidden verb that leads to [`main`].
pub const VERB: &str = "task";

/// The specification that the runner passes to the process, as JSON in the argument after the verb.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TaskSpec {
    pub name: String,
    pub workload: Workload,
    pub calibration: Calibration,
    pub seed: u64,
    /// The number of execution times to draw in advance.
    pub draws: u32,
    /// The reaction to a miss.
    pub on_miss: OnMiss,
    /// The priority of its frames (`SO_PRIORITY`).
    pub priority: Option<u8>,
}

/// The reason why a task's process ended by itself.
#[derive(Debug, thiserror::Error)]
enum TaskError {
    #[error("this verb is for macrotick's own use")]
    Arguments,
    #[error("a program is not a built-in workload")]
    NotBuiltIn,
    #[error("cannot use the address {0}: {1}")]
    Address(String, io::Error),
    #[error("cannot {0}: {1}")]
    Call(&'static str, io::Error),
    #[error("cannot receive: {0}")]
    Receive(io::Error),
}

/// Runs the process of a task. Call it when the first argument of the program is [`VERB`].
pub fn main() -> ExitCode {
    let result = decode_arguments().ok_or(TaskError::Arguments).and_then(|spec: TaskSpec| run(&spec));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Decodes the specification after the verb.
pub(crate) fn decode_arguments<T: for<'de> Deserialize<'de>>() -> Option<T> {
    std::env::args().nth(2).and_then(|text| serde_json::from_str(&text).ok())
}

/// The work of every job, drawn before the run. Job k computes the same under every backend, and drawing takes no time
/// from a job.
struct Work(Vec<u64>);

impl Work {
    fn draw(spec: &TaskSpec, time: &ExecutionTime) -> Work {
        let mut random = Random::new(spec.seed, &spec.name);
        let draws = if matches!(time, ExecutionTime::Fixed(_)) { 1 } else { spec.draws.max(1) };
        Work((0..draws).map(|_| spec.calibration.rounds(random.execution_time(time))).collect())
    }

    fn run(&self, job: &JobInfo) {
        spin(self.0[(job.number % self.0.len() as u64) as usize]);
    }
}

fn run(spec: &TaskSpec) -> Result<(), TaskError> {
    sys::set_thread_name(&spec.name);
    sys::lock_memory();
    if spec.on_miss == OnMiss::Signal {
        sys::ignore_miss_signal();
    }
    let address = |at: &str| {
        let at = at.to_string();
        move |error| TaskError::Address(at, error)
    };
    match &spec.workload {
        Workload::Spin(time) => {
            let work = Work::draw(spec, time);
            serve(|job| {
                work.run(job);
                Ok(())
            })
        }
        Workload::UdpSend(UdpSend { spin, to }) => {
            let work = Work::draw(spec, spin);
            let socket = UdpSocket::bind("0.0.0.0:0").map_err(address(to))?;
            socket.connect(to).map_err(address(to))?;
            let prioritised = spec.priority.map_or(Ok(()), |priority| sys::set_priority(&socket, priority.into()));
            prioritised.map_err(|error| TaskError::Call("set the priority of its frames", error))?;
            serve(|job| {
                work.run(job);
                // A missing receiver is no error of the sender.
                let _ = socket.send(&datagram(job));
                Ok(())
            })
        }
        Workload::UdpReceive(UdpReceive { spin, at }) => {
            let work = Work::draw(spec, spin);
            let socket = UdpSocket::bind(at).map_err(address(at))?;
            serve(|job| {
                receive(&socket).map_err(TaskError::Receive)?;
                work.run(job);
                Ok(())
            })
        }
        Workload::Program(_) => Err(TaskError::NotBuiltIn),
    }
}

/// Returns a datagram: job number and start (`CLOCK_MONOTONIC`, ns), both 64 bits, little-endian.
fn datagram(job: &JobInfo) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&job.number.to_le_bytes());
    bytes[8..].copy_from_slice(&job.start_ns.to_le_bytes());
    bytes
}

/// Waits for one datagram.
fn receive(socket: &UdpSocket) -> io::Result<()> {
    let mut bytes = [0; 16];
    loop {
        match socket.recv(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(drop),
        }
    }
}

/// Reports that the process is ready. Returns when the run starts.
pub(crate) fn join_run() -> Result<(), (&'static str, io::Error)> {
    // SAFETY: no memory is passed.
    unsafe {
        call("join", abi::macrotick_node_join())?;
        call("be ready", abi::macrotick_node_ready())
    }
}

fn call(what: &'static str, result: i32) -> Result<(), (&'static str, io::Error)> {
    match result {
        0.. => Ok(()),
        error => Err((what, io::Error::from_raw_os_error(-error))),
    }
}

/// Runs job after job until the run ends.
fn serve(mut job: impl FnMut(&JobInfo) -> Result<(), TaskError>) -> Result<(), TaskError> {
    join_run().map_err(|(what, error)| TaskError::Call(what, error))?;
    let mut info = JobInfo::default();
    loop {
        // SAFETY: the structure is written before the call returns 0.
        match unsafe { abi::macrotick_node_wait(&mut info) } {
            0 => job(&info)?,
            error if error == -libc::EINTR => {}
            error if error == -libc::ESHUTDOWN => break,
            error => return Err(TaskError::Call("wait", io::Error::from_raw_os_error(-error))),
        }
    }
    // SAFETY: no memory is passed.
    unsafe { abi::macrotick_node_leave() };
    Ok(())
}

#[cfg(test)]
mod tests {
    use macrotick_model::{Duration, Uniform};

    use super::*;

    #[test]
    fn datagrams_are_little_endian() {
        let job = JobInfo { number: 0x0102, start_ns: 3, ..Default::default() };
        assert_eq!(datagram(&job), [2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn work_depends_on_seed_and_job_alone() {
        let time = ExecutionTime::Uniform(Uniform { min: Duration::ZERO, max: Duration::from_millis(1) });
        let calibration = Calibration::measure();
        let spec = |seed| TaskSpec {
            name: "a".into(),
            workload: Workload::Spin(time.clone()),
            calibration,
            seed,
            draws: 5,
            on_miss: OnMiss::Resume,
            priority: None,
        };
        assert_eq!(Work::draw(&spec(1), &time).0, Work::draw(&spec(1), &time).0);
        assert_ne!(Work::draw(&spec(1), &time).0, Work::draw(&spec(2), &time).0);
        assert_eq!(Work::draw(&spec(1), &ExecutionTime::Fixed(Duration::from_millis(1))).0.len(), 1);
    }
}
