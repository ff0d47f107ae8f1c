//! Characters, line lengths, leftovers, and the header every module carries.

use super::code::{after_word, code, code_and_comments};
use super::{Problem, SourceFile};

/// rustfmt keeps code within this; comments and strings it leaves alone.
const COLUMNS_MAX: usize = 100;

/// Files that people write as text. Fixtures, tables and seeds may hold any byte they like.
const TEXT_ENDINGS: &[&str] = &[".rs", ".toml", ".md", ".sh", ".py", ".yml", ".ci/run"];

/// Notes to oneself that must not be merged.
const LEFTOVERS: &[&str] = &["FIXME", "XXX"];

pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let is_text = |file: &&SourceFile| TEXT_ENDINGS.iter().any(|end| file.path.ends_with(end));
    sources.iter().filter(is_text).flat_map(file).collect()
}

fn file(file: &SourceFile) -> Vec<Problem> {
    let Ok(text) = std::str::from_utf8(&file.bytes) else {
        return vec![file.problem(0, "is not UTF-8")];
    };
    let mut problems = characters(file, text);
    if file.is_rust() {
        problems.extend(rust(file, text));
    }
    if file.path.ends_with(".md") {
        problems.extend(markdown(file, text));
    }
    problems
}

/// Prose wraps. Tables, images, code, and single words such as links cannot. Chinese does not: a
/// break between two of its characters is shown as a gap.
fn markdown(file: &SourceFile, text: &str) -> Vec<Problem> {
    let mut fenced = false;
    let mut problems = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        fenced ^= line.trim_start().starts_with("```");
        let is_chinese =
            line.chars().any(|character| ('\u{4e00}'..='\u{9fff}').contains(&character));
        let is_exempt =
            fenced || is_chinese || ["|", "![", "    "].iter().any(|sign| line.starts_with(sign));
        let columns = line.chars().count();
        if columns > COLUMNS_MAX && !is_exempt && line.contains(' ') {
            problems
                .push(file.problem(number, format!("{columns} columns, {COLUMNS_MAX} at most")));
        }
    }
    problems
}

fn characters(file: &SourceFile, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (line, number) in text.split('\n').zip(1..) {
        if let Some(odd) = line.chars().find(|character| is_odd(*character)) {
            problems.push(file.problem(number, format!("holds the character {odd:?}")));
        }
        if line.ends_with(' ') {
            problems.push(file.problem(number, "ends with a space"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        problems.push(file.problem(0, "does not end with a newline"));
    }
    problems
}

/// Controls, tabs among them, and those that make a line read otherwise than it is (bidirectional
/// overrides: the "Trojan Source" paper).
fn is_odd(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn rust(file: &SourceFile, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            problems
                .push(file.problem(number, format!("{columns} columns, {COLUMNS_MAX} at most")));
        }
    }
    // In a string such a word is data: mkstemp's XXXXXX.
    for (line, number) in code_and_comments(text).lines().zip(1..) {
        if let Some(word) = LEFTOVERS.iter().find(|word| after_word(line, word).is_some()) {
            problems.push(file.problem(number, format!("{word} is left over")));
        }
    }
    for (line, number) in code(text).lines().zip(1..) {
        if after_word(line, "dbg").is_some_and(|rest| rest.starts_with('!')) {
            problems.push(file.problem(number, "a debug print is left over"));
        }
    }
    if needs_header(&file.path) && !text.starts_with("//!") {
        problems.push(file.problem(1, "has no `//!` header"));
    }
    problems
}

/// Every module but those of tests says what it is for.
fn needs_header(path: &str) -> bool {
    path.contains("/src/") && !path.ends_with("/tests.rs") && !path.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::project_of;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&project_of(&[(path, text)])).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn odd_characters_are_found_in_text_and_ignored_in_data() {
        assert_eq!(found("a.md", "a\tb\n"), ["a.md:1: holds the character '\\t'"]);
        assert_eq!(found("a.md", "\u{202e}\n").len(), 1);
        assert_eq!(
            found("a.md", "a \nb"),
            ["a.md:1: ends with a space", "a.md: does not end with a newline"]
        );
        assert_eq!(found("a.tsv", "a\tb \r"), [""; 0]);
        let binary = SourceFile { path: "a.rs".into(), bytes: vec![0xff] };
        assert_eq!(check(&[binary])[0].what, "is not UTF-8");
    }

    #[test]
    fn long_lines_are_found_in_prose() {
        let long = "word ".repeat(20) + "word";
        assert_eq!(found("a.md", &format!("{long}\n")), ["a.md:1: 104 columns, 100 at most"]);
        for fine in [format!("| {long} |\n"), format!("    {long}\n"), "x".repeat(101) + "\n"] {
            assert_eq!(found("a.md", &fine), [""; 0], "{fine}");
        }
        assert_eq!(found("a.md", &format!("![{long}](a.svg)\n")), [""; 0]);
        assert_eq!(found("a.md", &format!("{}\n", "\u{4e2d} ".repeat(60).trim_end())), [""; 0]);
        assert_eq!(found("a.md", &format!("```\n{long}\n```\n")), [""; 0]);
    }

    #[test]
    fn long_lines_and_leftovers_are_found_in_rust() {
        let long = format!("// {}\n", "é".repeat(98));
        assert_eq!(found("a.rs", &long), ["a.rs:1: 101 columns, 100 at most"]);
        assert_eq!(found("a.rs", "// FIXME: no\n"), ["a.rs:1: FIXME is left over"]);
        assert_eq!(found("a.rs", "\"tmp.XXX\";\n"), [""; 0]);
        assert_eq!(found("a.rs", "// dbg!(a)\n dbg!(b)\n"), ["a.rs:2: a debug print is left over"]);
    }

    #[test]
    fn a_module_has_a_header_and_a_test_need_not() {
        assert_eq!(
            found("crates/a/src/b.rs", "fn a() {}\n"),
            ["crates/a/src/b.rs:1: has no `//!` header"]
        );
        assert_eq!(found("crates/a/src/b.rs", "//! B.\n"), [""; 0]);
        assert_eq!(found("crates/a/src/tests.rs", "fn a() {}\n"), [""; 0]);
    }
}
