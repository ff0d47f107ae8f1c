//! Which crate may depend on what: the layers of crates, what they use from outside, and what only
//! one of them may name.
//!
//! The tables are the rule. A line added to them is a decision about the architecture and belongs
//! in ARCHITECTURE.md too.

use super::code::{after_word, code};
use super::manifest::{self, Dependency};
use super::{Problem, SourceFile};

/// From the bottom. A crate may use those of the layers below its own; `xtask` stands apart.
const LAYERS: &[&[&str]] = &[
    &["processes", "statistics", "wire"],
    &["cache", "conf"],
    &["observe", "sandbox", "zones"],
    &["net"],
    &["http2_client", "metrics"],
    &["upstream"],
    &["fetch"],
    &["session"],
    &["tls"],
    &["acme"],
    &["http", "stream"],
    &["discover", "lab", "load"],
    &["ingress", "weir"],
];

/// What the tests of every crate may use, and nothing else of a crate.
const TESTING_CRATE: &str = "testing";

/// What `xtask` uses of the project: what is measured means the same here and there.
const SHARED: &[&str] = &["processes", "statistics"];

/// What each crate may use from outside: always, and in its tests only.
const OUTSIDE: &[(&str, &[&str], &[&str])] = &[
    ("wire", &["memchr"], &["bytes", "h2", "httlib-hpack", "http-types", "tokio"]),
    ("cache", &["md-5"], &[]),
    ("observe", &["flate2"], &["serde_json"]),
    (
        "net",
        &["aws-lc-rs", "libc", "md-5", "mimalloc", "rustix", "rustls", "socket2", "zlib-rs"],
        &["loom"],
    ),
    ("http2_client", &[], &["bytes", "h2", "http-types", "tokio"]),
    ("upstream", &["md-5"], &["loom"]),
    ("session", &["memchr", "pcre2"], &[]),
    (
        "http",
        &[
            "bcrypt",
            "libdeflater",
            "md-5",
            "memchr",
            "sha-crypt",
            "sha1",
            "subtle",
            "yescrypt",
            "zlib-rs",
        ],
        &["serde_json"],
    ),
    ("stream", &[], &["serde_json"]),
    ("load", &["hdrhistogram", "mlua", "serde", "serde_json"], &[]),
    ("lab", &["serde", "serde_json", "toml"], &[]),
    ("discover", &["rustls", "serde_json"], &[]),
    ("ingress", &["pcre2", "serde_json"], &[]),
    ("weir", &["serde", "serde_json"], &[]),
    ("xtask", &["serde_json"], &[]),
];

/// The system and TLS: named in [`SYSTEM_CRATE`] and nowhere else.
const SYSTEM: &[&str] = &["socket2", "rustix", "rustls", "libc"];
const SYSTEM_CRATE: &str = "net";
/// A program of its own, without the event loop of `net`: it speaks TLS over blocking sockets.
const TLS_CLIENT: (&str, &str) = ("discover", "rustls");

