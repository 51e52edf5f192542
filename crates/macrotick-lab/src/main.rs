//! The lab as a small program: it builds or packages a kernel, or runs one program in a guest. It needs only the lab. Its tests run
//! it, and `make` builds kernels with it before the product exists; `macrotick lab` can do more.

use std::io::Write;
use std::process::ExitCode;

use macrotick_lab::progress::Terminal;
use macrotick_lab::{Arch, Flavor, GuestJob, GuestStatus, ImageKind, Lab, LabError, Layout};

const USAGE: &str = "\
usage: macrotick-lab source
       macrotick-lab [--arch ARCHITECTURE] kernel FLAVOR
       macrotick-lab package FLAVOR
       macrotick-lab series [TREE]
       macrotick-lab port
       macrotick-lab image engines
       macrotick-lab [--arch ARCHITECTURE] run FLAVOR [--dry-run] PROGRAM [ARGUMENT ...]
architectures: x86-64 (the default), arm64
MACROTICK_LINUX chooses the version of Linux: 6.12 (the default), 7.2, 7.3
trees of a series: series-off, series-on, series-windows, series-timers
flavours:";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (arch, words) = match words.as_slice() {
        ["--arch", name, words @ ..] => (Arch::from_name(name), words),
        words => (Some(Arch::default()), words),
    };
    let Some(arch) = arch else { return usage().unwrap_or(ExitCode::FAILURE) };
    let result = match words {
        ["guest"] => macrotick_lab::agent::main(),
        ["live", line] => {
            macrotick_lab::agent::live(line);
            Ok(ExitCode::SUCCESS)
        }
        ["source"] => unpack(),
        ["kernel", name] => flavor(name).map_or_else(usage, |flavor| build(arch, flavor)),
        ["package", name] => flavor(name).map_or_else(usage, package),
        ["series"] => series(None),
        ["series", tree] if macrotick_lab::series::is_tree(tree) => series(Some(tree)),
        ["port"] => port(),
        ["image", "engines"] => image(),
        ["run", name, "--dry-run", program @ ..] => {
            flavor(name).map_or_else(usage, |flavor| show(arch, flavor, program))
        }
        ["run", name, program @ ..] => flavor(name).map_or_else(usage, |flavor| run(arch, flavor, program)),
        _ => usage(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn flavor(name: &str) -> Option<Flavor> {
    Flavor::from_name(name)
}

fn usage() -> Result<ExitCode, LabError> {
    eprintln!("{USAGE}");
    for flavor in Flavor::ALL {
        eprintln!("  {:15}{}", flavor.name(), flavor.about());
    }
    Ok(ExitCode::from(2))
}

/// Prints the path of the unpacked, unpatched kernel source.
fn unpack() -> Result<ExitCode, LabError> {
    let source = macrotick_lab::source::unpack(&Layout::find()?, &mut Terminal::new())?;
    println!("{}", source.tree.display());
    Ok(ExitCode::SUCCESS)
}

fn build(arch: Arch, flavor: Flavor) -> Result<ExitCode, LabError> {
    let kernel = Lab::new()?.on(arch).build_kernel(flavor, &mut Terminal::new())?;
    let state = if kernel.built { "built" } else { "up to date" };
    eprintln!("Linux {} is {state}: {}", kernel.release, kernel.image.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds a kernel as a Debian package.
fn package(flavor: Flavor) -> Result<ExitCode, LabError> {
    println!("{}", macrotick_lab::package(&Layout::find()?, flavor, &mut Terminal::new())?.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds every patch of the series for a mailing list.
fn series(tree: Option<&str>) -> Result<ExitCode, LabError> {
    macrotick_lab::series::build(&Layout::find()?, tree, &mut Terminal::new())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the page about the versions of Linux.
fn port() -> Result<ExitCode, LabError> {
    print!("{}", macrotick_lab::port::page(&Layout::find()?)?);
    Ok(ExitCode::SUCCESS)
}

/// Builds the image with container engines. The small image needs no call of its own.
fn image() -> Result<ExitCode, LabError> {
    let image = Lab::new()?.build_image(ImageKind::Engines, &mut Terminal::new())?;
    eprintln!("{}", image.path.display());
    Ok(ExitCode::SUCCESS)
}

fn show(arch: Arch, flavor: Flavor, program: &[&str]) -> Result<ExitCode, LabError> {
    let job = GuestJob::new(flavor, program.iter().copied());
    println!("{}", Lab::new()?.on(arch).dry_run(&job, &mut Terminal::new())?);
    Ok(ExitCode::SUCCESS)
}

fn run(arch: Arch, flavor: Flavor, program: &[&str]) -> Result<ExitCode, LabError> {
    let job = GuestJob::new(flavor, program.iter().copied());
    let outcome = Lab::new()?.on(arch).run(&job, &mut Terminal::new(), &mut |line| eprintln!("{line}"))?;
    // If the reader has gone, the run has not failed.
    let _ = std::io::stdout().write_all(&outcome.stdout);
    let _ = std::io::stderr().write_all(&outcome.stderr);
    eprintln!("{} after {:.1} s of wall time", outcome.status, outcome.wall.as_secs_f64());
    Ok(match outcome.status {
        GuestStatus::Exited(code) => ExitCode::from(code as u8),
        GuestStatus::Signaled(signal) => ExitCode::from(128 + signal as u8),
    })
}
