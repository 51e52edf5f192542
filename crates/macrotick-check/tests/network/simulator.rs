//! One rule each, with instants computed by hand. At 1 Gb/s a byte takes 8 ns. A frame with 1500 bytes of content takes
//! 12 208 ns (1526 bytes), and the link is free after 12 304 ns (1538 bytes). The shortest frame takes 576 ns (72 bytes)
//! and 672 ns (84 bytes).

use macrotick_check::network::{simulate, Fate, Frame, Gating, Guard, Loss, Port, SimulationError};
use macrotick_model::Instant;

use crate::common::*;

/// `rest` is open in [0, 70) us, and `control` in [70, 100) us.
const LIST: &[(i64, &str)] = &[(70_000, "rest"), (30_000, "control")];

fn run(port: &Port, frames: &[Frame]) -> Vec<Fate> {
    simulate(port, frames).unwrap().fates
}

fn starts(port: &Port, frames: &[Frame]) -> Vec<i64> {
    run(port, frames).iter().map(|fate| times(fate).0).collect()
}

#[test]
fn a_frame_waits_for_its_gate() {
    let fates = run(&port(LIST), &[frame(CONTROL, 46, 10), frame(CONTROL, 46, 70_000), frame(CONTROL, 46, 100_000)]);
    assert_eq!(fates.iter().map(times).collect::<Vec<_>>(), [(70_000, 70_576), (70_672, 71_248), (170_000, 170_576)]);
    let Fate::Sent { waited, .. } = fates[2] else { panic!() };
    assert_eq!(waited, ns(70_000));
}

#[test]
fn a_frame_starts_only_if_it_ends_before_the_closing() {
    let port = port(LIST);
    // 57 695 + 12 304 is 1 ns before the closing. One nanosecond later, the frame would end with the window.
    assert_eq!(starts(&port, &[frame(REST, 1500, 57_695)]), [57_695]);
    assert_eq!(starts(&port, &[frame(REST, 1500, 57_696)]), [100_000]);
    // A shorter frame of the same class does not overtake the one that waits.
    assert_eq!(starts(&port, &[frame(REST, 1500, 57_696), frame(REST, 46, 57_697)]), [100_000, 112_304]);
}

#[test]
fn a_tag_lengthens_the_frame() {
    let tagged = |at| Frame { tagged: true, ..frame(REST, 1500, at) };
    let port = port(LIST);
    assert_eq!(starts(&port, &[tagged(57_695)]), [100_000]);
    assert_eq!(times(&run(&port, &[tagged(57_663)])[0]), (57_663, 57_663 + 12_240));
}

#[test]
fn the_most_important_class_is_first_and_does_not_interrupt() {
    let frames = [frame(REST, 1500, 0), frame(REST, 1500, 0), frame(CONTROL, 46, 1)];
    assert_eq!(starts(&port(&[]), &frames), [0, 12_976, 12_304]);
    // At the same instant, the input's order does not matter between classes.
    assert_eq!(starts(&port(&[]), &[frame(REST, 46, 0), frame(CONTROL, 46, 0)]), [672, 0]);
    // A frame that arrives when the link becomes free takes part.
    let frames = [frame(REST, 46, 0), frame(REST, 46, 0), frame(CONTROL, 46, 672)];
    assert_eq!(starts(&port(&[]), &frames), [0, 1_344, 672]);
}

#[test]
fn a_class_is_first_in_first_out() {
    let frames = [frame(REST, 46, 20), frame(REST, 1500, 10), frame(REST, 46, 20)];
    assert_eq!(starts(&port(&[]), &frames), [12_314, 10, 12_986]);
}

