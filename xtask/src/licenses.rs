//! `xtask licenses`: the notices that must ship with the program, for `weir licenses`.
//!
//! The texts are those that each crate has in its folder. Where a crate offers MIT, that text is
//! enough. What is linked in without being a crate has its text in packaging/licenses/.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::linked_crates::{self, LinkedCrate};
use crate::project;

pub(crate) const HELP: &str = "write the licence texts of all that is linked into weir

Usage: cargo xtask licenses [--check]

  --check  write nothing, fail when crates/weir/licenses.txt is not what would be written
";

const PAGE: &str = "crates/weir/licenses.txt";

/// Texts of other works whose source a crate contains, by the crate.
/// Of a C file it is the comment with the copyright.
const CONTAINED: [(&str, &str); 7] = [
    ("aws-lc-sys", "aws-lc/LICENSE"),
    ("aws-lc-sys", "aws-lc/third_party/fiat/LICENSE"),
    ("libdeflate-sys", "libdeflate/COPYING"),
    ("libmimalloc-sys", "c_src/mimalloc/v3/LICENSE"),
    ("luajit-src", "luajit2/COPYRIGHT"),
    ("pcre2-sys", "upstream/src/pcre2_compile.c"),
    ("pcre2-sys", "upstream/deps/sljit/sljit_src/sljitLir.c"),
];
/// Crates without a text, and another of the same project that has one.
const SAME_PROJECT: [(&str, &str); 1] = [("mlua-sys", "mlua")];

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let only_check = args.flag("--check");
    args.end()?;
    if only_check { check() } else { write() }
}

pub(crate) fn write() -> Result<(), String> {
    let path = project::root().join(PAGE);
    fs::write(&path, page()?).map_err(|error| format!("{}: {error}", path.display()))
}

/// Compares the file with what would be written.
pub(crate) fn check() -> Result<(), String> {
    match fs::read_to_string(project::root().join(PAGE)) {
        Ok(kept) if kept == page()? => Ok(()),
        _ => Err(format!("{PAGE} is stale: run `cargo xtask licenses` and commit it")),
    }
}

fn page() -> Result<String, String> {
    let (crates, _) = linked_crates::list()?;
    let mut works: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in &crates {
        for text in texts(one, &crates)? {
            works.entry(text).or_default().push(one.id());
        }
    }
    let folder = project::root().join("packaging/licenses");
    for path in files(&folder, |_| true)? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        works.entry(read(&path)?).or_default().push(name);
    }
    let mut sections: Vec<(String, String)> =
        works.into_iter().map(|(text, names)| (listed(names), text)).collect();
    sections.sort_unstable();
    let mut page = String::from(
        "Weir is under the Apache License, version 2.0. The program contains works of others,\n\
         under the licences below. `cargo xtask licenses` writes this file.\n",
    );
    for (names, text) in sections {
        page += &format!("\n{}\n{names}\n\n{text}\n", "=".repeat(80));
    }
    Ok(page)
}

fn listed(mut names: Vec<String>) -> String {
    names.dedup();
    names.join(", ")
}

/// The texts that go with a crate.
fn texts(one: &LinkedCrate, all: &[LinkedCrate]) -> Result<Vec<String>, String> {
    let same = SAME_PROJECT.iter().find(|(name, _)| *name == one.name);
    let folder = match same.and_then(|(_, other)| all.iter().find(|one| one.name == *other)) {
        Some(other) => &other.folder,
        None => &one.folder,
    };
    let named = files(folder, is_licence)?;
    let mit = named.iter().find(|path| file_name(path).contains("MIT"));
    let mut chosen = match mit.filter(|_| offers_mit(&one.license)) {
        Some(path) => vec![path.clone()],
        None => named,
    };
    let contained = CONTAINED.iter().filter(|(name, _)| *name == one.name);
    chosen.extend(contained.map(|(_, path)| one.folder.join(path)));
    match chosen.is_empty() {
        true => Err(format!("{} has no licence text in {}", one.id(), folder.display())),
        false => chosen.iter().map(|path| read(path)).collect(),
    }
}

/// Whether MIT alone is one of the choices.
fn offers_mit(license: &str) -> bool {
    !license.contains("AND") && license.split(" OR ").any(|choice| choice.trim() == "MIT")
}

fn is_licence(path: &Path) -> bool {
    let name = file_name(path);
    ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"]
        .iter()
        .any(|word| name.starts_with(word))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().to_uppercase()
}

/// The files of a folder that `wanted` accepts, sorted.
fn files(folder: &Path, wanted: fn(&Path) -> bool) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = paths.filter(|path| path.is_file() && wanted(path)).collect();
    files.sort_unstable();
    Ok(files)
}

/// A text without what differs between files of the same text.
fn read(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if path.extension().is_some_and(|ending| ending == "c") {
        text = comment(&text).ok_or_else(|| format!("{} has no copyright", path.display()))?;
    }
    let lines: Vec<&str> = text.trim_matches('\n').lines().map(str::trim_end).collect();
    Ok(lines.join("\n").trim_end().to_owned())
}

/// The comment of a C file that has the copyright.
fn comment(source: &str) -> Option<String> {
    let comment = source.split("*/").find(|comment| comment.contains("Copyright"))?;
    let (_, comment) = comment.split_once("/*")?;
    let lines = comment.lines().map(|line| line.strip_prefix(" *").unwrap_or(line));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mit_is_enough_where_it_is_a_choice() {
        for offered in ["MIT", "MIT OR Apache-2.0", "0BSD OR MIT OR Apache-2.0"] {
            assert!(offers_mit(offered), "{offered}");
        }
        for other in ["ISC", "Apache-2.0 AND MIT", "ISC AND (Apache-2.0 OR MIT)"] {
            assert!(!offers_mit(other), "{other}");
        }
    }
}
