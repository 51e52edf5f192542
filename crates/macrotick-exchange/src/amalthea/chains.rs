//! Event chains as chains of tasks, with the bounds of latency constraints.

use std::collections::BTreeMap;

use macrotick_model::{Chain, Duration};

use super::element::{Element, Key, Refusal};
use super::events::Owners;
use super::model::Model;
use super::units::time;
use crate::findings::Findings;
use crate::names::Names;

/// The longest name of a chain.
const MAX_LONG_NAME: usize = 230;
/// The most events of a chain.
const MOST_EVENTS: usize = 1 << 10;
/// The most chains. Each of their events is looked up.
const MOST_CHAINS: usize = 1 << 10;
/// The most chains within each other.
const MOST_LEVELS: usize = 32;

/// A chain and its bounds in nanoseconds.
struct Bounded<'a> {
    chain: Element<'a>,
    reaction: Option<i64>,
    age: Option<i64>,
}

/// Returns the chains with bounds. `names` are those of the tasks.
///
/// # Errors
///
/// If a constraint names no chain, or a bound is not above zero.
pub fn chains<'a>(
    model: &Model<'a>,
    owners: &Owners,
    names: &[String],
    findings: &mut Findings,
) -> Result<Vec<Chain>, Refusal> {
    let bounded = bounded(model, findings)?;
    for chain in model.all("constraintsModel", "eventChains").filter(|chain| !bounded.contains_key(&chain.key())) {
        findings.remark(chain.path(), "a chain without a bound on reaction time or age is left out");
    }
    let (mut chains, mut taken) = (Vec::new(), Names::default());
    for (count, Bounded { chain, reaction, age }) in bounded.into_values().enumerate() {
        if count == MOST_CHAINS {
            return Err(chain.refusal(format!("more than {MOST_CHAINS} chains have bounds")));
        }
        let path = match path(chain, model, owners) {
            Ok(path) => path,
            // The chain has no meaning without its events, but the tasks keep theirs.
            Err(refusal) => {
                findings.remark(chain.path(), format!("is left out, {}: {}", refusal.place, refusal.reason));
                continue;
            }
        };
        if path.len() < 2 {
            findings.remark(chain.path(), "is left out: the chain has only one task, so give it a deadline");
            continue;
        }
        let name = taken.take(chain.name(), MAX_LONG_NAME);
        let path = path.iter().map(|task| names[*task].clone()).collect();
        let ns = |bound: Option<i64>| bound.map(Duration::from_nanos);
        chains.push(Chain { reaction: ns(reaction), age: ns(age), ..Chain::named(name, path) });
    }
    Ok(chains)
}

/// Returns the chains that constraints bound, in the order of the files, each with its least bounds.
fn bounded<'a>(model: &Model<'a>, findings: &mut Findings) -> Result<BTreeMap<Key, Bounded<'a>>, Refusal> {
    let mut all = BTreeMap::new();
    for constraint in model.all("constraintsModel", "timingConstraints") {
        let maximum = constraint.child("maximum").filter(|_| constraint.kind() == "EventChainLatencyConstraint");
        let (Some(maximum), Some(kind @ ("Reaction" | "Age"))) = (maximum, constraint.attribute("type")) else {
            findings.remark(constraint.path(), "only upper bounds on the reaction time or age of chains are imported");
            continue;
        };
        if let Some(minimum) = constraint.child("minimum").filter(|minimum| minimum.attribute("value") != Some("0")) {
            findings.remark(minimum.path(), "a lower bound has no counterpart and is left out");
        }
        let length = time(maximum)?.down().unwrap_or(i64::MAX);
        if length <= 0 {
            return Err(maximum.refusal("a bound must be longer than zero"));
        }
        for chain in model.targets(constraint, "scope")? {
            let known = all.entry(chain.key()).or_insert(Bounded { chain, reaction: None, age: None });
            let bound = if kind == "Age" { &mut known.age } else { &mut known.reaction };
            *bound = Some(bound.map_or(length, |other| other.min(length)));
        }
    }
    Ok(all)
}

/// Returns the tasks of a chain in order. Events of one task in a row count once.
fn path<'a>(chain: Element<'a>, model: &Model<'a>, owners: &Owners) -> Result<Vec<usize>, Refusal> {
    let mut events = Vec::new();
    collect(chain, model, 0, &mut events)?;
    let mut path = Vec::new();
    for event in events {
        path.push(owners.task(event, model)?);
    }
    path.dedup();
    Ok(path)
}

/// Collects the events of a chain and of the chains within it.
fn collect<'a>(
    chain: Element<'a>,
    model: &Model<'a>,
    level: usize,
    events: &mut Vec<Element<'a>>,
) -> Result<(), Refusal> {
    if level > MOST_LEVELS {
        return Err(chain.refusal(format!("more than {MOST_LEVELS} chains within each other")));
    }
    let branches = chain.child("strands").is_some() || chain.attribute("itemType") == Some("parallel");
    if branches {
        return Err(chain.refusal("a chain with parallel branches has no counterpart"));
    }
    let event = |key| {
        let event = model.target_of(chain, key)?;
        event.ok_or_else(|| chain.refusal(format!("the chain has no {key}")))
    };
    events.push(event("stimulus")?);
    for item in chain.elements().filter(|element| ["items", "segments"].contains(&element.tag())) {
        collect(within(item, model)?, model, level + 1, events)?;
    }
    events.push(event("response")?);
    if events.len() > MOST_EVENTS {
        return Err(chain.refusal(format!("more than {MOST_EVENTS} events")));
    }
    Ok(())
}

/// Returns the chain of an item, which contains it or refers to it.
fn within<'a>(item: Element<'a>, model: &Model<'a>) -> Result<Element<'a>, Refusal> {
    let contained = item.child("eventChain").filter(|chain| chain.attribute("href").is_none());
    match contained {
        Some(chain) => Ok(chain),
        None => model.target_of(item, "eventChain")?.ok_or_else(|| item.refusal("the item has no chain")),
    }
}
