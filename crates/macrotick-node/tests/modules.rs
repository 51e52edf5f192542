//! The modules use each other in one direction: a folder uses only the folders before it, and there is no cycle of
//! modules.
//!
//! A module uses another if it names it. A method call does not name a module. But a method is in the module that
//! defines its type. Code with a value of this type names the type, or a type that contains it. Therefore every cycle
//! of modules shows in names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The folders in their order. Each uses only those before it.
const ROOMS: [&str; 8] = ["error", "block", "deployment", "process", "workload", "backend", "run", "live"];
/// The modules that may use each other: a run has its supervisor, which restarts tasks of the run.
const ALLOWED: [(&str, &str); 1] = [("run::resources", "run::supervisor")];

/// The modules that each module uses, by their paths below the crate.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Collects the sources below a folder by the path of their module, without their tests.
fn sources(folder: &Path, module: &str, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let name = match stem {
            "mod" | "lib" => module.to_owned(),
            _ if module.is_empty() => stem.to_owned(),
            _ => format!("{module}::{stem}"),
        };
        match path.is_dir() {
            true => sources(&path, &name, all),
            false => _ = all.insert(name, product(&fs::read_to_string(&path).unwrap())),
        }
    }
}

/// Returns a source without comments and tests.
fn product(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let text = lines.join("\n");
    let tests =
        ["#[cfg(test)]\nmod tests", "#[cfg(test)]\npub mod tests"].iter().filter_map(|begin| text.find(begin)).min();
    text[..tests.unwrap_or(text.len())].to_owned()
}

/// Returns the paths of this crate that a source names: `crate::a::b`, `super::c`, `super::super::d`, `self::e`, and
/// each path of `crate::a::{b, c::d}`.
fn named(text: &str, module: &str) -> Vec<String> {
    let above = |module: &str| module.rsplit_once("::").map_or("", |(above, _)| above).to_owned();
    let mut all = Vec::new();
    for (way, from) in [("crate::", String::new()), ("self::", module.into()), ("super::", above(module))] {
        for (at, _) in text.match_indices(way) {
            let is_word = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if is_word || text[..at].ends_with("pub(in ") {
                continue;
            }
            let (mut rest, mut from) = (&text[at + way.len()..], from.clone());
            while let Some(further) = rest.strip_prefix("super::") {
                (rest, from) = (further, above(&from));
            }
            paths(rest, &from, &mut all);
        }
    }
    all
}

/// Returns the types with methods of their own in a source.
fn types_with_methods(text: &str) -> Vec<&str> {
    fn of(line: &str) -> Option<&str> {
        let rest = line.strip_prefix("impl")?.strip_suffix('{').filter(|rest| !rest.contains(" for "))?;
        let name = if rest.starts_with('<') { rest.split_once("> ")?.1 } else { rest.trim_start() };
        name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    }
    text.lines().filter_map(of).collect()
}

fn defines(text: &str, name: &str) -> bool {
    let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    ["struct ", "enum ", "union "].iter().any(|kind| {
        let definition = format!("{kind}{name}");
        text.match_indices(&definition).any(|(at, _)| is_whole(&text[at + definition.len()..]))
    })
}

/// Returns the modules directly below a module that its source names without a longer path.
fn named_below(text: &str, module: &str, modules: &BTreeMap<String, String>) -> Vec<String> {
    let below = modules.keys().filter(|other| other.rsplit_once("::").is_some_and(|(above, _)| above == module));
    let is_named = |other: &&String| {
        let way = format!("{}::", other.rsplit("::").next().unwrap_or_default());
        let is_word = |at: usize| text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        text.match_indices(&way).any(|(at, _)| !is_word(at))
    };
    below.filter(is_named).cloned().collect()
}

/// Collects the paths at the start of a text, after a prefix, and each path in braces. Returns the rest of the text.
fn paths<'a>(text: &'a str, prefix: &str, all: &mut Vec<String>) -> &'a str {
    let join = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}::{name}") };
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            match rest.strip_prefix('}') {
                Some(behind) => return behind,
                None => rest = paths(rest, prefix, all),
            }
            assert!(!rest.is_empty(), "a brace is not closed");
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '*').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let path = if name == "self" || name == "*" { prefix.to_owned() } else { join(name) };
    let rest = match rest.strip_prefix("::") {
        Some(below) => return paths(below, &path, all),
        None => rest,
    };
    all.push(path);
    // Skip another name for the path.
    rest.strip_prefix(" as ").map_or(rest, |other| other.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Returns the module that a path leads into: the longest part of the path that is a module.
fn module_of<'a>(path: &'a str, modules: &BTreeMap<String, String>) -> &'a str {
    let mut part = path;
    while !part.is_empty() && !modules.contains_key(part) {
        part = part.rsplit_once("::").map_or("", |(above, _)| above);
    }
    part
}

