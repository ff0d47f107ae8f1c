//! A file of the project.

use super::problem::Problem;

pub(crate) struct SourceFile {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
}

impl SourceFile {
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The text; what is not UTF-8 counts as empty here and is reported by `text::check`.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// The crate whose folder this file is in.
    pub(super) fn crate_name(&self) -> Option<&str> {
        if self.path.starts_with("xtask/") {
            return Some("xtask");
        }
        self.path.strip_prefix("crates/")?.split_once('/').map(|(name, _)| name)
    }

    pub(super) fn problem(&self, line: usize, what: impl Into<String>) -> Problem {
        Problem { path: self.path.clone(), line, what: what.into() }
    }
}
