//! The graph of the jobs that pass values to each other, from chains and from `after`.
//!
//! In a chain, each task is to run after the one before it, within one window of the slowest period. A faster task has
//! several jobs in that window: its *lane* is the job that passes the value. Before the first slowest task of the chain
//! it is the first job of the window, after it the last one. Then a value passes the whole chain within the window,
//! wherever the tasks are.
//!
//! Chains may share tasks, and a task may be in a chain more than once. An edge that would close a circle is left out:
//! the value then waits for the next job.

use std::collections::BTreeMap;

use macrotick_model::{Duration, System};

use crate::demand::Demand;

/// A job of `from` ends before a job of `to` starts, once in every window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub from: usize,
    pub to: usize,
    /// The length after which the pair repeats: a multiple of both periods.
    pub window: Duration,
    /// The number of the job within the window.
    pub from_lane: i64,
    pub to_lane: i64,
}

/// The acyclic graph of the tasks.
pub(crate) struct Graph {
    /// The edges in an order in which every task is entered before it is left.
    pub edges: Vec<Edge>,
    /// The length of the longest path to each task.
    pub depth: Vec<usize>,
    into: Vec<Vec<Edge>>,
    out: Vec<Vec<Edge>>,
}

impl Graph {
    /// Makes the graph of a system. `paths` has the tasks of each chain and flow.
    pub fn new(system: &System, demands: &[Demand], paths: &[Vec<usize>]) -> Graph {
        let count = demands.len();
        let mut graph = Graph {
            edges: Vec::new(),
            depth: vec![0; count],
            into: vec![Vec::new(); count],
            out: vec![Vec::new(); count],
        };
        let index: BTreeMap<&str, usize> = system.windowed().map(|task| task.name.as_str()).zip(0..).collect();
        for (to, task) in system.windowed().enumerate() {
            for name in &task.after {
                let window = demands[to].period;
                graph.add(Edge {
                    from: *index.get(name.as_str()).expect("a validated task with windows"),
                    to,
                    window,
                    from_lane: 0,
                    to_lane: 0,
                });
            }
        }
        for path in paths {
            chain_edges(demands, path).into_iter().for_each(|edge| graph.add(edge));
        }
        graph.sort();
        graph
    }

    /// Whether a task has an edge.
    pub fn has(&self, task: usize) -> bool {
        !self.into[task].is_empty() || !self.out[task].is_empty()
    }

    /// Returns the edges into a task.
    pub fn into(&self, task: usize) -> &[Edge] {
        &self.into[task]
    }

    /// Returns the edges out of a task.
    pub fn out(&self, task: usize) -> &[Edge] {
        &self.out[task]
    }

    /// Adds an edge, unless it is there or would close a circle.
    fn add(&mut self, edge: Edge) {
        if !self.out[edge.from].contains(&edge) && !self.reaches(edge.to, edge.from) {
            self.out[edge.from].push(edge);
            self.into[edge.to].push(edge);
        }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let (mut seen, mut open) = (vec![false; self.out.len()], vec![from]);
        while let Some(task) = open.pop() {
            if task == to {
                return true;
            }
            if !std::mem::replace(&mut seen[task], true) {
                open.extend(self.out[task].iter().map(|edge| edge.to));
            }
        }
        false
    }

    /// Finds the depths, and sorts the edges by the depth of their first task.
    fn sort(&mut self) {
        let mut left: Vec<usize> = self.into.iter().map(Vec::len).collect();
        let mut open: Vec<usize> = (0..left.len()).filter(|&task| left[task] == 0).collect();
        while let Some(task) = open.pop() {
            for edge in &self.out[task] {
                self.depth[edge.to] = self.depth[edge.to].max(self.depth[task] + 1);
                left[edge.to] -= 1;
                if left[edge.to] == 0 {
                    open.push(edge.to);
                }
            }
        }
        self.edges = self.out.iter().flatten().copied().collect();
        self.edges.sort_by_key(|edge| self.depth[edge.from]);
    }
}

/// Returns the edges of one chain. There are none if a period does not divide the slowest one.
fn chain_edges(demands: &[Demand], path: &[usize]) -> Vec<Edge> {
    let period = |position: usize| demands[path[position]].period;
    let window = (0..path.len()).map(period).max().expect("a chain has tasks");
    if (0..path.len()).any(|position| !window.is_multiple_of(period(position))) {
        return Vec::new();
    }
    let slowest = (0..path.len()).find(|&position| period(position) == window).expect("it has the slowest period");
    let lane = |position: usize| if position < slowest { 0 } else { window / period(position) - 1 };
    let edge = |position: usize| Edge {
        from: path[position],
        to: path[position + 1],
        window,
        from_lane: lane(position),
        to_lane: lane(position + 1),
    };
    (0..path.len() - 1).map(edge).collect()
}
