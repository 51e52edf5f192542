//! Counts and saves beside the deployment. The supervisor hands over its readings and never waits: one thread counts,
//! and another one writes, because a disk may take any time.

use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration as WallTime, Instant};

use macrotick_host::{proc, sys};
use macrotick_node::Reading;

use crate::counts::Counts;
use crate::state::{SoakError, State};
use crate::tally::Tally;

/// Half the interval of the readings.
const HALF_A_READING: WallTime = WallTime::from_millis(500);

/// An event of the deployment.
enum Message {
    Started,
    Reading(Reading),
    Ending(String),
}

/// The counts of a running soak.
pub struct Recorder {
    messages: Sender<Message>,
    counting: JoinHandle<Counts>,
    saving: JoinHandle<Result<(), SoakError>>,
}

impl Recorder {
    /// Goes on with saved counts, or begins with new ones. Saves them every `save_every`. Calls `complain` when a
    /// save fails for another reason than the one before: the counts stay in memory, and the next save has them.
    pub fn start(
        state: State,
        counts: Counts,
        is_new: bool,
        save_every: WallTime,
        complain: impl Fn(&SoakError) + Send + 'static,
    ) -> Recorder {
        let (messages, inbox) = mpsc::channel();
        // Room for one text: while it waits, the counts go on, and the next text has them.
        let (texts, outbox) = mpsc::sync_channel(1);
        let counting = thread::spawn(move || count(counts, is_new, &inbox, &texts, save_every));
        let saving = thread::spawn(move || save(&state, &outbox, complain));
        Recorder { messages, counting, saving }
    }

    /// Notes that the deployment runs. A restart and its pause are saved at once.
    pub fn started(&self) {
        self.send(Message::Started);
    }

    /// Counts a reading.
    pub fn read(&self, reading: Reading) {
        self.send(Message::Reading(reading));
    }

    /// Notes the reason of a clean end.
    pub fn ending(&self, why: &str) {
        self.send(Message::Ending(why.to_owned()));
    }

    fn send(&self, message: Message) {
        self.messages.send(message).expect("the counting thread ends after the last message");
    }

    /// Counts and saves what is left. Returns the counts, and whether they are saved.
    pub fn finish(self) -> (Counts, Result<(), SoakError>) {
        drop(self.messages);
        let counts = self.counting.join().expect("the counting thread does not panic");
        (counts, self.saving.join().expect("the saving thread does not panic"))
    }
}

fn count(
    counts: Counts,
    is_new: bool,
    inbox: &Receiver<Message>,
    texts: &SyncSender<String>,
    save_every: WallTime,
) -> Counts {
    let mut tally = Tally::new(counts);
    let (mut is_started, mut saved) = (false, Instant::now());
    for message in inbox {
        let is_due = match message {
            Message::Started => {
                is_started = true;
                match is_new {
                    true => tally.counts.began_unix_ns = sys::unix_now(),
                    false => tally.counts.resume(sys::unix_now()),
                }
                true
            }
            Message::Reading(reading) => {
                tally.add(&reading);
                tally.counts.note_memory(proc::own_memory_kib().unwrap_or(0));
                // The reading that is nearest to the instant of the save.
                saved.elapsed() + HALF_A_READING >= save_every
            }
            Message::Ending(why) => {
                tally.counts.ended = Some(why);
                false
            }
        };
        // A disk that still writes gets the counts with a later reading.
        if is_due && texts.try_send(text(&mut tally.counts)).is_ok() {
            saved = Instant::now();
        }
    }
    if is_started {
        // Fails only if the other thread has panicked, which its end tells.
        let _ = texts.send(text(&mut tally.counts));
    }
    tally.counts
}

fn text(counts: &mut Counts) -> String {
    counts.saved_unix_ns = sys::unix_now();
    serde_json::to_string(counts).expect("counts are always JSON") + "\n"
}

