//! The tutorials, executed: each command, in order, with the output that the page shows.
//!
//! A page has files to save (`Save this as NAME`, then a block), commands (`sh` blocks), and the output of a command (a
//! `text` block right after it). Measured times may differ a little, because they depend on the build. All other text
//! must be equal.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use macrotick_fixtures::{read_tree, repository};
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// A step of a tutorial.
#[derive(Debug, PartialEq)]
enum Step {
    Save { name: String, text: String },
    Run { command: String, output: Option<String> },
}

/// Returns the name in `Save this as NAME`, from the paragraph before a block.
fn saved_as(paragraph: &[String]) -> Option<&str> {
    let at = paragraph.iter().position(|part| part.ends_with("Save this as "))?;
    paragraph.get(at + 1).map(String::as_str)
}

fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut paragraph, mut block) = (Vec::new(), Vec::new(), None);
    for event in Parser::new(page) {
        match event {
            Event::Start(Tag::Paragraph) => paragraph.clear(),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                block = Some((language.to_string(), String::new()));
            }
            Event::Text(text) | Event::Code(text) => match &mut block {
                Some((_, block)) => block.push_str(&text),
                None => paragraph.push(text.to_string()),
            },
            Event::End(TagEnd::CodeBlock) => {
                let (language, text) = block.take().expect("a block");
                match (language.as_str(), steps.last_mut()) {
                    ("sh", _) => steps.push(Step::Run { command: text, output: None }),
                    ("text", Some(Step::Run { output: output @ None, .. })) => *output = Some(text),
                    (language, _) => {
                        let name = saved_as(&paragraph).unwrap_or_else(|| panic!("a block of {language}:\n{text}"));
                        steps.push(Step::Save { name: name.to_owned(), text });
                    }
                }
                paragraph.clear();
            }
            _ => {}
        }
    }
    steps
}

/// Whether a command sets up the machine: then the test's user has already done it.
fn is_preparation(command: &str) -> bool {
    ["sudo ", "make ", "export PATH=", "macrotick lab kernel "].iter().any(|start| command.starts_with(start))
}

/// Whether a word of an output is the word of the page. A decimal fraction depends a little on the compiler of the
/// kernel: it may differ by 0.5, or by 5 %.
fn is_same_word(seen: &str, page: &str) -> bool {
    let fraction = |word: &str| word.contains('.').then(|| word.parse::<f64>().ok()).flatten();
    match (fraction(seen), fraction(page)) {
        (Some(seen), Some(page)) => (seen - page).abs() <= f64::max(0.5, page.abs() / 20.0),
        _ => seen == page,
    }
}

/// The words of a line. Measured bars depend on the build; planned ones do not.
fn words(line: &str) -> Vec<&str> {
    let is_bar = |c: char| ('▁'..='█').contains(&c);
    let keeps_bars = line.split_whitespace().any(|word| word == "planned");
    line.split(|c: char| c.is_whitespace() || (is_bar(c) && !keeps_bars)).filter(|word| !word.is_empty()).collect()
}

/// Returns the first line of an output that is not as the page has it, and the line of the page.
fn difference<'a>(seen: &'a str, page: &'a str) -> Option<(&'a str, &'a str)> {
    let (mut seen, mut page) = (seen.trim_end().lines(), page.trim_end().lines());
    loop {
        let (a, b) = match (seen.next(), page.next()) {
            (None, None) => return None,
            (a, b) => (a.unwrap_or("(no line)"), b.unwrap_or("(no line)")),
        };
        let (words_a, words_b) = (words(a), words(b));
        if words_a.len() != words_b.len() || !words_a.iter().zip(&words_b).all(|(a, b)| is_same_word(a, b)) {
            return Some((a, b));
        }
    }
}

/// Makes a folder with the files of the repository's root, and with the product first in `PATH`.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorials").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(repository("examples"), folder.join("examples")).unwrap();
    folder
}

fn run(command: &str, folder: &Path) -> Output {
    let product = Path::new(env!("CARGO_BIN_EXE_macrotick")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(product).chain(std::env::split_paths(&others))).unwrap();
    Command::new("sh").args(["-c", command]).env("PATH", path).current_dir(folder).output().unwrap()
}

fn execute(name: &str) {
    let folder = folder(name);
    let steps = steps(&read_tree(&format!("docs/tutorials/{name}.md")));
    let outputs = steps.iter().filter(|step| matches!(step, Step::Run { output: Some(_), .. })).count();
    assert!(outputs >= 4, "only {outputs} outputs in {name}");
    for step in &steps {
        match step {
            Step::Save { name, text } => std::fs::write(folder.join(name), text).unwrap(),
            Step::Run { command, .. } if is_preparation(command) => {}
            Step::Run { command, output } => {
                let ran = run(command, &folder);
                let [out, errors] = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                // A command that fails prints its error on standard error; other commands show their progress there.
                let seen = if out.is_empty() { &errors } else { &out };
                match output {
                    Some(page) => {
                        if let Some((line, of_page)) = difference(seen, page) {
                            panic!("{name}: {command}has  {line}\npage {of_page}\n{seen}{errors}");
                        }
                    }
                    None => assert!(ran.status.success(), "{name}: {command}{out}{errors}"),
                }
            }
        }
    }
}

#[test]
#[ignore = "needs the lab"]
fn the_first_timetable_is_as_its_page_says() {
    execute("first-timetable");
}

#[test]
#[ignore = "needs the lab"]
fn two_cpus_are_as_their_page_says() {
    execute("two-cpus");
}

#[test]
#[ignore = "needs the lab"]
fn two_containers_and_a_gate_are_as_their_page_says() {
    execute("two-containers-and-a-gate");
}

#[test]
#[ignore = "needs the lab with container engines, takes long"]
fn full_a_container_with_a_budget_is_as_its_page_says() {
    execute("container-with-a-budget");
}

#[test]
fn a_page_has_files_commands_and_outputs() {
    let page =
        "Save this as `a.yaml`. It is short:\n\n```yaml\na: 1\n```\n\nRun:\n\n```sh\nls\n```\n\n```text\na.yaml\n```\n";
    let save = Step::Save { name: "a.yaml".into(), text: "a: 1\n".into() };
    let run = Step::Run { command: "ls\n".into(), output: Some("a.yaml\n".into()) };
    assert_eq!(steps(page), [save, run]);
}

#[test]
fn outputs_differ_in_words_counts_and_times() {
    let is_same = |seen, page| difference(seen, page).is_none();
    assert!(is_same("a  ▇▆ 1.25\n b 2 \n", "a ▁ 0.9\nb 2"));
    assert!(is_same("planner 9116.3", "planner 9200.1"));
    assert!(!is_same("planner 9116.3", "planner 10004.2"));
    assert!(!is_same("sensor 2.5", "sensor 3.1"));
    assert!(!is_same("500 misses", "501 misses"));
    assert!(!is_same("a\nb", "a"));
    assert!(!is_same("planned ▇▆", "planned ▇▁"));
}
