//! The virtual machine: its command line, and a QEMU process that ends at its limit and with its parent.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use macrotick_model::Duration;

use crate::arch::Arch;
use crate::command;
use crate::error::{Context, LabError};
use crate::fwcfg;
use crate::image::ImageKind;
use crate::nics::Nics;
use crate::turns;

/// Words of the kernel's command line, between those of the architecture. Without any one of them, runs differ
/// (`docs/explanation/lab.md` has the reasons).
const KERNEL_ARGS: [&str; 6] =
    ["panic=-1", "loglevel=5", "noirqdebug", "nokaslr", "random.trust_cpu=off", "random.trust_bootloader=off"];

/// A virtual machine without a job.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The architecture.
    pub arch: Arch,
    /// The kernel's image.
    pub kernel: PathBuf,
    /// Its image.
    pub kind: ImageKind,
    /// The initramfs.
    pub initrd: PathBuf,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Virtual time per instruction is `2^shift` ns.
    pub shift: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Network cards.
    pub nics: Option<Nics>,
    /// Further words for the kernel's command line.
    pub kernel_args: Vec<String>,
    /// The library of [`turns`].
    pub turns: PathBuf,
}

/// The start of a machine.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// It boots and runs to the end.
    Boot,
    /// It boots and stops at the checkpoint, where it is saved.
    Save,
    /// It resumes from the saved state in this file.
    Resume(&'a Path),
}

impl Machine {
    /// Returns the inputs of the guest's state at the checkpoint, without the files' contents.
    pub fn description(&self) -> String {
        let args = [self.hardware(), vec![self.append()]].concat();
        args.join("\n")
    }

    /// Returns the QEMU command. Console and results go to files in `dir`; the agent gets `job`.
    pub fn command(&self, dir: &Path, job: &Path, start: Start<'_>) -> Result<Command, LabError> {
        let (program, package) = self.arch.qemu();
        let mut qemu = Command::new(command::find(program, package)?);
        qemu.args(self.hardware());
        qemu.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.initrd).arg("-append").arg(self.append());
        qemu.arg("-fw_cfg").arg(format!("name={},file={}", fwcfg::JOB, job.display()));
        let [console, results] = ["console", "results"].map(|file| dir.join(file).display().to_string());
        qemu.args(self.arch.channels(&console, &results));
        match start {
            Start::Boot => qemu.args(["-monitor", "none"]),
            // It waits for the order to run: an event before the connection would be lost.
            Start::Save => qemu.args(CHECKPOINT).arg("-S"),
            Start::Resume(state) => {
                let read = format!("exec:cat {}", command::quote(&state.display().to_string()));
                // A machine that moved to another host announces its cards there, at instants of the host's clock.
                qemu.args(["-global", "migration.announce-rounds=0"]);
                qemu.args(CHECKPOINT).args(["-S", "-incoming"]).arg(read)
            }
        };
        turns::take(&mut qemu, &self.turns);
        if let Some(port) = std::env::var_os(GDB_VARIABLE) {
            qemu.arg("-gdb").arg(format!("tcp:127.0.0.1:{}", port.to_string_lossy()));
        }
        Ok(qemu)
    }

    fn hardware(&self) -> Vec<String> {
        let smp = format!("{0},sockets={0},cores=1,threads=1", self.cpus);
        let icount = format!("shift={},sleep=off", self.shift);
        let memory = self.memory_mib.to_string();
        [
            ["-machine", self.arch.machine()],
            ["-accel", "tcg"],
            ["-icount", &icount],
            ["-rtc", "base=2026-01-01T00:00:00,clock=vm"],
            ["-cpu", self.arch.cpu()],
            ["-smp", &smp],
            ["-m", &memory],
        ]
        .into_iter()
        .flatten()
        .chain(["-nodefaults", "-display", "none", "-no-reboot"])
        .map(str::to_owned)
        .chain(self.nics.iter().flat_map(Nics::arguments))
        .collect()
    }

    fn append(&self) -> String {
        let (console, last) = ([self.arch.console()], ["rdinit=/init"]);
        let fixed = [&console[..], &KERNEL_ARGS, self.arch.clock(), &last].concat();
        let further = self.kernel_args.iter().map(String::as_str);
        fixed.into_iter().chain(further).collect::<Vec<_>>().join(" ")
    }
}

/// The device with the checkpoint's port, the action there, and the connection for orders.
const CHECKPOINT: [&str; 6] = ["-device", "pvpanic", "-action", "panic=pause", "-qmp", "stdio"];

/// The variable with this host's port on which a debugger may examine a hanging guest.
const GDB_VARIABLE: &str = "MACROTICK_LAB_GDB";

/// A running QEMU. Dropping it kills it.
pub struct Process {
    /// The child, for its pipes.
    pub child: Child,
    started: Instant,
    limit: Duration,
}

impl Process {
    /// Starts a command; QEMU's own messages go to `dir/qemu`.
    pub fn start(mut command: Command, dir: &Path, limit: Duration) -> Result<Process, LabError> {
        let path = dir.join("qemu");
        let log = File::create(&path).context("create", &path)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        // SAFETY: between fork and exec the closure only calls prctl, which is async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let child = command.spawn().context("start", Path::new("QEMU"))?;
        Ok(Process { child, started: Instant::now(), limit })
    }

    /// Returns the wall time since the start.
    pub fn wall(&self) -> Duration {
        Duration::from_nanos(self.started.elapsed().as_nanos() as i64)
    }

    /// Whether the wall limit has passed.
    pub fn is_over(&self) -> bool {
        self.wall() > self.limit
    }

    /// Returns its exit status if it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, LabError> {
        self.child.try_wait().context("wait for", Path::new("QEMU"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_the_recipe() {
        let machine = Machine {
            arch: Arch::X86_64,
            kernel: "bzImage".into(),
            kind: ImageKind::Small,
            initrd: "image.cpio".into(),
            cpus: 2,
            shift: 2,
            memory_mib: 256,
            nics: None,
            kernel_args: vec!["isolcpus=1".into()],
            turns: "turns.so".into(),
        };
        let command = machine.command(Path::new("run"), Path::new("run/job"), Start::Boot);
        // Without QEMU there is no command to check; `make test` installs it.
        let text = command::display(&command.expect("QEMU is installed by `make setup`"));
        let (environment, command) = text.split_once(' ').expect("has an environment");
        assert!(environment.starts_with("LD_PRELOAD=turns.so"), "{environment}");
        let after_program = command.split_once(' ').expect("has arguments").1;
        assert_eq!(
            after_program,
            "-machine pc -accel tcg -icount shift=2,sleep=off -rtc base=2026-01-01T00:00:00,clock=vm -cpu \
             max,-rdrand,-rdseed -smp 2,sockets=2,cores=1,threads=1 -m 256 -nodefaults -display none -no-reboot \
             -kernel bzImage -initrd image.cpio -append 'console=ttyS0 panic=-1 loglevel=5 noirqdebug nokaslr \
             random.trust_cpu=off random.trust_bootloader=off tsc=reliable tsc_early_khz=1000000 lpj=1000000 no_timer_check rdinit=/init \
             isolcpus=1' -fw_cfg name=opt/macrotick/job,file=run/job -serial file:run/console -serial \
             file:run/results -monitor none -name lab,debug-threads=on"
        );
    }
}
