//! Boots a machine once: it is saved at the checkpoint, and every job resumes from there.
//!
//! A boot takes far more wall time than most jobs (the kernel calibrates its timer in busy loops). The guest itself
//! stops the machine at the checkpoint, between two instructions. So the saved state does not depend on the host, and a
//! resumed job runs exactly as after a boot.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use macrotick_model::Duration;
use serde_json::json;

use crate::cache::{self, Key, Lock};
use crate::command;
use crate::error::{Context, Death, LabError};
use crate::image::ImageKind;
use crate::layout::Layout;
use crate::outcome;
use crate::progress::Progress;
use crate::qemu::{Machine, Process, Start};
use crate::qmp::{Qmp, QmpError};

/// The longest boot, in wall time. The debug kernel with container engines takes minutes.
const BOOT_LIMIT: Duration = Duration::from_secs(1200);

/// Returns the prefix of an image's saved states, and the number of states to keep. A state of the small image takes
/// some tens of MiB, one with engines some hundreds.
fn kept(kind: ImageKind) -> (&'static str, usize) {
    match kind {
        ImageKind::Small => ("state-", 16),
        ImageKind::Engines => ("big-state-", 2),
    }
}

/// A saved machine.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The state.
    pub state: PathBuf,
    /// The console up to the checkpoint.
    pub console: PathBuf,
}

/// Boots and saves a machine, unless it is saved already.
pub fn take(layout: &Layout, machine: &Machine, progress: &mut dyn Progress) -> Result<Snapshot, LabError> {
    let (program, package) = machine.arch.qemu();
    let version = command::output(Command::new(command::find(program, package)?).arg("--version"))?;
    let key =
        Key::new().with(version).with(machine.description()).with_file(&machine.kernel)?.with_file(&machine.initrd)?;
    let (prefix, kept) = kept(machine.kind);
    let name = format!("{prefix}{}", &key.finish()[..16]);
    let state = layout.lab().join(&name);
    let snapshot = Snapshot { console: layout.lab().join(format!("console-of-{name}")), state };
    let _lock = Lock::take(&layout.lab().join(format!("lock-of-{name}")))?;
    // Marks the state as used, so it is not the next one to be removed.
    if !cache::touch(&snapshot.state) {
        cache::keep_newest(&layout.lab(), prefix, kept - 1)?;
        progress.begin(&format!("boot a machine with {} CPU(s)", machine.cpus));
        let dir = layout.lab().join(format!("boot-of-{name}"));
        cache::remove(&dir)?;
        fs::create_dir_all(&dir).context("make", &dir)?;
        save(machine, &dir)?;
        for (from, to) in [("console", &snapshot.console), ("state", &snapshot.state)] {
            fs::rename(dir.join(from), to).context("rename", &dir.join(from))?;
        }
        cache::remove(&dir)?;
        progress.end();
    }
    Ok(snapshot)
}

/// Boots to the checkpoint and writes `dir/state`.
fn save(machine: &Machine, dir: &Path) -> Result<(), LabError> {
    let (no_job, state) = (dir.join("job"), dir.join("state"));
    fs::write(&no_job, "-").context("write", &no_job)?;
    let mut process = Process::start(machine.command(dir, &no_job, Start::Save)?, dir, BOOT_LIMIT)?;
    let write = format!("exec:cat > {}", command::quote(&state.display().to_string()));
    let mut order = || -> Result<(), QmpError> {
        let mut qmp = Qmp::connect(&mut process)?;
        qmp.execute(&mut process, "cont", json!({}))?;
        qmp.wait_for_event(&mut process, "GUEST_PANICKED")?;
        qmp.execute(&mut process, "migrate-set-parameters", json!({ "max-bandwidth": 1u64 << 40 }))?;
        qmp.execute(&mut process, "migrate", json!({ "uri": write }))?;
        match qmp.wait_for_status(&mut process, "query-migrate", &["completed", "failed"])?.as_str() {
            "completed" => Ok(()),
            _ => Err(QmpError::Refused("the machine could not be saved".into())),
        }
    };
    order().map_err(|error| explain(error, dir, BOOT_LIMIT))
}

/// Resumes a started process from the snapshot.
pub fn resume(process: &mut Process, dir: &Path, limit: Duration) -> Result<Qmp, LabError> {
    let mut order = || -> Result<Qmp, QmpError> {
        let mut qmp = Qmp::connect(process)?;
        qmp.wait_for_status(process, "query-status", &["guest-panicked", "paused", "prelaunch"])?;
        qmp.execute(process, "cont", json!({}))?;
        Ok(qmp)
    };
    order().map_err(|error| explain(error, dir, limit))
}

fn explain(error: QmpError, dir: &Path, limit: Duration) -> LabError {
    match error {
        QmpError::Limit => outcome::over_limit(dir, limit),
        QmpError::Ended => outcome::died(dir, None),
        QmpError::Refused(text) => outcome::died(dir, Some(Death::Qemu(text))),
    }
}
