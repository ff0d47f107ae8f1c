//! Configurations for tests.

use std::path::Path;

use conf::MemoryFiles;

use crate::tree::EditableTree;

/// Parses a text as `/etc/nginx/nginx.conf`.
pub(crate) fn tree(text: &str) -> EditableTree {
    let mut files = MemoryFiles::default().with("/etc/nginx/nginx.conf", text);
    EditableTree::read(Path::new("/etc/nginx/nginx.conf"), &mut files).expect("a configuration")
}
