//! Files of another root: a container's, seen from outside.

use std::sync::Arc;

use super::{FileError, Files};

/// Files below a folder, under the names that they have there. Links with absolute targets are
/// followed in the real root.
#[derive(Clone, Debug)]
pub struct FilesBelow<F> {
    /// The folder, without a slash at its end.
    root: Box<[u8]>,
    files: F,
}

impl<F: Files> FilesBelow<F> {
    pub fn new(root: &[u8], files: F) -> Self {
        Self { root: root.strip_suffix(b"/").unwrap_or(root).into(), files }
    }

    /// The path below the folder. `..` does not lead out of it.
    fn outside(&self, path: &[u8]) -> Vec<u8> {
        let mut names: Vec<&[u8]> = Vec::new();
        for name in path.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => _ = names.pop(),
                name => names.push(name),
            }
        }
        [&*self.root, &names.join(&b'/')].join(&b'/')
    }
}

impl<F: Files> Files for FilesBelow<F> {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError> {
        let path = self.outside(path);
        self.files.read(&path)
    }

    fn glob(&mut self, pattern: &[u8]) -> Result<Vec<Box<[u8]>>, FileError> {
        let found = self.files.glob(&self.outside(pattern))?;
        let inside = |path: Box<[u8]>| path.strip_prefix(&*self.root).unwrap_or(&path).into();
        Ok(found.into_iter().map(inside).collect())
    }
}
