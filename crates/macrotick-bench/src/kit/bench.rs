//! An experiment's places, its results for readers, and its page.

use std::path::{Path, PathBuf};

use macrotick_lab::progress::Terminal;
use macrotick_lab::{Flavor, Kernel, LabError};
use macrotick_report::write_text;

use super::scale::Scale;
use super::{lab, provenance};
use crate::error::BenchError;

/// One experiment and its places.
pub struct Bench {
    /// The name.
    pub name: &'static str,
    /// The root of the repository.
    pub root: PathBuf,
    /// The folder of its files.
    pub folder: PathBuf,
    /// The scale of the run.
    pub scale: Scale,
    /// The source version at the start. Some experiments run longer than until the next commit.
    source: String,
}

/// An experiment's results for readers.
pub struct Results {
    /// The title of the page.
    pub title: &'static str,
    /// The description of the method.
    pub method: String,
    /// The tables, in Markdown.
    pub tables: String,
    /// The kernels that were measured.
    pub kernels: Vec<Kernel>,
    /// Debian packages with programs that measured, or were measured.
    pub packages: &'static [&'static str],
    /// Files of the experiment's folder that the page shows, with their captions.
    pub plots: Vec<(String, String)>,
}

impl Bench {
    /// Returns an experiment of a repository before its run.
    pub fn new(name: &'static str, root: &Path, folder: PathBuf, scale: Scale) -> Bench {
        Bench { name, root: root.into(), folder, scale, source: provenance::source(root) }
    }

    /// Writes the tables to the experiment's folder, below the note of the scale.
    pub fn keep(&self, results: &Results) -> Result<(), BenchError> {
        let note = self.scale.note().map_or(String::new(), |note| format!("**{note}**\n\n"));
        Ok(write_text(&self.folder.join("tables.md"), &(note + &results.tables))?)
    }

    /// Renews `docs/results/NAME.md` and the plots beside it; returns the path of the page.
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
        let conditions = match results.kernels.is_empty() {
            true => format!(
                "Measured on the machine that ran the bench, on its wall clock. The numbers are in \
                 [figures.json]({name}/figures.json).\n"
            ),
            false => format!(
                "Measured in the lab: one virtual nanosecond per guest instruction, one virtual CPU, unless stated \
                 otherwise above. It measures the real kernel's path lengths; it does not model caches, memory and \
                 device speed. The numbers in [figures.json]({name}/figures.json) repeat to the bit, except those from \
                 several virtual CPUs.\n"
            ),
        };
        Ok(format!(
            "# {title}\n\n{method}\n\n{tables}\n{images}## How it was made\n\n\
             Command: `macrotick-bench {name} --publish`\n\n\
             {}\n\
             {conditions}",
            self.parts(results)?,
        ))
    }

    /// Returns a table with the versions of all parts.
    fn parts(&self, results: &Results) -> Result<String, BenchError> {
        let mut parts = vec![("macrotick", self.source.clone())];
        if !results.kernels.is_empty() {
            parts.push(("kernels", distinct(results.kernels.iter().map(describe))?));
            parts.push(("their compiler", distinct(results.kernels.iter().map(Kernel::compiler))?));
            parts.push(("QEMU", provenance::qemu()));
        }
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

/// Returns a kernel to measure; the lab builds it if necessary.
pub fn kernel(flavor: Flavor) -> Result<Kernel, BenchError> {
    Ok(lab::lab()?.build_kernel(flavor, &mut Terminal::new())?)
}

fn describe(kernel: &Kernel) -> Result<String, LabError> {
    Ok(format!("{}{}", kernel.release, if kernel.is_rt()? { " (PREEMPT_RT)" } else { "" }))
}

/// Joins the texts without repetitions.
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
