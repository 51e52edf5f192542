//! Synthetic observations for tests and for examples of reports: a plausible plan, and records like those of a kernel
//! or a stock scheduler. They are seeded: the same call gives the same records.

use macrotick_fixtures::{self as fixtures, counters, hog, ms, ns, records, segment, spin, tables, us};
use macrotick_model::*;

/// Seeded draws.
pub struct Random(SplitMix64);

impl Random {
    /// Returns the next number.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }
    /// Returns a number below `n`.
    pub fn below(&mut self, n: i64) -> i64 {
        (self.bits() % n as u64) as i64
    }
    /// Returns an exponential number with a mean.
    pub fn tail(&mut self, mean: i64) -> i64 {
        let unit = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        (-(1.0 - unit).ln() * mean as f64) as i64
    }
}

const GRID_NS: i64 = 10_000;

fn task(name: &str, period_ms: i64, wcet_us: i64) -> Task {
    Task { cpu: Some(0), run: spin(us(wcet_us * 8 / 10)), ..Task::named(name, ms(period_ms), us(wcet_us)) }
}

fn system(tasks: Vec<Task>, chains: Vec<Chain>, duration: Duration) -> System {
    let writes = Load::Periodic(Periodic { period: ms(20), run: ms(2) });
    let logger = Process { count: 2, policy: Policy::Other(5), ..Process::named("logger", writes) };
    System {
        macrotick: ns(GRID_NS),
        experiment: Experiment { duration },
        chains,
        load: vec![Process { cpu: Some(0), ..hog("hog") }, logger],
        ..fixtures::system("robot-arm", tasks)
    }
}

/// Makes a table in rate-monotonic order on the grid: preempted jobs have several windows.
fn table(tasks: &[Task], cycle: Duration) -> Vec<Window> {
    let slots = (cycle.as_nanos() / GRID_NS) as usize;
    let mut left = vec![0i64; tasks.len()];
    let mut windows: Vec<Window> = Vec::new();
    let mut fresh = vec![false; tasks.len()];
    for slot in 0..slots as i64 {
        for (index, task) in tasks.iter().enumerate() {
            if slot * GRID_NS % task.period.as_nanos() == 0 {
                (left[index], fresh[index]) = (task.wcet.as_nanos() / GRID_NS, true);
            }
        }
        let Some(index) = left.iter().position(|&left| left > 0) else { continue };
        left[index] -= 1;
        let offset = Duration::from_nanos(slot * GRID_NS);
        match windows.last_mut() {
            Some(last) if last.task == tasks[index].name && last.end() == offset && !fresh[index] => {
                last.length += Duration::from_nanos(GRID_NS);
                last.deadline = left[index] == 0;
            }
            _ => windows.push(Window {
                activate: std::mem::take(&mut fresh[index]),
                deadline: left[index] == 0,
                ..Window::new(&tasks[index].name, offset, ns(GRID_NS))
            }),
        }
    }
    windows
}

fn chain(name: &str, path: &[&str], reaction_ms: Option<i64>, age_ms: Option<i64>) -> Chain {
    Chain {
        reaction: reaction_ms.map(ms),
        age: age_ms.map(ms),
        ..Chain::named(name, path.iter().map(|task| task.to_string()).collect())
    }
}

/// Returns six tasks of 1 to 100 ms, with nearly 14 000 jobs in 10 s.
pub fn robot_arm(backend: Backend, duration: Duration) -> Observation {
    let tasks = vec![
        task("current-control", 1, 90),
        task("joint-control", 5, 500),
        task("trajectory", 10, 1_200),
        task("force-sensing", 20, 2_400),
        task("vision", 50, 6_000),
        task("diagnosis", 100, 7_000),
    ];
    let chains = vec![
        chain("sense-to-act", &["force-sensing", "trajectory", "joint-control", "current-control"], Some(60), Some(60)),
        chain("eye-to-hand", &["vision", "trajectory", "current-control"], Some(130), None),
    ];
    observe(backend, system(tasks, chains, duration), Duration::from_millis(100))
}

/// Returns two tasks with a few jobs: small enough to check by eye.
pub fn small(backend: Backend) -> Observation {
    let tasks = vec![task("control", 1, 200), task("vision", 4, 1_000)];
    let chains = vec![chain("sense-to-act", &["vision", "control"], Some(9), Some(7))];
    observe(backend, system(tasks, chains, Duration::from_millis(24)), Duration::from_millis(4))
}

