//! The priority of a container's frames: that of the class of its slots.
//!
//! A frame loses its priority when it leaves a container through a veth. A classifier at the host's end gives it the
//! priority of the slots, whatever priority the container chose. The frame keeps it on its way through bridges and routes.
//!
//! The container has the classifiers as long as its control group exists. A record, which is a file that is valid until
//! the next boot, lists them. It is written before the change. Therefore the next program can remove what a killed one
//! has left.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::classifier::{Filter, Side, FIRST};
use super::deploy::{Deployment, Target};
use super::fault::DeployFault;
use super::kernel::{Refusal, Shared};
use super::netlink::Netlink;
use super::present::{self, Present};
use super::step::Place;
use super::wanted::{Classifier, Frames, Wanted};
use crate::error::HostFailure;
use crate::file::{read_own, replace};
use crate::lock::{runtime_path, Turn, ROOT};
use crate::proc;
use crate::settings::Holder;

const RECORD: &str = "-slots.json";
const LOCK: &str = "-slots.lock";

/// The reason why the frames of a container cannot have a priority. The devices are as before.
#[derive(Debug, thiserror::Error)]
pub enum ClassifyFault {
    /// Another container shares the network namespace.
    #[error("its frames already leave in the slots of {holder}, which has the same network (`{device}`)")]
    Shared {
        /// The host's end.
        device: String,
        /// The other container.
        holder: String,
    },
    /// A filter of another program comes first.
    #[error(
        "another filter at ingress of `{device}` has preference {preference}, and can take the frames first: delete it, \
         or give it a preference above {FIRST}"
    )]
    Filtered {
        /// The host's end.
        device: String,
        /// The preference of the filter.
        preference: u16,
    },
    /// A device could not be configured.
    #[error(transparent)]
    Device(#[from] Box<DeployFault>),
    /// The record cannot be changed, or the kernel cannot be asked.
    #[error(transparent)]
    Host(#[from] HostFailure),
}

/// A container with classifiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    holder: Holder,
    priority: u32,
    ends: Vec<End>,
}

/// The host's end of a veth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    device: String,
    /// Its number. A later device of the same name has another one.
    index: i32,
    /// The device had no clsact before.
    clsact: bool,
}

/// The contents of the record.
#[derive(Debug, Serialize, Deserialize)]
struct Entries {
    boot: String,
    containers: Vec<Entry>,
}

/// The place of the record.
#[derive(Debug, Clone)]
struct Record {
    file: PathBuf,
    lock: PathBuf,
}

/// The classifiers of a container. Dropping it removes them.
pub struct Classified {
    record: Record,
    kernel: Shared,
    holder: Holder,
    /// `None`: the classifiers stay.
    deployment: Option<Deployment>,
}

/// Gives all frames that enter the host through these ends of veths a priority, as long as the holder exists. `host` is
/// the kernel in the namespace of the ends. Needs root.
pub fn classify(host: &Shared, ends: &[String], priority: u8, holder: Holder) -> Result<Classified, ClassifyFault> {
    Record::of_host().classify(host, ends, priority.into(), holder)
}

/// Removes the classifiers of a container that has ended. Ignores failures.
pub fn release(container: &str) {
    Record::of_host().release_if(|holder| holder.is_ended(container));
}

/// Removes the classifiers of holders that are gone. Ignores failures.
pub fn settle() {
    Record::of_host().release_if(|_| false);
}

fn open() -> io::Result<Shared> {
    Ok(Rc::new(RefCell::new(Netlink::open()?)))
}

impl Classified {
    /// Leaves the classifiers until the holder is gone.
    pub fn keep(mut self) {
        self.deployment.take().map(Deployment::keep);
    }
}

impl Drop for Classified {
    fn drop(&mut self) {
        if let Some(deployment) = self.deployment.take() {
            drop(deployment);
            // The next program that opens the record repairs a failure.
            let _ = self.record.change(&self.kernel, |entry| entry.holder != self.holder, |_| ());
        }
    }
}

impl Record {
    fn of_host() -> Record {
        Record { file: runtime_path(ROOT, RECORD), lock: runtime_path(ROOT, LOCK) }
    }

    fn release_if(&self, is_over: impl Fn(&Holder) -> bool) {
        if let (true, Ok(kernel)) = (self.file.exists(), open()) {
            let _ = self.change(&kernel, |entry| !is_over(&entry.holder), |_| ());
        }
    }

