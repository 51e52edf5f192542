//! The tutorials. Each output on their pages is compared.

use macrotick_fixtures::read_tree;

use crate::how_to::Page;
use crate::page::{steps, Step};

/// A tutorial has no block that the reader does not use.
fn tutorial(path: &'static str) -> Page {
    let others = steps(&read_tree(&format!("docs/{path}.md")));
    let others: Vec<_> = others.iter().filter(|step| matches!(step, Step::Other { .. })).collect();
    assert!(others.is_empty(), "blocks without a use: {others:?}");
    Page::of(path)
}

#[test]
#[ignore = "needs the lab"]
fn the_first_timetable_is_as_its_page_says() {
    let drifts = "where in its window a job with an overrun ends depends on the build";
    tutorial("tutorials/first-timetable")
        .depends("macrotick run overrun.yaml --lab --backend kernel", drifts)
        .depends("macrotick compare build/run/overrun-fifo", drifts)
        .execute(4);
}

#[test]
#[ignore = "needs the lab"]
fn two_cpus_are_as_their_page_says() {
    tutorial("tutorials/two-cpus").execute(4);
}

#[test]
#[ignore = "needs the lab"]
fn two_containers_and_a_gate_are_as_their_page_says() {
    tutorial("tutorials/two-containers-and-a-gate").execute(4);
}

#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_container_with_a_budget_is_as_its_page_says() {
    tutorial("tutorials/container-with-a-budget")
        .depends("macrotick lab exec --flavor engines --file guest.yaml", "services of the distribution run as well")
        .execute(4);
}
