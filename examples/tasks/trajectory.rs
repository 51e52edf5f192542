// SPDX-License-Identifier: MIT OR Apache-2.0
//! A task in Rust: moves an axis back and forth, each way along a trapezoidal profile of its speed.
//!
//! * before `ready()`: everything that may block, fault or fail
//! * in a job: bounded computation, no allocation
//! * after the loop: reports; the task leaves when it is dropped

use std::error::Error;
use std::process::ExitCode;

use macrotick_task::{lock_memory, Task};

/// An axis with its limits, in metres and seconds.
struct Axis {
    position: f64,
    speed: f64,
    max_speed: f64,
    acceleration: f64,
}

impl Axis {
    /// Makes one step towards the target, at the highest speed from which the axis can stop there.
    fn step(&mut self, target: f64, dt: f64) {
        let distance = target - self.position;
        let stoppable = (2.0 * self.acceleration * distance.abs()).sqrt();
        let wanted = stoppable.min(self.max_speed).copysign(distance);
        let change = (wanted - self.speed).clamp(-self.acceleration * dt, self.acceleration * dt);
        self.speed += change;
        self.position += self.speed * dt;
    }

    fn has_reached(&self, target: f64) -> bool {
        (self.position - target).abs() < 1e-3
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trajectory: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut task = Task::join("trajectory")?;
    let mut axis = Axis { position: 0.0, speed: 0.0, max_speed: 2.0, acceleration: 20.0 };
    let (mut target, mut moves, mut jobs) = (0.1, 0, 0);
    let mut previous = None;
    if let Err(error) = lock_memory() {
        eprintln!("trajectory: memory is not locked: {error}");
    }
    task.ready()?;

    while let Some(job) = task.wait()? {
        // Uses the table's times: the steps are equal even if the start jitters.
        let dt = previous.map_or(0.0, |previous| (job.nominal_ns - previous) as f64 / 1e9);
        axis.step(target, dt);
        if axis.has_reached(target) {
            target = 0.1 - target;
            moves += 1;
        }
        previous = Some(job.nominal_ns);
        jobs += 1;
    }
    println!("trajectory: {jobs} jobs, {moves} moves");
    Ok(())
}
