//! An experiment's places, what it has to say to a reader, and the page that says it.

use std::path::{Path, PathBuf};

use macrotick_lab::progress::Terminal;
use macrotick_lab::{Flavor, Kernel, LabError};
use macrotick_report::write_text;

use super::scale::Scale;
use super::{lab, provenance};
use crate::error::BenchError;

/// One experiment and its places.
pub struct Bench {
    /// Its name.
    pub name: &'static str,
    /// The repository.
    pub root: PathBuf,
    /// Where its files go.
    pub folder: PathBuf,
    /// How much of it runs.
    pub scale: Scale,
    /// The source that it is made from, as it was at the start: some experiments take longer than what comes next.
    source: String,
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
    pub kernels: Vec<Kernel>,
    /// Debian packages whose programs measured, or were measured.
    pub packages: &'static [&'static str],
    /// Files of the experiment's folder that the page shows, with their captions.
    pub plots: Vec<(String, String)>,
}

impl Bench {
    /// An experiment of a repository that is going to run.
    pub fn new(name: &'static str, root: &Path, folder: PathBuf, scale: Scale) -> Bench {
        Bench { name, root: root.into(), folder, scale, source: provenance::source(root) }
    }

    /// Writes the tables to the experiment's folder, below the note that a run of its scale has.
    pub fn keep(&self, results: &Results) -> Result<(), BenchError> {
        let note = self.scale.note().map_or(String::new(), |note| format!("**{note}**\n\n"));
        Ok(write_text(&self.folder.join("tables.md"), &(note + &results.tables))?)
    }

    /// Renews `docs/results/NAME.md` and the plots beside it; returns the page.
    pub fn publish(&self, results: &Results) -> Result<PathBuf, BenchError> {
        let docs = self.root.join("docs/results");
        let plots = docs.join(self.name);
        for file in results.plots.iter().map(|(file, _)| file.as_str()).chain(["figures.json"]) {
            copy(&self.folder.join(file), &plots.join(file))?;
        }
        let page = docs.join(format!("{}.md", self.name));
        write_text(&page, &self.page(results)?)?;
        Ok(page)
    }

    fn page(&self, results: &Results) -> Result<String, BenchError> {
        let Results { title, method, tables, plots, .. } = results;
        let name = self.name;
        let images: String =
            plots.iter().map(|(file, caption)| format!("![{caption}]({name}/{file})\n\n*{caption}*\n\n")).collect();
        Ok(format!(
            "# {title}\n\n{method}\n\n{tables}\n{images}## How it was made\n\n\
             Command: `macrotick-bench {name} --publish`\n\n\
             {}\n\
             Measured in the lab: one virtual nanosecond per guest instruction, one virtual CPU, unless it says otherwise \
             above. It measures the real kernel's path lengths; caches, memory and device speed are not modelled. The numbers in \
             [figures.json]({name}/figures.json) repeat to the bit, but for those from several virtual CPUs.\n",
            self.parts(results)?,
        ))
    }

    /// The versions of what took part, as a table.
    fn parts(&self, results: &Results) -> Result<String, BenchError> {
        let mut parts = vec![
            ("macrotick", self.source.clone()),
            ("kernels", distinct(results.kernels.iter().map(describe))?),
            ("their compiler", distinct(results.kernels.iter().map(Kernel::compiler))?),
            ("QEMU", provenance::qemu()),
        ];
        parts.extend(results.packages.iter().map(|&name| (name, provenance::package(name))));
        let rows: String = parts.iter().map(|(part, version)| format!("| {part} | {version} |\n")).collect();
        Ok(format!("| part | version |\n|---|---|\n{rows}"))
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), BenchError> {
    let failed = |source| BenchError::Copy { path: to.into(), source };
    to.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    std::fs::copy(from, to).map(drop).map_err(failed)
}

/// A kernel that was measured; the lab has built it for that.
pub fn kernel(flavor: Flavor) -> Result<Kernel, BenchError> {
    Ok(lab::lab()?.build_kernel(flavor, &mut Terminal::new())?)
}

fn describe(kernel: &Kernel) -> Result<String, LabError> {
    Ok(format!("{}{}", kernel.release, if kernel.is_rt()? { " (PREEMPT_RT)" } else { "" }))
}

/// The texts, each once.
fn distinct(texts: impl Iterator<Item = Result<String, LabError>>) -> Result<String, BenchError> {
    let mut all: Vec<String> = texts.collect::<Result<_, _>>()?;
    all.dedup();
    Ok(all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_what_made_it() {
        let root = std::env::temp_dir().join(format!("macrotick-page-{}", std::process::id()));
        let config = root.join("config");
        write_text(&config, "CONFIG_CC_VERSION_TEXT=\"gcc 12.2.0\"\nCONFIG_PREEMPT_RT=y\n").unwrap();
        let kernel = |flavor: Flavor| Kernel {
            flavor,
            release: format!("6.12.117{}", flavor.local_version()),
            image: PathBuf::new(),
            vmlinux: PathBuf::new(),
            system_map: PathBuf::new(),
            config: config.clone(),
            built: false,
        };
        let results = Results {
            title: "Title",
            method: "Method.".into(),
            tables: "| a |\n".into(),
            kernels: vec![kernel(Flavor::Pristine), kernel(Flavor::Patched)],
            packages: &["no-such-package-here"],
            plots: vec![("plot.svg".into(), "Caption".into())],
        };
        let page = Bench::new("overhead", &root, root.clone(), Scale::Full).page(&results).unwrap();
        for line in [
            "# Title",
            "![Caption](overhead/plot.svg)",
            "| kernels | 6.12.117-pristine (PREEMPT_RT), 6.12.117-macrotick (PREEMPT_RT) |",
            "| their compiler | gcc 12.2.0 |",
            "| no-such-package-here | unknown |",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_a_quick_run_writes_says_so() {
        let folder = std::env::temp_dir().join(format!("macrotick-quick-{}", std::process::id()));
        let results = Results {
            title: "Title",
            method: String::new(),
            tables: "| a |\n".into(),
            kernels: Vec::new(),
            packages: &[],
            plots: Vec::new(),
        };
        let kept = |scale| {
            Bench::new("overhead", &folder, folder.clone(), scale).keep(&results).unwrap();
            std::fs::read_to_string(folder.join("tables.md")).unwrap()
        };
        assert_eq!(kept(Scale::Full), "| a |\n");
        let quick = kept(Scale::Quick);
        assert!(quick.starts_with("**Quick run: ") && quick.ends_with("**\n\n| a |\n"), "{quick}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
