//! Settings whose words are bits of one value: `proxy_next_upstream`, `ssl_protocols`.
//!
//! As in nginx, several lines in one block add up, so every such setting reads its first line and
//! its further lines with [`add_words`].

use crate::{Directive, Load, Result};

/// Adds the bits of a line's words to a set. A word that is already in the set causes a warning.
pub fn add_words(
    set: &mut u16,
    from: &Directive,
    words: &[(&str, u16)],
    load: &mut Load<'_>,
) -> Result<()> {
    for word in &from.args {
        let known = words.iter().find(|(name, _)| word.text.eq_ignore_ascii_case(name.as_bytes()));
        let Some((_, bit)) = known else {
            let error = from.error_at(word, format!("invalid value \"{word}\""));
            return Err(error.meant(&word.text, words.iter().map(|(name, _)| *name)));
        };
        if *set & bit != 0 {
            load.warn(from.error_at(word, format!("duplicate value \"{word}\"")));
        }
        *set |= bit;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::MemoryFiles;

    #[test]
    fn lines_add_up_and_warn_about_repeated_words() {
        let mut files = MemoryFiles::default();
        let mut load = Load::new(&mut files, Path::new("/"), Path::new("/"));
        let mut set = 0;
        let mut add = |words: &str| {
            let line = Directive::sample("set", words);
            add_words(&mut set, &line, &[("off", 1), ("error", 2), ("timeout", 4)], &mut load)
                .map(|()| set)
                .map_err(|error| error.message)
        };
        assert_eq!(add("error"), Ok(2));
        assert_eq!(add("TIMEOUT error"), Ok(6));
        assert_eq!(add("on"), Err("invalid value \"on\"".into()));
        let warnings: Vec<_> = load.warnings.iter().map(|warning| &warning.message).collect();
        assert_eq!(warnings, ["duplicate value \"error\""]);
    }
}
