//! The jobs that a guest runs, and their outcomes.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;

use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use flate2::Compression;
use macrotick_model::Duration;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::frame::GuestStatus;
use crate::image::ImageKind;
use crate::kernel::Flavor;
use crate::nics::Nics;
use crate::paths::PathRequest;

/// The kernel that a guest boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boot {
    /// A kernel of the lab, built if necessary.
    Flavor(Flavor),
    /// An image at this path.
    Image(PathBuf),
}

/// A program to run in a guest of its own.
#[derive(Clone, Debug)]
pub struct GuestJob {
    /// The kernel.
    pub boot: Boot,
    /// The image.
    pub image: ImageKind,
    /// The program and its arguments. `/bin/macrotick` is the lab's own binary. Busybox's applets, rt-tests, `/sbin/ip`
    /// and `/sbin/tc` are there, too.
    pub argv: Vec<String>,
    /// The name of the run in the host's progress. Without it, only builds and boots are reported. The guest does not
    /// see it.
    pub title: Option<String>,
    /// Environment in addition to `PATH` and `HOME`.
    pub env: Vec<(String, String)>,
    /// Files for the guest: absolute path and content. A file that starts like a program or a script becomes
    /// executable.
    pub files: Vec<(String, Vec<u8>)>,
    /// Files that come back: absolute paths. The outcome has no entry for a file that does not exist at the end.
    pub collect: Vec<String>,
    /// Whether the program may send progress lines (see [`crate::agent::live`]). Each one costs guest instructions.
    pub live: bool,
    /// Virtual CPUs, 1 to 16. Latency figures are meaningful with 1 only.
    pub cpus: u32,
    /// Virtual time per instruction is `2^shift` ns. 0 is the exact clock; 2 runs four times faster.
    pub shift: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Network cards. They need a kernel with their drivers: [`Flavor::Net`].
    pub nics: Option<Nics>,
    /// Further words for the kernel's command line.
    pub kernel_args: Vec<String>,
    /// Paths through the kernel to record; with one virtual CPU only.
    pub paths: Option<PathRequest>,
    /// Wall time after which the guest is stopped.
    pub wall_limit: Duration,
    /// Whether the outcome contains complaints on the console; otherwise they are an error.
    pub allow_complaints: bool,
}

impl GuestJob {
    /// Returns a job on one virtual CPU with the exact clock, the memory that the image needs, and ten minutes of wall
    /// time. The kernels [`Flavor::Engines`] and [`Flavor::DebugEngines`] have their own image.
    pub fn new<S: Into<String>>(flavor: Flavor, argv: impl IntoIterator<Item = S>) -> GuestJob {
        let (image, memory_mib) = match flavor {
            Flavor::Engines => (ImageKind::Engines, 2048),
            // KASAN's shadow takes an eighth of the memory.
            Flavor::DebugEngines => (ImageKind::Engines, 3072),
            _ => (ImageKind::Small, 512),
        };
        GuestJob {
            boot: Boot::Flavor(flavor),
            image,
            argv: argv.into_iter().map(Into::into).collect(),
            title: None,
            env: Vec::new(),
            files: Vec::new(),
            collect: Vec::new(),
            live: false,
            cpus: 1,
            shift: 0,
            memory_mib,
            nics: None,
            kernel_args: Vec::new(),
            paths: None,
            wall_limit: Duration::from_secs(600),
            allow_complaints: false,
        }
    }

    /// Sets the CPUs and the clock, and passes them to the guest, because its observations record them.
    pub fn on(mut self, cpus: u32, shift: u32) -> GuestJob {
        (self.cpus, self.shift) = (cpus, shift);
        self.env.push(("MACROTICK_LAB".into(), format!("{shift},{cpus}")));
        self
    }

    /// Refuses jobs that no guest can run.
    pub(crate) fn validate(&self) -> Result<(), LabError> {
        let problem = if self.argv.is_empty() {
            Some("no program to run".to_owned())
        } else if !(1..=16).contains(&self.cpus) {
            Some(format!("{} CPUs: 1 to 16 are possible", self.cpus))
        } else if self.paths.is_some() && self.cpus > 1 {
            Some("paths are recorded with one CPU only".to_owned())
        } else if self.shift > 10 {
            Some(format!("a shift of {}: 0 to 10 are possible", self.shift))
        } else if self.memory_mib < 128 {
            Some(format!("{} MiB of memory: at least 128 are needed", self.memory_mib))
        } else if self.nics.is_some() && matches!(self.boot, Boot::Flavor(flavor) if flavor != Flavor::Net) {
            Some("network cards: only the kernel `net` has their drivers".to_owned())
        } else if let Some(problem) = self.nics.and_then(|nics| nics.problem()) {
            Some(problem)
        } else {
            let paths = self.files.iter().map(|(path, _)| path).chain(&self.collect);
            paths.filter(|path| !path.starts_with('/')).map(|path| format!("{path} is not an absolute path")).next()
        };
        problem.map_or(Ok(()), |problem| Err(LabError::Job(problem)))
    }

    /// Returns the CPUs of the machine at its boot. The drivers of network cards count them.
    pub(crate) fn cpus_at_boot(&self) -> u32 {
        self.nics.map_or(self.cpus, |nics| nics.queues.max(self.cpus))
    }

    /// Returns the kernel's arguments with that for the agent: the CPUs of the job, if the boot has more.
    pub(crate) fn all_kernel_args(&self) -> Vec<String> {
        let surplus = self.cpus_at_boot() > self.cpus;
        let cpus = surplus.then(|| format!("{}{}", crate::agent::CPUS, self.cpus));
        self.kernel_args.iter().cloned().chain(cpus).collect()
    }

