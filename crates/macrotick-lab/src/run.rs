//! The lab as one object: kernels, image, saved machines, runs.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::arch::Arch;
use crate::cache;
use crate::command;
use crate::engines;
use crate::error::{Context, LabError};
use crate::image::{self, Image, ImageKind};
use crate::job::{Boot, GuestJob, GuestOutcome};
use crate::kernel::{self, Flavor, Kernel};
use crate::layout::Layout;
use crate::outcome::{self, Results};
use crate::paths;
use crate::progress::{Progress, Quiet};
use crate::qemu::{Machine, Process, Start};
use crate::snapshot::{self, Snapshot};
use crate::turns;
use crate::wire;

/// The interval at which the host checks for progress lines and for the end.
const POLL: std::time::Duration = std::time::Duration::from_millis(20);
/// Directories of failed runs that are kept; far more than there are runs at the same time.
const FAILED_RUNS_KEPT: usize = 50;
/// If this variable is set, every job boots a machine of its own.
const BOOT_VARIABLE: &str = "MACROTICK_LAB_BOOT";

/// Builds the kernel, the image and the machine of a job, and runs it.
#[derive(Clone, Debug)]
pub struct Lab {
    layout: Layout,
    agent: PathBuf,
    resume: bool,
}

impl Lab {
    /// Returns a lab in the current checkout with this program as the agent. The program must be linked statically, and
    /// must call [`crate::agent::main`] if its first argument is `guest`.
    pub fn new() -> Result<Lab, LabError> {
        let agent = std::env::current_exe().context("find", Path::new("/proc/self/exe"))?;
        Ok(Lab::with_agent(Layout::find()?, agent))
    }

    /// Returns a lab with another agent; it is `/bin/macrotick` in the guest.
    pub fn with_agent(layout: Layout, agent: impl Into<PathBuf>) -> Lab {
        Lab { layout, agent: agent.into(), resume: std::env::var_os(BOOT_VARIABLE).is_none() }
    }

    /// Sets whether jobs resume a saved machine (the default) or boot one each. Only wall time differs.
    pub fn resuming(mut self, resume: bool) -> Lab {
        self.resume = resume;
        self
    }

    /// Returns the lab of another architecture. Its agent is the same program for that architecture, as cargo builds it
    /// beside the one for this host.
    pub fn on(&self, arch: Arch) -> Lab {
        let [own, other] = [self.layout.arch(), arch].map(|arch| OsStr::new(arch.rust_target()));
        let agent = self.agent.iter().map(|part| if part == own { other } else { part }).collect();
        Lab { layout: self.layout.on(arch), agent, resume: self.resume && arch.resumes() }
    }

    /// Builds a kernel, unless it is up to date.
    pub fn build_kernel(&self, flavor: Flavor, progress: &mut dyn Progress) -> Result<Kernel, LabError> {
        kernel::build(&self.layout, flavor, progress)
    }

    /// Builds an image, unless it is up to date.
    pub fn build_image(&self, kind: ImageKind, progress: &mut dyn Progress) -> Result<Image, LabError> {
        match kind {
            ImageKind::Small => image::build(&self.layout, &self.agent, progress),
            ImageKind::Engines => engines::build(&self.layout, &self.agent, progress),
        }
    }

    /// Runs a job in a guest of its own. `live` gets the program's progress lines if the job asks for them. A program
    /// that fails is an outcome. A guest that dies or a kernel that complains is an error; then the run's files are
    /// kept.
    pub fn run(
        &self,
        job: &GuestJob,
        progress: &mut dyn Progress,
        live: &mut dyn FnMut(&str),
    ) -> Result<GuestOutcome, LabError> {
        let guest = self.guest(job, progress)?;
        let recorder = self.recorder(job, &guest.dir)?;
        job.title.iter().for_each(|title| progress.begin(title));
        let outcome = execute(&guest, job, &recorder, progress, live);
        if job.title.is_some() && outcome.is_ok() {
            progress.end();
        }
        guest.tidy(outcome)
    }

