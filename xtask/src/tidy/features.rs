//! Every folder of `http`'s features is a module with a header, and stands in the one list.

use super::code::{after_word, code};
use super::{Problem, SourceFile};

pub(crate) const FEATURES: &str = "crates/http/src/features";

pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let list = format!("{FEATURES}/mod.rs");
    let Some(list) = sources.iter().find(|file| file.path == list) else { return Vec::new() };
    let listed = code(list.text());
    let mut problems = Vec::new();
    for name in names(sources) {
        let module = format!("{FEATURES}/{name}/mod.rs");
        match sources.iter().find(|file| file.path == module) {
            None => problems.push(list.problem(0, format!("the folder {name} has no mod.rs"))),
            Some(file) if !file.text().starts_with("//!") => {
                problems.push(file.problem(1, "has no `//!` header"));
            }
            Some(_) => {}
        }
        if !is_listed(&listed, name) {
            problems
                .push(list.problem(0, format!("{name} needs its `mod` line and its list line")));
        }
    }
    problems
}

/// The folders, each once.
fn names(sources: &[SourceFile]) -> Vec<&str> {
    let mut names: Vec<&str> = sources
        .iter()
        .filter_map(|file| file.path.strip_prefix(FEATURES)?.strip_prefix('/')?.split_once('/'))
        .map(|(name, _)| name)
        .collect();
    names.dedup();
    names
}

/// One line declares the module, another one names it.
fn is_listed(list: &str, name: &str) -> bool {
    let naming = || list.lines().filter(|line| after_word(line, name).is_some());
    let declares = |line: &str| after_word(line, "mod").is_some_and(|rest| rest.contains(name));
    naming().any(declares) && naming().any(|line| !declares(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::project_of;

    fn found(list: &str, module: &str) -> usize {
        check(&project_of(&[
            ("crates/http/src/features/mod.rs", list),
            ("crates/http/src/features/gzip/mod.rs", module),
            ("crates/http/src/features/gzip/tests.rs", ""),
        ]))
        .len()
    }

    #[test]
    fn a_feature_has_a_header_a_mod_line_and_a_list_line() {
        assert_eq!(found("mod gzip;\nfeatures! {\n    gzip: gzip,\n}\n", "//! Gzip.\n"), 0);
        assert_eq!(found("mod gzip;\nfeatures! {\n    gzip: gzip,\n}\n", "// Gzip.\n"), 1);
        assert_eq!(found("mod gzip;\n// gzip\n", "//! Gzip.\n"), 1);
        assert_eq!(found("features! {\n    gzip: gzip,\n}\n", "//! Gzip.\n"), 1);
    }

    #[test]
    fn a_folder_without_a_module_is_noticed() {
        let sources = project_of(&[
            ("crates/http/src/features/mod.rs", "mod gzip;\nfeatures! { gzip: gzip, }\n"),
            ("crates/http/src/features/gzip/notes.txt", ""),
        ]);
        assert_eq!(check(&sources).len(), 1);
    }
}
