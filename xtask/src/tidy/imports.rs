//! Which module of a crate imports which: the files of a crate as a graph.
//!
//! Read from the text, not from a compiler: `use` trees, and paths in the code that begin with
//! `crate`, `self`, `super` or an imported or child module. A path through a re-export counts as an
//! import of the module that defines the item; the re-export itself does not count. Test modules
//! are not looked at.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::SourceFile;
use super::code::{code, is_word};

/// Re-exports of re-exports that are followed; more is a circle.
const REEXPORTS_MAX: usize = 8;

/// The modules of a crate by path, such as `exchange::body`. The crate's root is the empty path.
pub(super) struct Modules<'a> {
    by_path: BTreeMap<String, Module<'a>>,
}

/// A module that has a file of its own.
pub(super) struct Module<'a> {
    pub(super) file: &'a SourceFile,
    code: String,
    /// What its names stand for: `use` lines and child modules.
    names: HashMap<String, String>,
    /// Of these, the ones that other modules see.
    reexports: BTreeSet<String>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    pub(super) from: String,
    pub(super) to: String,
    /// The first line in `from` that does.
    pub(super) line: usize,
}

impl<'a> Modules<'a> {
    /// The modules below `folder`, which ends with a slash: a crate's `src/`.
    pub(super) fn of(sources: &'a [SourceFile], folder: &str) -> Self {
        let mut by_path = BTreeMap::new();
        for file in sources.iter().filter(|file| file.is_rust()) {
            if let Some(name) = file.path.strip_prefix(folder) {
                by_path.insert(module_path(name), Module::read(file));
            }
        }
        let mut modules = Self { by_path };
        modules.leave_out_tests();
        modules.name_children();
        modules
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.by_path.keys().map(String::as_str)
    }

    /// The module's code, without comments, literals and tests.
    pub(super) fn code(&self, path: &str) -> &str {
        &self.by_path[path].code
    }

    pub(super) fn file(&self, path: &str) -> &'a SourceFile {
        self.by_path[path].file
    }

    /// Every import of one module by another, each pair once.
    pub(super) fn imports(&self) -> Vec<Import> {
        let mut found = BTreeMap::new();
        for (from, module) in &self.by_path {
            for (line, path) in module.paths() {
                if let Some(to) = self.definer(from, &path, REEXPORTS_MAX)
                    && to != *from
                {
                    found.entry((from.clone(), to)).or_insert(line);
                }
            }
        }
        found.into_iter().map(|((from, to), line)| Import { from, to, line }).collect()
    }

    /// The modules that name something of another crate below `foreign`, such as `wire::http1`,
    /// each with the first line that does.
    pub(super) fn users_of(&self, foreign: &str) -> impl Iterator<Item = (&str, usize)> {
        let line = move |module: &Module<'_>| module.line_that_names(foreign);
        self.by_path.iter().filter_map(move |(path, module)| Some((path.as_str(), line(module)?)))
    }

    fn leave_out_tests(&mut self) {
        let mut tests = BTreeSet::new();
        for (path, module) in &self.by_path {
            let mut after_cfg = false;
            for line in module.code.lines().map(str::trim).filter(|line| !line.is_empty()) {
                if after_cfg && let Some(name) = declared_module(line) {
                    tests.insert(join(path, name));
                }
                after_cfg = line.starts_with("#[cfg(") && line.contains("test");
            }
        }
        self.by_path.retain(|path, _| !tests.iter().any(|test| is_within(path, test)));
    }

    fn name_children(&mut self) {
        let paths: Vec<_> = self.by_path.keys().filter(|path| !path.is_empty()).cloned().collect();
        for path in paths {
            let (parent, name) = path.rsplit_once("::").unwrap_or(("", &path));
            if let Some(parent) = self.by_path.get_mut(parent) {
                parent.names.entry(name.to_owned()).or_insert(format!("self::{name}"));
            }
        }
    }

    /// The module with a file that defines what `path` names in `from`.
    fn definer(&self, from: &str, path: &str, reexports: usize) -> Option<String> {
        let path = self.absolute(from, path)?;
        let words: Vec<_> = path.split("::").filter(|word| !word.is_empty()).collect();
        let known =
            (0..=words.len()).rev().find(|n| self.by_path.contains_key(&words[..*n].join("::")))?;
        let module = words[..known].join("::");
        let Some(next) = words.get(known).filter(|_| reexports > 0) else { return Some(module) };
        let there = &self.by_path[&module];
        if !there.reexports.contains(*next) {
            return Some(module);
        }
        let rest: String = words[known + 1..].iter().map(|word| format!("::{word}")).collect();
        let target = format!("{}{rest}", there.names[*next]);
        self.definer(&module, &target, reexports - 1).or(Some(module))
    }

    /// The path from the crate's root; `None`: it leads out of the crate.
    fn absolute(&self, from: &str, path: &str) -> Option<String> {
        let (first, rest) = path.split_once("::").unwrap_or((path, ""));
        match first {
            "crate" => Some(rest.to_owned()),
            "self" => Some(join(from, rest)),
            "super" => {
                let parent = from.rsplit_once("::").map_or("", |(parent, _)| parent);
                match rest.split("::").next() {
                    Some("super") => self.absolute(parent, rest),
                    _ => Some(join(parent, rest)),
                }
            }
            name => {
                let meant = self.by_path.get(from)?.names.get(name)?;
                let begins_itself = meant.split("::").next() == Some(name);
                (!begins_itself).then(|| self.absolute(from, &join(meant, rest)))?
            }
        }
    }
}

