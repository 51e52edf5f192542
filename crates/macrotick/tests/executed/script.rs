//! Commands in one shell, on this host or in a guest, each with its exit code and its output.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::folder::search_path;

/// Where the shell runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    Host,
    /// A guest of the lab, with options of `macrotick lab exec`.
    Guest(&'static [&'static str]),
}

/// The shell's program, with the commands by their number.
#[derive(Default)]
pub struct Script {
    text: String,
    count: usize,
}

/// The end of a command.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

/// Prints the files of all commands, when the shell ends.
const BEGIN: &str = r#"
of=$(mktemp -d)
finish() {
    trap - EXIT
    number=0
    while [ -e $of/$number.out ]; do
        echo "==== $number $(cat $of/$number.code 2>/dev/null)"; cat $of/$number.out
        echo "==== errors"; cat $of/$number.err
        number=$((number + 1))
    done
    exit 0
}
trap finish EXIT
"#;

impl Script {
    /// Adds text that has no output of its own.
    pub fn prepare(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let _ = writeln!(self.text, "{{ {text}\n}} >$of/preparation 2>&1 || cat $of/preparation");
    }

    /// Adds a file to save.
    pub fn save(&mut self, name: &str, text: &str) {
        let _ =
            writeln!(self.text, "mkdir -p \"$(dirname '{name}')\"; cat >'{name}' <<'END OF FILE'\n{text}END OF FILE");
    }

    /// Adds a command, and returns its number. One that stays gets two seconds for its begin.
    pub fn run(&mut self, command: &str, stays: bool) -> usize {
        let number = self.count;
        self.count += 1;
        let code = format!("echo $? >$of/{number}.code");
        let redirected = format!(">$of/{number}.out 2>$of/{number}.err");
        let _ = match stays {
            true => writeln!(self.text, "{{ {command}\n{code}; }} {redirected} &\nsleep 2"),
            false => writeln!(self.text, "{{ {command}\n}} {redirected}\n{code}"),
        };
        number
    }

    /// Runs all of it, and returns the ends of the commands by their numbers, with the other text that it printed.
    pub fn execute(&self, place: Place, folder: &Path) -> (BTreeMap<usize, Ended>, String) {
        let text = format!("{BEGIN}{}", self.text);
        let mut command = match place {
            Place::Host => Command::new("sh"),
            Place::Guest(options) => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
                command.args(["lab", "exec"]).args(options).args(["--", "/bin/sh"]);
                command
            }
        };
        let ran = command.args(["-c", &text]).env("PATH", search_path()).current_dir(folder).output().unwrap();
        let [output, errors] = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let (ends, rest) = ends(&output);
        (ends, rest + &errors)
    }
}

fn ends(output: &str) -> (BTreeMap<usize, Ended>, String) {
    let mut parts = output.split("==== ");
    let rest = parts.next().unwrap_or_default().to_owned();
    let (mut ends, mut present) = (BTreeMap::new(), None);
    for part in parts {
        let (head, text) = part.split_once('\n').unwrap_or((part, ""));
        match (head, present) {
            ("errors", Some(number)) => ends.entry(number).or_insert_with(Ended::default).errors = text.to_owned(),
            (head, _) => {
                let (number, code) = head.split_once(' ').unwrap_or((head, ""));
                let number: usize = number.parse().unwrap_or_else(|_| panic!("{output}"));
                ends.insert(number, Ended { code: code.parse().ok(), output: text.to_owned(), errors: String::new() });
                present = Some(number);
            }
        }
    }
    (ends, rest)
}

#[test]
fn a_shell_keeps_its_state_and_each_command_has_its_end() {
    let mut script = Script::default();
    script.save("made/a.txt", "it's\n");
    script.prepare("x=1");
    let told = script.run("cat made/a.txt; echo $x # a remark", false);
    let failed = script.run("cd made; echo no >&2; false", false);
    let stays = script.run("echo here; sleep 4", true);
    let last = script.run("ls; exit 7", false);
    let folder = crate::folder::folder("scripts", "one");
    let (ends, rest) = script.execute(Place::Host, &folder);
    let of = |number| {
        let Ended { code, output, errors } = ends[&number].clone();
        (code, output, errors)
    };
    let text = |text: &str| text.to_owned();
    assert_eq!(of(told), (Some(0), text("it's\n1\n"), text("")), "{rest}");
    assert_eq!(of(failed), (Some(1), text(""), text("no\n")));
    assert_eq!(of(stays), (None, text("here\n"), text("")));
    assert_eq!(of(last), (None, text("a.txt\n"), text("")));
}
