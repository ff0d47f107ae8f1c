//! The layers of modules inside a crate: every import points downward, and cycles stay small.
//!
//! The tables are the rule, as in `crates`. What still breaks the rule is listed by name and may
//! only shrink: an exception that no import needs any more is a problem of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Import, Modules};
use super::{Problem, Source};

/// A crate whose modules stand in layers.
struct Layered {
    /// The folder of its sources.
    folder: &'static str,
    /// Modules and folders of modules by path, the lowest layer first. A module may import those of
    /// its own layer and of the layers below it.
    layers: &'static [&'static [&'static str]],
    /// Imports that point upward all the same.
    upward: &'static [(&'static str, &'static str)],
    /// How many files a cycle of imports may have.
    cycle_files_max: usize,
}

const LAYERED: &[Layered] = &[
    Layered {
        folder: "crates/http/src/",
        layers: &[
            &["base64", "header_text", "limits", "mask", "mime_types", "places", "rate"],
            &["credentials", "exchange", "files", "regex", "site", "variables"],
            &["admit", "answer", "builtin", "paths"],
            &["phases", "subrequest"],
            &["backend"],
            &["drive"],
            &["h1"],
            &["health"],
            &["gateway"],
            &["features"],
            &["compile"],
            &["accept"],
            &["fuzz", "worker"],
        ],
        upward: &[],
        cycle_files_max: 3,
    },
    Layered {
        folder: "crates/session/src/",
        layers: &[
            &["captures", "client", "decimal", "forwarded", "identity", "lru", "table", "trusted"],
            &["access", "listen", "wildcards"],
            &["session", "values", "variables"],
            &["builtin", "geo", "keyed", "log", "regex", "split_clients"],
            &["limit_conn", "map", "realip"],
        ],
        upward: &[],
        cycle_files_max: 3,
    },
    Layered {
        folder: "crates/stream/src/",
        layers: &[
            &["session", "site"],
            &["builtin", "serve"],
            &["features"],
            &["compile"],
            &["worker"],
        ],
        upward: &[],
        cycle_files_max: 2,
    },
];

pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    LAYERED.iter().flat_map(|layered| layered.check(sources)).collect()
}

impl Layered {
    fn check(&self, sources: &[Source]) -> Vec<Problem> {
        let modules = Modules::of(sources, self.folder);
        if modules.is_empty() {
            return Vec::new();
        }
        let imports = modules.imports();
        let mut problems = self.without_layer(&modules);
        problems.extend(self.upward_imports(&modules, &imports));
        problems.extend(self.stale_exceptions(&imports));
        problems.extend(self.large_cycles(&modules, &imports));
        problems
    }

    /// Modules that no layer lists.
    fn without_layer(&self, modules: &Modules<'_>) -> Vec<Problem> {
        let missing = |path: &&str| !path.is_empty() && self.layer(path).is_none();
        let what = "this module is in no layer of tidy/layers.rs";
        modules.paths().filter(missing).map(|path| modules.file(path).problem(0, what)).collect()
    }

    fn upward_imports(&self, modules: &Modules<'_>, imports: &[Import]) -> Vec<Problem> {
        let problem = |import: &Import| {
            let target = &modules.file(&import.to).path;
            let what = format!("imports {target}, which is in a layer above it");
            modules.file(&import.from).problem(import.line, what)
        };
        let forbidden = |i: &&Import| self.points_upward(i) && !self.upward.contains(&i.pair());
        imports.iter().filter(forbidden).map(problem).collect()
    }

    /// Exceptions that no import needs.
    fn stale_exceptions(&self, imports: &[Import]) -> Vec<Problem> {
        let upward: BTreeSet<_> =
            imports.iter().filter(|import| self.points_upward(import)).map(Import::pair).collect();
        let problem = |(from, to): &(&str, &str)| Problem {
            path: format!("{}{}", self.folder, from.replace("::", "/")),
            line: 0,
            what: format!("no longer imports {to} from above: take that out of tidy/layers.rs"),
        };
        self.upward.iter().filter(|pair| !upward.contains(*pair)).map(problem).collect()
    }

    fn large_cycles(&self, modules: &Modules<'_>, imports: &[Import]) -> Vec<Problem> {
        let problem = |cycle: BTreeSet<&str>| {
            let files: Vec<_> = cycle.iter().map(|path| &*modules.file(path).path).collect();
            let (count, max) = (files.len(), self.cycle_files_max);
            let what = format!("in a cycle of {count} files, at most {max}: {}", files.join(", "));
            Problem { path: files[0].to_owned(), line: 0, what }
        };
        let large = cycles(imports).into_iter().filter(|cycle| cycle.len() > self.cycle_files_max);
        large.map(problem).collect()
    }