    /// Returns the part of the job that the agent needs.
    pub(crate) fn document(&self) -> Document {
        Document {
            argv: self.argv.clone(),
            env: self.env.clone(),
            files: self.files.clone(),
            collect: self.collect.clone(),
            live: self.live,
        }
    }
}

/// The outcome of a job.
#[derive(Clone, Debug)]
pub struct GuestOutcome {
    /// The end of the program.
    pub status: GuestStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// The collected files by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The whole console.
    pub console: String,
    /// The kernel's complaints, where the job allows them.
    pub complaints: Vec<crate::console::Finding>,
    /// The recorded paths: the addresses of their instructions in the order of execution.
    pub paths: Vec<Vec<u64>>,
    /// Wall time from the start of QEMU to its end.
    pub wall: Duration,
}

impl GuestOutcome {
    /// Returns standard output as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns standard error as text.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// The job as the agent reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub files: Vec<(String, Vec<u8>)>,
    pub collect: Vec<String>,
    pub live: bool,
}

/// The document's head in JSON; the files' contents follow it.
#[derive(Serialize, Deserialize)]
struct Head {
    argv: Vec<String>,
    env: Vec<(String, String)>,
    files: Vec<(String, usize)>,
    collect: Vec<String>,
    live: bool,
}

impl Document {
    /// Returns the length of the head (4 bytes, little-endian), the head, and the files' contents; all of it
    /// compressed.
    pub fn encode(&self) -> Vec<u8> {
        let files = self.files.iter().map(|(path, content)| (path.clone(), content.len())).collect();
        let (argv, env, collect) = (self.argv.clone(), self.env.clone(), self.collect.clone());
        let head = Head { argv, env, files, collect, live: self.live };
        let head = serde_json::to_vec(&head).expect("a job is always JSON");
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        let contents = self.files.iter().map(|(_, content)| content.as_slice());
        for part in [&(head.len() as u32).to_le_bytes()[..], &head].into_iter().chain(contents) {
            encoder.write_all(part).expect("writing to memory succeeds");
        }
        encoder.finish().expect("writing to memory succeeds")
    }

    /// Reverses [`Document::encode`].
    pub fn decode(bytes: &[u8]) -> Result<Document, String> {
        let mut plain = Vec::new();
        ZlibDecoder::new(bytes).read_to_end(&mut plain).map_err(|error| format!("the job does not unpack: {error}"))?;
        let short = || "the job is cut short".to_owned();
        let (length, rest) = plain.split_first_chunk::<4>().ok_or_else(short)?;
        let (head, mut rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(short)?;
        let head: Head = serde_json::from_slice(head).map_err(|error| format!("the job is not valid: {error}"))?;
        let mut files = Vec::new();
        for (path, length) in head.files {
            let (content, after) = rest.split_at_checked(length).ok_or_else(short)?;
            files.push((path, content.to_vec()));
            rest = after;
        }
        let Head { argv, env, collect, live, .. } = head;
        Ok(Document { argv, env, files, collect, live })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nics::NicModel;

    const NICS: Nics = Nics { model: NicModel::Vmxnet3, count: 3, queues: 4 };

    fn job() -> GuestJob {
        let mut job = GuestJob::new(Flavor::Patched, ["/bin/echo", "x"]);
        job.env.push(("A".into(), "b".into()));
        job.files = vec![("/a".into(), vec![0, 159, 146]), ("/b".into(), Vec::new())];
        job.collect.push("/c".into());
        job
    }

    #[test]
    fn documents_survive() {
        let document = job().document();
        assert_eq!(Document::decode(&document.encode()), Ok(document.clone()));
        assert!(Document::decode(&document.encode()[..10]).is_err());
    }

    #[test]
    fn a_title_stays_on_the_host() {
        let titled = GuestJob { title: Some("run".into()), ..job() };
        assert_eq!(titled.document().encode(), job().document().encode());
    }

    #[test]
    fn impossible_jobs_are_refused() {
        let refused = |change: fn(&mut GuestJob)| {
            let mut job = job();
            change(&mut job);
            matches!(job.validate(), Err(LabError::Job(_)))
        };
        assert!(job().validate().is_ok());
        assert!(refused(|job| job.argv.clear()));
        assert!(refused(|job| job.cpus = 0));
        assert!(refused(|job| job.cpus = 17));
        assert!(refused(|job| job.shift = 11));
        assert!(refused(|job| job.memory_mib = 64));
        assert!(refused(|job| job.collect.push("relative".into())));
        assert!(refused(|job| job.files.push(("relative".into(), Vec::new()))));
        assert!(refused(|job| job.nics = Some(NICS)), "the patched kernel has no driver");
        let with = |nics| GuestJob { nics: Some(nics), ..GuestJob::new(Flavor::Net, ["/bin/echo"]) };
        assert!(with(NICS).validate().is_ok());
        for wrong in [Nics { count: 0, ..NICS }, Nics { count: 9, ..NICS }, Nics { queues: 0, ..NICS }] {
            assert!(matches!(with(wrong).validate(), Err(LabError::Job(_))), "{wrong:?}");
        }
    }

    #[test]
    fn the_cpus_that_only_the_cards_need_go_offline() {
        let mut job = GuestJob { nics: Some(NICS), ..GuestJob::new(Flavor::Net, ["/bin/echo"]) };
        assert_eq!((job.cpus_at_boot(), job.all_kernel_args()), (4, vec!["lab_cpus=1".to_owned()]));
        job.cpus = 6;
        assert_eq!((job.cpus_at_boot(), job.all_kernel_args()), (6, vec![]));
    }
}
