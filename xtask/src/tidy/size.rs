//! Files and functions that are longer than the limits allow.
//!
//! A ratchet: what is over a limit is tolerated only at the size `tidy-allow.txt` notes, and the
//! note must follow it down. Nothing new is let over, and nothing over it grows.

use std::collections::BTreeMap;

use super::code::{code, functions};
use super::{Problem, SourceFile};

const FILE_LINES_MAX: usize = 1000;
const FUNCTION_LINES_MAX: usize = 70;

/// Lines of `PATH LINES` or `PATH::FUNCTION LINES`; `#` starts a comment.
const ALLOWED: &str = "xtask/tidy-allow.txt";

pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut allowed = allowed(sources, &mut problems);
    for long in sources.iter().filter(|file| file.is_rust()).flat_map(too_long) {
        let (noted, line) = allowed.remove(&long.key).unwrap_or_default();
        if long.lines > noted {
            problems.push(long.problem(noted));
        } else if long.lines < noted {
            let what = format!("{} is down to {}: lower its number", long.key, long.lines);
            problems.push(Problem { path: ALLOWED.into(), line, what });
        }
    }
    problems.extend(allowed.into_iter().map(|(key, (_, line))| {
        let what = format!("{key} is within its limit or gone: remove the line");
        Problem { path: ALLOWED.into(), line, what }
    }));
    problems
}

/// The sizes noted, with the line of each note.
fn allowed(
    sources: &[SourceFile],
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, (usize, usize)> {
    let mut allowed = BTreeMap::new();
    let Some(file) = sources.iter().find(|file| file.path == ALLOWED) else { return allowed };
    for (text, line) in file.text().lines().zip(1..) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match text.split_once(' ').map(|(key, lines)| (key, lines.trim().parse())) {
            Some((key, Ok(lines))) => drop(allowed.insert(key.to_owned(), (lines, line))),
            _ => problems.push(file.problem(line, "is not `PATH LINES` or `PATH::FUNCTION LINES`")),
        }
    }
    allowed
}

/// A file or function over its limit.
struct Long {
    path: String,
    line: usize,
    key: String,
    lines: usize,
    limit: usize,
}

impl Long {
    fn problem(self, noted: usize) -> Problem {
        let what = match noted {
            0 => format!("{} has {} lines, {} at most", self.key, self.lines, self.limit),
            _ => format!("{} has grown from {noted} to {} lines", self.key, self.lines),
        };
        Problem { path: self.path, line: self.line, what }
    }
}

fn too_long(file: &SourceFile) -> Vec<Long> {
    let path = &file.path;
    let lines = file.text().lines().count();
    let mut found = BTreeMap::new();
    if lines > FILE_LINES_MAX {
        let long =
            Long { path: path.clone(), line: 0, key: path.clone(), lines, limit: FILE_LINES_MAX };
        found.insert(path.clone(), long);
    }
    for function in functions(&code(file.text())) {
        let (line, lines, limit) = (function.line, function.lines, FUNCTION_LINES_MAX);
        let key = format!("{path}::{}", function.name);
        // Of several with one name the longest is judged.
        if lines > limit && found.get(&key).is_none_or(|long: &Long| long.lines < lines) {
            found.insert(key.clone(), Long { path: path.clone(), line, key, lines, limit });
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::project_of;

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    x();\n".repeat(lines - 2))
    }

    fn found(source: &str, allowed: &str) -> Vec<String> {
        let sources = project_of(&[("a.rs", source), (ALLOWED, allowed)]);
        check(&sources).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn a_function_may_not_newly_cross_the_limit() {
        assert_eq!(found(&function(70), ""), [""; 0]);
        assert_eq!(found(&function(71), ""), ["a.rs:1: a.rs::long has 71 lines, 70 at most"]);
    }

    #[test]
    fn a_noted_function_may_only_shrink() {
        let noted = "# why\n\na.rs::long 80\n";
        assert_eq!(found(&function(80), noted), [""; 0]);
        assert_eq!(
            found(&function(81), noted),
            ["a.rs:1: a.rs::long has grown from 80 to 81 lines"]
        );
        let lower = format!("{ALLOWED}:3: a.rs::long is down to 79: lower its number");
        assert_eq!(found(&function(79), noted), [lower]);
        let gone = format!("{ALLOWED}:3: a.rs::long is within its limit or gone: remove the line");
        assert_eq!(found(&function(70), noted), [gone]);
    }

    #[test]
    fn a_file_may_not_cross_its_limit() {
        assert_eq!(found(&"\n".repeat(1000), ""), [""; 0]);
        assert_eq!(found(&"\n".repeat(1001), ""), ["a.rs: a.rs has 1001 lines, 1000 at most"]);
        assert_eq!(found(&"\n".repeat(1001), "a.rs 1001\n"), [""; 0]);
    }

    #[test]
    fn a_note_that_cannot_be_read_is_refused() {
        assert_eq!(found("", "a.rs\n").len(), 1);
    }
}
