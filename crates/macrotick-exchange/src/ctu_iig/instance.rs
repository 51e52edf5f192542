//! The entries of an instance, and the rules between them.

use macrotick_model::validate::{MAX_CYCLE, MAX_TASKS};

use super::entries::{Entry, Value};
use crate::findings::{cut, Findings};

/// The most runnables in all chains together.
const MOST_IN_CHAINS: usize = 1 << 14;

/// An instance. Runnables count from 0 here, and from 1 in a file. Times are in microseconds.
#[derive(Debug, Default)]
pub struct Instance {
    /// The processing time of each runnable.
    pub times: Vec<i64>,
    /// The period of each runnable.
    pub periods: Vec<i64>,
    /// The bound on the variation of starts of each runnable; empty if the file has none.
    pub jitters: Vec<i64>,
    /// The runnables of each chain, in order.
    pub chains: Vec<Vec<usize>>,
    /// The number of CPUs, if the file has one.
    pub cpus: Option<i64>,
}

/// Entries that need no counterpart, in lower case, each with the reason.
const LEFT_OUT: [(&str, &str); 7] = [
    ("processingtimesofmessages", MESSAGES),
    ("communicationtimeforordercriticalmessages", MESSAGES),
    ("senderlabelreceiverordercriticalchains", MESSAGES),
    ("senderlabelreceivernonordercriticalchains", MESSAGES),
    ("sizeofrunnables", "a description has no sizes of tasks"),
    ("memoryboundonresource", "a description has no bound on the memory of a CPU"),
    ("utilizationboundonresource", "a table can fill each CPU"),
];
const MESSAGES: &str = "messages are left out: the tasks of one host exchange them in memory";

impl Instance {
    /// Takes the instance from the entries of a file, and refuses wrong entries.
    pub fn read(entries: &[Entry], findings: &mut Findings) -> Instance {
        let mut instance = Instance::default();
        let (mut count, mut in_chains, mut activities, mut in_all) = (None, Vec::new(), Vec::new(), None);
        let longest = MAX_CYCLE.as_nanos() / 1000;
        for Entry { name, value } in entries {
            let mut list = |range| numbers(name, value, range, findings);
            match name.to_ascii_lowercase().as_str() {
                "numchains" => count = number(name, value, (0, MOST_IN_CHAINS as i64), findings),
                "numresources" => instance.cpus = number(name, value, (1, LAST_CPU + 1), findings),
                "numrunnablesinchains" => in_all = number(name, value, (0, MOST_IN_CHAINS as i64), findings),
                "numberoftasksinchain" => activities = list((1, MOST_IN_CHAINS as i64)),
                "runnablesinchains" => in_chains = list((1, MAX_TASKS as i64)),
                "processingtimesrunnables" => instance.times = list((1, longest)),
                "periods" => instance.periods = list((1, longest)),
                "jitters" => instance.jitters = list((0, longest)),
                known => {
                    let reason = LEFT_OUT.iter().find(|(other, _)| *other == known).map(|(_, reason)| *reason);
                    findings.remark(cut(name), reason.unwrap_or("this entry is unknown and is left out"));
                }
            }
        }
        if findings.has_refusals() {
            return instance;
        }
        instance.check(findings);
        instance.chains = chains(&activities, &in_chains, findings);
        let Instance { chains, times, .. } = &instance;
        if count.is_some_and(|count| count != chains.len() as i64) && !findings.has_refusals() {
            findings.refuse("numChains", format!("there are {} chains in numberOfTasksinChain", chains.len()));
        }
        if in_all.is_some_and(|count| count != in_chains.len() as i64) {
            findings.refuse("NumRunnablesInChains", format!("runnablesInChains has {} runnables", in_chains.len()));
        }
        for (index, runnable) in in_chains.iter().enumerate() {
            if *runnable > times.len() as i64 {
                let text = format!("runnable {runnable} is not one of the {} runnables", times.len());
                findings.refuse(&format!("runnablesInChains[{index}]"), text);
            }
        }
        instance
    }

    /// Checks that all lists are about the same runnables.
    fn check(&self, findings: &mut Findings) {
        let Instance { times, periods, jitters, .. } = self;
        if times.is_empty() {
            findings.refuse("processingTimesRunnables", "the file has no runnables");
        }
        if times.len() > MAX_TASKS {
            let text = format!("{} runnables are too many, the limit is {MAX_TASKS}", times.len());
            findings.refuse("processingTimesRunnables", text);
        }
        if periods.len() != times.len() {
            let text = format!("has {} items for {} runnables", periods.len(), times.len());
            findings.refuse("periods", text);
        }
        if !jitters.is_empty() && jitters.len() != times.len() {
            let text = format!("has {} items for {} runnables", jitters.len(), times.len());
            findings.refuse("jitters", text);
        }
    }
}

/// The last CPU that an instance can have.
pub const LAST_CPU: i64 = 1023;

/// Divides the list of runnables into chains. A chain of n runnables has n - 1 messages between them.
fn chains(activities: &[i64], in_chains: &[i64], findings: &mut Findings) -> Vec<Vec<usize>> {
    let mut rest = in_chains;
    let mut chains = Vec::new();
    for (index, activities) in activities.iter().enumerate() {
        let path = format!("numberOfTasksinChain[{index}]");
        if activities % 2 == 0 || *activities < 3 {
            let text = format!("{activities} activities are no chain: runnables and messages alternate");
            findings.refuse(&path, text);
            return chains;
        }
        let runnables = (*activities as usize).div_ceil(2);
        if runnables > rest.len() {
            let text = format!("the chain has {runnables} runnables, but runnablesInChains has {} left", rest.len());
            findings.refuse(&path, text);
            return chains;
        }
        let (chain, others) = rest.split_at(runnables);
        chains.push(chain.iter().map(|runnable| *runnable as usize - 1).collect());
        rest = others;
    }
    if !rest.is_empty() {
        findings.refuse("runnablesInChains", format!("{} runnables are in no chain", rest.len()));
    }
    chains
}

fn number(name: &str, value: &Value, (least, most): (i64, i64), findings: &mut Findings) -> Option<i64> {
    match value {
        Value::Number(number) if (least..=most).contains(number) => Some(*number),
        Value::Number(number) => {
            findings.refuse(&cut(name), format!("{number} is out of range: {least} to {most}"));
            None
        }
        Value::List(_) => {
            findings.refuse(&cut(name), "must be a whole number, this is a list");
            None
        }
    }
}

fn numbers(name: &str, value: &Value, range: (i64, i64), findings: &mut Findings) -> Vec<i64> {
    let Value::List(items) = value else {
        findings.refuse(&cut(name), "must be a list, this is a whole number");
        return Vec::new();
    };
    if items.len() > MOST_IN_CHAINS {
        findings.refuse(&cut(name), format!("has {} items, the limit is {MOST_IN_CHAINS}", items.len()));
        return Vec::new();
    }
    let items = items.iter().enumerate();
    items.filter_map(|(index, item)| number(&format!("{name}[{index}]"), item, range, findings)).collect()
}
