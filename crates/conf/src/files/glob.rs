//! File name patterns as in glob(3) in the C locale: `*`, `?`, `[...]` and `\`.
//!
//! One component at a time, without slashes. A leading dot matches only itself. Not supported are
//! the collating forms `[.x.]` and `[=x=]`, which mean their letters.

/// Whether nginx treats a name as a pattern.
pub fn has_magic(name: &[u8]) -> bool {
    name.iter().any(|byte| b"*?[".contains(byte))
}

/// Whether a component can match anything but itself.
pub(super) fn is_pattern(component: &[u8]) -> bool {
    let mut rest = component;
    while let Some((piece, after)) = GlobPiece::first(rest) {
        if !matches!(piece, GlobPiece::Byte(_)) {
            return true;
        }
        rest = after;
    }
    false
}

/// A component without its backslashes.
pub(super) fn literal(component: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(component.len());
    let mut rest = component;
    while let Some((piece, after)) = GlobPiece::first(rest) {
        if let GlobPiece::Byte(byte) = piece {
            name.push(byte);
        }
        rest = after;
    }
    name
}

/// Whether a name matches. Only the last `*` is tried again, so the time is at most the product of
/// the lengths.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.')
        && !matches!(GlobPiece::first(pattern), Some((GlobPiece::Byte(_), _)))
    {
        return false;
    }
    let (mut pattern, mut rest) = (pattern, name);
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (GlobPiece::first(pattern), rest) {
            (Some((GlobPiece::Star, after)), _) => {
                retry = Some((after, rest));
                pattern = after;
                continue;
            }
            (Some((piece, after)), [byte, left @ ..]) if piece.takes(*byte) => {
                (pattern, rest) = (after, left);
                continue;
            }
            (None, []) => return true,
            _ => {}
        }
        let Some((after, [_, left @ ..])) = retry else { return false };
        retry = Some((after, left));
        (pattern, rest) = (after, left);
    }
}

/// The first piece of a pattern.
#[derive(Clone, Copy)]
enum GlobPiece<'a> {
    Star,
    Any,
    Byte(u8),
    /// `[...]`: the bytes between the brackets, without the `!`.
    Set {
        members: &'a [u8],
        negated: bool,
    },
}

impl<'a> GlobPiece<'a> {
    fn first(pattern: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&byte, after) = pattern.split_first()?;
        Some(match (byte, after) {
            (b'*', _) => (Self::Star, after),
            (b'?', _) => (Self::Any, after),
            (b'\\', [escaped, after @ ..]) => (Self::Byte(*escaped), after),
            (b'[', _) => Self::set(after).unwrap_or((Self::Byte(b'['), after)),
            _ => (Self::Byte(byte), after),
        })
    }

    /// Reads a set if it is closed; otherwise `[` is a letter.
    fn set(after: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let negated = matches!(after, [b'!' | b'^', ..]);
        let members = &after[usize::from(negated)..];
        let mut rest = members;
        // A `]` that comes first is a member.
        while rest.len() == members.len() || rest.first() != Some(&b']') {
            rest = Member::first(rest)?.1;
        }
        let len = members.len() - rest.len();
        Some((Self::Set { members: &members[..len], negated }, &rest[1..]))
    }

    fn takes(self, byte: u8) -> bool {
        match self {
            Self::Star | Self::Any => true,
            Self::Byte(wanted) => byte == wanted,
            Self::Set { mut members, negated } => {
                let mut found = false;
                while let Some((member, rest)) = Member::first(members) {
                    found |= member.has(byte);
                    members = rest;
                }
                found != negated
            }
        }
    }
}

/// One member of a set.
enum Member<'a> {
    Range(u8, u8),
    Class(&'a [u8]),
}

impl<'a> Member<'a> {
    fn first(members: &'a [u8]) -> Option<(Self, &'a [u8])> {
        if let Some(rest) = members.strip_prefix(b"[:")
            && let Some(len) = rest.windows(2).position(|two| two == b":]")
        {
            return Some((Self::Class(&rest[..len]), &rest[len + 2..]));
        }
        let (from, rest) = letter(members)?;
        match rest {
            [b'-', after @ ..] if !matches!(after, [] | [b']', ..]) => {
                let (to, rest) = letter(after)?;
                Some((Self::Range(from, to), rest))
            }
            _ => Some((Self::Range(from, from), rest)),
        }
    }

    fn has(&self, byte: u8) -> bool {
        match *self {
            Self::Range(from, to) => (from..=to).contains(&byte),
            Self::Class(b"alnum") => byte.is_ascii_alphanumeric(),
            Self::Class(b"alpha") => byte.is_ascii_alphabetic(),
            Self::Class(b"blank") => byte == b' ' || byte == b'\t',
            Self::Class(b"cntrl") => byte.is_ascii_control(),
            Self::Class(b"digit") => byte.is_ascii_digit(),
            Self::Class(b"graph") => byte.is_ascii_graphic(),
            Self::Class(b"lower") => byte.is_ascii_lowercase(),
            Self::Class(b"print") => byte.is_ascii_graphic() || byte == b' ',
            Self::Class(b"punct") => byte.is_ascii_punctuation(),
            Self::Class(b"space") => byte.is_ascii_whitespace() || byte == b'\x0b',
            Self::Class(b"upper") => byte.is_ascii_uppercase(),
            Self::Class(b"xdigit") => byte.is_ascii_hexdigit(),
            Self::Class(_) => false,
        }
    }
}

fn letter(members: &[u8]) -> Option<(u8, &[u8])> {
    match members {
        [b'\\', escaped, rest @ ..] => Some((*escaped, rest)),
        [byte, rest @ ..] => Some((*byte, rest)),
        [] => None,
    }
}