/// Each crate uses only those below it and what the table allows it.
pub(super) fn dependencies(sources: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in sources.iter().filter(|file| manifest::is_manifest(file)) {
        let Some(own) = file.crate_name() else { continue };
        if own != "xtask" && own != TESTING_CRATE && layer(own).is_none() {
            problems
                .push(file.problem(0, format!("the crate {own} is in no layer of tidy/crates.rs")));
        }
        for dependency in manifest::dependencies(file.text()) {
            if let Some(what) = refused(own, &dependency) {
                problems.push(file.problem(dependency.line, what));
            }
        }
    }
    problems
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

fn refused(own: &str, dependency: &Dependency<'_>) -> Option<String> {
    let name = dependency.name;
    if name == TESTING_CRATE {
        return (!dependency.dev).then(|| format!("only tests may use {name}"));
    }
    if let Some(used) = layer(name) {
        // A crate's tests may use it with more features than others do.
        let is_itself = dependency.dev && name == own;
        let below = is_itself
            || match layer(own) {
                Some(own) => used < own,
                None => SHARED.contains(&name),
            };
        return (!below)
            .then(|| format!("{own} may not use {name}: only crates of the layers below it"));
    }
    let allowed =
        OUTSIDE.iter().find(|(owner, ..)| *owner == own).is_some_and(|(_, always, tests)| {
            always.contains(&name) || dependency.dev && tests.contains(&name)
        });
    (!allowed).then(|| format!("{own} may not use {name}: tidy/crates.rs does not list it"))
}

/// Only `net` names the system.
pub(super) fn system(sources: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in elsewhere(sources) {
        for (line, number) in code(file.text()).lines().zip(1..) {
            let names =
                |name: &&&str| after_word(line, name).is_some_and(|rest| rest.starts_with("::"));
            let own = file.crate_name().unwrap_or_default();
            let is_refused = |name: &&&str| (own, **name) != TLS_CLIENT;
            if let Some(name) = SYSTEM.iter().find(names).filter(is_refused) {
                problems
                    .push(file.problem(number, format!("{name} is named outside {SYSTEM_CRATE}")));
            }
        }
    }
    problems
}

/// Rust files of the crates, but not of `net`.
fn elsewhere(sources: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    sources
        .iter()
        .filter(|file| file.is_rust() && file.crate_name().is_some_and(|name| name != SYSTEM_CRATE))
}

/// Unsafe code stands in `net`, and each block of it has its reason above.
pub(super) fn unsafety(sources: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in sources.iter().filter(|file| file.is_rust() && file.crate_name().is_some()) {
        let inside = file.crate_name() == Some(SYSTEM_CRATE);
        let lines: Vec<&str> = file.text().lines().collect();
        for (line, index) in code(file.text()).lines().zip(0..) {
            let Some(rest) = after_word(line, "unsafe") else { continue };
            // `unsafe fn` and `unsafe trait` put the burden on others; they document it.
            let burden = rest.trim_start().starts_with(['{']) || rest.starts_with(" impl");
            if !inside {
                problems
                    .push(file.problem(index + 1, format!("unsafe code outside {SYSTEM_CRATE}")));
            } else if burden && !has_reason(&lines[..index]) {
                problems
                    .push(file.problem(index + 1, "unsafe without a `// SAFETY:` comment above"));
            }
        }
    }
    problems
}

/// Whether the statement that the next line belongs to has a `// SAFETY:` comment above it.
fn has_reason(above: &[&str]) -> bool {
    for line in above.iter().rev().map(|line| line.trim()) {
        let comment = line.starts_with("//");
        if comment && line.contains("SAFETY:") {
            return true;
        }
        // Of a statement that began further up, or of the comment's later lines.
        let goes_on = comment || line.starts_with("#[") || line.ends_with(['=', '(', ',']);
        if !goes_on {
            return false;
        }
    }
    false
}

/// `wire` cannot touch a socket, a clock or a thread, since it has no standard library.
pub(super) fn no_std(sources: &[SourceFile]) -> Vec<Problem> {
    let Some(file) = sources.iter().find(|file| file.path == "crates/wire/src/lib.rs") else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let mut previous = "";
    let blanked = code(file.text());
    if !blanked.lines().any(|line| line.trim() == "#![no_std]") {
        problems.push(file.problem(0, "wire is `#![no_std]`, without condition"));
    }
    for (line, number) in blanked.lines().zip(1..) {
        if line.trim() == "extern crate std;" && previous != "#[cfg(test)]" {
            problems.push(file.problem(number, "only wire's tests may use the standard library"));
        }
        previous = line.trim();
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::{Rule, project_of};

    fn found(rule: Rule, path: &str, text: &str) -> Vec<String> {
        rule(&project_of(&[(path, text)])).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_crate_uses_what_is_below_it() {
        let manifest = |own: &str, name: &str| {
            let text = format!("[dependencies]\n{name}.workspace = true\n");
            found(dependencies, &format!("crates/{own}/Cargo.toml"), &text).len()
        };
        assert_eq!(manifest("conf", "wire"), 0);
        assert_eq!(manifest("weir", "http"), 0);
        assert_eq!(manifest("wire", "conf"), 1);
        assert_eq!(manifest("http", "stream"), 1);
        assert_eq!(manifest("net", "rustix"), 0);
        assert_eq!(manifest("http", "rustix"), 1);
        assert_eq!(manifest("wire", "memchr"), 0);
        assert_eq!(manifest("wire", "bytes"), 1);
        assert_eq!(manifest("unknown", "wire"), 2);
        assert_eq!(manifest("conf", "testing"), 1);
        assert_eq!(manifest("testing", "wire"), 1);
        let text = "[dev-dependencies]\ntesting.workspace = true\n";
        assert_eq!(found(dependencies, "crates/conf/Cargo.toml", text), [""; 0]);
        assert_eq!(
            found(dependencies, "xtask/Cargo.toml", "[dependencies]\nwire = \"1\"\n").len(),
            1
        );
    }

    #[test]
    fn the_system_is_named_in_net_only() {
        let text =
            "// rustix::a\nuse rustix::net;\nlet a = \"libc::b\";\n::libc::exit();\nxlibc::a();\n";
        let expected = ["rustix is named outside net", "libc is named outside net"];
        assert_eq!(found(system, "crates/http/src/a.rs", text), expected);
        assert_eq!(found(system, "crates/net/src/a.rs", text), [""; 0]);
    }

    #[test]
    fn unsafe_code_stands_in_net_with_its_reason() {
        let path = "crates/net/src/a.rs";
        let reasoned =
            "// SAFETY: because\n// of this.\nlet a =\n    unsafe { b() };\nunsafe fn c() {}\n";
        assert_eq!(found(unsafety, path, reasoned), [""; 0]);
        assert_eq!(found(unsafety, path, "// SAFETY: a\nb();\nunsafe { c() };\n").len(), 1);
        assert_eq!(found(unsafety, path, "unsafe impl Send for A {}\n").len(), 1);
        assert_eq!(found(unsafety, "crates/http/src/a.rs", reasoned).len(), 2);
        assert_eq!(found(unsafety, "crates/http/src/a.rs", "#![deny(unsafe_code)]\n"), [""; 0]);
    }

    #[test]
    fn wire_has_no_standard_library() {
        let path = "crates/wire/src/lib.rs";
        assert_eq!(found(no_std, path, "#![no_std]\n#[cfg(test)]\nextern crate std;\n"), [""; 0]);
        assert_eq!(found(no_std, path, "#![no_std]\nextern crate std;\n").len(), 1);
        assert_eq!(found(no_std, path, "#![cfg_attr(not(test), no_std)]\n").len(), 1);
    }
}
