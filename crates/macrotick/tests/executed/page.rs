//! The steps of a page.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// A step of a page.
#[derive(Debug, PartialEq)]
pub enum Step {
    Save {
        name: String,
        text: String,
    },
    Run(Run),
    /// A block that is neither a file to save nor a command nor an output.
    Other {
        language: String,
        text: String,
    },
}

/// Commands of one block, and the output of them all.
#[derive(Debug, PartialEq)]
pub struct Run {
    pub commands: Vec<String>,
    pub output: Option<String>,
}

/// Returns the steps of a page, in order.
pub fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut paragraph, mut block) = (Vec::new(), Vec::new(), None);
    for event in Parser::new(page) {
        match event {
            Event::Start(Tag::Paragraph | Tag::Item) => paragraph.clear(),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                block = Some((language.to_string(), String::new()));
            }
            Event::Text(text) | Event::Code(text) => match &mut block {
                Some((_, block)) => block.push_str(&text),
                None => paragraph.push(text.to_string()),
            },
            Event::End(TagEnd::CodeBlock) => {
                let (language, text) = block.take().expect("a block");
                add(&mut steps, &paragraph, language, text);
                paragraph.clear();
            }
            _ => {}
        }
    }
    steps
}

fn add(steps: &mut Vec<Step>, paragraph: &[String], language: String, text: String) {
    if let Some(name) = saved_as(paragraph) {
        return steps.push(Step::Save { name: name.to_owned(), text });
    }
    let last_run = steps.iter_mut().rev().find_map(|step| match step {
        Step::Run(run) => Some(run),
        _ => None,
    });
    match (language.as_str(), last_run) {
        ("sh", _) => steps.push(Step::Run(Run { commands: commands(&text), output: None })),
        ("console", _) => steps.extend(session(&text).into_iter().map(Step::Run)),
        ("text", Some(Run { output: output @ None, .. })) => *output = Some(text),
        _ => steps.push(Step::Other { language, text }),
    }
}

/// Returns the name in `Save this as NAME`, from the paragraph before a block.
fn saved_as(paragraph: &[String]) -> Option<&str> {
    let at = paragraph.iter().position(|part| part.ends_with("Save this as "))?;
    paragraph.get(at + 1).map(String::as_str)
}

/// Returns the commands of a `sh` block, one per line. A line that ends with a backslash goes on.
fn commands(block: &str) -> Vec<String> {
    block.replace("\\\n", " ").lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns the commands of a `console` block, each with the lines below it.
fn session(block: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("# ").or_else(|| line.strip_prefix("$ ")), runs.last_mut()) {
            (Some(command), _) => runs.push(Run { commands: vec![command.to_owned()], output: None }),
            (None, Some(run)) => {
                let output = run.output.get_or_insert_default();
                output.push_str(line);
                output.push('\n');
            }
            (None, None) => panic!("a session that does not begin with a command:\n{block}"),
        }
    }
    runs
}

#[test]
fn a_page_has_files_commands_and_outputs() {
    let page = "Save this as `a.yaml`. It is short:\n\n```yaml\na: 1\n```\n\nRun:\n\n```sh\nls \\\n  -a\nls\n```\n\n\
                ```text\na.yaml\n```\n\n```yaml\nb: 1\n```\n\n```console\n# id\nroot\n$ ls\n```\n";
    let save = Step::Save { name: "a.yaml".into(), text: "a: 1\n".into() };
    let other = Step::Other { language: "yaml".into(), text: "b: 1\n".into() };
    let run = |commands: &[&str], output: Option<&str>| {
        let commands = commands.iter().map(|&command| command.to_owned()).collect();
        Step::Run(Run { commands, output: output.map(str::to_owned) })
    };
    let console = [run(&["id"], Some("root\n")), run(&["ls"], None)];
    let [id, ls] = console;
    assert_eq!(steps(page), [save, run(&["ls    -a", "ls"], Some("a.yaml\n")), other, id, ls]);
}