/// Returns all sources of the crate, by module.
fn all_sources() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut all);
    all
}

fn uses() -> Uses {
    let all = all_sources();
    let of = |(module, text): (&String, &String)| {
        let mut used: BTreeSet<String> =
            named(text, module).iter().map(|path| module_of(path, &all).to_owned()).collect();
        used.extend(named_below(text, module, &all));
        (module.clone(), used.into_iter().filter(|used| used != module && !used.is_empty()).collect())
    };
    all.iter().map(of).collect()
}

/// Returns a way from a module back to it.
fn cycle(uses: &Uses) -> Option<Vec<String>> {
    fn visit(uses: &Uses, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        let here = way.last().expect("a way has a beginning").clone();
        for next in uses.get(&here).into_iter().flatten() {
            if let Some(begin) = way.iter().position(|one| one == next) {
                way.drain(..begin);
                way.push(next.clone());
                return true;
            }
            if !done.contains(next) {
                way.push(next.clone());
                if visit(uses, way, done) {
                    return true;
                }
                way.pop();
            }
        }
        done.insert(here);
        false
    }
    let mut done = BTreeSet::new();
    uses.keys().find_map(|module| {
        let mut way = vec![module.clone()];
        (!done.contains(module) && visit(uses, &mut way, &mut done)).then_some(way)
    })
}

#[test]
fn no_module_uses_one_that_uses_it() {
    let mut uses = uses();
    assert!(uses.len() > 40 && uses.values().map(BTreeSet::len).sum::<usize>() > 150, "{uses:?}");
    for (one, other) in ALLOWED {
        for (from, to) in [(one, other), (other, one)] {
            let is_there = uses.get_mut(from).is_some_and(|used| used.remove(to));
            assert!(is_there, "{from} does not use {to}: the exception is not needed");
        }
    }
    assert_eq!(cycle(&uses), None);
}

#[test]
fn methods_stand_where_their_type_is_defined() {
    let sources = all_sources();
    let each = sources.iter().flat_map(|(module, text)| {
        let elsewhere = types_with_methods(text).into_iter().filter(|name| !defines(text, name));
        elsewhere.map(move |name| format!("{module}: {name}"))
    });
    assert_eq!(each.collect::<Vec<_>>(), [""; 0]);
    let methods = sources.values().map(|text| types_with_methods(text).len()).sum::<usize>();
    assert!(methods > 40, "{methods}");
}

#[test]
fn a_folder_uses_those_before_it() {
    let place = |module: &str| {
        let room = module.split("::").next().unwrap_or_default();
        ROOMS.iter().position(|one| *one == room).unwrap_or_else(|| panic!("{module} is in no folder of the list"))
    };
    for (module, used) in uses().iter().filter(|(module, _)| !module.is_empty()) {
        let back = used.iter().find(|used| place(used) > place(module));
        assert_eq!(back, None, "{module} uses it");
    }
}

#[test]
fn paths_are_understood() {
    let named = |text: &str| named(text, "a::b");
    assert_eq!(named("use crate::x::y::{self, Z, w::{V, U as T}};"), ["x::y", "x::y::Z", "x::y::w::V", "x::y::w::U"]);
    assert_eq!(named("super::c::call(crate::d::E)"), ["d::E", "a::c::call"]);
    assert_eq!(
        named("use super::{c, d::E}; super::super::f::G; self::h; Self::new()"),
        ["a::b::h", "a::c", "a::d::E", "f::G"]
    );
    assert_eq!(
        types_with_methods("impl A {\nimpl<'a, T: X> B<'a> {\nimpl Run<'_> {\nimpl Drop for C {"),
        ["A", "B", "Run"]
    );
    assert!(defines("pub struct Run<'a> {", "Run") && !defines("struct Runner;", "Run"));
    assert_eq!(named("pub(super) fn f() {} use macrotick_host::sys;"), [""; 0]);
    let uses = |pairs: &[(&str, &str)]| -> Uses {
        let mut uses = Uses::new();
        for (from, to) in pairs {
            uses.entry(from.to_string()).or_default().insert(to.to_string());
        }
        uses
    };
    assert_eq!(cycle(&uses(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    assert_eq!(cycle(&uses(&[("a", "b"), ("b", "c"), ("c", "b")])), Some(["b", "c", "b"].map(String::from).to_vec()));
}
