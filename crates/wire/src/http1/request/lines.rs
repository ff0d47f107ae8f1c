//! Finds the lines of a head, each byte looked at once.
//!
//! One search stops at LF and at the two bytes that are never allowed: NUL, and CR without LF.

use memchr::memchr3;

use crate::Slice;

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
        let Some(offset) = memchr3(b'\n', b'\r', 0, &input[self.searched..]) else {
            self.searched = input.len();
            return (LineSearch::Nothing, self.searched);
        };
        let at = self.searched + offset;
        match (input[at], input.get(at + 1)) {
            (b'\n', _) => self.line(at, at),
            (b'\r', Some(b'\n')) => self.line(at, at + 1),
            (b'\r', None) => {
                self.searched = at;
                (LineSearch::Nothing, input.len())
            }
            (b'\r', Some(_)) => (LineSearch::Invalid(at), at + 1),
            _ => (LineSearch::Invalid(at), at),
        }
    }

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

    pub(super) fn skip(&mut self, count: usize) {
        self.start += count;
        self.searched = self.start;
    }
}