    fn points_upward(&self, import: &Import) -> bool {
        self.layer(&import.from).is_some_and(|own| self.layer(&import.to) > Some(own))
    }

    /// The layer of a module: that of the longest path in the table that it is or is below.
    fn layer(&self, path: &str) -> Option<usize> {
        let holds = |listed: &str| {
            path.strip_prefix(listed).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let all = self.layers.iter().zip(0..).flat_map(|(paths, layer)| {
            paths.iter().filter(|listed| holds(listed)).map(move |listed| (listed.len(), layer))
        });
        all.max().map(|(_, layer)| layer)
    }
}

/// The sets of modules in which each imports every other, directly or not.
fn cycles(imports: &[Import]) -> Vec<BTreeSet<&str>> {
    let mut targets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for import in imports {
        targets.entry(&import.from).or_default().push(&import.to);
    }
    let reached: BTreeMap<_, _> =
        targets.keys().map(|from| (*from, reached_from(from, &targets))).collect();
    let mutual = |from: &str, to: &&str| reached.get(to).is_some_and(|back| back.contains(from));
    let cycle = |from: &str| -> BTreeSet<&str> {
        reached[from].iter().copied().filter(|to| mutual(from, to)).collect()
    };
    let mut found: Vec<_> = targets.keys().map(|from| cycle(from)).collect();
    found.retain(|cycle| cycle.len() > 1);
    found.sort();
    found.dedup();
    found
}

/// Every module that an import of `from` leads to, and those that theirs lead to.
fn reached_from<'a>(from: &str, targets: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<_> = targets.get(from).cloned().unwrap_or_default();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(targets.get(module).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::project_of;

    const SMALL: Layered = Layered {
        folder: "src/",
        layers: &[&["low"], &["middle"], &["high", "low::top"]],
        upward: &[],
        cycle_files_max: 1,
    };

    fn found(layered: &Layered, files: &[(&str, &str)]) -> Vec<String> {
        layered.check(&project_of(files)).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn a_planted_import_from_above_is_found_with_both_files() {
        let files = [
            ("src/low/mod.rs", "use std::fmt;\n\nuse crate::middle::M;\n"),
            ("src/middle.rs", ""),
            ("src/high.rs", "use crate::low::L;\nuse crate::middle::M;\n"),
        ];
        let expected = ["src/low/mod.rs:3: imports src/middle.rs, which is in a layer above it"];
        assert_eq!(found(&SMALL, &files), expected);
    }

    #[test]
    fn a_folder_may_stand_above_its_parent() {
        let files = [
            ("src/low/mod.rs", "mod top;\nuse top::T;\n"),
            ("src/low/top.rs", "use crate::middle::M;\n"),
            ("src/middle.rs", ""),
        ];
        let expected = ["src/low/mod.rs:2: imports src/low/top.rs, which is in a layer above it"];
        assert_eq!(found(&SMALL, &files), expected);
    }

    #[test]
    fn an_exception_holds_as_long_as_it_is_needed() {
        let layered = Layered { upward: &[("low", "middle")], ..SMALL };
        let middle = ("src/middle.rs", "");
        assert_eq!(found(&layered, &[("src/low.rs", "use crate::middle::M;\n"), middle]), [""; 0]);
        let expected =
            ["src/low: no longer imports middle from above: take that out of tidy/layers.rs"];
        assert_eq!(found(&layered, &[("src/low.rs", ""), middle]), expected);
    }

    #[test]
    fn a_module_without_a_layer_is_found() {
        let expected = ["src/unknown.rs: this module is in no layer of tidy/layers.rs"];
        assert_eq!(found(&SMALL, &[("src/unknown.rs", "")]), expected);
    }

    #[test]
    fn a_cycle_of_too_many_files_is_found() {
        let files = [
            ("src/high/mod.rs", "mod a;\nuse a::A;\n"),
            ("src/high/a.rs", "use super::b::B;\n"),
            ("src/high/b.rs", "use super::H;\n"),
        ];
        let expected = ["src/high/a.rs: in a cycle of 3 files, at most 1: src/high/mod.rs, \
                         src/high/a.rs, src/high/b.rs"];
        let layered = Layered { cycle_files_max: 3, ..SMALL };
        assert_eq!(found(&layered, &files), [""; 0]);
        assert_eq!(found(&SMALL, &files).len(), 1, "{expected:?}");
    }
}
