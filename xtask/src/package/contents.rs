//! The table packaging/files: which package has which file, from where.

use std::fs;

use super::filter;
use super::program::SplitProgram;
use super::stamp::ReleaseStamp;
use super::tree::{Content, FileTree, TreeFile};
use crate::project;

const TABLE: &str = "packaging/files";

/// What the packages are made of beside the repository.
pub(super) struct Inputs<'a> {
    pub(super) program: &'a SplitProgram,
    pub(super) stamp: &'a ReleaseStamp,
}

/// A format that packages have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageFormat {
    Deb,
}

impl PackageFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Deb => "deb",
        }
    }
}

#[derive(Debug)]
pub(super) struct Contents(Vec<ContentRow>);

#[derive(Debug)]
struct ContentRow {
    path: String,
    mode: u32,
    owner: u32,
    source: String,
    /// Names of packages, perhaps with a dot and a format.
    packages: Vec<String>,
}

impl Contents {
    pub(super) fn read() -> Result<Self, String> {
        Self::parse(&String::from_utf8_lossy(&repository_file(TABLE)?))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
        let rows = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let row = |(line, number)| {
            ContentRow::parse(line).ok_or_else(|| {
                format!("{TABLE}:{number}: a row is a path, a mode, a source and packages")
            })
        };
        rows.map(row).collect::<Result<_, _>>().map(Self)
    }

    /// The files of a package in a format.
    pub(super) fn tree(
        &self,
        package: &str,
        format: PackageFormat,
        inputs: &Inputs<'_>,
    ) -> Result<FileTree, String> {
        let mut tree = FileTree::default();
        for row in self.0.iter().filter(|row| row.is_in(package, format)) {
            let (mode, owner, content) = (row.mode, row.owner, row.content(inputs)?);
            tree.add(&row.path, TreeFile { mode, owner, content });
        }
        Ok(tree)
    }
}

impl ContentRow {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let path = words.next().filter(|path| path.starts_with('/'))?.to_owned();
        let mode = words.next()?;
        let (mode, owner) = mode.split_once('@').unwrap_or((mode, "0"));
        let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o7777)?;
        let (owner, source) = (owner.parse().ok()?, words.next()?.to_owned());
        let packages: Vec<String> = words.map(str::to_owned).collect();
        (!packages.is_empty()).then_some(Self { path, mode, owner, source, packages })
    }

    fn is_in(&self, package: &str, format: PackageFormat) -> bool {
        self.packages.iter().any(|word| match word.split_once('.') {
            None => word == package,
            Some((name, only)) => name == package && only == format.name(),
        })
    }

    fn content(&self, inputs: &Inputs<'_>) -> Result<Content, String> {
        if self.source == "folder" {
            return Ok(Content::Folder);
        }
        if let Some(target) = self.source.strip_prefix("->") {
            return Ok(Content::Link(target.to_owned()));
        }
        let bytes = self.bytes(inputs)?;
        let is_compressed = self.path.ends_with(".gz");
        Ok(Content::File(if is_compressed { filter::gzip(&bytes)? } else { bytes }))
    }

    fn bytes(&self, inputs: &Inputs<'_>) -> Result<Vec<u8>, String> {
        let read = |path: &std::path::Path| {
            fs::read(path).map_err(|err| format!("{}: {err}", path.display()))
        };
        match self.source.as_str() {
            "program" => read(&inputs.program.stripped),
            "debug" => read(&inputs.program.debug),
            "changelog" => inputs.stamp.changelog().map(String::into_bytes),
            path => repository_file(path),
        }
    }
}

/// A file of the repository.
pub(super) fn repository_file(path: &str) -> Result<Vec<u8>, String> {
    fs::read(project::root().join(path)).map_err(|err| format!("{path}: {err}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_its_packages_and_perhaps_their_format() {
        let table = Contents::parse("# path\n\n/a 1750@7 some/file x y.deb z.rpm\n").unwrap();
        let row = &table.0[0];
        assert_eq!((row.path.as_str(), row.mode, row.owner), ("/a", 0o1750, 7));
        let is_in = |package| row.is_in(package, PackageFormat::Deb);
        assert_eq!([is_in("x"), is_in("y"), is_in("z"), is_in("some")], [true, true, false, false]);
    }

    #[test]
    fn a_bad_row_is_named_by_its_line() {
        for line in ["a 644 file x", "/a 9 file x", "/a 644@root file x", "/a 644 file"] {
            let message = Contents::parse(&format!("# a comment\n{line}\n")).unwrap_err();
            assert!(message.starts_with("packaging/files:2: "), "{message}");
        }
    }

    #[test]
    fn every_file_of_the_repository_in_the_table_is_there() {
        for row in Contents::read().unwrap().0 {
            let made = ["program", "debug", "changelog", "folder"].contains(&row.source.as_str());
            if !made && !row.source.starts_with("->") {
                let path = project::root().join(&row.source);
                assert!(path.is_file(), "{}: no file {}", row.path, row.source);
            }
        }
    }
}
