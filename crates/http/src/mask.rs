//! Directives whose words are bits of one value: `proxy_next_upstream`, `gzip_proxied`.

use conf::{Directive, Load, Result};

/// The union of the words' bits. A word said twice is a warning, as in nginx.
pub(crate) fn mask(from: &Directive, words: &[(&[u8], u16)], load: &mut Load<'_>) -> Result<u16> {
    let mut mask = 0;
    for word in &from.args {
        let known = words.iter().find(|(text, _)| text.eq_ignore_ascii_case(&word.text));
        let Some((_, bit)) = known else {
            return Err(from.error_at(word, format!("invalid value \"{word}\"")));
        };
        if mask & bit != 0 {
            load.warn(from.error_at(word, format!("duplicate value \"{word}\"")));
        }
        mask |= bit;
    }
    Ok(mask)
}
