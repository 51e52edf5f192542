//! The sources of a crate as the compiler reads them, without tests, and the names that each module uses. Tests use it
//! to check which parts of the tree depend on which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Macro, UseTree};

/// A module with a file of its own, and the modules within that file.
#[derive(Debug)]
pub struct Source {
    /// The path of the file.
    pub file: PathBuf,
    /// All paths that it uses, without the file's imports: `crate::kit::Scale`, `std::fs::write`. Paths in macros are
    /// included. A `*` at the end stands for all items there.
    pub paths: BTreeSet<String>,
    /// The names of all methods that it calls.
    pub methods: BTreeSet<String>,
}

impl Source {
    /// Returns the paths that it uses at or below some paths.
    pub fn named<'a>(&'a self, paths: &'a [&str]) -> impl Iterator<Item = &'a String> {
        let is_in =
            |path: &str, of: &str| path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
        self.paths.iter().filter(move |path| paths.iter().any(|of| is_in(path, of)))
    }
}

/// Returns all modules of a crate, by its root: `lib.rs` or `main.rs`. Items for tests only are left out.
pub fn sources(root: &Path) -> Vec<Source> {
    let mut all = Vec::new();
    let folder = root.parent().expect("a folder");
    read(root, folder, vec!["crate".into()], &mut all);
    all
}

/// Returns the source of a text that is the root of a crate.
pub fn source(text: &str) -> Source {
    let mut reader = Reader::new(vec!["crate".into()]);
    reader.visit_file(&syn::parse_file(text).expect("Rust"));
    reader.source(PathBuf::new())
}

/// Reads a module's file, and the files of the modules below it, which are in a folder.
fn read(file: &Path, folder: &Path, module: Vec<String>, all: &mut Vec<Source>) {
    let failed = |error: &dyn std::fmt::Display| -> ! { panic!("{}: {error}", file.display()) };
    let text = fs::read_to_string(file).unwrap_or_else(|error| failed(&error));
    let tree = syn::parse_file(&text).unwrap_or_else(|error| failed(&error));
    let mut reader = Reader::new(module.clone());
    reader.visit_file(&tree);
    let below = std::mem::take(&mut reader.below);
    all.push(reader.source(file.to_owned()));
    for child in below {
        // The path starts at this module, because a module within the file may declare the child.
        let folder = child[module.len()..].iter().fold(folder.to_owned(), |folder, name| folder.join(name));
        let places = [folder.with_extension("rs"), folder.join("mod.rs")];
        let file = places.iter().find(|place| place.is_file()).unwrap_or_else(|| panic!("no file of {child:?}"));
        read(file, &folder, child, all);
    }
}

/// A module, and a path in it as it is written.
type Written = (Vec<String>, Vec<String>);

struct Reader {
    /// The module in progress.
    module: Vec<String>,
    paths: Vec<Written>,
    /// The imports, by the names that they define.
    imports: BTreeMap<String, Written>,
    methods: BTreeSet<String>,
    /// The modules that have files of their own.
    below: Vec<Vec<String>>,
}

impl Reader {
    fn new(module: Vec<String>) -> Reader {
        let (paths, imports, methods, below) = Default::default();
        Reader { module, paths, imports, methods, below }
    }

    fn source(self, file: PathBuf) -> Source {
        let paths = self.paths.iter().map(|written| self.whole(written, 0).join("::")).collect();
        Source { file, paths, methods: self.methods }
    }

    /// Returns a path without imports and without `self` and `super`. An import may use a name that another import
    /// defines.
    fn whole(&self, (module, path): &Written, depth: usize) -> Vec<String> {
        let mut module = module.clone();
        let mut rest = &path[..];
        let first = rest[0].clone();
        while let [word, below @ ..] = rest {
            match word.as_str() {
                "self" => {}
                "super" => _ = module.pop(),
                _ => break,
            }
            rest = below;
        }
        match self.imports.get(&first) {
            _ if rest.len() < path.len() => [&module, rest].concat(),
            Some(import) if depth < 4 && import.1 != *path => [&self.whole(import, depth + 1), &rest[1..]].concat(),
            _ => path.clone(),
        }
    }

    fn name(&mut self, path: Vec<String>) {
        self.paths.push((self.module.clone(), path));
    }

    fn import(&mut self, tree: &UseTree, mut prefix: Vec<String>) {
        let (path, name) = match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                return self.import(&path.tree, prefix);
            }
            UseTree::Group(group) => return group.items.iter().for_each(|tree| self.import(tree, prefix.clone())),
            UseTree::Glob(_) => {
                prefix.push("*".into());
                return self.name(prefix);
            }
            UseTree::Name(name) if name.ident == "self" => (prefix.clone(), prefix.last().expect("a path").clone()),
            UseTree::Name(name) => {
                prefix.push(name.ident.to_string());
                (prefix, name.ident.to_string())
            }
            UseTree::Rename(rename) => {
                if rename.ident != "self" {
                    prefix.push(rename.ident.to_string());
                }
                (prefix, rename.rename.to_string())
            }
        };
        self.imports.insert(name, (self.module.clone(), path.clone()));
        self.name(path);
    }

    /// Adds the paths and methods in the tokens of a macro, independent of their meaning there.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons, mut after_dot) = (Vec::new(), 0, false);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    let ident = ident.to_string();
                    if after_dot {
                        self.methods.insert(ident.clone());
                    }
                    if colons != 2 && !path.is_empty() {
                        self.name(std::mem::take(&mut path));
                    }
                    path.push(ident);
                    (colons, after_dot) = (0, false);
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    after_dot = false;
                    continue;
                }
                TokenTree::Punct(punct) => after_dot = punct.as_char() == '.',
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(_) => {}
            }
            if !path.is_empty() {
                self.name(std::mem::take(&mut path));
            }
            colons = 0;
        }
        if !path.is_empty() {
            self.name(path);
        }
    }
}

