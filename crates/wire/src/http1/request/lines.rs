//! Finds the lines of a head; each byte is searched once.
//!
//! A search stops at LF, and at NUL or CR without LF, which are never allowed. It passes other
//! control characters.

use crate::Slice;
use crate::words::find_control;

/// The offset of the next line, and the end of the bytes searched for the line's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineScanner {
    pub(super) start: usize,
    searched: usize,
}

/// The result of a search.
#[derive(Debug)]
pub(super) enum LineSearch {
    /// A line, without its end.
    Line(Slice),
    /// The line is incomplete.
    Nothing,
    /// NUL, or CR without LF, at that offset.
    Invalid(usize),
}

impl LineScanner {
    /// The next line, and the offset of the byte that decided: its LF, the NUL, the byte after the
    /// CR, or the end of the searched input.
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

    /// Continues with the line at that offset.
    pub(super) fn skip_to(&mut self, start: usize) {
        self.start = start;
        self.searched = start;
    }
}
