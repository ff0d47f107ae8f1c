//! Files that documents about the code name must exist.
//!
//! Documents name a file from its crate's sources on (`h1/head.rs`) or from the root on. Only names
//! in backquotes that end in `.rs` are looked at, without braces and placeholders.

use super::{Problem, SourceFile};

pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let is_about_code = |file: &&SourceFile| {
        let path = &file.path;
        path == "ARCHITECTURE.md" || path == "CONTRIBUTING.md" || path.starts_with("docs/design/")
    };
    let mut problems = Vec::new();
    for file in sources.iter().filter(is_about_code) {
        for (line, number) in file.text().lines().zip(1..) {
            let missing = named(line).filter(|name| !exists(sources, name));
            problems.extend(missing.map(|name| file.problem(number, format!("no file {name}"))));
        }
    }
    problems
}

/// The files that a line names: every second part between backquotes.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let is_file = |name: &&str| name.ends_with(".rs") && !name.contains(['{', '*', '<']);
    line.split('`').skip(1).step_by(2).filter(is_file).filter(|name| !name.contains("NAME"))
}

fn exists(sources: &[SourceFile], name: &str) -> bool {
    let ends = |path: &str| path.strip_suffix(name).is_some_and(|before| before.ends_with('/'));
    sources.iter().any(|file| file.path == name || ends(&file.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::project_of;

    #[test]
    fn files_that_documents_name_exist() {
        let sources = project_of(&[
            ("crates/http/src/h1/head.rs", ""),
            (
                "ARCHITECTURE.md",
                "`h1/head.rs`, `head.rs`,\n`ead.rs`, `h2/{a,b}.rs`, `NAME/mod.rs`\n",
            ),
            ("docs/design/request.md", "| `crates/http/src/h1/head.rs` | `h1/tail.rs` |\n"),
            ("docs/other.md", "`gone.rs`\n"),
        ]);
        let problems: Vec<String> = check(&sources).iter().map(ToString::to_string).collect();
        let expected =
            ["ARCHITECTURE.md:2: no file ead.rs", "docs/design/request.md:1: no file h1/tail.rs"];
        assert_eq!(problems, expected);
    }
}