impl Import {
    /// The paths of both modules.
    pub(super) fn pair(&self) -> (&str, &str) {
        (&self.from, &self.to)
    }
}

impl<'a> Module<'a> {
    fn read(file: &'a SourceFile) -> Self {
        let code = without_inline_tests(code(file.text()));
        let (mut names, mut reexports) = (HashMap::new(), BTreeSet::new());
        for statement in statements(&code) {
            for (path, name) in expand(statement.tree) {
                if statement.is_public {
                    reexports.insert(name.clone());
                }
                names.insert(name, path);
            }
        }
        Self { file, code, names, reexports }
    }

    /// The paths that it uses, with their lines; re-exports are not uses.
    fn paths(&self) -> Vec<(usize, String)> {
        let mut paths = Vec::new();
        let mut rest = self.code.clone();
        for Statement { at, is_public, tree } in statements(&self.code) {
            let end = at + "use ".len() + tree.len();
            rest.replace_range(at..end, &" ".repeat(end - at));
            let line = line_of(&self.code, at);
            let used = expand(tree).into_iter().filter(|_| !is_public);
            paths.extend(used.map(|(path, _)| (line, path)));
        }
        for (at, path) in written_paths(&rest) {
            let first = path.split("::").next().unwrap_or_default();
            if matches!(first, "crate" | "self" | "super") || self.names.contains_key(first) {
                paths.push((line_of(&self.code, at), path.to_owned()));
            }
        }
        paths
    }

    /// The first line that names something of another crate below `foreign`; re-exports count.
    fn line_that_names(&self, foreign: &str) -> Option<usize> {
        let used = statements(&self.code).flat_map(|statement| {
            expand(statement.tree).into_iter().map(move |(path, _)| (statement.at, path))
        });
        let written = written_paths(&self.code).map(|(at, path)| (at, self.in_full(path)));
        let first = used
            .chain(written)
            .filter(|(_, path)| is_within(path, foreign))
            .map(|(at, _)| at)
            .min();
        first.map(|at| line_of(&self.code, at))
    }

    /// The path with what its first word stands for.
    fn in_full(&self, path: &str) -> String {
        let (first, rest) = path.split_once("::").unwrap_or((path, ""));
        self.names.get(first).map_or_else(|| path.to_owned(), |meant| join(meant, rest))
    }
}

/// Whether the module `path` is `outer` or below it.
pub(super) fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// `a/b/mod.rs` and `a/b.rs` are `a::b`; `lib.rs` is the root.
fn module_path(name: &str) -> String {
    let name = name.trim_end_matches(".rs");
    let name = name.strip_suffix("/mod").unwrap_or(name);
    if matches!(name, "lib" | "main") { String::new() } else { name.replace('/', "::") }
}

fn join(path: &str, rest: &str) -> String {
    match (path, rest) {
        ("", rest) => rest.to_owned(),
        (path, "") => path.to_owned(),
        (path, rest) => format!("{path}::{rest}"),
    }
}

/// The name in `mod name;`, whatever stands before `mod`.
fn declared_module(line: &str) -> Option<&str> {
    let (_, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
    name.chars().all(is_word).then_some(name)
}

/// The code up to `#[cfg(test)] mod name {`, which ends a file.
fn without_inline_tests(mut code: String) -> String {
    let is_tests = |at: &usize| {
        let Some((attribute, after)) = code[*at..].split_once(']') else { return false };
        let line = after.trim_start().lines().next().unwrap_or_default();
        attribute.contains("test") && line.starts_with("mod ") && line.ends_with('{')
    };
    let end = code.match_indices("#[cfg(").map(|(at, _)| at).find(is_tests);
    code.truncate(end.unwrap_or(code.len()));
    code
}

/// A `use` statement.
struct Statement<'a> {
    at: usize,
    is_public: bool,
    tree: &'a str,
}

fn statements(code: &str) -> impl Iterator<Item = Statement<'_>> {
    code.match_indices("use ").filter_map(|(at, _)| {
        let before = code[..at].rsplit(['\n', ';', '{', '}']).next()?.trim();
        let is_public = before.starts_with("pub");
        let tree = &code[at + 4..at + 4 + code[at + 4..].find(';')?];
        (is_public || before.is_empty()).then_some(Statement { at, is_public, tree })
    })
}

/// The paths of a `use` tree, each with the name it is known by.
fn expand(tree: &str) -> Vec<(String, String)> {
    let Some((prefix, inner)) = tree.split_once('{') else { return expand_one(tree) };
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    let whole = |branch: &str| format!("{}{}", prefix.trim(), branch.trim());
    branches(inner).into_iter().flat_map(|branch| expand(&whole(branch))).collect()
}

