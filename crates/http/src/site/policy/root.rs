//! The directory that a location serves files from.

use std::sync::Arc;

use conf::Template;

/// The directory of files: `root` or `alias`.
#[derive(Clone)]
pub struct Root {
    pub(crate) directory: Template,
    /// Put before a directory that begins with a variable and is relative.
    pub(crate) prefix: Arc<[u8]>,
    /// The part of a path that the directory replaces.
    pub(crate) stands_for: StandsFor,
}

/// The part of a path that the directory replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandsFor {
    /// `root`: none; the path follows the directory.
    Nothing,
    /// `alias`: the location's name.
    Name(Box<[u8]>),
    /// `alias` in a location with a regular expression: the whole path.
    Path,
}