    /// Changes the record. Before that, restores the devices of entries that do not stay or have lost their holder.
    fn change<T>(
        &self,
        kernel: &Shared,
        stays: impl Fn(&Entry) -> bool,
        change: impl FnOnce(&mut Vec<Entry>) -> T,
    ) -> Result<T, HostFailure> {
        let _turn = Turn::take(&self.lock)?;
        let boot = proc::boot();
        let read = || serde_json::from_str(&read_own(&self.file)?).ok().filter(|all: &Entries| all.boot == boot);
        let mut entries = read().unwrap_or_else(|| Entries { boot: boot.clone(), containers: Vec::new() });
        entries.containers.retain(|entry| {
            let stays = stays(entry) && entry.holder.is_there();
            if !stays {
                entry.ends.iter().for_each(|end| _ = restore(kernel, end, entry.priority));
            }
            stays
        });
        let result = change(&mut entries.containers);
        let text = || serde_json::to_string_pretty(&entries).expect("a record is always JSON") + "\n";
        let written = replace(&self.file, (!entries.containers.is_empty()).then(text).as_deref());
        written.map_err(HostFailure::file("write", self.file.as_path()))?;
        Ok(result)
    }

    fn classify(
        &self,
        kernel: &Shared,
        ends: &[String],
        priority: u32,
        holder: Holder,
    ) -> Result<Classified, ClassifyFault> {
        let noted: Vec<End> = ends.iter().map(|device| look(kernel, device)).collect::<Result<_, _>>()?;
        let entry = Entry { holder: holder.clone(), priority, ends: noted };
        let other = |entry: &Entry| entry.holder != holder;
        self.change(kernel, other, |entries| enter(entries, entry))??;
        let target = |device: &String| {
            let ingress = Some(vec![classifier(priority)]);
            Target { kernel: kernel.clone(), namespace: None, wanted: Wanted { ingress, ..Wanted::of(device) } }
        };
        let made = Deployment::make(&ends.iter().map(target).collect::<Vec<_>>());
        if made.is_err() {
            let _ = self.change(kernel, other, |_| ());
        }
        Ok(Classified { record: self.clone(), kernel: kernel.clone(), holder, deployment: Some(made?) })
    }
}

/// Adds an entry, unless another one has a device of it.
fn enter(entries: &mut Vec<Entry>, entry: Entry) -> Result<(), ClassifyFault> {
    let has = |other: &Entry, end: &End| other.ends.iter().any(|one| one.index == end.index);
    for end in &entry.ends {
        if let Some(other) = entries.iter().find(|other| has(other, end)) {
            return Err(ClassifyFault::Shared { device: end.device.clone(), holder: other.holder.to_string() });
        }
    }
    entries.push(entry);
    Ok(())
}

fn classifier(priority: u32) -> Classifier {
    Classifier { frames: Frames::default(), priority }
}

fn read(kernel: &Shared, device: &str) -> Result<Present, Refusal> {
    present::read(&mut *kernel.borrow_mut(), device, false)
}

/// Returns a device for the record. Fails if a filter of another program would see frames first.
fn look(kernel: &Shared, device: &str) -> Result<End, ClassifyFault> {
    let refused = |refusal| DeployFault::refused(device, "read its state", refusal, "");
    let present = read(kernel, device).map_err(refused)?;
    let first = |found: &&super::classifier::Found| found.side == Side::Ingress && found.preference < FIRST;
    match present.filters.iter().find(first) {
        Some(found) => Err(ClassifyFault::Filtered { device: device.into(), preference: found.preference }),
        None => {
            let clsact = present.special().is_none();
            Ok(End { device: device.into(), index: present.link.index, clsact })
        }
    }
}