fn expand_one(path: &str) -> Vec<(String, String)> {
    let (path, alias) = match path.split_once(" as ") {
        Some((path, alias)) => (path.trim(), Some(alias.trim())),
        None => (path.trim(), None),
    };
    let path = path.strip_suffix("::self").unwrap_or(path).trim_start_matches("::");
    let name = alias.or(path.rsplit("::").next()).unwrap_or_default();
    if path.is_empty() { Vec::new() } else { vec![(path.to_owned(), name.to_owned())] }
}

/// The parts between commas that stand in no inner braces.
fn branches(tree: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_usize, 0);
    for (at, character) in tree.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&tree[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[from..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Paths of two words at least that stand in the code.
fn written_paths(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(colons) = code[from..].find("::").map(|at| from + at) {
            let start = code[..colons].rfind(|c| !is_word(c)).map_or(0, |at| at + 1);
            let in_path = |c: char| is_word(c) || c == ':';
            let end = code[colons..].find(|c| !in_path(c)).map_or(code.len(), |at| colons + at);
            from = end.max(colons + 2);
            let path = code[start..end].trim_end_matches(':');
            if !path.starts_with(':') && start < colons {
                return Some((start, path));
            }
        }
        None
    })
}

fn line_of(code: &str, at: usize) -> usize {
    1 + code[..at].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::project_of;

    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let sources = project_of(files);
        let modules = Modules::of(&sources, "src/");
        let text = |i: &Import| format!("{}:{} {}", i.from, i.line, i.to);
        modules.imports().iter().map(text).collect()
    }

    #[test]
    fn a_tree_of_paths_is_an_import_of_each() {
        let a = "use std::fmt;\nuse crate::{\n    b::{self, C},\n    d::e as f,\n};\n\
                 use super::b::X;\n";
        let files = [("src/a.rs", a), ("src/b.rs", ""), ("src/d/mod.rs", ""), ("src/d/e.rs", "")];
        assert_eq!(imports(&files), ["a:2 b", "a:2 d::e"]);
    }

    #[test]
    fn paths_in_the_code_count_and_comments_do_not() {
        let a = "// crate::d::x\nfn f() { crate::b::g(); super::c::<u8>(); }\n";
        let files = [("src/a.rs", a), ("src/b.rs", ""), ("src/d.rs", ""), ("src/lib.rs", "mod a;")];
        assert_eq!(imports(&files), ["a:2 ", "a:2 b"]);
    }

    #[test]
    fn a_module_that_was_imported_is_known_by_its_name() {
        let files = [
            ("src/a.rs", "use crate::b;\nfn f() { b::c::d() }\n"),
            ("src/b/mod.rs", ""),
            ("src/b/c.rs", ""),
        ];
        assert_eq!(imports(&files), ["a:1 b", "a:2 b::c"]);
    }

    #[test]
    fn what_is_exported_again_belongs_to_who_defines_it() {
        let b = "mod c;\npub use c::D;\npub(crate) use super::e::F as G;\n";
        let files = [
            ("src/a.rs", "use crate::b::{D, G, H};\n"),
            ("src/b/mod.rs", b),
            ("src/b/c.rs", ""),
            ("src/e.rs", ""),
        ];
        assert_eq!(imports(&files), ["a:1 b", "a:1 b::c", "a:1 e"]);
    }

    #[test]
    fn tests_are_left_out() {
        let a = "#[cfg(test)]\nmod tests;\nuse crate::b::C;\n\
                 #[cfg(all(not(odd), test))]\nmod more {\n    use crate::d::E;\n}\n";
        let files = [
            ("src/a/mod.rs", a),
            ("src/a/tests.rs", "use crate::d::E;\n"),
            ("src/b.rs", ""),
            ("src/d.rs", ""),
        ];
        assert_eq!(imports(&files), ["a:3 b"]);
    }

    #[test]
    fn what_is_named_of_another_crate_is_found_however_it_is_written() {
        let users = |text: &str| {
            let sources = project_of(&[("src/a.rs", text)]);
            let modules = Modules::of(&sources, "src/");
            modules.users_of("b::c").map(|(_, line)| line).collect::<Vec<_>>()
        };
        assert_eq!(users("use b::c;\n"), [1]);
        assert_eq!(users("\nuse ::b::{\n    X,\n    c::{D, E},\n};\n"), [2]);
        assert_eq!(users("pub(crate) use b::c::D as E;\n"), [1]);
        assert_eq!(users("\n\nfn f() { b::c::g(); }\n"), [3]);
        assert_eq!(users("use b as x;\nfn f() { x::c::g(); }\n"), [2]);
        assert_eq!(users("// b::c\nuse b::cd::E;\nfn f() { b::d::c::g(); }\n"), [0; 0]);
    }

    #[test]
    fn a_parent_that_names_its_child_imports_it() {
        let files =
            [("src/a/mod.rs", "mod b;\nfn f() { b::g(); }\n"), ("src/a/b.rs", "use super::X;\n")];
        assert_eq!(imports(&files), ["a:2 a::b", "a::b:1 a"]);
    }
}