    /// Runs a job; fails if its program fails.
    pub fn succeed(&self, job: &GuestJob, progress: &mut dyn Progress) -> Result<GuestOutcome, LabError> {
        let outcome = self.run(job, progress, &mut |_| {})?;
        if outcome.status.success() {
            return Ok(outcome);
        }
        let command = job.argv.join(" ");
        Err(LabError::Guest { command, status: outcome.status.to_string(), output: outcome.stderr_text() })
    }

    /// Runs two jobs at once, each in a guest of its own, with a wire between them. Frames from an interface of one
    /// arrive at an interface of the other after both jobs have started [`wire::port::serve`].
    pub fn run_joined(&self, jobs: &[GuestJob; 2], progress: &mut dyn Progress) -> Result<[GuestOutcome; 2], LabError> {
        let plugin = wire::build(&self.layout)?;
        let guests = [self.guest(&jobs[0], progress)?, self.guest(&jobs[1], progress)?];
        let ends = [wire::End::new(&guests[0].dir)?, wire::End::new(&guests[1].dir)?];
        let run = |number: usize| {
            let (guest, job, end) = (&guests[number], &jobs[number], &ends[number]);
            let arguments = wire::arguments(&plugin, &guest.dir, job.memory_mib);
            let outcome = execute(guest, job, &arguments, &mut Quiet, &mut |_| {});
            end.give_up();
            guest.tidy(outcome)
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(1));
            let joined = scope.spawn(|| wire::join(&ends));
            let (first, second) = (run(0), other.join().expect("a guest's thread does not panic"));
            joined.join().expect("the wire's thread does not panic")?;
            Ok([first?, second?])
        })
    }

    /// Returns the command that boots a guest and runs the job, ready to paste into a shell; its files stay in
    /// `build/lab`.
    pub fn dry_run(&self, job: &GuestJob, progress: &mut dyn Progress) -> Result<String, LabError> {
        let machine = self.machine(job, progress)?;
        let dir = self.layout.lab().join("dry-run");
        fs::create_dir_all(&dir).context("make", &dir)?;
        let recorder = self.recorder(job, &dir)?;
        Ok(command::display(&qemu_command(&machine, job, &dir, Start::Boot, &recorder)?))
    }

    /// Returns the machine that a job needs, with kernel and image built.
    fn machine(&self, job: &GuestJob, progress: &mut dyn Progress) -> Result<Machine, LabError> {
        job.validate()?;
        job.nics.map_or(Ok(()), |nics| nics.check())?;
        let kernel = match &job.boot {
            Boot::Flavor(flavor) => self.build_kernel(*flavor, progress)?.image,
            Boot::Image(path) => path.clone(),
        };
        let (cpus, shift, memory_mib) = (job.cpus_at_boot(), job.shift, job.memory_mib);
        let initrd = self.build_image(job.image, progress)?.path;
        let kernel_args = job.all_kernel_args();
        let turns = turns::build(&self.layout)?;
        let (arch, kind, nics) = (self.layout.arch(), job.image, job.nics);
        Ok(Machine { arch, kernel, kind, initrd, cpus, shift, memory_mib, nics, kernel_args, turns })
    }

    /// Returns the guest for a job, booted as far as possible without the job.
    fn guest(&self, job: &GuestJob, progress: &mut dyn Progress) -> Result<Guest, LabError> {
        let machine = self.machine(job, progress)?;
        let snapshot = self.resume.then(|| snapshot::take(&self.layout, &machine, progress)).transpose()?;
        Ok(Guest { machine, snapshot, dir: self.run_directory()? })
    }

    /// Returns the arguments with which QEMU records the paths that the job asks for.
    fn recorder(&self, job: &GuestJob, dir: &Path) -> Result<Vec<String>, LabError> {
        let Some(request) = &job.paths else { return Ok(Vec::new()) };
        Ok(vec!["-plugin".to_owned(), paths::argument(&paths::build(&self.layout)?, request, dir)])
    }

    /// Creates a new directory for one run.
    fn run_directory(&self) -> Result<PathBuf, LabError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        fs::create_dir_all(self.layout.lab()).context("make", &self.layout.lab())?;
        cache::keep_newest(&self.layout.lab(), "run-", FAILED_RUNS_KEPT)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = self.layout.lab().join(format!("run-{}-{number}", std::process::id()));
        cache::remove(&dir)?;
        fs::create_dir_all(&dir).context("make", &dir)?;
        Ok(dir)
    }
}

