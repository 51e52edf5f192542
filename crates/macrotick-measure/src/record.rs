//! The bursts of all threads of a program, from the capture.

use std::collections::BTreeMap;

use macrotick_host::{proc, sys};
use macrotick_model::visible::visible;

use crate::burst::Bursts;
use crate::capture::{Capture, News};
use crate::error::MeasureError;
use crate::profile::Profile;

/// A thread of the program.
struct Thread {
    name: String,
    bursts: Bursts,
}

/// The record of a program.
pub struct Record {
    capture: Capture,
    threads: BTreeMap<i32, Thread>,
    /// The instant up to which the events are there, in nanoseconds.
    pub read_until: i64,
    /// The number of events.
    pub events: u64,
    /// The number of lost events.
    pub lost: u64,
}

impl Record {
    /// Starts the record of threads that run already.
    pub fn of_threads(threads: &[i32]) -> Result<Record, MeasureError> {
        let mut record = Record::of_children(threads)?;
        threads.iter().for_each(|&thread| record.add(thread, Bursts::of_running()));
        Ok(record)
    }

    /// Starts the record of threads that these threads will fork.
    pub fn of_children(parents: &[i32]) -> Result<Record, MeasureError> {
        let capture = Capture::start(parents)?;
        Ok(Record { capture, threads: BTreeMap::new(), read_until: 0, events: 0, lost: 0 })
    }

    fn add(&mut self, thread: i32, bursts: Bursts) {
        let name = proc::name(thread).map(|name| visible(&name)).unwrap_or_default();
        self.threads.entry(thread).or_insert(Thread { name, bursts });
    }

    /// Takes the events until now.
    pub fn read(&mut self) -> Result<(), MeasureError> {
        self.read_until = sys::now().as_nanos();
        for news in self.capture.read()? {
            match news {
                News::New(thread) => self.add(thread, Bursts::of_new()),
                News::Event(event) => {
                    if let Some(thread) = self.threads.get_mut(&event.thread) {
                        self.events += 1;
                        thread.bursts.take(event.at, event.change);
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks for lost events. If there are any, the present bursts of all threads are left out.
    pub fn look_for_losses(&mut self) -> Result<(), MeasureError> {
        let lost = self.capture.lost()?;
        if lost > 0 {
            self.lost += lost;
            self.threads.values_mut().for_each(|thread| thread.bursts.lose());
        }
        Ok(())
    }

    /// Reads the names of the threads: a program that is executed changes that of its thread.
    pub fn name(&mut self) {
        for (&id, thread) in &mut self.threads {
            if let Some(name) = proc::name(id) {
                thread.name = visible(&name);
            }
        }
    }

    /// Returns the threads: id, name, and bursts.
    pub fn threads(&self) -> impl Iterator<Item = (i32, &str, &Bursts)> {
        self.threads.iter().map(|(&id, thread)| (id, thread.name.as_str(), &thread.bursts))
    }

    /// Returns the profiles of the threads with at least one burst in an interval of this length in nanoseconds. The
    /// thread with the most CPU time comes first.
    pub fn profiles(&self, interval: i64) -> Vec<Profile> {
        let some = self.threads.iter().filter(|(_, thread)| !thread.bursts.done().is_empty());
        let profile = |(&id, thread): (&i32, &Thread)| Profile::of(id, &thread.name, thread.bursts.done(), interval);
        let mut profiles: Vec<Profile> = some.map(profile).collect();
        profiles.sort_by(|a, b| b.load.total_cmp(&a.load));
        profiles
    }

    /// Returns the number of bursts that were not kept.
    pub fn not_kept(&self) -> u64 {
        self.threads.values().map(|thread| thread.bursts.not_kept()).sum()
    }
}
