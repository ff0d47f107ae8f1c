//! Words of lines as texts.

use conf::{Directive, Error, Result, Word};

/// A word without control characters.
pub(crate) fn text(line: &Directive, word: &Word) -> Result<String> {
    let text = String::from_utf8(word.text.to_vec()).ok();
    let text = text.filter(|text| !text.chars().any(char::is_control));
    text.ok_or_else(|| invalid(line, word))
}

fn invalid(line: &Directive, word: &Word) -> Error {
    line.refuse("invalid value").marked(word.span)
}
