//! The pages of the documentation: each link leads to a file or heading, and the index lists each page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use macrotick_fixtures::{pages, repository};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The links and the anchors of a page.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

/// Returns the anchor of a heading as GitHub and mdBook make it: lower case, no punctuation, a number unless it is the
/// first.
fn anchor(heading: &str, taken: &BTreeSet<String>) -> String {
    let kept = heading.to_lowercase().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>();
    let first = kept.trim().replace(' ', "-");
    let numbered = (1..).map(|number| format!("{first}-{number}"));
    std::iter::once(first.clone()).chain(numbered).find(|name| !taken.contains(name)).expect("endless")
}

fn parse(text: &str) -> Page {
    let (mut page, mut heading) = (Page::default(), None);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => page.links.push(dest_url.into()),
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let name = anchor(&heading.take().unwrap_or_default(), &page.anchors);
                page.anchors.insert(name);
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    page
}

fn read() -> BTreeMap<PathBuf, Page> {
    let text = |path: &PathBuf| std::fs::read_to_string(repository("").join(path)).unwrap();
    pages().into_iter().map(|path| (path.clone(), parse(&text(&path)))).collect()
}

/// Resolves `.` and `..`: the path is relative to the root of the repository.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Returns the page or file of a link, and its anchor. `None`: the link leaves the repository.
fn target(from: &Path, link: &str) -> Option<(PathBuf, Option<String>)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor.to_owned())));
    let folder = from.parent().unwrap_or(Path::new(""));
    Some((if path.is_empty() { from.into() } else { normal(&folder.join(path)) }, anchor))
}

#[test]
fn each_link_leads_to_a_file_or_heading() {
    let (pages, mut broken) = (read(), Vec::new());
    for (path, page) in &pages {
        for link in &page.links {
            let Some((file, anchor)) = target(path, link) else { continue };
            let is_there = match (pages.get(&file), anchor) {
                (Some(page), Some(anchor)) => page.anchors.contains(&anchor),
                (None, Some(_)) => false,
                (_, None) => repository("").join(&file).exists(),
            };
            if !is_there {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

#[test]
fn the_index_lists_each_page() {
    let pages = read();
    let index = Path::new("docs/README.md");
    let listed: BTreeSet<PathBuf> = pages[index].links.iter().filter_map(|link| Some(target(index, link)?.0)).collect();
    let missing: Vec<&PathBuf> = pages.keys().filter(|page| *page != index && !listed.contains(*page)).collect();
    assert!(missing.is_empty(), "docs/README.md does not list {missing:?}");
}

#[test]
fn anchors_are_those_of_the_usual_renderers() {
    let page = parse("# A page\n## `cpu.ds.budget`, and *more*\n## A page\n[x](#a-page-1) ![y](y.png)\n");
    let anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
    assert_eq!(anchors, ["a-page", "a-page-1", "cpudsbudget-and-more"]);
    assert_eq!(page.links, ["#a-page-1", "y.png"]);
    let from = Path::new("docs/how-to/a.md");
    assert_eq!(target(from, "../b.md#c"), Some(("docs/b.md".into(), Some("c".into()))));
    assert_eq!(target(from, "#c"), Some((from.into(), Some("c".into()))));
    assert_eq!(target(from, "https://example.org"), None);
}
