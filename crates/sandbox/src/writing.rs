//! Writes words as text that nginx and Weir parse alike: in quotes only if necessary.

/// The text of a word: in quotes if its meaning would change without them.
pub(crate) fn quoted(word: &[u8]) -> Vec<u8> {
    let needs_quotes = |byte: &u8| b" \t\r\n;{}\"'\\#".contains(byte);
    if !word.is_empty() && !without_variables(word).iter().any(needs_quotes) {
        return word.to_vec();
    }
    // The kind of quote that needs fewer escapes.
    let has = |quote: u8| word.contains(&quote);
    let quote = if has(b'"') && !has(b'\'') { b'\'' } else { b'"' };
    let mut out = vec![quote];
    for (at, &byte) in word.iter().enumerate() {
        let is_escaped = byte == quote || (byte == b'\\' && is_read_as_escape(word.get(at + 1)));
        if is_escaped {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(quote);
    out
}

/// Whether a backslash before this byte (`None`: the end of the word) would be parsed as an escape.
/// Other backslashes are unchanged, so that regular expressions do not grow and stay within nginx's
/// limit of 4,096 bytes.
fn is_read_as_escape(next: Option<&u8>) -> bool {
    next.is_none_or(|next| b"\"'\\trn".contains(next))
}

/// The word without `${name}`, whose braces need no quotes.
fn without_variables(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"${") {
        out.extend(&rest[..at]);
        let name = &rest[at + 2..];
        let len = name.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
        let len = len.count();
        match name.get(len) {
            Some(b'}') => rest = &name[len + 1..],
            _ => {
                out.push(b'{');
                rest = name;
            }
        }
    }
    out.extend(rest);
    out
}
