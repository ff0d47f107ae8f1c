//! A problem of the project.

use std::fmt::{self, Display, Formatter};

#[derive(Debug, PartialEq)]
pub(crate) struct Problem {
    pub(super) path: String,
    /// From 1; 0 where the whole file is meant.
    pub(super) line: usize,
    pub(super) what: String,
}

impl Display for Problem {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.what),
            line => write!(out, "{}:{line}: {}", self.path, self.what),
        }
    }
}
