//! Sentences of the documents that follow from figures and have no number to compare.

use std::collections::BTreeMap;

use super::published::Figures;

/// A sentence, or a part of it.
struct Sentence {
    page: &'static str,
    text: &'static str,
    is_true: bool,
}

fn sentence(page: &'static str, text: &'static str, is_true: bool) -> Sentence {
    Sentence { page, text, is_true }
}

/// Returns the sentences that are not in their pages, and those that are not true. The map has the pages by path; line
/// breaks do not matter.
pub fn wrong(pages: &BTreeMap<String, String>) -> Vec<String> {
    let benches = [cost, isolation, jitter, response, timershield];
    let all = benches.iter().flat_map(|of| of());
    all.filter_map(|Sentence { page, text, is_true }| {
        let words = pages[page].split_whitespace().collect::<Vec<_>>().join(" ");
        match (words.contains(text), is_true) {
            (false, _) => Some(format!("{page} does not say: {text}")),
            (_, false) => Some(format!("{page}, no longer true: {text}")),
            _ => None,
        }
    })
    .collect()
}

fn cost() -> Vec<Sentence> {
    let cost = Figures::of("cost");
    let is_constant = |what: &str| {
        ["handler.max", "own pick.max"].iter().all(|part| {
            let of = |entities: &str| cost.one(part, &format!("{what}, {entities}"));
            (of("1000 entities") - of("1 entity")).abs() <= 16.0
        })
    };
    let is_constant = ["a job is released", "a window begins", "a window ends"].into_iter().all(is_constant);
    vec![sentence("README.md", "It costs the same with 1 and with 1000 tasks.", is_constant)]
}

fn isolation() -> Vec<Sentence> {
    let isolation = Figures::of("isolation");
    let is_none = |figure: &str| isolation.one(figure, "aim") == 0.0;
    let misses_none = is_none("misses of the low container, the high one taking 1.8 times what it says")
        && is_none("misses beside loads, both containers");
    let keeps_bound = is_none("responses beyond the checker's bound where everybody keeps to what he says");
    let ratio = |figure: &str| isolation.one(figure, "udp, DS") / isolation.one(figure, "udp, FIFO, pristine");
    let is_as_late = ["mean latency", "most latency"].map(ratio).iter().all(|ratio| (0.75..1.25).contains(ratio));
    let budgets = "docs/explanation/group-budgets.md";
    vec![
        sentence("README.md", "A container that keeps its declared times misses no deadline.", misses_none),
        sentence(budgets, "No job misses its deadline if its container keeps to its declared times.", misses_none),
        sentence(budgets, "No response is beyond the bound of the checker.", keeps_bound),
        sentence(budgets, "Without a lead, a group is about as late as `SCHED_FIFO`.", is_as_late),
    ]
}

fn jitter() -> Vec<Sentence> {
    let jitter = Figures::of("jitter");
    let is_close = jitter.one("responses beyond the bound", "aim") == 0.0
        && jitter.one("bound above the worst response, most", "aim") <= 5.0;
    vec![sentence("docs/explanation/feasibility.md", "to within a few per cent", is_close)]
}

fn response() -> Vec<Sentence> {
    let response = Figures::of("response");
    let difference = response.one("lateness.mean", "fifo") - response.one("lateness.mean", "kernel");
    vec![sentence("README.md", "Beside one hog, SCHED_FIFO is as prompt as SCHED_TT.", difference.abs() < 0.1)]
}

/// The rows have a target, and the verdict that the last column states.
fn timershield() -> Vec<Sentence> {
    let shield = Figures::of("timershield");
    let more = |figure: &str| shield.one(&format!("{figure}: more than on the pristine kernel"), "on");
    let crowd = shield.one("longest response, synchronised: more beside 100 than beside 1", "on");
    let sleep = more("a sleep's timer, enqueue and expiry");
    let switch = more("a switch that leaves the event device alone");
    let lowest = [1, 30, 50].map(|between| more(&format!("mean response of the lowest task, {between} in between")));
    let page = "docs/explanation/timershield.md";
    vec![
        sentence("README.md", "they do not lengthen it", crowd.abs() < 0.1),
        sentence(page, "| a sleep, alone on its CPU | 120 instructions |", sleep <= 120.0),
        sentence(page, "| a switch | 40 instructions |", switch > 40.0),
        sentence(page, "| response of the lowest task | 2 % |", lowest.iter().any(|percent| *percent > 2.0)),
    ]
}
