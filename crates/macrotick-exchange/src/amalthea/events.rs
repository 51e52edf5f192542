//! The task of an event: that of its process, of its runnable, or of its stimulus.

use std::collections::{BTreeMap, HashMap};

use super::element::{Element, Key, Refusal};
use super::model::Model;

/// The tasks to which runnables and stimuli belong.
#[derive(Default)]
pub struct Owners {
    tasks: BTreeMap<Key, usize>,
    runnables: HashMap<Key, Owner>,
    stimuli: HashMap<Key, Owner>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    One(usize),
    Several,
}

/// Adds a task to the owner of an element. Returns whether that changes the owner.
fn add(owners: &mut HashMap<Key, Owner>, element: Key, task: usize) -> bool {
    let before = owners.get(&element).copied();
    let after = match before {
        None => Owner::One(task),
        Some(Owner::One(other)) if other == task => Owner::One(task),
        Some(_) => Owner::Several,
    };
    owners.insert(element, after);
    before != Some(after)
}

impl Owners {
    /// Adds a task with its stimulus and the runnables that it calls, directly or through others.
    pub fn add(&mut self, task: Key, stimulus: Key, calls: &[Key], within: &HashMap<Key, Vec<Key>>) {
        let index = self.tasks.len();
        self.tasks.insert(task, index);
        add(&mut self.stimuli, stimulus, index);
        // The owner of a runnable changes at most twice, so all tasks together take linear time.
        let mut open: Vec<Key> = calls.to_vec();
        while let Some(runnable) = open.pop() {
            if add(&mut self.runnables, runnable, index) {
                open.extend(within.get(&runnable).into_iter().flatten());
            }
        }
    }

    /// Returns the task of an event.
    ///
    /// # Errors
    ///
    /// If the event names no task, or several can cause it.
    pub fn task<'a>(&self, event: Element<'a>, model: &Model<'a>) -> Result<usize, Refusal> {
        let owner = match event.kind() {
            "ProcessEvent" => self.of_task(model.target_of(event, "entity")?),
            _ if event.refers_to("process") => self.of_task(model.target_of(event, "process")?),
            "RunnableEvent" => of(&self.runnables, model.target_of(event, "entity")?),
            "StimulusEvent" => of(&self.stimuli, model.target_of(event, "entity")?),
            _ if event.refers_to("runnable") => of(&self.runnables, model.target_of(event, "runnable")?),
            _ => None,
        };
        match owner {
            Some(Owner::One(task)) => Ok(task),
            Some(Owner::Several) => Err(event.refusal("several tasks can cause this event")),
            None => Err(event.refusal("the event belongs to no imported task")),
        }
    }

    fn of_task(&self, task: Option<Element>) -> Option<Owner> {
        task.and_then(|task| self.tasks.get(&task.key())).copied().map(Owner::One)
    }
}

fn of(owners: &HashMap<Key, Owner>, element: Option<Element>) -> Option<Owner> {
    element.and_then(|element| owners.get(&element.key())).copied()
}
