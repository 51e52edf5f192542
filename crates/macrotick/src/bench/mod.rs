//! The experiments. Each runs in the lab, writes `figures.json`, tables and plots, and returns what `docs/results`
//! should say about it.

pub mod overhead;
pub mod response;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::CliError;
use crate::verbs::{create, write_text};

/// One experiment and its places.
pub struct Bench {
    /// Its name.
    pub name: &'static str,
    /// The repository.
    pub root: PathBuf,
    /// Where its files go.
    pub folder: PathBuf,
}

/// What an experiment has to say to a reader.
pub struct Results {
    /// Title of the page.
    pub title: &'static str,
    /// What was done, in a paragraph.
    pub method: String,
    /// The tables, in Markdown.
    pub tables: String,
    /// Kernels that were measured.
    pub kernels: Vec<String>,
    /// Files of the experiment's folder that the page shows, with their captions.
    pub plots: Vec<(String, String)>,
}

impl Bench {
    /// Renews `docs/results/NAME.md` and the plots beside it; returns the page.
    pub fn publish(&self, results: &Results) -> Result<PathBuf, CliError> {
        let docs = self.root.join("docs/results");
        let plots = docs.join(self.name);
        create(&plots)?;
        for file in results.plots.iter().map(|(file, _)| file.as_str()).chain(["figures.json"]) {
            copy(&self.folder.join(file), &plots.join(file))?;
        }
        let page = docs.join(format!("{}.md", self.name));
        write_text(&page, &self.page(results))?;
        Ok(page)
    }

    fn page(&self, results: &Results) -> String {
        let Results { title, method, tables, kernels, plots } = results;
        let name = self.name;
        let images: String =
            plots.iter().map(|(file, caption)| format!("![{caption}]({name}/{file})\n\n*{caption}*\n\n")).collect();
        format!(
            "# {title}\n\n{method}\n\n{tables}\n{images}## How it was made\n\n\
             Command: `macrotick bench {name} --publish`\n\n\
             | part | version |\n|---|---|\n| macrotick | {} |\n| kernels | {} |\n| QEMU | {} |\n\n\
             Measured in the lab: one virtual nanosecond per guest instruction, one virtual CPU. It measures the real \
             kernel's path lengths; caches, memory and device speed are not modelled. The numbers in \
             [figures.json]({name}/figures.json) repeat to the bit.\n",
            env!("CARGO_PKG_VERSION"),
            kernels.join(", "),
            qemu_version(),
        )
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), CliError> {
    std::fs::copy(from, to).map(drop).map_err(|source| CliError::Write { path: to.into(), source })
}

fn qemu_version() -> String {
    let output = Command::new("qemu-system-x86_64").arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").replace("QEMU emulator version ", "")
}
