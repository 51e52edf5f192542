//! Changes to a draft that fails.

use std::cmp::Reverse;

use crate::assign::Assignment;
use crate::demand::Demand;
use crate::error::PlanError;
use crate::folded::Problem;
use crate::table::Piece;

/// How often a task without a place moves to the front of the order, before the solver tries anything else.
const MAX_PUSHES: usize = 3;
/// The rounds in which only tasks that miss are placed. Later, all tasks of their CPUs are placed, so the changes end
/// soon.
const GENTLE_ROUNDS: usize = 4;

/// The decisions before the layout of the windows.
pub(crate) struct Draft {
    pub assignment: Assignment,
    /// Whether each task is placed on a phase.
    pub placed: Vec<bool>,
    /// Whether each task could not be placed and can be left to EDF.
    pub unplaceable: Vec<bool>,
    /// The rank of tasks that could not be placed at their turn. They come before all others, and the last one comes
    /// first.
    pub urgency: Vec<usize>,
    /// How often each task was made urgent.
    pub pushes: Vec<usize>,
    /// The CPUs that each task has left.
    pub left: Vec<Vec<usize>>,
    /// How often tasks have missed deadlines.
    pub rounds: usize,
    /// The last layout of each CPU. It stays valid while the placed pieces and the tasks to fill in are the same.
    pub done: Vec<Option<Layout>>,
}

/// The layout of a CPU: the input, and the pieces or the tasks that missed.
pub(crate) struct Layout {
    pub taken: Vec<Piece>,
    pub tasks: Vec<usize>,
    pub result: Result<Vec<Piece>, Vec<usize>>,
}

/// The reason why a draft fails.
pub(crate) enum Failure {
    /// These tasks have no phase.
    Place(Vec<usize>),
    /// These tasks miss deadlines under EDF.
    Miss(Vec<usize>),
    /// This split task has jobs with too little time in the gaps.
    Split(usize),
}

impl Problem<'_> {
    /// Changes decisions of the draft. Each change happens only a few times per task and CPU, so the search ends.
    pub(crate) fn mend(&self, draft: &mut Draft, failure: Failure) -> Result<(), PlanError> {
        match failure {
            Failure::Split(task) => Err(self.no_pieces(task)),
            Failure::Place(tasks) => tasks.into_iter().try_for_each(|task| self.mend_place(draft, task)),
            Failure::Miss(tasks) => {
                draft.rounds += 1;
                let promoted = self.promoted(draft, &tasks);
                if promoted.is_empty() {
                    let moved = tasks.iter().find_map(|&task| self.relocate(draft, task));
                    return moved.ok_or_else(|| self.missed(draft, tasks[0]));
                }
                for task in promoted {
                    draft.placed[task] = true;
                }
                Ok(())
            }
        }
    }

    /// Returns the tasks to place on a phase because of the tasks that missed.
    fn promoted(&self, draft: &Draft, missed: &[usize]) -> Vec<usize> {
        let open = |task: &usize| !draft.placed[*task] && !draft.unplaceable[*task] && self.is_open(*task);
        let mut promoted: Vec<usize> = missed.iter().copied().filter(open).collect();
        if draft.rounds > GENTLE_ROUNDS && !promoted.is_empty() {
            let mut late = vec![false; draft.assignment.len()];
            missed.iter().for_each(|&task| late[draft.assignment.of[task]] = true);
            let concerned = |task: &usize| late[draft.assignment.of[*task]];
            promoted = (0..self.demands.len()).filter(concerned).filter(open).collect();
        }
        promoted
    }

    fn mend_place(&self, draft: &mut Draft, task: usize) -> Result<(), PlanError> {
        if draft.pushes[task] < MAX_PUSHES {
            draft.pushes[task] += 1;
            draft.urgency[task] = 1 + draft.urgency.iter().max().copied().unwrap_or(0);
            return Ok(());
        }
        if self.splitting.has(task) {
            return Err(self.no_pieces(task));
        }
        if self.demands[task].needs_phase() {
            return self.relocate(draft, task).ok_or_else(|| self.no_phase(draft, task));
        }
        draft.placed[task] = false;
        draft.unplaceable[task] = true;
        Ok(())
    }

    fn relocate(&self, draft: &mut Draft, task: usize) -> Option<()> {
        let from = draft.assignment.of[task];
        draft.left[task].push(from);
        draft.assignment.relocate(task, &self.demands[task], &draft.left[task]).then(|| {
            draft.unplaceable[task] = false;
            draft.pushes[task] = 0;
        })
    }

    fn others(&self, draft: &Draft, task: usize) -> Vec<String> {
        let cpu = draft.assignment.of[task];
        let same = |&other: &usize| other != task && draft.assignment.has(other, cpu, &self.splitting);
        let mut others: Vec<usize> = (0..self.demands.len()).filter(same).collect();
        others.sort_by_key(|&other| (Reverse(self.demands[other].per_cycle(self.cycle)), other));
        others.into_iter().map(|other| self.demands[other].name.clone()).collect()
    }

    fn no_phase(&self, draft: &Draft, task: usize) -> PlanError {
        let Demand { ref name, wcet, period, lead, preemptible, .. } = self.demands[task];
        let (cpu, others) = (draft.assignment.cpu(task), self.others(draft, task));
        PlanError::NoPhase { task: name.clone(), cpu, wcet, period, lead, whole: !preemptible, others }
    }

    pub(crate) fn no_pieces(&self, task: usize) -> PlanError {
        let Demand { ref name, wcet, deadline, lead, .. } = self.demands[task];
        PlanError::Pieces { task: name.clone(), wcet, deadline, lead }
    }

    fn missed(&self, draft: &Draft, task: usize) -> PlanError {
        let Demand { kind, ref name, wcet, deadline, lead, preemptible, .. } = self.demands[task];
        let (cpu, others) = (draft.assignment.cpu(task), self.others(draft, task));
        PlanError::Deadline { kind, task: name.clone(), cpu, wcet, deadline, lead, whole: !preemptible, others }
    }
}
