//! The files of one package, sorted by path, with the folders that they are in.

use std::collections::BTreeMap;

/// Files by their path in the root, without its slash.
#[derive(Debug, Default)]
pub(super) struct FileTree(BTreeMap<String, TreeFile>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeFile {
    pub(super) mode: u32,
    /// The number of the user and of the group.
    pub(super) owner: u32,
    pub(super) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Folder,
    File(Vec<u8>),
    /// What a symbolic link points to.
    Link(String),
}

impl FileTree {
    /// Adds a file, and the folders above it unless they are there.
    pub(super) fn add(&mut self, path: &str, file: TreeFile) {
        let path = path.trim_start_matches('/');
        for (at, _) in path.match_indices('/') {
            let folder = TreeFile { mode: 0o755, owner: 0, content: Content::Folder };
            self.0.entry(path[..at].to_owned()).or_insert(folder);
        }
        self.0.insert(path.to_owned(), file);
    }

    pub(super) fn find(&self, path: &str) -> Option<&TreeFile> {
        self.0.get(path)
    }

    /// Sorted by path, so that a folder comes before what is in it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &TreeFile)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// The regular files with their bytes.
    pub(super) fn regular(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.iter().filter_map(|(path, file)| match &file.content {
            Content::File(bytes) => Some((path, bytes.as_slice())),
            Content::Folder | Content::Link(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_with_a_file_and_before_it() {
        let mut tree = FileTree::default();
        let file = TreeFile { mode: 0o644, owner: 0, content: Content::File(b"a".to_vec()) };
        tree.add("/usr/share/a", file.clone());
        let private = TreeFile { mode: 0o700, owner: 7, content: Content::Folder };
        tree.add("/usr/share", private.clone());
        tree.add("/usr/share/b", file);
        let paths: Vec<&str> = tree.iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["usr", "usr/share", "usr/share/a", "usr/share/b"]);
        assert_eq!(tree.0["usr/share"], private);
    }
}
