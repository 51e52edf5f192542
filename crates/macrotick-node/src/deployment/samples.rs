//! Small plans for tests.

use macrotick_fixtures::{self as fixtures, ms, tables, us};
use macrotick_model::{Duration, Experiment, Plan, System, Task, Window};

/// Returns a task that spins for its WCET of 100 us.
pub fn task(name: &str, period: Duration, priority: Option<u8>) -> Task {
    Task { priority, ..fixtures::task(name, period, us(100)) }
}

/// Returns a window. Times are in microseconds.
pub fn window(task: &str, offset: i64, length: i64, activate: bool, deadline: bool) -> Window {
    Window { activate, deadline, ..Window::new(task, us(offset), us(length)) }
}

/// Returns a plan with a cycle of a millisecond, and windows on CPU 0.
pub fn plan(tasks: Vec<Task>, windows: Vec<Window>) -> Plan {
    let experiment = Experiment { duration: ms(10) };
    let system = System { macrotick: us(10), experiment, ..fixtures::system("test", tasks) };
    fixtures::by_hand(system, ms(1), tables(windows))
}
