//! Paragraphs in lines.

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
