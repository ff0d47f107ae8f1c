//! The keys of `weir top`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopKey {
    Quit,
    Page(usize),
    NextPage,
    NextOrder,
    Reverse,
    Pause,
    /// Lines to scroll by.
    Scroll(isize),
    /// The first line.
    Top,
}

/// A screen is scrolled by this many lines at once.
const MANY: isize = 15;

/// The keys in bytes from a terminal, which come together for one key.
pub(super) fn parse(bytes: &[u8]) -> Vec<TopKey> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'\x1b' {
            let (key, after) = escape(rest);
            keys.extend(key);
            rest = after;
        } else {
            keys.extend(plain(*first));
        }
    }
    keys
}

fn plain(byte: u8) -> Option<TopKey> {
    const CTRL_C: u8 = 3;
    Some(match byte {
        b'q' | b'Q' | CTRL_C => TopKey::Quit,
        b'1'..=b'5' => TopKey::Page(usize::from(byte - b'1')),
        b'\t' => TopKey::NextPage,
        b's' => TopKey::NextOrder,
        b'r' => TopKey::Reverse,
        b' ' | b'p' => TopKey::Pause,
        b'j' => TopKey::Scroll(1),
        b'k' => TopKey::Scroll(-1),
        b'g' => TopKey::Top,
        _ => return None,
    })
}

/// The key after an escape character: `[A`, or `[5~`. Unknown ones are taken as a whole.
fn escape(rest: &[u8]) -> (Option<TopKey>, &[u8]) {
    let Some(sequence) = rest.strip_prefix(b"[").or(rest.strip_prefix(b"O")) else {
        return (None, rest);
    };
    let end = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
    let end = end.map_or(sequence.len(), |end| end + 1);
    let (sequence, after) = sequence.split_at(end);
    let key = match sequence {
        b"A" => Some(TopKey::Scroll(-1)),
        b"B" => Some(TopKey::Scroll(1)),
        b"C" => Some(TopKey::NextPage),
        b"5~" => Some(TopKey::Scroll(-MANY)),
        b"6~" => Some(TopKey::Scroll(MANY)),
        b"H" | b"1~" => Some(TopKey::Top),
        _ => None,
    };
    (key, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_letters_and_sequences() {
        let keys = parse(b"2s\x1b[B\x1b[5~\x1b[24~\x1b[Ax\t\x03");
        let expected = [
            TopKey::Page(1),
            TopKey::NextOrder,
            TopKey::Scroll(1),
            TopKey::Scroll(-MANY),
            TopKey::Scroll(-1),
            TopKey::NextPage,
            TopKey::Quit,
        ];
        assert_eq!(keys, expected);
    }

    #[test]
    fn broken_sequences_end_with_the_bytes() {
        assert_eq!(parse(b"\x1b"), []);
        assert_eq!(parse(b"\x1b["), []);
        assert_eq!(parse(b"\x1b[1;"), []);
        assert_eq!(parse(b"\x1bq"), [TopKey::Quit]);
    }
}
