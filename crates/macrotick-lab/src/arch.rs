//! The architectures of the lab's machines: all that differs between them on the host. In the guest the way of the job
//! ([`crate::fwcfg`]), the result channel ([`crate::agent`]) and the clock of wires differ.

/// An architecture, with QEMU's machine for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arch {
    /// QEMU's `pc`.
    #[default]
    X86_64,
    /// QEMU's `virt`, with the processor of a Raspberry Pi 4.
    Arm64,
}

impl Arch {
    /// All architectures.
    pub const ALL: [Arch; 2] = [Arch::X86_64, Arch::Arm64];

    /// Returns the name for the command line, and of the configuration's fragment.
    pub fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86-64",
            Arch::Arm64 => "arm64",
        }
    }

    /// Returns the architecture of that name.
    pub fn from_name(name: &str) -> Option<Arch> {
        Arch::ALL.into_iter().find(|arch| arch.name() == name)
    }

    /// Returns the target of Rust, which is also the directory below `target/`.
    pub fn rust_target(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64-unknown-linux-gnu",
            Arch::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// Returns the option that every configuration of its kernels has.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Arch::X86_64 => "CONFIG_X86_64",
            Arch::Arm64 => "CONFIG_ARM64",
        }
    }

    /// Returns the program that emulates it, and its Debian package.
    pub(crate) fn qemu(self) -> (&'static str, &'static str) {
        match self {
            Arch::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Arch::Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// Returns a program of the compiler's tools, and its Debian package.
    pub fn tool(self, name: &str) -> (String, &'static str) {
        match self {
            Arch::X86_64 if name == "gcc" => (name.to_owned(), "gcc"),
            Arch::X86_64 => (name.to_owned(), "binutils"),
            Arch::Arm64 => (format!("{CROSS_ARM64}{name}"), "gcc-aarch64-linux-gnu"),
        }
    }

    /// Returns what `make` in a tree of Linux needs beside its targets.
    pub(crate) fn make(self) -> Vec<String> {
        match self {
            Arch::X86_64 => Vec::new(),
            Arch::Arm64 => vec!["ARCH=arm64".to_owned(), format!("CROSS_COMPILE={CROSS_ARM64}")],
        }
    }

    /// Returns the target of `make` that is the bootable image, which is also the name of the artifact.
    pub(crate) fn image(self) -> &'static str {
        match self {
            Arch::X86_64 => "bzImage",
            Arch::Arm64 => "Image",
        }
    }

    /// Returns the place of the bootable image in a tree of Linux.
    pub(crate) fn image_in_tree(self) -> &'static str {
        match self {
            Arch::X86_64 => "arch/x86/boot/bzImage",
            Arch::Arm64 => "arch/arm64/boot/Image",
        }
    }

    /// Returns QEMU's machine.
    pub(crate) fn machine(self) -> &'static str {
        match self {
            Arch::X86_64 => "pc",
            // The device tree has no seeds for the kernel: they would differ from start to start.
            Arch::Arm64 => "virt,gic-version=3,dtb-randomness=off",
        }
    }

    /// Returns the machine's processor. It has no source of random numbers, and its counter counts nanoseconds.
    pub(crate) fn cpu(self) -> &'static str {
        match self {
            Arch::X86_64 => "max,-rdrand,-rdseed",
            Arch::Arm64 => "cortex-a72,cntfrq=1000000000",
        }
    }

    /// Returns QEMU's arguments for the console and the result channel, which go to these files.
    pub(crate) fn channels(self, console: &str, results: &str) -> Vec<String> {
        let serial = |file: &str| ["-serial".to_owned(), format!("file:{file}")];
        match self {
            Arch::X86_64 => [serial(console), serial(results)].concat(),
            // The machine has one serial port.
            Arch::Arm64 => [
                &serial(console)[..],
                &["-chardev".to_owned(), format!("file,id=results,path={results}")],
                &["-device", "virtio-serial-device", "-device", "virtserialport,chardev=results"].map(str::to_owned),
            ]
            .concat(),
        }
    }

    /// Returns the word of the kernel's command line with the console.
    pub(crate) fn console(self) -> &'static str {
        match self {
            Arch::X86_64 => "console=ttyS0",
            Arch::Arm64 => "console=ttyAMA0",
        }
    }

    /// Returns the words of the kernel's command line about the clock.
    pub(crate) fn clock(self) -> &'static [&'static str] {
        match self {
            Arch::X86_64 => &["tsc=reliable", "tsc_early_khz=1000000", "lpj=1000000", "no_timer_check"],
            Arch::Arm64 => &["lpj=1000000"],
        }
    }

    /// Returns the directories of Debian's shared libraries, below a root.
    pub(crate) fn libraries(self) -> [&'static str; 2] {
        match self {
            Arch::X86_64 => ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"],
            Arch::Arm64 => ["lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"],
        }
    }

    /// Returns the path of the dynamic loader, below a root.
    pub(crate) fn loader(self) -> &'static str {
        match self {
            Arch::X86_64 => "lib64/ld-linux-x86-64.so.2",
            Arch::Arm64 => "lib/ld-linux-aarch64.so.1",
        }
    }

    /// Whether a machine can be saved before it has its job, and resumed with any job.
    pub(crate) fn resumes(self) -> bool {
        self == Arch::X86_64
    }
}

/// The beginning of the names of the tools for arm64.
const CROSS_ARM64: &str = "aarch64-linux-gnu-";