/// Saves each text. Returns the result of the last save.
fn save(state: &State, outbox: &Receiver<String>, complain: impl Fn(&SoakError)) -> Result<(), SoakError> {
    let (mut result, mut told) = (Ok(()), String::new());
    for text in outbox {
        result = state.save(&text);
        let reason = result.as_ref().err().map_or(String::new(), ToString::to_string);
        if let Some(error) = result.as_ref().err().filter(|_| reason != told) {
            complain(error);
        }
        told = reason;
    }
    result
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::Arc;

    use macrotick_model::{Duration, Job, Plan};
    use macrotick_node::TaskReading;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("macrotick-recorder-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    fn state(path: &Path) -> State {
        let state = State::open(path).unwrap();
        let text =
            "system: s\ncpus: [0]\ntasks:\n  - {name: d, period: 10ms, wcet: 1ms, supply: {deadline: {cpus: [0]}}}\n";
        let system = macrotick_fixtures::described(text);
        state.begin(&Plan::new("null", Duration::from_millis(10), Vec::new(), system)).unwrap();
        state
    }

    fn reading(second: i64, jobs: u64) -> Reading {
        let job = |number: u64| {
            let nominal = Duration::from_nanos((second * jobs as i64 + number as i64) * 1000);
            let at = |ns| Some(nominal + Duration::from_nanos(ns));
            (
                Job { job: number, nominal, start: at(200 + number as i64 % 50), end: at(400) },
                nominal + Duration::from_nanos(900),
            )
        };
        let task = TaskReading { name: "d".into(), jobs: (0..jobs).map(job).collect(), ..TaskReading::default() };
        let settled = Duration::from_secs(second + 1);
        Reading { epoch_unix_ns: 5, settled, tasks: vec![task], groups: Vec::new(), failure: None }
    }

    fn counts(state: &State) -> Counts {
        Counts::new("s".into(), state.plan_sha256().unwrap(), 0)
    }

    #[test]
    fn ten_million_jobs_take_no_more_memory_than_a_few() {
        let mut tally = Tally::new(Counts::new("s".into(), String::new(), 0));
        let before = (0..10).fold(0, |_, second| {
            tally.add(&reading(second, 10_000));
            proc::own_memory_kib().unwrap()
        });
        (10..1000).for_each(|second| tally.add(&reading(second, 10_000)));
        let after = proc::own_memory_kib().unwrap();
        assert_eq!((tally.counts.tasks[0].activations, tally.counts.holds()), (10_000_000, true));
        // Other tests run beside this one.
        assert!(after < before + 8192, "{before} KiB, then {after} KiB");
        let text = text(&mut tally.counts);
        assert!(text.len() < 10_000, "{} bytes", text.len());
    }

    #[test]
    fn counts_go_on_after_a_cut_and_the_pause_is_told() {
        let path = folder("cut");
        let first = state(&path);
        let counts = counts(&first);
        let recorder = Recorder::start(first, counts, true, WallTime::ZERO, |_| ());
        recorder.started();
        recorder.read(reading(0, 100));
        // Without an end: the saved counts are those of a cut.
        let (_, saved) = recorder.finish();
        saved.unwrap();

        let again = State::open(&path).unwrap();
        let former = again.counts().unwrap().unwrap();
        assert_eq!((former.tasks[0].activations, &former.ended), (100, &None));
        let recorder = Recorder::start(again, former, false, WallTime::ZERO, |_| ());
        recorder.started();
        recorder.read(reading(0, 50));
        recorder.ending("SIGINT");
        let (counts, saved) = recorder.finish();
        saved.unwrap();
        assert_eq!((counts.tasks[0].activations, counts.pauses.count, counts.pauses.cuts), (150, 1, 1));
        let (read, runs) = crate::read(&path).unwrap();
        assert_eq!((&read, runs), (&counts, false));
        assert_eq!(read.ended.as_deref(), Some("SIGINT"));
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_start_that_fails_leaves_the_counts_alone() {
        let path = folder("failed");
        let state = state(&path);
        let counts = counts(&state);
        let recorder = Recorder::start(state, counts, true, WallTime::ZERO, |_| ());
        recorder.finish().1.unwrap();
        assert!(matches!(crate::read(&path), Err(SoakError::Nothing { .. })));
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_full_disk_is_told_once_and_loses_no_count() {
        let path = folder("full");
        let state = state(&path);
        std::os::unix::fs::symlink("/dev/full", path.join("counts.json")).unwrap();
        let told = Arc::new(AtomicU32::new(0));
        let counter = told.clone();
        let counts = counts(&state);
        let recorder = Recorder::start(state, counts, true, WallTime::ZERO, move |error| {
            assert!(error.to_string().contains("counts.json: No space left on device"), "{error}");
            counter.fetch_add(1, Ordering::Relaxed);
        });
        recorder.started();
        (0..5).for_each(|second| recorder.read(reading(second, 100)));
        let (counts, saved) = recorder.finish();
        assert!(matches!(saved, Err(SoakError::Write { .. })));
        assert_eq!((counts.tasks[0].activations, told.load(Ordering::Relaxed)), (500, 1));
        std::fs::remove_dir_all(&path).unwrap();
    }
}
