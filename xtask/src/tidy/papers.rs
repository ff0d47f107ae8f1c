//! Every dependency has its line in docs/dependencies.md, and every line its dependency.

use super::{Problem, SourceFile, manifest};

const TABLE: &str = "docs/dependencies.md";

pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let used = used(sources);
    let table = sources.iter().find(|file| file.path == TABLE);
    let explained = table.map_or_else(Vec::new, |file| explained(file.text()));
    let mut problems = Vec::new();
    for (name, file, line) in &used {
        if !explained.iter().any(|(known, _)| known == name) {
            problems.push(file.problem(*line, format!("{name} has no line in {TABLE}")));
        }
    }
    for (name, line) in explained {
        if let Some(table) = table.filter(|_| !used.iter().any(|(known, ..)| *known == name)) {
            problems.push(table.problem(line, format!("no Cargo.toml names {name}")));
        }
    }
    problems
}

/// The crates from outside, each where it is named first.
fn used(sources: &[SourceFile]) -> Vec<(&str, &SourceFile, usize)> {
    let ours = |name: &str| {
        let folder = format!("crates/{name}/Cargo.toml");
        sources.iter().any(|file| file.path == folder)
    };
    let mut used: Vec<(&str, &SourceFile, usize)> = Vec::new();
    for file in sources.iter().filter(|file| manifest::is_manifest(file)) {
        for dependency in manifest::dependencies(file.text()) {
            let known = used.iter().any(|(name, ..)| *name == dependency.name);
            if !known && !dependency.path && !ours(dependency.name) {
                used.push((dependency.name, file, dependency.line));
            }
        }
    }
    used
}

/// The names in the first column of the table, which stand in backquotes.
fn explained(text: &str) -> Vec<(&str, usize)> {
    let name = |line: &'_ str| -> Option<usize> { line.strip_prefix("| `")?.find('`') };
    text.lines()
        .zip(1..)
        .filter_map(|(line, number)| Some((&line[3..3 + name(line)?], number)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::project_of;

    #[test]
    fn dependencies_and_their_lines_match() {
        let sources = project_of(&[
            (
                "Cargo.toml",
                "[workspace.dependencies]\nwire = { path = \"crates/wire\" }\nlibc = \"1\"\n",
            ),
            ("crates/wire/Cargo.toml", "[dependencies]\nmemchr.workspace = true\n"),
            ("crates/http/Cargo.toml", "[dependencies]\nwire.workspace = true\n"),
            ("fuzz/Cargo.toml", "[dependencies]\nlibfuzzer-sys = \"1\"\n"),
            (TABLE, "| crate | why |\n|---|---|\n| `libc` | a |\n| `gone` | b |\n"),
        ]);
        let found: Vec<String> = check(&sources).iter().map(Problem::to_string).collect();
        let expected = [
            "crates/wire/Cargo.toml:2: memchr has no line in docs/dependencies.md",
            "fuzz/Cargo.toml:2: libfuzzer-sys has no line in docs/dependencies.md",
            "docs/dependencies.md:4: no Cargo.toml names gone",
        ];
        assert_eq!(found, expected);
    }
}