/// Whether an item exists in tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|one| {
        one.path().is_ident("test")
            || one.path().is_ident("cfg") && one.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// Visits nodes with attributes, except those for tests only.
macro_rules! but_tests {
    ($($visit:ident: $node:ident),* $(,)?) => {$(
        fn $visit(&mut self, node: &'ast syn::$node) {
            if !is_test(&node.attrs) {
                visit::$visit(self, node);
            }
        }
    )*};
}

impl<'ast> Visit<'ast> for Reader {
    but_tests! {
        visit_item_fn: ItemFn,
        visit_item_impl: ItemImpl,
        visit_item_struct: ItemStruct,
        visit_item_enum: ItemEnum,
        visit_item_trait: ItemTrait,
        visit_item_type: ItemType,
        visit_item_const: ItemConst,
        visit_item_static: ItemStatic,
        visit_item_macro: ItemMacro,
        visit_impl_item_fn: ImplItemFn,
        visit_impl_item_const: ImplItemConst,
    }

    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if is_test(&node.attrs) {
            return;
        }
        assert!(!node.attrs.iter().any(|one| one.path().is_ident("path")), "a module elsewhere: {}", node.ident);
        self.module.push(node.ident.to_string());
        match &node.content {
            Some(_) => visit::visit_item_mod(self, node),
            None => self.below.push(self.module.clone()),
        }
        self.module.pop();
    }

    fn visit_item_use(&mut self, node: &'ast syn::ItemUse) {
        if !is_test(&node.attrs) {
            self.import(&node.tree, Vec::new());
        }
    }

    fn visit_path(&mut self, node: &'ast syn::Path) {
        self.name(node.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, node);
    }

    fn visit_expr_method_call(&mut self, node: &'ast syn::ExprMethodCall) {
        self.methods.insert(node.method.to_string());
        visit::visit_expr_method_call(self, node);
    }

    fn visit_macro(&mut self, node: &'ast Macro) {
        visit::visit_macro(self, node);
        self.tokens(node.tokens.clone());
    }

    /// A visibility contains a path, but uses no item.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        source(text).paths.into_iter().collect()
    }

    #[test]
    fn imports_are_followed() {
        let text = "use std::fs::{self as files, File as F}; use files::write; use std::io::*;";
        let named = paths(&format!("{text} fn f() {{ F::create(x); files::rename(a, b); write(y); }}"));
        let known =
            ["std::fs", "std::fs::File", "std::fs::File::create", "std::fs::rename", "std::fs::write", "std::io::*"];
        for path in known {
            assert!(named.contains(&path.to_owned()), "{path} in {named:?}");
        }
        let elsewhere = source("use std::fs; fn f() { fs::copy(); } fn write() {}");
        assert_eq!(elsewhere.named(&["std::fs::write"]).count(), 0);
        assert_eq!(elsewhere.named(&["std::fs"]).count(), 2);
        assert_eq!(elsewhere.named(&["std::f"]).count(), 0);
    }

    #[test]
    fn every_way_out_of_a_module_is_known() {
        let within = "mod a { mod b { use crate::{kit, one::Two as T}; fn f() { super::c(); super::super::d::e(); self::g(); T::h() } } }";
        let named = paths(within);
        for path in
            ["crate::kit", "crate::one::Two", "crate::a::c", "crate::d::e", "crate::a::b::g", "crate::one::Two::h"]
        {
            assert!(named.contains(&path.to_owned()), "{path} in {named:?}");
        }
    }

    #[test]
    fn macros_are_read_and_tests_are_not() {
        let text = "use std::fs; fn f() { assert!(fs::write(a.b(), c).is_ok()); } #[cfg(test)] mod tests { use a::b; }
                    pub(in crate::x) struct S; #[cfg(test)] use c::d; #[cfg(test)] pub mod e; #[cfg(not(test))] use f::g;
                    impl S { #[cfg(test)] fn t() { h::i(); } }";
        let read = source(text);
        assert_eq!(read.named(&["std::fs::write", "f::g"]).count(), 2, "{read:?}");
        assert_eq!(read.named(&["a", "c", "h", "crate::x"]).filter(|path| path.contains("::")).count(), 0, "{read:?}");
        assert!(read.methods.contains("is_ok") && read.methods.contains("b"), "{read:?}");
    }
}
