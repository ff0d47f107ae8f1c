//! The parts of an origin-form target: `/path?args#fragment`.

use crate::Slice;
use crate::words::find_target_end;

/// The parts of a target, as offsets in its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UriTarget {
    /// The path as sent, up to "?" or "#".
    pub path: Slice,
    /// The text after "?" up to "#"; `None` without "?".
    pub args: Option<Slice>,
    /// The whole target. Only it includes the fragment.
    pub whole: Slice,
    /// The path has "%", "//" or "/." and so may not be its own normal form.
    pub needs_normalising: bool,
    /// The path has "%".
    pub quoted: bool,
    /// The path has "+".
    pub plus: bool,
}

impl UriTarget {
    /// Parses up to the first space or the end of `text`; `None` if there is a control character.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<UriTarget> {
        let (mut seen, mut odd, mut after) = (0, 0, 0);
        let mut at = text.len();
        for (offset, &byte) in text.iter().enumerate() {
            let class = CLASS[usize::from(byte)];
            if class & END != 0 {
                at = offset;
                break;
            }
            seen |= class;
            odd |= class & after;
            after = (class & SLASH) << 1;
        }
        let path = Slice::new(0, at);
        let mut args = None;
        if text.get(at) == Some(&b'?') {
            let start = at + 1;
            at = find_target_end(text, start, b'#').unwrap_or(text.len());
            args = Some(Slice::new(start, at));
        }
        if text.get(at) == Some(&b'#') {
            at = find_target_end(text, at, b' ').unwrap_or(text.len());
        }
        let (quoted, plus) = (seen & QUOTE != 0, seen & PLUS != 0);
        let needs_normalising = quoted || odd != 0;
        let whole = Slice::new(0, at);
        let is_whole = matches!(text.get(at), None | Some(b' '));
        is_whole.then_some(UriTarget { path, args, whole, needs_normalising, quoted, plus })
    }
}

const SLASH: u8 = 1;
/// After a slash, "/" and "." make a path differ from its normal form.
const ODD: u8 = SLASH << 1;
const QUOTE: u8 = 4;
const PLUS: u8 = 8;
/// The ends of a path: "?", "#", a space, and the control characters, which are invalid.
const END: u8 = 16;

const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte <= 0x20 {
        class[byte] = END;
        byte += 1;
    }
    class[0x7f] = END;
    class[b'?' as usize] = END;
    class[b'#' as usize] = END;
    class[b'/' as usize] = SLASH | ODD;
    class[b'.' as usize] = ODD;
    class[b'%' as usize] = QUOTE;
    class[b'+' as usize] = PLUS;
    class
};
