//! Words of lines in `acme_issuer`: texts, and names of files.

use std::os::unix::ffi::OsStringExt as _;

use conf::{Directive, Error, Load, Result, Word};

pub(crate) fn text(line: &Directive, word: &Word) -> Result<String> {
    let text = String::from_utf8(word.text.to_vec()).ok();
    let text = text.filter(|text| !text.chars().any(char::is_control));
    text.ok_or_else(|| invalid(line, word))
}

pub(crate) fn invalid(line: &Directive, word: &Word) -> Error {
    line.refuse("invalid value").marked(word.span)
}

/// `None`: there is no such file on the machine where the configuration is only checked.
pub(crate) fn read_file(
    line: &Directive,
    word: &Word,
    load: &mut Load<'_>,
) -> Result<Option<Vec<u8>>> {
    let path = load.conf_path(&word.text).into_os_string().into_vec();
    let read = load.files.read(&path).map(|text| text.to_vec()).map_err(|error| {
        line.error_at(word, format!("cannot load \"{word}\": {}", error.describe(&path)))
    });
    load.of_this_machine(read)
}
