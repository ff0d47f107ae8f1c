//! The table packaging/files: which package has which file, from where.

use std::fs;
use std::path::Path;

use super::filter;
use super::program::SplitProgram;
use super::stamp::ReleaseStamp;
use super::tree::{Content, FileTree, TreeFile};
use crate::project;

const TABLE: &str = "packaging/files";

/// Of the machine that makes the images, as Debian has them.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
pub(super) const BUSYBOX: &str = "/bin/busybox";

/// What the packages are made of beside the repository.
pub(super) struct Inputs<'a> {
    pub(super) program: &'a SplitProgram,
    pub(super) stamp: &'a ReleaseStamp,
    /// The folder of man pages and completions.
    pub(super) written: &'a Path,
}

/// A format that packages have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageFormat {
    Deb,
    Rpm,
    Image,
}

impl PackageFormat {
    pub(super) const ALL: [Self; 3] = [Self::Deb, Self::Rpm, Self::Image];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Deb => "deb",
            Self::Rpm => "rpm",
            Self::Image => "image",
        }
    }
}

#[derive(Debug)]
pub(super) struct Contents(Vec<ContentRow>);

#[derive(Debug)]
struct ContentRow {
    mode: u32,
    owner: u32,
    path: String,
    source: String,
    /// Names of packages, perhaps with a dot and a format.
    packages: Vec<String>,
}

impl Contents {
    pub(super) fn read() -> Result<Self, String> {
        Self::parse(&String::from_utf8_lossy(&repository_file(TABLE)?))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (mut rows, mut packages) = (Vec::new(), Vec::new());
        let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
        for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
            if let Some(names) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                packages = names.split_whitespace().map(str::to_owned).collect();
                continue;
            }
            let row = ContentRow::parse(line, &packages);
            rows.push(row.ok_or_else(|| {
                format!("{TABLE}:{number}: expected a mode, a path and a source below [PACKAGES]")
            })?);
        }
        Ok(Self(rows))
    }

    /// Refuses a man page or completion that no package has.
    pub(super) fn check_written(&self, folder: &Path) -> Result<(), String> {
        let entries = fs::read_dir(folder).map_err(|err| format!("{}: {err}", folder.display()))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let sources = names.map(|name| format!("written/{}", name.to_string_lossy()));
        let is_unused = |source: &String| self.0.iter().all(|row| row.source != *source);
        match sources.filter(is_unused).min() {
            Some(source) => Err(format!("{TABLE} has no row with the source {source}")),
            None => Ok(()),
        }
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
    fn parse(line: &str, packages: &[String]) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [mode, path, source] = words[..] else { return None };
        let (mode, owner) = mode.split_once('@').unwrap_or((mode, "0"));
        let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o7777)?;
        let is_row = path.starts_with('/') && !packages.is_empty();
        is_row.then_some(Self {
            mode,
            owner: owner.parse().ok()?,
            path: path.to_owned(),
            source: source.to_owned(),
            packages: packages.to_vec(),
        })
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
        let read = |path: &Path| fs::read(path).map_err(|err| format!("{}: {err}", path.display()));
        match self.source.as_str() {
            "program" => read(&inputs.program.stripped),
            "debug" => read(&inputs.program.debug),
            "discover" => read(&inputs.program.discover),
            "ingress" => read(&inputs.program.ingress),
            "changelog" => inputs.stamp.changelog().map(String::into_bytes),
            "certificates" => read(Path::new(CERTIFICATES)),
            "busybox" => read(Path::new(BUSYBOX)),
            source => match source.strip_prefix("written/") {
                Some(name) => read(&inputs.written.join(name)),
                None => repository_file(source),
            },
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
    fn packages_stand_above_their_files() {
        let table = "# comment\n[w]\n644 /b c\n[x y.deb z.rpm]\n\n1750@7 /a some/file\n";
        let table = Contents::parse(table).unwrap();
        let row = &table.0[1];
        assert_eq!((row.mode, row.owner, row.path.as_str()), (0o1750, 7, "/a"));
        let is_in = |package| row.is_in(package, PackageFormat::Deb);
        assert_eq!([is_in("x"), is_in("y"), is_in("z"), is_in("w")], [true, true, false, false]);
    }

    #[test]
    fn a_bad_row_is_named_by_its_line() {
        for line in ["644 a file", "9 /a file", "644@root /a file", "644 /a", "[]\n644 /a file"] {
            let message = Contents::parse(&format!("[x]\n{line}\n")).unwrap_err();
            let number = 1 + line.lines().count();
            assert!(message.starts_with(&format!("packaging/files:{number}: ")), "{message}");
        }
    }

    #[test]
    fn every_file_of_the_repository_in_the_table_is_there() {
        for row in Contents::read().unwrap().0.iter().filter(|row| row.source.contains('/')) {
            let is_made = row.source.starts_with("->") || row.source.starts_with("written/");
            let is_there = is_made || project::root().join(&row.source).is_file();
            assert!(is_there, "{}: no file {}", row.path, row.source);
        }
    }
}