fn write_job(job: &GuestJob, dir: &Path) -> Result<PathBuf, LabError> {
    let path = dir.join("job");
    fs::write(&path, job.document().encode()).context("write", &path)?;
    Ok(path)
}

/// Returns the QEMU command for a job; `further` are arguments in addition to those of every job.
fn qemu_command(
    machine: &Machine,
    job: &GuestJob,
    dir: &Path,
    start: Start<'_>,
    further: &[String],
) -> Result<Command, LabError> {
    let mut command = machine.command(dir, &write_job(job, dir)?, start)?;
    command.args(further);
    Ok(command)
}

/// A guest before it runs its job.
struct Guest {
    machine: Machine,
    snapshot: Option<Snapshot>,
    dir: PathBuf,
}

impl Guest {
    /// Removes the run's files, unless the result is an error that needs them.
    fn tidy(&self, outcome: Result<GuestOutcome, LabError>) -> Result<GuestOutcome, LabError> {
        if matches!(outcome, Ok(_) | Err(LabError::Agent(_))) {
            cache::remove(&self.dir)?;
        }
        outcome
    }
}

/// Starts QEMU, reads the result channel to its end, and judges the results.
fn execute(
    guest: &Guest,
    job: &GuestJob,
    further: &[String],
    progress: &mut dyn Progress,
    live: &mut dyn FnMut(&str),
) -> Result<GuestOutcome, LabError> {
    let (dir, snapshot) = (guest.dir.as_path(), guest.snapshot.as_ref());
    let start = snapshot.map_or(Start::Boot, |snapshot| Start::Resume(&snapshot.state));
    let command = qemu_command(&guest.machine, job, dir, start, further)?;
    let mut process = Process::start(command, dir, job.wall_limit)?;
    let connection = snapshot.map(|_| snapshot::resume(&mut process, dir, job.wall_limit)).transpose()?;
    let mut results = Results::default();
    let mut channel = Tail::new(dir.join("results"));
    loop {
        let ended = process.ended()?.is_some();
        results.feed(&channel.read()?, live);
        if ended {
            break;
        }
        if process.is_over() {
            drop(process);
            return Err(outcome::over_limit(dir, job.wall_limit));
        }
        progress.tick();
        std::thread::sleep(POLL);
    }
    drop(connection); // not before: QEMU must not lose its input while it runs
    let boot = snapshot.map_or_else(String::new, |snapshot| command::read_lossy(&snapshot.console));
    let mut outcome = results.finish(dir, &boot, process.wall(), job.allow_complaints)?;
    if job.paths.is_some() {
        outcome.paths = paths::read(dir)?;
    }
    Ok(outcome)
}

/// Reads the bytes that were added to a file.
struct Tail {
    path: PathBuf,
    file: Option<File>,
}

impl Tail {
    fn new(path: PathBuf) -> Tail {
        Tail { path, file: None }
    }

    /// Returns the bytes since the last call; none while there is no file.
    fn read(&mut self) -> Result<Vec<u8>, LabError> {
        let mut added = Vec::new();
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        if let Some(file) = &mut self.file {
            file.read_to_end(&mut added).context("read", &self.path)?;
        }
        Ok(added)
    }
}
