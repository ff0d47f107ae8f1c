//! The directory that a location serves files from.

use std::sync::Arc;

use conf::Template;

/// Where files are.
#[derive(Clone)]
pub struct Root {
    /// The directory.
    pub(crate) directory: Template,
    /// What completes a directory that begins with a variable and turns out to be relative.
    pub(crate) prefix: Arc<[u8]>,
    /// Which part of a path it takes the place of.
    pub(crate) stands_for: StandsFor,
}

/// Which part of a path the directory takes the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandsFor {
    /// `root`: none, the path follows it.
    Nothing,
    /// `alias`: the location's name.
    Name(Box<[u8]>),
    /// `alias` in a location with a regular expression: the whole path.
    Path,
}
