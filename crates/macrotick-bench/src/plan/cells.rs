//! The rows of the table: kinds and sizes of systems.

use std::time::Duration as WallTime;

use macrotick_generate::infeasible::{infeasible, Conflict};
use macrotick_generate::{at_the_cap, ecu, feasible, shared_chains, with_jitter, zero_jitter, Jitter, Size, Unit};
use macrotick_model::System;

use crate::kit::scale::Scale;

/// Systems of one kind and size.
pub struct Cell {
    /// The kind and the size, in words.
    pub name: String,
    /// The number of systems.
    pub count: u64,
    /// The time limit for each of them.
    pub limit: WallTime,
    /// Makes the system of a seed.
    pub system: Box<dyn Fn(u64) -> System>,
}

/// Returns all rows.
pub fn cells(scale: Scale) -> Vec<Cell> {
    let count = scale.of(20, 1);
    let cell = |name: String, seconds: u64, system: Box<dyn Fn(u64) -> System>| Cell {
        name,
        count,
        limit: WallTime::from_secs(seconds),
        system,
    };
    let mut cells = Vec::new();
    for size in scale
        .of(&CHAINS[..], &CHAINS[..1])
        .iter()
        .flat_map(|&size| loads(size, scale.of(&[40, 60, 80, 90][..], &[60][..])))
    {
        for (jitter, word) in [(Jitter::Free, "free"), (Jitter::Zero, "zero jitter")] {
            let name = format!("chains, {word}, {}", told(size));
            cells.push(cell(name, 5, Box::new(move |seed| shared_chains(seed, size, jitter))));
        }
    }
    for size in
        scale.of(&SMALL[..], &SMALL[..1]).iter().flat_map(|&size| loads(size, scale.of(&[60, 80, 90][..], &[80][..])))
    {
        for part in [5, 10] {
            let name = format!("jitter p/{part}, {}", told(size));
            cells.push(cell(name, 1, Box::new(move |seed| with_jitter(seed, size, Jitter::Part(part)))));
        }
    }
    for size in scale.of(&SMALL[..], &SMALL[..1]).iter().flat_map(|&size| loads(size, &[80])) {
        cells.push(cell(format!("zero jitter, {}", told(size)), 2, Box::new(move |seed| zero_jitter(seed, size))));
    }
    for &(tasks, cpus) in scale.of(&[(10, 2), (20, 2), (30, 3), (50, 4)][..], &[(20, 2)][..]) {
        let name = format!("at the cap, {tasks} tasks, {cpus} CPUs");
        cells.push(cell(name, 1, Box::new(move |seed| at_the_cap(seed, tasks, cpus))));
    }
    for &load in scale.of(&[80, 90, 94][..], &[90][..]) {
        let name = format!("harmonic, 60 tasks, one CPU, {load} %");
        cells.push(cell(name, 10, Box::new(move |seed| feasible::harmonic(seed, 60, load))));
    }
    cells.extend(without_preemption(scale));
    for conflict in Conflict::ALL {
        let name = format!("infeasible, {}", format!("{conflict:?}").to_lowercase());
        cells.push(Cell { count: scale.of(200, 2), ..cell(name, 1, Box::new(move |seed| infeasible(seed, conflict))) });
    }
    cells
}

/// Returns the rows without preemption.
fn without_preemption(scale: Scale) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |name: String, count: u64, seconds: u64, system: Box<dyn Fn(u64) -> System>| {
        cells.push(Cell { name, count, limit: WallTime::from_secs(seconds), system });
    };
    let engine = |seed| ecu(seed, Unit::engine(), 896, Jitter::Zero);
    add("engine control unit, zero jitter, 89.6 %".into(), scale.of(5, 1), 5, Box::new(engine));
    for &kind in scale.of(&feasible::HARD[..], &feasible::HARD[..1]) {
        for &(permille, seconds) in scale.of(&[(986, 1), (990, 1), (1000, 10)][..], &[(990, 1)][..]) {
            let (periods, factor) = kind;
            let load = f64::from(permille) / 10.0;
            let name = format!("harmonic and full, {periods} periods, factor {factor}, {load} %");
            add(name, scale.of(200, 2), seconds, Box::new(move |seed| feasible::full(seed, kind, permille)));
        }
    }
    cells
}

/// The tasks and the CPUs of systems with chains.
const CHAINS: [(usize, u32); 4] = [(50, 2), (100, 3), (200, 4), (500, 8)];
/// The tasks and the CPUs of systems with periods that do not divide each other.
const SMALL: [(usize, u32); 3] = [(20, 1), (50, 2), (100, 4)];

fn loads((tasks, cpus): (usize, u32), loads: &[u32]) -> Vec<Size> {
    loads.iter().map(|&load| Size { tasks, cpus, load }).collect()
}

fn told(size: Size) -> String {
    let Size { tasks, cpus, load } = size;
    format!("{tasks} tasks, {cpus} CPU{}, {load} %", if cpus == 1 { "" } else { "s" })
}
