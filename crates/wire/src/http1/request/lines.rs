//! Finds the lines of a head, each byte looked at once.
//!
//! A search stops at control characters: at LF, at the two that are never allowed, NUL and CR
//! without LF, and at others, after which it goes on.

use crate::Slice;
use crate::words::find_control;

/// Where the next line begins, and up to where its end was looked for in vain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineScanner {
    pub(super) start: usize,
    searched: usize,
}

/// What a search found.
#[derive(Debug)]
pub(super) enum LineSearch {
    /// A line, without its end.
    Line(Slice),
    /// Not yet the end of the line.
    Nothing,
    /// NUL, or CR without LF, at that offset.
    Invalid(usize),
}

impl LineScanner {
    /// The next line, and the offset of the byte that decided: its LF, the NUL, what follows the
    /// CR, or the end of what was searched.
    #[inline]
    pub(super) fn next(&mut self, input: &[u8]) -> (LineSearch, usize) {
        let input = &input[..input.len().min(Slice::BUFFER_MAX)];
        let mut from = self.searched;
        while let Some(at) = find_control(input, from) {
            match (input[at], input.get(at + 1)) {
                (b'\n', _) => return self.line(at, at),
                (b'\r', Some(b'\n')) => return self.line(at, at + 1),
                (b'\r', None) => {
                    self.searched = at;
                    return (LineSearch::Nothing, input.len());
                }
                (b'\r', Some(_)) => return (LineSearch::Invalid(at), at + 1),
                (0, _) => return (LineSearch::Invalid(at), at),
                _ => from = at + 1,
            }
        }
        self.searched = input.len();
        (LineSearch::Nothing, self.searched)
    }

    #[inline]
    fn line(&mut self, end: usize, lf: usize) -> (LineSearch, usize) {
        let line = Slice::new(self.start, end);
        self.start = lf + 1;
        self.searched = self.start;
        (LineSearch::Line(line), lf)
    }

    pub(super) fn position(&self) -> (usize, usize) {
        (self.start, self.searched)
    }

    pub(super) fn at_start(&self) -> bool {
        self.searched == self.start
    }

    /// The next line begins at that offset.
    pub(super) fn skip_to(&mut self, start: usize) {
        self.start = start;
        self.searched = start;
    }
}
