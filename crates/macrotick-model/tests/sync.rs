//! `clock` in a description.

use macrotick_fixtures::{sync, us};
use macrotick_model::System;

fn described(clock: &str) -> System {
    let source = format!("system: s\n{clock}tasks:\n  - {{name: a, period: 4ms, wcet: 1ms}}\n");
    System::parse(&source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_sync_window_is_the_last_thing_in_its_period() {
    let expected = sync(us(10_000), us(9_800), us(200), us(50));
    let system = described("clock: {tai: {period: 10ms, length: 200us, bound: 50us}}\n");
    assert_eq!(system.sync(), Some(expected));
    assert_eq!(expected.starts(us(20_000)).collect::<Vec<_>>(), [us(9_800), us(19_800)]);
    let elsewhere = described("clock: {tai: {period: 10ms, offset: 3ms, length: 200us, bound: 50us}}\n");
    assert_eq!(elsewhere.sync(), Some(sync(us(10_000), us(3_000), us(200), us(50))));
}

#[test]
fn a_cycle_has_whole_periods_of_sync_windows() {
    let system = described("clock: {tai: {period: 10ms, length: 200us, bound: 50us}}\n");
    assert_eq!(system.hyperperiod(), Some(us(20_000)));
    assert_eq!(described("").hyperperiod(), Some(us(4_000)));
}

#[test]
fn without_a_word_the_clock_is_monotonic() {
    assert_eq!(described("").sync(), None);
    assert_eq!(described("clock: monotonic\n").sync(), None);
}
