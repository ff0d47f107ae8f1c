//! A type's name means one thing: no two types of the workspace have the same.
//!
//! Tests are left out, and so is an alias that gives a type its own name again (`type Pattern =
//! session::regex::Pattern<Exchange>`). The names in the table are exceptions, each with the number
//! of its types, which may only shrink.

use std::collections::{BTreeMap, BTreeSet};

use super::code::is_word;
use super::imports::Modules;
use super::{Problem, SourceFile};

/// Names of several types, and of how many.
const SHARED: &[(&str, usize)] = &[
    // A header line as a request has it, and as it is stored and sent.
    ("Field", 2),
    // Two implementations of one type, with and without Lua.
    ("Script", 2),
    // The virtual server, and a server of an upstream group.
    ("Server", 2),
    // A setting's value, and bytes shown in a log line.
    ("Text", 2),
];

const KINDS: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    check_with(sources, SHARED)
}

fn check_with(sources: &[SourceFile], shared: &[(&str, usize)]) -> Vec<Problem> {
    let folders: BTreeSet<String> = sources.iter().filter_map(source_folder).collect();
    let mut definitions: BTreeMap<String, Vec<TypeDefinition<'_>>> = BTreeMap::new();
    for folder in &folders {
        let modules = Modules::of(sources, folder);
        for path in modules.paths() {
            for (name, line) in types(modules.code(path)) {
                let definition = TypeDefinition { file: modules.file(path), line };
                definitions.entry(name).or_default().push(definition);
            }
        }
    }
    let mut problems = Vec::new();
    for (name, found) in &definitions {
        let allowed = shared.iter().find(|(shared, _)| shared == name).map_or(1, |(_, n)| *n);
        if found.len() > allowed {
            problems.extend(found.iter().map(|definition| definition.problem(name, found)));
        }
    }
    problems.extend(shared.iter().filter_map(|(name, allowed)| {
        let count = definitions.get(*name).map_or(0, Vec::len);
        (count < *allowed && !definitions.is_empty()).then(|| Problem {
            path: "xtask/src/tidy/type_names.rs".into(),
            line: 0,
            what: format!("{name} is the name of {count} types now: lower its number or remove it"),
        })
    }));
    problems
}

struct TypeDefinition<'a> {
    file: &'a SourceFile,
    line: usize,
}

impl TypeDefinition<'_> {
    fn problem(&self, name: &str, all: &[TypeDefinition<'_>]) -> Problem {
        let is_other = |other: &&TypeDefinition<'_>| {
            (&other.file.path, other.line) != (&self.file.path, self.line)
        };
        let others: Vec<_> =
            all.iter().filter(is_other).map(|other| other.file.path.as_str()).collect();
        let what = format!("{name} is also the name of a type in {}", others.join(", "));
        self.file.problem(self.line, what)
    }
}

/// The folder of a crate's sources that a file is in.
fn source_folder(file: &SourceFile) -> Option<String> {
    let name = file.crate_name().filter(|_| file.is_rust())?;
    let folder = if name == "xtask" { "xtask/src/".into() } else { format!("crates/{name}/src/") };
    file.path.starts_with(&folder).then_some(folder)
}

/// The names of the types that the code defines, with their lines. Types of a trait or of its
/// implementations are indented, and do not count.
fn types(code: &str) -> impl Iterator<Item = (String, usize)> {
    code.lines().zip(1..).filter_map(|(line, number)| Some((type_in(line)?, number)))
}

fn type_in(line: &str) -> Option<String> {
    let is_indented = line.starts_with(' ');
    let mut words = line.split_whitespace().peekable();
    if words.peek()?.starts_with("pub") {
        // `pub(in path)` is two words.
        if words.next() == Some("pub(in") {
            words.next();
        }
    }
    let kind = words.next().filter(|word| KINDS.contains(word))?;
    let rest = words.next()?;
    let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
    let is_alias = kind == "type";
    if name.is_empty() || (is_alias && (is_indented || renames_nothing(line, &name))) {
        return None;
    }
    Some(name)
}

/// Whether a line is `type Name = path::Name<...>`.
fn renames_nothing(line: &str, name: &str) -> bool {
    let Some((_, meant)) = line.split_once('=') else { return false };
    let path = meant.trim().split(['<', ';']).next().unwrap_or_default();
    path.rsplit("::").next() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::project_of;

    fn found(files: &[(&str, &str)], shared: &[(&str, usize)]) -> Vec<String> {
        check_with(&project_of(files), shared).iter().map(Problem::to_string).collect()
    }

    const TWO: [(&str, &str); 2] = [
        ("crates/http/src/a.rs", "// struct Found\npub(crate) struct Found<'a> {}\n"),
        ("crates/wire/src/b/mod.rs", "use x::Found;\n\npub enum Found {}\n"),
    ];

    #[test]
    fn a_planted_namesake_is_found_at_both_places() {
        let expected = [
            "crates/http/src/a.rs:2: Found is also the name of a type in crates/wire/src/b/mod.rs",
            "crates/wire/src/b/mod.rs:3: Found is also the name of a type in crates/http/src/a.rs",
        ];
        assert_eq!(found(&TWO, &[]), expected);
    }

    #[test]
    fn tests_fields_and_aliases_of_the_same_name_do_not_count() {
        let a =
            "struct Found {\n    Other: u8,\n}\n#[cfg(test)]\nmod tests {\n    struct B {}\n}\n";
        let b = "type Found = crate::a::Found<u8>;\nstruct B(Found);\nimpl X for B {\n    \
                 type Found = u8;\n}\n#[cfg(test)]\nmod tests;\n";
        let files = [
            ("crates/http/src/a.rs", a),
            ("crates/http/src/b/mod.rs", b),
            ("crates/http/src/b/tests.rs", "struct Found;\n"),
            ("crates/http/tests/c.rs", "struct Found;\n"),
        ];
        assert_eq!(found(&files, &[]), [""; 0]);
    }

    #[test]
    fn an_exception_may_only_shrink() {
        assert_eq!(found(&TWO, &[("Found", 2)]), [""; 0]);
        let [one, _] = TWO;
        let gone = "xtask/src/tidy/type_names.rs: Found is the name of 1 types now: lower its \
                    number or remove it";
        assert_eq!(found(&[one], &[("Found", 2)]), [gone]);
        let mut three = TWO.to_vec();
        three.push(("xtask/src/c.rs", "trait Found: Sized {}\n"));
        assert_eq!(found(&three, &[("Found", 2)]).len(), 3);
    }
}
