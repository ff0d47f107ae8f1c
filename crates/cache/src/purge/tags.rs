//! Tags of replies: `Surrogate-Key: a b`, `Cache-Tag: a, b`, `Cache-Groups: "a", "b"`.

/// The tags in the value of a field, or in several values with line feeds between them. Spaces and
/// commas separate them; one in quotes may contain both (RFC 9875).
pub fn tags(values: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = values;
    std::iter::from_fn(move || {
        while let Some((_, next)) = rest.split_first().filter(|(byte, _)| is_between(**byte)) {
            rest = next;
        }
        if rest.is_empty() {
            return None;
        }
        let is_quoted = rest[0] == b'"';
        let start = usize::from(is_quoted);
        let ends = |byte: &u8| if is_quoted { *byte == b'"' } else { is_between(*byte) };
        let length = rest[start..].iter().position(ends).unwrap_or(rest.len() - start);
        let tag = &rest[start..start + length];
        let after = (start + length + start).min(rest.len());
        // Parameters of an item in quotes mean nothing here.
        let skipped = rest[after..].iter().position(|byte| is_between(*byte));
        rest = &rest[after + skipped.unwrap_or(rest.len() - after)..];
        Some(tag)
    })
    .filter(|tag| !tag.is_empty())
}

fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b',' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_separated_by_spaces_and_commas() {
        for (values, expected) in [
            ("", ""),
            ("a", "a"),
            ("a b", "a|b"),
            (" a,b , c\t", "a|b|c"),
            ("a\nb c", "a|b|c"),
            ("\"a b\", \"c,d\"", "a b|c,d"),
            ("\"a\";x=1, b", "a|b"),
            ("\"\", \"", ""),
            ("\"a", "a"),
            ("a\"b c", "a\"b|c"),
        ] {
            let found: Vec<_> = tags(values.as_bytes()).collect();
            assert_eq!(found.join(&b'|'), expected.as_bytes(), "{values}");
        }
    }
}