#[test]
fn a_frame_longer_than_each_window_is_dropped() {
    // 10 us are 1250 bytes: the overheads are 38.
    let port = port(&[(90_000, "rest"), (10_000, "control")]);
    assert_eq!(starts(&port, &[frame(CONTROL, 1211, 0)]), [90_000]);
    assert_eq!(loss(&run(&port, &[frame(CONTROL, 1213, 0)])[0]), &Loss::TooLong { bytes: 1251, limit: 1250 });
    // Like the kernel, the limit admits a frame that is as long as the window, and the guard band never lets it start.
    let fates = run(&port, &[frame(CONTROL, 1212, 0), frame(CONTROL, 46, 1)]);
    assert_eq!(fates.iter().map(loss).collect::<Vec<_>>(), [&Loss::Blocked, &Loss::Blocked]);
}

#[test]
fn the_longest_window_reaches_around_the_end_of_the_cycle() {
    let port = port(&[(10_000, "control"), (80_000, "rest"), (10_000, "control")]);
    // 20 us are 2500 bytes, more than a frame has. The window [90, 110) us lets the second one start at 97 us.
    assert_eq!(starts(&port, &[frame(CONTROL, 1500, 20_000), frame(CONTROL, 1500, 97_000)]), [90_000, 190_000]);
    assert_eq!(starts(&port, &[frame(CONTROL, 1500, 97_000)]), [97_000]);
}

#[test]
fn a_class_that_never_opens_loses_its_frames() {
    let mut port = port(&[(10_000, "rest"), (10_000, "")]);
    assert_eq!(loss(&run(&port, &[frame(CONTROL, 46, 0)])[0]), &Loss::TooLong { bytes: 84, limit: 0 });
    // Without a size table, the kernel keeps them.
    port.guard = Guard::Kernel;
    assert_eq!(loss(&run(&port, &[frame(CONTROL, 46, 0)])[0]), &Loss::Blocked);
}

#[test]
fn a_full_queue_and_a_limited_content() {
    let mut port = port(LIST);
    port.classes[CONTROL].queue = 2;
    port.classes[REST].max_sdu = Some(1000);
    let frames = [frame(CONTROL, 46, 0), frame(CONTROL, 46, 0), frame(CONTROL, 46, 0), frame(REST, 1001, 0)];
    let result = simulate(&port, &frames).unwrap();
    assert_eq!(loss(&result.fates[2]), &Loss::QueueFull { limit: 2 });
    assert_eq!(loss(&result.fates[3]), &Loss::MaxSdu { bytes: 1001, limit: 1000 });
    let control = &result.classes[CONTROL];
    assert_eq!((control.frames, control.lost, control.queued, control.longest), (3, 1, 2, Some(1)));
    assert_eq!((control.waited, control.busy), (ns(70_672), ns(1_344)));
    assert!((control.utilisation - 1_344.0 / 71_248.0).abs() < 1e-12);
}

#[test]
fn without_a_size_table_frames_end_after_the_closing() {
    let mut port = port(LIST);
    port.guard = Guard::Kernel;
    // The kernel counts 1514 bytes, 12 112 ns.
    let fates = run(&port, &[frame(REST, 1500, 57_887)]);
    assert_eq!((times(&fates[0]), overrun(&fates[0])), ((57_887, 70_095), 95));
    assert_eq!(starts(&port, &[frame(REST, 1500, 57_888)]), [100_000]);
    port.guard = Guard::None;
    let fates = run(&port, &[frame(REST, 1500, 69_999)]);
    assert_eq!((times(&fates[0]), overrun(&fates[0])), ((69_999, 82_207), 12_207));
    // The frame delays the class behind it.
    let frames = [frame(REST, 1500, 69_999), frame(CONTROL, 46, 70_000)];
    assert_eq!(starts(&port, &frames), [69_999, 82_303]);
}

