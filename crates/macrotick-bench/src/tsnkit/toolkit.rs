//! tsnkit in an environment of its own, and requests to it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration as WallTime;

use macrotick_report::write_text;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::instance::{Drawn, Planned};
use crate::error::BenchError;

const REQUIREMENTS: &str = include_str!("requirements.txt");
const ADAPTER: &str = include_str!("adapter.py");

/// An installed tsnkit.
pub struct Toolkit {
    python: PathBuf,
    adapter: PathBuf,
}

/// A system of tsnkit's generator, by the numbers of its options.
#[derive(Clone, Copy, Serialize)]
pub struct Options {
    pub seed: u64,
    pub topology: u8,
    pub switches: u32,
    pub streams: u32,
    pub period: u8,
    pub size: u8,
    pub deadline: u8,
}

/// The result of a planner of tsnkit.
pub enum Attempt {
    /// It has a plan, found in this time.
    Planned(WallTime),
    /// It has none.
    NotFound,
    /// It has a proof that there is none.
    Proved,
    /// The time limit was over.
    TimedOut,
    /// It cannot run here.
    Failed,
}

#[derive(Serialize)]
#[serde(tag = "verb", rename_all = "lowercase")]
enum Request<'a> {
    Generate {
        folder: &'a Path,
        #[serde(flatten)]
        options: Options,
    },
    Plan {
        folder: &'a Path,
        method: &'a str,
    },
    Write {
        folder: &'a Path,
        name: &'a str,
        #[serde(flatten)]
        plan: &'a Planned,
    },
    Simulate {
        folder: &'a Path,
        name: &'a str,
        turns: u32,
    },
}

/// The answer to a request without a result.
#[derive(Deserialize)]
struct Nothing {}

#[derive(Deserialize)]
struct Found {
    result: String,
    seconds: f64,
}

#[derive(Deserialize)]
struct Simulated {
    wrong: Vec<usize>,
}

impl Toolkit {
    /// The hyperperiods of a simulation.
    const TURNS: u32 = 2;
    /// The exit code of `timeout`.
    const TIMED_OUT: i32 = 124;

    /// Installs tsnkit and its requirements below `build`, if these versions are not there.
    pub fn install(root: &Path) -> Result<Toolkit, BenchError> {
        let folder = root.join("build/tsnkit");
        let (environment, adapter) = (folder.join("python"), folder.join("adapter.py"));
        let python = environment.join("bin/python");
        write_text(&adapter, ADAPTER)?;
        let installed = folder.join("installed.txt");
        if std::fs::read_to_string(&installed).is_ok_and(|text| text == REQUIREMENTS) {
            return Ok(Toolkit { python, adapter });
        }
        let requirements = folder.join("requirements.txt");
        write_text(&requirements, REQUIREMENTS)?;
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&requirements))?;
        write_text(&installed, REQUIREMENTS)?;
        Ok(Toolkit { python, adapter })
    }

    /// Draws a system into a folder.
    pub fn generate(&self, folder: &Path, options: Options) -> Result<Drawn, BenchError> {
        self.call(&Request::Generate { folder, options })
    }

    /// Plans the system of a folder with a method of tsnkit.
    pub fn plan(&self, folder: &Path, method: &str, limit: WallTime) -> Result<Attempt, BenchError> {
        let output = self.answer(&Request::Plan { folder, method }, limit)?;
        if output.status.code() == Some(Self::TIMED_OUT) {
            return Ok(Attempt::TimedOut);
        }
        if !output.status.success() {
            return Ok(Attempt::Failed);
        }
        let found: Found = self.parse(&output)?;
        Ok(match found.result.as_str() {
            "schedulable" => Attempt::Planned(WallTime::from_secs_f64(found.seconds)),
            "error" => Attempt::Failed,
            _ => Attempt::NotFound,
        })
    }

    /// Writes a plan of Macrotick as tables of tsnkit.
    pub fn write(&self, folder: &Path, name: &str, plan: &Planned) -> Result<(), BenchError> {
        self.call(&Request::Write { folder, name, plan }).map(|Nothing {}| ())
    }

    /// Whether all frames of a plan arrive in time in tsnkit's simulator.
    pub fn delivers(&self, folder: &Path, name: &str) -> Result<bool, BenchError> {
        let Simulated { wrong } = self.call(&Request::Simulate { folder, name, turns: Self::TURNS })?;
        Ok(wrong.is_empty())
    }

    fn call<T: DeserializeOwned>(&self, request: &Request) -> Result<T, BenchError> {
        self.parse(&self.answer(request, WallTime::from_secs(600))?)
    }

    fn parse<T: DeserializeOwned>(&self, output: &Output) -> Result<T, BenchError> {
        serde_json::from_slice(&output.stdout).map_err(|_| {
            let all = [&output.stdout[..], &output.stderr].concat();
            let (command, expected) = (self.adapter.display().to_string(), "answer");
            BenchError::ToolOutput { command, expected, output: String::from_utf8_lossy(&all).into_owned() }
        })
    }

    fn answer(&self, request: &Request, limit: WallTime) -> Result<Output, BenchError> {
        let mut command = Command::new("timeout");
        command.arg(limit.as_secs().to_string()).arg(&self.python).args(["-W", "ignore"]).arg(&self.adapter);
        let failed = |source| BenchError::Tool { command: "timeout".into(), source };
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().map_err(failed)?;
        let text = serde_json::to_vec(request).expect("a request has text for all keys");
        child.stdin.take().expect("the input is a pipe").write_all(&text).map_err(failed)?;
        child.wait_with_output().map_err(failed)
    }
}

fn run(command: &mut Command) -> Result<(), BenchError> {
    let name = format!("{command:?}");
    let output = command.output().map_err(|source| BenchError::Tool { command: name.clone(), source })?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            Err(BenchError::ToolOutput { command: name, expected: "success", output: told })
        }
    }
}
