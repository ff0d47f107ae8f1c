//! Paragraphs and fields in lines.

use std::fmt::Write;

const COLUMNS: usize = 80;
pub(super) const INDENT: &str = "  ";
/// The width of the column of fields' names.
const FIELD: usize = 10;

/// Breaks a text into lines of at most `columns`, where a word allows it. A list's item is indented
/// below its first line.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let indent = if text.starts_with("- ") { "  " } else { "" };
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines
}

pub(super) fn field(out: &mut String, name: &str, text: &str) {
    let lines = wrap(text, COLUMNS - INDENT.len() - FIELD);
    for (at, line) in lines.iter().enumerate() {
        let name = if at == 0 { name } else { "" };
        let _ = writeln!(out, "{INDENT}{name:FIELD$}{line}");
    }
}

pub(super) fn paragraph(out: &mut String, text: &str) {
    for line in wrap(text, COLUMNS - INDENT.len()) {
        let _ = writeln!(out, "{INDENT}{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn words_stay_whole_and_items_are_indented() {
        assert_eq!(wrap("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrap("- a bb ccc", 6), ["- a bb", "  ccc"]);
        assert_eq!(wrap("toolong x", 3), ["toolong", "x"]);
        assert_eq!(wrap("", 3), [""]);
    }
}
