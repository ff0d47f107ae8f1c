//! UTF-8 as nginx decodes it. It accepts slightly more than RFC 3629 (surrogates, bytes from 0xC0
//! on within a sequence), so that the output is the same as nginx's.

/// The beginning of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// A character that is not ASCII, and its length.
    Character(u32, usize),
    /// This many invalid bytes.
    Invalid(usize),
    /// The beginning of a character.
    Incomplete,
}

/// Decodes the beginning of a text, which is not empty.
pub(super) fn decode(text: &[u8]) -> Decoded {
    let (bits, length, least) = match text[0] {
        first @ 0xc2..0xe0 => (first & 0x1f, 2, 0x80),
        first @ 0xe0..0xf0 => (first & 0x0f, 3, 0x800),
        first @ 0xf0..0xf8 => (first & 0x07, 4, 0x1_0000),
        _ => return Decoded::Invalid(1),
    };
    let Some(rest) = text.get(1..length) else { return Decoded::Incomplete };
    // The byte that ends an invalid sequence belongs to it.
    if let Some(at) = rest.iter().position(|&byte| byte < 0x80) {
        return Decoded::Invalid(at + 2);
    }
    let append = |character, byte: &u8| character << 6 | u32::from(byte & 0x3f);
    match rest.iter().fold(u32::from(bits), append) {
        character if character < least => Decoded::Invalid(length),
        character if character > 0x10_ffff => Decoded::Invalid(length),
        character => Decoded::Character(character, length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_invalid_bytes_are_decoded() {
        for character in ["\u{80}", "ж", "\u{7ff}", "\u{800}", "€", "\u{ffff}", "\u{10ffff}"] {
            let text = [character.as_bytes(), b"x"].concat();
            let code = u32::from(character.chars().next().unwrap());
            assert_eq!(decode(&text), Decoded::Character(code, character.len()), "{character:?}");
            for length in 1..character.len() {
                assert_eq!(decode(&text[..length]), Decoded::Incomplete);
            }
        }
        for (text, length) in [
            (&b"a"[..], 1),
            (b"\x80", 1),
            (b"\xc1\xbf", 1),
            (b"\xf8\x80\x80\x80\x80", 1),
            (b"\xd0a", 2),
            (b"\xe2\x82a", 3),
            (b"\xe0\x80\x80", 3),
            (b"\xf4\x90\x80\x80", 4),
        ] {
            assert_eq!(decode(text), Decoded::Invalid(length), "{}", text.escape_ascii());
        }
    }
}
