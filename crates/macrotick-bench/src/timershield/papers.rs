//! The paper's numbers for the same quantities, on its Intel machine.

use macrotick_report::Figure;

use super::operations::{Operations, ENQUEUE, EXPIRY, SWITCH};
use super::responses::Responses;
use super::size::Size;
use super::workload::Workload;
use crate::kit::variant::Variant;

/// Table II: multiplications per millisecond, idle and beside the hostile process with 1000 timers.
const THROUGHPUT: [(&str, f64, f64); 2] = [("baseline", 7044.4, 6916.8), ("TimerShield", 7048.3, 7047.0)];

/// Returns a table with the paper's numbers and ours.
pub fn markdown(responses: &Responses, operations: &Operations, size: &Size) -> String {
    let [baseline, shield] = THROUGHPUT.map(|(_, idle, hostile)| lost(idle, hostile));
    let [pristine, on] = [Variant::Pristine, Variant::On].map(|variant| throughput_lost(responses, variant));
    let rows = [
        ("throughput beside 1000 timers, against idle", format!("{baseline}, {shield}"), format!("{pristine}, {on}")),
        ("mean response of the lowest task, largest increase", "0.06 us".into(), lowest_longer(responses)),
        ("enqueue without load, p95", "+20 ns".into(), more(operations, ENQUEUE, 0, 950)),
        ("dequeue with load, p95; ours: expiry", "+30 ns".into(), more(operations, EXPIRY, 50, 950)),
        ("switch with load, median", "below +1 us, deferred timers included".into(), more(operations, SWITCH, 50, 500)),
        ("text of the kernel", "+2 KiB".into(), kib(size.text())),
        ("data per CPU", "+35 KiB".into(), kib(size.per_cpu())),
    ];
    let rows: String = rows.iter().map(|(what, paper, ours)| format!("| {what} | {paper} | {ours} |\n")).collect();
    format!(
        "### beside the paper\n\n| | the paper: baseline, TimerShield | ours: pristine, on |\n|---|---|---|\n{rows}\n\
         The paper: RTAS 2017, section IV, on an Intel Core i5 at 3.2 GHz with Linux 4.6.1-rt2. Its nanoseconds \
         cannot be compared with instructions. Its figures 5 to 12 show responses as curves, without numbers.\n"
    )
}

fn lost(idle: f64, hostile: f64) -> String {
    format!("{:+.2} %", (hostile / idle - 1.0) * 100.0)
}

fn throughput_lost(responses: &Responses, variant: Variant) -> String {
    let mean = |size| responses.mean(variant, Workload::Throughput, size);
    mean(0).zip(mean(1000)).map_or(String::new(), |(idle, hostile)| lost(idle, hostile))
}

/// Returns the greatest increase of the mean response over the pristine kernel.
fn lowest_longer(responses: &Responses) -> String {
    let mean = |variant, size| responses.mean(variant, Workload::Lowest, size);
    let longer = |&size: &u32| Some(mean(Variant::On, size)? - mean(Variant::Pristine, size)?);
    let most = responses.sizes(Workload::Lowest).iter().filter_map(longer).max_by(f64::total_cmp);
    most.map_or(String::new(), |ns| format!("{:.2} us", ns / 1e3))
}

/// Returns the increase of an operation's percentile over the pristine kernel, in instructions.
fn more(operations: &Operations, part: &str, size: u32, permille: usize) -> String {
    let of = |variant| operations.percentile(part, size, variant, permille);
    let both = of(Variant::Pristine).zip(of(Variant::On));
    both.map_or(String::new(), |(pristine, on)| format!("{:+} instructions", on - pristine))
}

fn kib(bytes: f64) -> String {
    format!("{:+.1} KiB", bytes / 1024.0)
}

/// Returns the paper's numbers as figures.
pub fn figures() -> Vec<Figure> {
    let of = |(kernel, idle, hostile): (&str, f64, f64)| {
        [(0, idle), (1000, hostile)].map(|(size, value)| Figure {
            figure: "throughput.mean".into(),
            case: format!("paper: throughput {size}, {kernel}"),
            value,
            unit: "multiplications per ms".into(),
        })
    };
    THROUGHPUT.into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_numbers_are_told_apart_from_ours() {
        assert!(figures().iter().all(|figure| figure.case.starts_with("paper: ")));
        assert_eq!(kib(10_240.0), "+10.0 KiB");
    }
}
