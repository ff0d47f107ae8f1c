//! The layers of modules inside a crate: every import points downward, and no files import each
//! other in a cycle.
//!
//! The tables are the rule, as in `crates`. Exceptions are listed by name and may only shrink: one
//! that no import needs any more is a problem of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Import, Modules, is_within};
use super::{Problem, SourceFile};

/// A crate whose modules stand in layers.
struct LayeredCrate {
    /// The folder of its sources.
    folder: &'static str,
    /// Modules and folders of modules by path, the lowest layer first. A module may import those of
    /// its own layer and of the layers below it. Empty: only cycles are looked for.
    layers: &'static [&'static [&'static str]],
    /// Imports that point upward all the same.
    upward: &'static [(&'static str, &'static str)],
    /// The modules of each cycle of imports that may be.
    cycles: &'static [&'static [&'static str]],
    /// Modules and folders, each with a module of another crate from which it imports nothing.
    barred: &'static [(&'static str, &'static str)],
}

const LAYERED: &[LayeredCrate] = &[
    LayeredCrate::without_cycles("crates/wire/src/"),
    LayeredCrate {
        // A fill gives its key back to its zone.
        cycles: &[&["fills", "zone"]],
        ..LayeredCrate::without_cycles("crates/cache/src/")
    },
    LayeredCrate {
        cycles: &[
            // The defaults of settings are parsed; `include` is declared like a setting.
            &["kernel", "parser"],
            // What is being read has names, which are numbered while it is read.
            &["registry", "subsystem", "template"],
        ],
        ..LayeredCrate::without_cycles("crates/conf/src/")
    },
    LayeredCrate::without_cycles("crates/zones/src/"),
    LayeredCrate {
        // A log that cannot be written is reported in the error log.
        cycles: &[&["error_log", "error_log::destination", "files", "lines", "syslog"]],
        ..LayeredCrate::without_cycles("crates/observe/src/")
    },
    LayeredCrate::without_cycles("crates/net/src/"),
    LayeredCrate::without_cycles("crates/metrics/src/"),
    LayeredCrate::without_cycles("crates/http2_client/src/"),
    LayeredCrate::without_cycles("crates/lab/src/"),
    LayeredCrate::without_cycles("crates/sandbox/src/"),
    LayeredCrate {
        folder: "crates/upstream/src/",
        layers: &[
            &[
                "address",
                "counters",
                "health::progress",
                "name",
                "nodes",
                "random",
                "settings::keepalive",
                "times",
            ],
            &["limit", "resolver"],
            &["pool", "resolver_policy", "server_state"],
            &["memory", "waiting::limit"],
            &["server", "sticky"],
            &["roster"],
            &["lines", "peers"],
            &["attempt", "balance"],
            &["api", "lease", "settings::check"],
            &["group"],
            &["condition", "discovery", "fuzz", "health", "waiting"],
            &["settings"],
            &["named"],
        ],
        upward: &[],
        // Slots belong to a queue, and a waiter of the queue gets one of them.
        cycles: &[&["limit::queue", "limit::slots", "limit::waiter"]],
        barred: &[],
    },
    LayeredCrate::without_cycles("crates/fetch/src/"),
    LayeredCrate::without_cycles("crates/acme/src/"),
    LayeredCrate {
        folder: "crates/http/src/",
        layers: &[
            &["header_text", "mask", "mime_types", "places", "random_ids"],
            &["credentials", "exchange", "files", "regex", "site", "variables"],
            &["admit", "answer", "builtin", "paths", "status_page"],
            &["phases", "subrequest"],
            &["backend"],
            &["drive"],
            &["h1", "h2"],
            &["health"],
            &["gateway"],
            &["features"],
            &["compile", "control_pages"],
            &["accept"],
            &["fuzz", "worker"],
        ],
        upward: &[],
        // An exchange has a site, whose handlers and variables take an exchange, and a reply, whose
        // filters do.
        cycles: &[&["exchange", "exchange::filter", "exchange::reply", "site", "variables"]],
        barred: &[
            ("exchange", "wire::http1"),
            ("site", "wire::http1"),
            ("features", "wire::http1"),
        ],
    },
    LayeredCrate {
        folder: "crates/session/src/",
        layers: &[
            &[
                "captures",
                "client",
                "control_job",
                "decimal",
                "forwarded",
                "hook",
                "identity",
                "lru",
                "slabs",
                "status::caches",
                "status::counters",
                "status::limits",
                "status::names",
                "status::program",
                "steering",
            ],
            &[
                "access",
                "keyval::change",
                "keyval::entry",
                "keyval::graves",
                "keyval::key",
                "keyval::lengths",
                "keyval::merge",
                "keyval::plan",
                "keyval::record",
                "keyval::refusal",
                "keyval::replica",
                "keyval::request",
                "keyval::table",
                "keyval::trie",
                "keyval::zone",
                "limits",
                "listen",
                "passed",
                "rate",
                "table",
                "trusted",
                "wildcards",
                "worker_slots",
            ],
            &["status::keyed", "status::published", "values", "variables"],
            &["generation", "session"],
            &["discovery", "evaluate", "status::job", "subsystem"],
            &["builtin", "geo", "health", "keyed", "log", "regex", "split_clients", "status"],
            &["backend", "keyval", "limit_conn", "map", "realip", "server_names", "store"],
        ],
        upward: &[],
        cycles: &[],
        barred: &[],
    },
    LayeredCrate::without_cycles("crates/testing/src/"),
    LayeredCrate::without_cycles("crates/tls/src/"),
    LayeredCrate {
        folder: "crates/stream/src/",
        layers: &[
            &["flow", "zone_session"],
            &["session", "site"],
            &["builtin", "secure"],
            &["preread"],
            &["proxy", "serve"],
            &["datagrams", "health"],
            &["features"],
            &["compile"],
            &["worker"],
        ],
        upward: &[],
        // A session has a site, whose handlers take a session.
        cycles: &[&["session", "site"]],
        barred: &[],
    },
    LayeredCrate {
        // A master has a reload, an upgrade, calls and changes, whose files have its methods for
        // them.
        cycles: &[&[
            "master",
            "master::calls",
            "master::reload",
            "master::service",
            "master::steer",
            "master::upgrade",
        ]],
        ..LayeredCrate::without_cycles("crates/weir/src/")
    },
    LayeredCrate::without_cycles("crates/discover/src/"),
    LayeredCrate::without_cycles("crates/ingress/src/"),
    LayeredCrate::without_cycles("crates/load/src/"),
    LayeredCrate::without_cycles("crates/processes/src/"),
    LayeredCrate::without_cycles("crates/statistics/src/"),
    LayeredCrate::without_cycles("crates/testing/src/"),
    LayeredCrate::without_cycles("xtask/src/"),
];

pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let found = LAYERED.iter().flat_map(|layered| layered.check(sources));
    found.chain(uncovered(sources)).collect()
}

/// Crates that are not in the table.
fn uncovered(sources: &[SourceFile]) -> impl Iterator<Item = Problem> {
    sources.iter().filter_map(|file| {
        let folder =
            file.path.strip_suffix("Cargo.toml").filter(|name| name.starts_with("crates/"))?;
        let is_covered = LAYERED.iter().any(|layered| layered.folder == format!("{folder}src/"));
        (!is_covered).then(|| file.problem(0, "this crate is not in tidy/layers.rs"))
    })
}

impl LayeredCrate {
    /// A crate whose modules have no layers, but no cycles either.
    const fn without_cycles(folder: &'static str) -> Self {
        Self { folder, layers: &[], upward: &[], cycles: &[], barred: &[] }
    }

