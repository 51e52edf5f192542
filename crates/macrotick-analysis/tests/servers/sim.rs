//! A simulator of one CPU with windows, deferrable servers and fixed priorities. It advances by one unit of time.
//!
//! It does not know the analysis. Like the kernel, it only has the ready tasks and the remaining budgets as its state.

/// One job: when it arrives, when it becomes ready, and how long it runs.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub arrival: i64,
    pub release: i64,
    pub work: i64,
}

/// A task of a group; the higher priority goes first.
#[derive(Clone, Debug, Default)]
pub struct Task {
    pub priority: u32,
    /// The jobs in the order of their releases.
    pub jobs: Vec<Job>,
}

/// A group with its server.
#[derive(Clone, Debug, Default)]
pub struct Group {
    pub priority: u32,
    pub budget: i64,
    /// The time of one refill. The other refills are whole periods before and after it.
    pub refill: i64,
    pub tasks: Vec<Task>,
    /// Intervals in which a thread below all tasks is ready, with work without end.
    pub noise: Vec<(i64, i64)>,
}

/// All load on the CPU.
#[derive(Clone, Debug)]
pub struct Cpu {
    pub period: i64,
    pub groups: Vec<Group>,
    /// The window of each unit of time. Their number is the length of the simulation.
    pub windows: Vec<Window>,
}

/// The window of a unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Window {
    /// No window, or a window that gives the unit away.
    Free,
    /// A window that uses the unit.
    Used,
    /// A window of the group with this priority, which uses the unit if it has work.
    Of(u32),
}

/// Returns the longest response time for each group and task. A job that is not complete at the end counts with its
/// waiting time until then.
pub fn run(cpu: &Cpu) -> Vec<Vec<i64>> {
    let mut groups: Vec<State> = cpu.groups.iter().map(|group| State::new(group, cpu.period)).collect();
    groups.sort_by_key(|state| std::cmp::Reverse(state.group.priority));
    for (now, &window) in cpu.windows.iter().enumerate() {
        let now = now as i64;
        for state in &mut groups {
            state.advance(now);
        }
        let own = |state: &&mut State| window == Window::Of(state.group.priority) && state.has_work(now);
        if let Some(state) = groups.iter_mut().find(own) {
            state.serve(now);
        } else if window != Window::Used {
            if let Some(state) = groups.iter_mut().find(|state| state.budget > 0 && state.has_work(now)) {
                state.budget -= 1;
                state.serve(now);
            }
        }
    }
    let end = cpu.windows.len() as i64;
    // The result is in the order of the input.
    cpu.groups
        .iter()
        .map(|group| groups.iter().find(|state| std::ptr::eq(state.group, group)).unwrap().longest(end))
        .collect()
}

struct Ready {
    task: usize,
    arrival: i64,
    left: i64,
}

struct State<'a> {
    group: &'a Group,
    period: i64,
    budget: i64,
    /// For each task, the next job to be released.
    next: Vec<usize>,
    /// The ready jobs in the order of release.
    ready: Vec<Ready>,
    longest: Vec<i64>,
}

impl<'a> State<'a> {
    fn new(group: &'a Group, period: i64) -> State<'a> {
        let zeros = vec![0; group.tasks.len()];
        let next = vec![0; group.tasks.len()];
        State { group, period, budget: group.budget, next, ready: Vec::new(), longest: zeros }
    }

    fn advance(&mut self, now: i64) {
        if (now - self.group.refill).rem_euclid(self.period) == 0 {
            self.budget = self.group.budget;
        }
        for (index, task) in self.group.tasks.iter().enumerate() {
            while let Some(job) = task.jobs.get(self.next[index]).filter(|job| job.release <= now) {
                self.ready.push(Ready { task: index, arrival: job.arrival, left: job.work });
                self.next[index] += 1;
            }
        }
    }

    fn is_noisy(&self, now: i64) -> bool {
        self.group.noise.iter().any(|&(from, to)| (from..to).contains(&now))
    }

    fn has_work(&self, now: i64) -> bool {
        !self.ready.is_empty() || self.is_noisy(now)
    }

    fn serve(&mut self, now: i64) {
        let priority = |ready: &Ready| self.group.tasks[ready.task].priority;
        let Some(highest) = self.ready.iter().map(priority).max() else {
            return;
        };
        let first = self.ready.iter().position(|ready| priority(ready) == highest).unwrap();
        self.ready[first].left -= 1;
        if self.ready[first].left == 0 {
            let done = self.ready.remove(first);
            self.longest[done.task] = self.longest[done.task].max(now + 1 - done.arrival);
        }
    }

    fn longest(&self, end: i64) -> Vec<i64> {
        let mut longest = self.longest.clone();
        for ready in &self.ready {
            longest[ready.task] = longest[ready.task].max(end - ready.arrival);
        }
        longest
    }
}
