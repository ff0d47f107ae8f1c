//! The parts of an origin-form target: `/path?args#fragment`.

use crate::Slice;

/// Where the parts of a target are, as offsets in the text it was parsed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UriTarget {
    /// The path as sent, up to "?" or "#".
    pub path: Slice,
    /// What follows "?" up to "#"; `None` without "?".
    pub args: Option<Slice>,
    /// The whole target, with a fragment, which nothing else has.
    pub whole: Slice,
    /// The path has "%", "//" or "/." and so may not be its own normal form.
    pub needs_normalising: bool,
    /// The path has "%".
    pub quoted: bool,
    /// The path has "+".
    pub plus: bool,
}

impl UriTarget {
    /// Parses up to the first space or the end of `text`; `None` when a control character is there.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<UriTarget> {
        let mut target = UriTarget::default();
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match CLASS[byte as usize] {
                USUAL => {}
                SLASH => {
                    target.needs_normalising |= matches!(text.get(at + 1), Some(b'/' | b'.'));
                }
                QUOTE => target.quoted = true,
                PLUS => target.plus = true,
                MARK | SPACE => break,
                _ => return None,
            }
            at += 1;
        }
        target.path = Slice::new(0, at);
        target.needs_normalising |= target.quoted;
        if text.get(at) == Some(&b'?') {
            let start = at + 1;
            at = part_end(text, start, Some(b'#'));
            target.args = Some(Slice::new(start, at));
        }
        if text.get(at) == Some(&b'#') {
            at = part_end(text, at, None);
        }
        target.whole = Slice::new(0, at);
        matches!(text.get(at), None | Some(b' ')).then_some(target)
    }
}

/// The first of a space, a control character and `mark` from `start` on.
fn part_end(text: &[u8], start: usize, mark: Option<u8>) -> usize {
    let part = &text[start..];
    let is_end = |byte: &u8| CLASS[*byte as usize] >= SPACE || Some(*byte) == mark;
    start + part.iter().position(is_end).unwrap_or(part.len())
}

const USUAL: u8 = 0;
const SLASH: u8 = 1;
const QUOTE: u8 = 2;
const PLUS: u8 = 3;
/// "?" and "#", which end the path.
const MARK: u8 = 4;
const SPACE: u8 = 5;
const NEVER: u8 = 6;

const CLASS: [u8; 256] = {
    let mut class = [USUAL; 256];
    let mut byte = 0;
    while byte < 0x20 {
        class[byte] = NEVER;
        byte += 1;
    }
    class[0x7f] = NEVER;
    class[b' ' as usize] = SPACE;
    class[b'/' as usize] = SLASH;
    class[b'%' as usize] = QUOTE;
    class[b'+' as usize] = PLUS;
    class[b'?' as usize] = MARK;
    class[b'#' as usize] = MARK;
    class
};
