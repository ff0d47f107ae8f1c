//! Tests that the documentation names exist: those in tables whose last column is called "tests".

use std::collections::HashSet;

use super::{Problem, SourceFile};

const COLUMN: &str = "| tests |";
const DECLARED: &str = "fn ";

pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let code = sources.iter().filter(|file| file.path.ends_with(".rs"));
    let declared: HashSet<&str> = code.flat_map(|file| declared(file.text())).collect();
    let mut problems = Vec::new();
    for file in sources.iter().filter(|file| file.path.ends_with(".md")) {
        for (name, line) in named(file.text()) {
            if !declared.contains(name) {
                problems.push(file.problem(line, format!("there is no test {name}")));
            }
        }
    }
    problems
}

/// The names of functions without parameters.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.trim_start().strip_prefix(DECLARED)?.split_once("()"))
        .map(|(name, _)| name)
}

/// What stands in backquotes in the last column, and the numbers of its lines.
fn named(text: &str) -> Vec<(&str, usize)> {
    let mut is_within = false;
    let mut names = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        is_within = line.ends_with(COLUMN) || is_within && line.starts_with('|');
        let cell = line.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
        if is_within {
            names.extend(cell.split('`').skip(1).step_by(2).map(|name| (name, number)));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::project_of;

    #[test]
    fn tests_that_are_named_exist() {
        let sources = project_of(&[
            ("crates/a/src/tests.rs", "#[test]\n    fn it_ends() {\n"),
            (
                "docs/a.md",
                "| `x` | tests |\n|---|---|\n| `y` | `it_ends`, `it_is_gone` |\n\n| `z` | `w` |\n",
            ),
        ]);
        let found: Vec<String> = check(&sources).iter().map(Problem::to_string).collect();
        assert_eq!(found, ["docs/a.md:3: there is no test it_is_gone"]);
    }
}
