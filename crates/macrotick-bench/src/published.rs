//! The pages of `docs/results`: the commits that made them, and whether they describe the present kernel.

use std::fmt;
use std::path::Path;

use crate::error::BenchError;
use crate::kit::provenance;

/// Files that make the measured kernels. Documentation and selftests of the overlay are not compiled, and no measured
/// kernel has sched_ext.
const KERNEL: [&str; 7] = [
    "kernel/overlay",
    "kernel/hooks",
    "kernel/config",
    "kernel/apply",
    ":(exclude)kernel/overlay/Documentation",
    ":(exclude)kernel/overlay/tools",
    ":(exclude)kernel/hooks/*sched_ext*",
];
/// A file of the kernel with network cards, and the one experiment that boots this kernel.
const CARDS: (&str, &str) = (":(exclude)kernel/config/net.config", "udp");

/// The state of a published page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// It was made by the present commit.
    Present,
    /// It was made by another commit with the same kernel sources.
    SameKernel,
    /// It does not describe the present kernel, for this reason.
    Outdated(Reason),
}

/// The reason why a page does not describe the present kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no page.
    Missing,
    /// The page names no commit.
    NoCommit,
    /// The page was made by a work tree with changes that were not committed.
    Dirty(String),
    /// This checkout does not have the commit: it is another one, or a shallow clone.
    Unknown(String),
    /// The kernel sources changed since the commit.
    Changed(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Missing => f.write_str("the page is missing"),
            Reason::NoCommit => f.write_str("the page names no commit"),
            Reason::Dirty(commit) => write!(f, "the page was made with uncommitted changes ({commit})"),
            Reason::Unknown(commit) => write!(f, "this checkout does not have commit {commit}, which made the page"),
            Reason::Changed(commit) => {
                write!(f, "the kernel sources changed since commit {commit}, which made the page")
            }
        }
    }
}

/// Returns the state of an experiment's page.
pub fn page(root: &Path, name: &str) -> Page {
    let Ok(text) = std::fs::read_to_string(root.join(format!("docs/results/{name}.md"))) else {
        return Page::Outdated(Reason::Missing);
    };
    let Some(commit) = commit_of(&text) else { return Page::Outdated(Reason::NoCommit) };
    if commit.ends_with("-dirty") {
        return Page::Outdated(Reason::Dirty(commit.into()));
    }
    if provenance::commit(root).as_deref() == Some(commit) {
        return Page::Present;
    }
    let others: &[&str] = if name == CARDS.1 { &[] } else { &[CARDS.0] };
    match provenance::changes_since(root, commit, &[&KERNEL, others].concat()) {
        None => Page::Outdated(Reason::Unknown(commit.into())),
        Some(false) => Page::SameKernel,
        Some(true) => Page::Outdated(Reason::Changed(commit.into())),
    }
}

/// Checks that a page of this work tree would name the commit that made its figures.
///
/// # Errors
///
/// [`BenchError::DirtyPublished`]
pub fn check_commit(root: &Path) -> Result<(), BenchError> {
    match provenance::commit(root) {
        Some(commit) if commit.ends_with("-dirty") => Err(BenchError::DirtyPublished),
        _ => Ok(()),
    }
}

/// Returns the commit in a page's table of versions.
fn commit_of(page: &str) -> Option<&str> {
    let row = page.lines().find(|line| line.starts_with("| macrotick |"))?;
    row.split_once(", commit ")?.1.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::provenance::Repository;

    fn publish(repository: &Repository, commit: &str) {
        let row = format!("| part | version |\n|---|---|\n| macrotick | 0.1.0, commit {commit} |\n");
        repository.write("docs/results/cost.md", &row);
    }

    #[test]
    fn a_page_is_outdated_when_the_kernel_sources_change() {
        let repository = Repository::new("published");
        let state = || page(repository.root(), "cost");
        let outdated = |reason| Page::Outdated(reason);
        repository.write("kernel/overlay/a.c", "1");
        let first = repository.commit("one");
        assert_eq!(state(), outdated(Reason::Missing));
        repository.write("docs/results/cost.md", "# Cost");
        assert_eq!(state(), outdated(Reason::NoCommit));
        publish(&repository, &first);
        assert_eq!(state(), Page::Present);

        repository.write("kernel/overlay/Documentation/a.rst", "1");
        repository.write("kernel/hooks/6.12/0009-schedulers-of-sched_ext.patch", "1");
        repository.write("crates/a.rs", "1");
        repository.commit("two");
        assert_eq!(state(), Page::SameKernel);

        repository.write("kernel/overlay/a.c", "2");
        assert_eq!(state(), outdated(Reason::Changed(first.clone())), "changed, and not committed");
        let third = repository.commit("three");
        assert_eq!(state(), outdated(Reason::Changed(first.clone())));

        publish(&repository, &third);
        repository.write(
            "docs/results/udp.md",
            &std::fs::read_to_string(repository.root().join("docs/results/cost.md")).unwrap(),
        );
        repository.write("kernel/config/net.config", "1");
        repository.commit("four");
        assert_eq!(state(), Page::SameKernel, "only one bench boots the kernel with network cards");
        assert_eq!(page(repository.root(), "udp"), outdated(Reason::Changed(third)));
        publish(&repository, &format!("{first}-dirty"));
        assert_eq!(state(), outdated(Reason::Dirty(format!("{first}-dirty"))));
        publish(&repository, "0123456");
        assert_eq!(state(), outdated(Reason::Unknown("0123456".into())));
    }
}