fn observe(backend: Backend, system: System, cycle: Duration) -> Observation {
    let windows = table(&system.tasks, cycle);
    let plan = Plan::new("synthetic", cycle, tables(windows), system);
    let mut random = Random(SplitMix64::new(7));
    let mut segments = Vec::new();
    let tasks: Vec<TaskObservation> = plan
        .system
        .tasks
        .iter()
        .map(|task| match backend {
            Backend::Kernel => in_windows(&plan, task, &mut random, &mut segments),
            _ => anywhere(&plan, task, backend, &mut random),
        })
        .collect();
    fill_with_hog(&mut segments, cycle);
    Observation {
        backend,
        tier: match backend {
            Backend::Kernel => Tier::KernelClass,
            Backend::User => Tier::UserSpaceDispatcher,
            _ => Tier::NotEnforced,
        },
        environment: fixtures::lab(),
        lead: (backend == Backend::Kernel).then(|| fixtures::measured_lead(us(8), us(20))),
        duration: plan.system.experiment.duration,
        tasks,
        segments,
        ..fixtures::observation(plan)
    }
}

/// Runs jobs in the task's windows, a few microseconds late. The pieces in the first two cycles become segments.
fn in_windows(plan: &Plan, task: &Task, random: &mut Random, segments: &mut Vec<Segment>) -> TaskObservation {
    let windows: Vec<&Window> =
        plan.tables.iter().flat_map(|table| &table.windows).filter(|window| window.task == task.name).collect();
    let mut jobs = Vec::new();
    for cycle in 0..plan.system.experiment.duration / plan.cycle {
        let (mut start, mut left) = (None, 0);
        for window in &windows {
            let late = 2_300 + random.below(300) + random.tail(90).min(3_600);
            let from = (window.offset + plan.cycle * cycle).as_nanos() + late;
            if window.activate {
                left = task.wcet.as_nanos() * 8 / 10 + random.below(task.wcet.as_nanos() / 20);
                start = Some(from);
            }
            let ran = left.min(window.length.as_nanos() - late);
            left -= ran;
            if ran > 0 && cycle < 2 {
                segments.push(segment(&task.name, from, from + ran));
            }
            if left == 0 && start.is_some() {
                let nominal = plan.cycle * cycle + window.offset;
                jobs.push((start.take(), from + ran, nominal));
            }
        }
    }
    let planned = plan.jobs(&task.name);
    let jobs: Vec<Job> = jobs
        .iter()
        .enumerate()
        .map(|(index, (start, end, _))| {
            let nominal = planned[index % planned.len()].nominal + plan.cycle * (index / planned.len()) as i64;
            fixtures::job(index as u64, nominal, start.map(ns), Some(ns(*end)))
        })
        .collect();
    TaskObservation { counters: Some(counters(jobs.len() as u64)), ..records(&task.name, jobs) }
}

/// Runs jobs whenever a stock scheduler reaches them.
fn anywhere(plan: &Plan, task: &Task, backend: Backend, random: &mut Random) -> TaskObservation {
    let planned = plan.jobs(&task.name);
    let mut jobs: Vec<Job> = Vec::new();
    let mut free = Duration::ZERO;
    for job in 0u64.. {
        let shift = plan.cycle * (job / planned.len() as u64) as i64;
        let entry = &planned[(job % planned.len() as u64) as usize];
        if entry.deadline + shift > plan.system.experiment.duration {
            break;
        }
        let delay = match backend {
            Backend::Other if random.below(4) == 0 => 57_000 + random.tail(900_000).min(4_800_000),
            Backend::Other => 55_000 + random.tail(9_000),
            Backend::User => 6_900 + random.tail(400).min(5_000),
            Backend::Deadline => 2_950 + random.tail(300).min(5_000),
            _ => 3_000 + random.tail(250).min(3_500),
        };
        let nominal = entry.nominal + shift;
        let start = (nominal + Duration::from_nanos(delay)).max(free);
        let stretch = task.wcet.as_nanos() * 8 / 10 + random.tail(task.wcet.as_nanos() / 30);
        free = start + Duration::from_nanos(stretch);
        let never = backend == Backend::Other && random.below(400) == 0;
        let (start, end) = if never { (None, None) } else { (Some(start), Some(free)) };
        jobs.push(fixtures::job(job, nominal, start, end));
    }
    records(&task.name, jobs)
}

/// Gives the time between the tasks' segments to the load.
fn fill_with_hog(segments: &mut Vec<Segment>, cycle: Duration) {
    segments.sort_by_key(|segment| segment.start_ns);
    let mut free = 0;
    let mut hog = Vec::new();
    for segment in segments.iter().filter(|segment| segment.start_ns < cycle.as_nanos()) {
        if segment.start_ns > free + 1_500 {
            hog.push(fixtures::segment("hog", free + 700, segment.start_ns - 700));
        }
        free = segment.end_ns;
    }
    segments.extend(hog);
    segments.sort_by_key(|segment| segment.start_ns);
}
