//! The options that a source tree defines, and which of them a user chooses.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cache;
use crate::command::read_lossy;
use crate::error::LabError;

/// Returns all options of a tree by their names without `CONFIG_`. The value tells whether the option has a prompt: others
/// follow from the options that select them.
pub(super) fn prompts(tree: &Path) -> Result<BTreeMap<String, bool>, LabError> {
    let mut all = BTreeMap::new();
    let is_kconfig = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("Kconfig"));
    for path in cache::files_below(tree)?.into_iter().filter(|path| is_kconfig(path)) {
        add(&read_lossy(&tree.join(path)), &mut all);
    }
    Ok(all)
}

fn add(text: &str, all: &mut BTreeMap<String, bool>) {
    let mut name = None;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("config" | "menuconfig"), Some(next)) => {
                all.entry(next.to_owned()).or_insert(false);
                name = Some(next.to_owned());
            }
            (Some("choice" | "menu" | "endmenu" | "endchoice" | "comment" | "help"), _) => name = None,
            (Some("prompt"), Some(_)) => mark(&name, all),
            (Some("bool" | "tristate" | "string" | "int" | "hex"), Some(text)) if text.starts_with(['"', '\'']) => {
                mark(&name, all)
            }
            _ => {}
        }
    }
}

fn mark(name: &Option<String>, all: &mut BTreeMap<String, bool>) {
    if let Some(name) = name {
        all.insert(name.clone(), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_with_a_prompt_is_chosen() {
        let mut all = BTreeMap::new();
        let text = "config A\n\tbool \"a\"\n\thelp\n\t  bool \"no\"\n\nconfig B\n\tbool\n\ndefault y\nmenuconfig C\n\ttristate\n\tprompt \"c\"\n\
                    choice\n\tprompt \"one of\"\nconfig D\n\tdef_bool y\n";
        add(text, &mut all);
        // The same option for another architecture, without a prompt.
        add("config A\n\tbool\n", &mut all);
        let expected = [("A", true), ("B", false), ("C", true), ("D", false)];
        assert_eq!(all, expected.map(|(name, chosen)| (name.to_owned(), chosen)).into());
    }
}
