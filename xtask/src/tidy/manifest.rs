//! The dependency tables of a Cargo.toml.
//!
//! Not a TOML reader: the names in the tables whose last word is `dependencies`, which rustfmt-like
//! habit keeps one to a line from the first column on.

use super::SourceFile;

/// A dependency as one manifest names it.
#[derive(Debug, PartialEq)]
pub(super) struct Dependency<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
    /// Named in `[dev-dependencies]`: for tests only.
    pub(super) dev: bool,
    /// A crate of this workspace, where the manifest says so itself.
    pub(super) path: bool,
}

pub(super) fn is_manifest(file: &SourceFile) -> bool {
    file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml")
}

pub(super) fn dependencies(text: &str) -> Vec<Dependency<'_>> {
    let mut found = Vec::new();
    let mut table = None;
    for (content, line) in text.lines().zip(1..) {
        if let Some(header) = content.strip_prefix('[') {
            let (kind, name) = header_kind(header.trim_end_matches(']'));
            table = kind;
            if let (Some(dev), Some(name)) = (kind, name) {
                found.push(Dependency { name, line, dev, path: false });
                table = None;
            }
        } else if let (Some(dev), Some(name)) = (table, key(content)) {
            found.push(Dependency { name, line, dev, path: content.contains("path =") });
        }
    }
    found
}

/// For a table of dependencies, whether it is the tests'; and the name in `[dependencies.NAME]`.
fn header_kind(header: &str) -> (Option<bool>, Option<&str>) {
    let (front, last) = header.rsplit_once('.').unwrap_or(("", header));
    let kind = |table: &str| {
        let table = table.rsplit('.').next().unwrap_or_default();
        table.ends_with("dependencies").then_some(table == "dev-dependencies")
    };
    match kind(last) {
        Some(dev) => (Some(dev), None),
        None => (kind(front), Some(last)),
    }
}

/// The name before `=` or `.` where a line starts with one.
fn key(line: &str) -> Option<&str> {
    let end = line.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')?;
    (end > 0).then(|| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_every_kind_of_table() {
        let text = "[package]\nname = \"x\"\n\
                    [dependencies]\nwire = { path = \"../wire\" }\n# memchr\n\
                    memchr.workspace = true\n\
                    tokio = { version = \"1\", features = [\n    \"rt\",\n] }\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n\
                    [dev-dependencies]\nh2 = \"1\"\n\
                    [dependencies.rustls]\nversion = \"1\"\n\
                    [workspace.dependencies]\nhttp = \"1\"\n\
                    [lints]\nworkspace = true\n";
        let found: Vec<_> =
            dependencies(text).iter().map(|d| (d.name, d.line, d.dev, d.path)).collect();
        let expected = [
            ("wire", 4, false, true),
            ("memchr", 6, false, false),
            ("tokio", 7, false, false),
            ("libc", 11, false, false),
            ("h2", 13, true, false),
            ("rustls", 14, false, false),
            ("http", 17, false, false),
        ];
        assert_eq!(found, expected);
    }
}