#[test]
fn the_qdisc_gives_the_device_as_much_as_the_budget_allows() {
    let mut port = port(LIST);
    port.gating = Gating::Qdisc;
    // 70 us are 8750 bytes: five frames of 1538 bytes. They leave the qdisc at once, each 20 us before the closing.
    let fates = run(&port, &[frame(REST, 1500, 50_000); 6]);
    let starts: Vec<i64> = fates.iter().map(|fate| times(fate).0).collect();
    assert_eq!(starts, [50_000, 62_304, 74_608, 86_912, 99_216, 111_520]);
    // 99 216 + 12 208 is 41 424 ns after the closing.
    assert_eq!(fates.iter().map(overrun).collect::<Vec<_>>(), [0, 4_512, 16_816, 29_120, 41_424, 0]);
    // If the gates decide for the link, only one frame starts before the closing.
    port.gating = Gating::Link;
    let starts: Vec<i64> = run(&port, &[frame(REST, 1500, 50_000); 3]).iter().map(|fate| times(fate).0).collect();
    assert_eq!(starts, [50_000, 100_000, 112_304]);
}

#[test]
fn all_gates_are_open_before_the_list_begins() {
    let mut port = port(LIST);
    port.gates = port.gates.map(|gates| gates.from(Instant::from_nanos(140_000)));
    for gating in [Gating::Link, Gating::Qdisc] {
        port.gating = gating;
        // The list begins at 200 us. A frame that starts before ends when it ends.
        let frames = [frame(CONTROL, 46, 140_000), frame(CONTROL, 1500, 199_999), frame(CONTROL, 46, 200_000)];
        assert_eq!(starts(&port, &frames), [140_000, 199_999, 270_000], "{gating:?}");
    }
}

#[test]
fn cycles_without_frames_cost_nothing() {
    let mut port = port(LIST);
    for gating in [Gating::Link, Gating::Qdisc] {
        port.gating = gating;
        // 10^12 cycles before and after the epoch, and a frame for each side of the wait.
        let far = 100_000_000_000_000_000;
        let frames = [frame(CONTROL, 46, -far), frame(CONTROL, 46, 0), frame(CONTROL, 46, far)];
        assert_eq!(starts(&port, &frames), [70_000 - far, 70_000, far + 70_000], "{gating:?}");
        // A blocked frame does not make the simulator step through the cycles either.
        port.guard = Guard::Kernel;
        let never = Port { gates: self::port(&[(70_000, "rest"), (30_000, "")]).gates, ..port.clone() };
        let fates = run(&never, &[frame(CONTROL, 46, 0), frame(REST, 46, far)]);
        assert_eq!((loss(&fates[0]), times(&fates[1]).0), (&Loss::Blocked, far), "{gating:?}");
        port.guard = Guard::Wire;
    }
}

#[test]
fn refuses_what_it_cannot_simulate() {
    let refuse = |port: &Port, frames: &[Frame]| simulate(port, frames).unwrap_err();
    let mut still = port(&[]);
    still.link.speed = 0;
    assert!(matches!(refuse(&still, &[]), SimulationError::Speed { .. }));
    assert_eq!(
        refuse(&port(&[]), &[frame(REST, 1, 0), frame(2, 1, 0)]).to_string(),
        "interface `left`, frame 1: no class has the number 2: there are 2"
    );
    assert!(matches!(refuse(&port(&[]), &[frame(REST, 1, i64::MIN)]), SimulationError::TooFar { .. }));
    let bare = Port { classes: Vec::new(), ..port(&[]) };
    assert!(matches!(refuse(&bare, &[]), SimulationError::Classes { classes: 0, .. }));
    let open = Port { gating: Gating::Qdisc, guard: Guard::None, ..port(LIST) };
    assert!(matches!(refuse(&open, &[]), SimulationError::Guard { .. }));
}

#[test]
fn results_are_documents() {
    let result = simulate(&port(LIST), &[frame(REST, 1500, 0), frame(9 - 8, 3000, 0), frame(CONTROL, 46, 0)]).unwrap();
    let text = serde_json::to_string(&result).unwrap();
    assert!(
        text.contains(r#"{"fate":"sent","start_ns":70000,"end_ns":70576,"waited":"70us","overrun":"0ns"}"#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<macrotick_check::network::Simulation>(&text).unwrap(), result);
}