    fn check(&self, sources: &[SourceFile]) -> Vec<Problem> {
        let modules = Modules::of(sources, self.folder);
        if modules.is_empty() {
            return Vec::new();
        }
        let imports = modules.imports();
        let mut problems = self.without_layer(&modules);
        problems.extend(self.upward_imports(&modules, &imports));
        problems.extend(self.stale_exceptions(&imports));
        problems.extend(self.forbidden_cycles(&modules, &imports));
        problems.extend(self.barred_imports(&modules));
        problems
    }

    /// Modules that no layer lists.
    fn without_layer(&self, modules: &Modules<'_>) -> Vec<Problem> {
        if self.layers.is_empty() {
            return Vec::new();
        }
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

    /// Cycles other than those in the table, and those in the table that are no longer there.
    fn forbidden_cycles(&self, modules: &Modules<'_>, imports: &[Import]) -> Vec<Problem> {
        let allowed: Vec<BTreeSet<&str>> =
            self.cycles.iter().map(|cycle| cycle.iter().copied().collect()).collect();
        let (known, other): (Vec<_>, Vec<_>) =
            cycles(imports).into_iter().partition(|cycle| allowed.contains(cycle));
        let problem = |cycle: BTreeSet<&str>| {
            let files: Vec<_> = cycle.iter().map(|path| &*modules.file(path).path).collect();
            let what = format!("in a cycle of imports: {}", files.join(", "));
            Problem { path: files[0].to_owned(), line: 0, what }
        };
        let mut problems: Vec<_> = other.into_iter().map(problem).collect();
        for gone in self.cycles.iter().zip(&allowed).filter(|(_, cycle)| !known.contains(cycle)) {
            let names = gone.0.join(", ");
            let what = format!("{names} are not a cycle, as tidy/layers.rs says: change it");
            problems.push(Problem { path: self.folder.to_owned(), line: 0, what });
        }
        problems
    }

    fn barred_imports(&self, modules: &Modules<'_>) -> Vec<Problem> {
        let imports = |&(inside, foreign): &(&str, &str)| {
            let users = modules.users_of(foreign).filter(|(path, _)| is_within(path, inside));
            let what = format!("imports from {foreign}, which {inside} does not know");
            let problem = |(path, line)| modules.file(path).problem(line, &*what);
            users.map(problem).collect::<Vec<_>>()
        };
        self.barred.iter().flat_map(imports).collect()
    }

    fn points_upward(&self, import: &Import) -> bool {
        self.layer(&import.from).is_some_and(|own| self.layer(&import.to) > Some(own))
    }

    /// The layer of a module: that of the longest path in the table that it is or is below.
    fn layer(&self, path: &str) -> Option<usize> {
        let all = self.layers.iter().zip(0..).flat_map(|(paths, layer)| {
            let holding = paths.iter().filter(|listed| is_within(path, listed));
            holding.map(move |listed| (listed.len(), layer))
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

    const SMALL: LayeredCrate = LayeredCrate {
        folder: "src/",
        layers: &[&["low"], &["middle"], &["high", "low::top"]],
        upward: &[],
        cycles: &[],
        barred: &[("low", "other::part")],
    };

    fn found(layered: &LayeredCrate, files: &[(&str, &str)]) -> Vec<String> {
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
        let layered = LayeredCrate { upward: &[("low", "middle")], ..SMALL };
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

    /// Three files of which each imports the next.
    const CYCLE: [(&str, &str); 3] = [
        ("src/high/mod.rs", "mod a;\nuse a::A;\n"),
        ("src/high/a.rs", "use super::b::B;\n"),
        ("src/high/b.rs", "use super::H;\n"),
    ];

    #[test]
    fn a_planted_cycle_is_found_with_its_files() {
        let expected = [
            "src/high/mod.rs: in a cycle of imports: src/high/mod.rs, src/high/a.rs, src/high/b.rs",
        ];
        assert_eq!(found(&SMALL, &CYCLE), expected);
        let pair = [
            ("src/high/mod.rs", ""),
            ("src/high/a.rs", "use super::b::B;\n"),
            ("src/high/b.rs", "use super::a::A;\n"),
        ];
        let expected = ["src/high/a.rs: in a cycle of imports: src/high/a.rs, src/high/b.rs"];
        assert_eq!(found(&SMALL, &pair), expected);
    }

    #[test]
    fn a_planted_cycle_is_found_in_the_crates_without_layers_too() {
        for (folder, module) in [("crates/upstream/src/", "limit"), ("crates/wire/src/", "http1")] {
            let [a, b] = ["a", "b"].map(|name| format!("{folder}{module}/{name}.rs"));
            let files = [(&*a, "use super::b::B;\n"), (&*b, "use super::a::A;\n")];
            let problems = check(&project_of(&files));
            let found: Vec<_> = problems.iter().map(Problem::to_string).collect();
            let expected = format!("{a}: in a cycle of imports: {a}, {b}");
            assert!(found.contains(&expected), "{found:?}");
        }
    }

    #[test]
    fn a_cycle_is_allowed_by_name_as_long_as_it_is_that_one() {
        let layered = LayeredCrate { cycles: &[&["high", "high::a", "high::b"]], ..SMALL };
        assert_eq!(found(&layered, &CYCLE), [""; 0]);
        let gone =
            "src/: high, high::a, high::b are not a cycle, as tidy/layers.rs says: change it";
        assert_eq!(found(&layered, &CYCLE[..1]), [gone]);
        let mut longer = CYCLE.to_vec();
        longer[2].1 = "use super::c::C;\n";
        longer.push(("src/high/c.rs", "use super::H;\n"));
        let named = "src/high/mod.rs: in a cycle of imports: src/high/mod.rs, src/high/a.rs, \
                     src/high/b.rs, src/high/c.rs";
        assert_eq!(found(&layered, &longer), [named, gone]);
    }

    #[test]
    fn a_planted_import_from_a_barred_module_is_found() {
        let files = [
            ("src/low/mod.rs", "use other::whole;\n"),
            ("src/low/a.rs", "\nuse other::{part::P, whole};\n"),
            ("src/middle.rs", "use other::part::P;\n"),
        ];
        let expected = ["src/low/a.rs:2: imports from other::part, which low does not know"];
        assert_eq!(found(&SMALL, &files), expected);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        let project =
            project_of(&[("crates/planted/Cargo.toml", ""), ("crates/net/Cargo.toml", "")]);
        let found: Vec<_> = check(&project).iter().map(Problem::to_string).collect();
        assert_eq!(found, ["crates/planted/Cargo.toml: this crate is not in tidy/layers.rs"]);
    }

    #[test]
    fn http_1_is_unknown_to_the_exchange_the_site_and_the_features() {
        for module in ["exchange", "site", "features"] {
            let path = format!("crates/http/src/{module}/planted.rs");
            let problems = check(&project_of(&[(&path, "use wire::http1::framing;\n")]));
            let expected =
                format!("{path}:1: imports from wire::http1, which {module} does not know");
            let found: Vec<_> = problems.iter().map(Problem::to_string).collect();
            assert!(found.contains(&expected), "{found:?}");
        }
    }
}
