//! The text of nginx.conf. Whatever comes from an object becomes a word by [`quoted`] or
//! [`literal`], so that it can neither end its directive nor name a variable.

use std::fmt::Write as _;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfText {
    text: String,
    depth: usize,
}

impl ConfText {
    /// A simple directive, without its `;`.
    pub(crate) fn line(&mut self, words: impl AsRef<str>) {
        self.indented(&format!("{};", words.as_ref()));
    }

    pub(crate) fn open(&mut self, words: impl AsRef<str>) {
        self.indented(&format!("{} {{", words.as_ref()));
        self.depth += 1;
    }

    pub(crate) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.indented("}");
    }

    pub(crate) fn block(&mut self, words: impl AsRef<str>, inside: impl FnOnce(&mut Self)) {
        self.open(words);
        inside(self);
        self.close();
    }

    pub(crate) fn comment(&mut self, text: impl AsRef<str>) {
        let is_plain = |character: &char| !character.is_control();
        let text: String = text.as_ref().chars().filter(is_plain).take(500).collect();
        self.indented(&format!("# {text}"));
    }

    pub(crate) fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("{\n") && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Lines that are nginx.conf already.
    pub(crate) fn raw(&mut self, lines: &str) {
        for line in lines.lines() {
            if line.is_empty() { self.text.push('\n') } else { self.indented(line) }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.text.into_bytes()
    }

    fn indented(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", self.depth * 4);
    }
}

/// One word, for a directive that reads no variables in it.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@*+=,-~^%&?!|()".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("\"{}\"", escaped(text))
}

/// One word, for a directive that reads variables: none is read in this text.
pub(crate) fn literal(text: &str) -> String {
    quoted_template(&no_variables(text))
}

/// One word with variables that we wrote.
pub(crate) fn quoted_template(template: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@*+=,-~^%&?!|$".contains(&byte);
    if !template.is_empty() && template.bytes().all(is_plain) {
        return template.to_owned();
    }
    format!("\"{}\"", escaped(template))
}

/// The text with its dollars as variables that have a dollar, to become a part of a template.
pub(crate) fn no_variables(text: &str) -> String {
    text.replace('$', "${dollar}")
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // Nothing of the kind gets here; a space is harmless.
            control if control.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// A text as a regular expression that matches it alone.
pub(crate) fn regex_of(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii()
            && !character.is_ascii_alphanumeric()
            && !"/_-=&% ".contains(character)
        {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_cannot_end_its_directive() {
        for (text, word) in [
            ("a", "a"),
            ("", "\"\""),
            ("a b", "\"a b\""),
            ("a;}", "\"a;}\""),
            ("a\"; b", "\"a\\\"; b\""),
            ("a\\", "\"a\\\\\""),
            ("a\\\"", "\"a\\\\\\\"\""),
            ("#", "\"#\""),
            ("'", "\"'\""),
            ("a\nb", "\"a b\""),
        ] {
            assert_eq!(quoted(text), word);
        }
    }

    #[test]
    fn a_literal_names_no_variable() {
        assert_eq!(literal("$host"), "\"${dollar}host\"");
        assert_eq!(literal("a${b}"), "\"a${dollar}{b}\"");
    }

    #[test]
    fn a_text_as_a_regular_expression_matches_itself_alone() {
        for text in ["a.b", "a|b", "(", "[", "\\", "a{2}", "^$", "x#y z", "~", "a-b"] {
            let pattern = pcre2::bytes::Regex::new(&format!("^{}\\z", regex_of(text))).unwrap();
            assert!(pattern.is_match(text.as_bytes()).unwrap(), "{text}");
        }
        let pattern = pcre2::bytes::Regex::new(&format!("^{}\\z", regex_of("a.b"))).unwrap();
        assert!(!pattern.is_match(b"axb").unwrap());
    }
}