/// Removes a classifier, and clsact if the device had none before and has no other filter. Does nothing if the device is
/// gone, or has another filter in its place.
fn restore(kernel: &Shared, end: &End, priority: u32) -> Result<(), Refusal> {
    let present = read(kernel, &end.device)?;
    if present.link.index != end.index {
        return Ok(());
    }
    let place = Place { device: &end.device, namespace: None, index: end.index };
    let ours = Filter::Classifier(classifier(priority));
    let is_there = present.filter(Side::Ingress, FIRST) == Some(Some(&ours));
    if is_there {
        kernel.borrow_mut().send(&place.delete_filter(Side::Ingress, FIRST, &ours).message)?;
    }
    let others = present.filters.len() - usize::from(is_there);
    if end.clsact && others == 0 && present.special() == Some("clsact") {
        kernel.borrow_mut().send(&place.delete_clsact().message)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::fake::{self, Fake, INDEX};
    use super::super::{classifier as messages, qdisc};
    use super::*;

    /// A record, and directories that stand for control groups.
    struct Bench(PathBuf);

    impl Bench {
        fn new(name: &str) -> Bench {
            let path = std::env::temp_dir().join(format!("macrotick-slots-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Bench(path)
        }

        fn record(&self) -> Record {
            Record { file: self.0.join("slots.json"), lock: self.0.join("lock") }
        }

        fn container(&self, name: &str) -> Holder {
            let path = self.0.join(name);
            fs::create_dir_all(&path).unwrap();
            Holder::group(name, &path).unwrap()
        }

        fn end(&self, name: &str) {
            fs::remove_dir_all(self.0.join(name)).unwrap();
        }

        fn classify(&self, kernel: &Shared, name: &str, priority: u32) -> Result<Classified, ClassifyFault> {
            self.record().classify(kernel, &["vethA".into()], priority, self.container(name))
        }

        fn settle(&self, kernel: &Shared) {
            self.record().change(kernel, |_| true, |_| ()).unwrap();
        }

        fn is_blank(&self) -> bool {
            !Path::new(&self.record().file).exists()
        }
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn others() -> Filter {
        let frames = Frames { pcp: Some(3), ..Frames::default() };
        Filter::Classifier(Classifier { frames, priority: 1 })
    }

    fn classified(kernel: &Shared) -> Option<u32> {
        match read(kernel, "vethA").unwrap().filter(Side::Ingress, FIRST)?? {
            Filter::Classifier(classifier) => Some(classifier.priority),
            Filter::Closed => None,
        }
    }

    #[test]
    fn frames_have_the_priority_until_the_container_is_gone() {
        let bench = Bench::new("life");
        let (fake, kernel) = fake::shared(Fake::new(false));
        let before = fake.borrow().state.clone();
        bench.classify(&kernel, "a", 5).unwrap().keep();
        bench.settle(&kernel);
        assert_eq!((classified(&kernel), bench.is_blank()), (Some(5), false));
        bench.end("a");
        bench.settle(&kernel);
        assert_eq!((fake.borrow().state.clone(), bench.is_blank()), (before, true));
    }

    #[test]
    fn a_container_that_does_not_start_leaves_nothing() {
        let bench = Bench::new("drop");
        let (fake, kernel) = fake::shared(Fake::new(false));
        let before = fake.borrow().state.clone();
        drop(bench.classify(&kernel, "a", 5).unwrap());
        assert_eq!((fake.borrow().state.clone(), bench.is_blank()), (before.clone(), true));
        let mut last = 0;
        for at in 0.. {
            let first = fake.borrow().changes;
            fake.borrow_mut().fail_at = Some(first + at);
            let made = bench.classify(&kernel, "a", 5);
            fake.borrow_mut().fail_at = None;
            let done = made.is_ok();
            drop(made);
            assert_eq!((fake.borrow().state.clone(), bench.is_blank()), (before.clone(), true), "change {at}");
            if done {
                last = at;
                break;
            }
        }
        assert_eq!(last, 2, "it adds clsact and a filter");
    }

    #[test]
    fn a_killed_hook_leaves_what_the_next_one_removes() {
        let bench = Bench::new("killed");
        let (fake, kernel) = fake::shared(Fake::new(false));
        let before = fake.borrow().state.clone();
        std::mem::forget(bench.classify(&kernel, "a", 5).unwrap());
        // Killed before it could change the device, a hook leaves only the record.
        let end = End { device: "vethA".into(), index: INDEX, clsact: true };
        let entry = Entry { holder: bench.container("b"), priority: 6, ends: vec![end] };
        bench.record().change(&kernel, |_| true, |entries| entries.push(entry)).unwrap();
        bench.end("a");
        bench.end("b");
        drop(bench.classify(&kernel, "c", 4).unwrap());
        assert_eq!((fake.borrow().state.clone(), bench.is_blank()), (before, true));
    }

    #[test]
    fn filters_of_others_stay() {
        let bench = Bench::new("others");
        let (fake, kernel) = fake::shared(Fake::new(false));
        kernel.borrow_mut().send(&qdisc::add_clsact(INDEX)).unwrap();
        let before = fake.borrow().state.clone();
        bench.classify(&kernel, "a", 5).unwrap().keep();
        bench.end("a");
        bench.settle(&kernel);
        assert_eq!(fake.borrow().state, before, "clsact was there");
        // Another program comes later, and its filter needs clsact.
        kernel.borrow_mut().send(&qdisc::delete(INDEX, qdisc::CLSACT, qdisc::CLSACT_HANDLE)).unwrap();
        bench.classify(&kernel, "b", 5).unwrap().keep();
        kernel.borrow_mut().send(&messages::add(INDEX, Side::Ingress, FIRST + 300, &others())).unwrap();
        bench.end("b");
        bench.settle(&kernel);
        assert_eq!(read(&kernel, "vethA").unwrap().filters.len(), 1);
        // Another program has put its own filter in the place.
        bench.classify(&kernel, "c", 5).unwrap().keep();
        kernel
            .borrow_mut()
            .send(&messages::delete(INDEX, Side::Ingress, FIRST, &Filter::Classifier(classifier(5))))
            .unwrap();
        kernel.borrow_mut().send(&messages::add(INDEX, Side::Ingress, FIRST, &others())).unwrap();
        bench.end("c");
        bench.settle(&kernel);
        assert_eq!(read(&kernel, "vethA").unwrap().filter(Side::Ingress, FIRST), Some(Some(&others())));
    }

    #[test]
    fn containers_that_share_a_network_have_one_slot() {
        let bench = Bench::new("shared");
        let (_, kernel) = fake::shared(Fake::new(false));
        bench.classify(&kernel, "a", 5).unwrap().keep();
        let refused = bench.classify(&kernel, "b", 6).err().unwrap().to_string();
        let said = "its frames already leave in the slots of container a, which has the same network (`vethA`)";
        assert_eq!((refused.as_str(), classified(&kernel)), (said, Some(5)));
        // The same container starts again.
        bench.classify(&kernel, "a", 6).unwrap().keep();
        assert_eq!(classified(&kernel), Some(6));
    }

    #[test]
    fn a_filter_that_comes_first_is_refused() {
        let bench = Bench::new("first");
        let (fake, kernel) = fake::shared(Fake::new(false));
        kernel.borrow_mut().send(&qdisc::add_clsact(INDEX)).unwrap();
        kernel.borrow_mut().send(&messages::add(INDEX, Side::Ingress, 9, &others())).unwrap();
        let before = fake.borrow().state.clone();
        let refused = bench.classify(&kernel, "a", 5).err().unwrap().to_string();
        assert!(refused.starts_with("another filter at ingress of `vethA` has preference 9"), "{refused}");
        assert_eq!((fake.borrow().state.clone(), bench.is_blank()), (before, true));
    }

    #[test]
    fn a_later_device_of_the_same_name_is_left_alone() {
        let bench = Bench::new("later");
        let (fake, kernel) = fake::shared(Fake::new(false));
        drop(fake);
        bench.classify(&kernel, "a", 5).unwrap().keep();
        let end = End { device: "vethA".into(), index: INDEX + 1, clsact: true };
        restore(&kernel, &end, 5).unwrap();
        assert_eq!(classified(&kernel), Some(5));
    }

    #[test]
    fn the_end_of_a_container_is_known_by_its_idle_group() {
        let bench = Bench::new("idle");
        let (fake, kernel) = fake::shared(Fake::new(false));
        let before = fake.borrow().state.clone();
        bench.classify(&kernel, "a", 5).unwrap().keep();
        let release = |name: &str| {
            bench.record().change(&kernel, |entry| !entry.holder.is_ended(name), |_| ()).unwrap();
        };
        let events = bench.0.join("a/cgroup.events");
        fs::write(&events, "populated 1\nfrozen 0\n").unwrap();
        release("a");
        fs::write(&events, "populated 0\nfrozen 0\n").unwrap();
        release("b");
        assert_eq!(classified(&kernel), Some(5));
        release("a");
        assert_eq!(fake.borrow().state, before);
    }
}
