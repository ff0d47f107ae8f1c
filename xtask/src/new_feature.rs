//! Starts a feature of `http`: its folder, its `mod` line and its list line.
//!
//! The new module is complete: a directive, a variable, state of an exchange, a handler in a phase,
//! and a test. A test makes one in a copy of the project, so the templates cannot go stale.

use std::fs;
use std::path::Path;

use crate::args::Args;
use crate::project;
use crate::tidy::FEATURES;

pub(crate) const HELP: &str = "start a feature of http: its folder, mod line and list line

Usage: cargo xtask new-feature NAME

NAME is the name of nginx's module without ngx_http_ and _module. The list's order is the order of
handlers and filters: move the new line to its place.
";

/// The files of a new folder, `NAME` standing for the feature's name.
const FILES: [(&str, &str); 2] = [
    ("mod.rs", include_str!("../feature.rs.in")),
    ("tests.rs", include_str!("../feature_tests.rs.in")),
];

/// How the lines of features/mod.rs begin: a module's, and the list's first.
const MODULE: &str = "pub mod ";
const LIST: &str = "conf::features! {";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let words = Args::new(words).words()?;
    let [name] = words.as_slice() else { return Err("usage: cargo xtask new-feature NAME".into()) };
    scaffold(&project::root().join(FEATURES), name)?;
    println!("{FEATURES}/{name}/mod.rs; now move its line in {FEATURES}/mod.rs to its place");
    Ok(())
}

fn scaffold(features: &Path, name: &str) -> Result<(), String> {
    if !is_name(name) {
        return Err(format!("\"{name}\" is no name of a module: small letters, digits, _"));
    }
    let list = features.join("mod.rs");
    let text = fs::read_to_string(&list).map_err(|err| format!("{}: {err}", list.display()))?;
    let text = listed(&text, name)?;
    let folder = features.join(name);
    let fail = |err| format!("{}: {err}", folder.display());
    fs::create_dir(&folder).map_err(fail)?;
    for (file, template) in FILES {
        fs::write(folder.join(file), template.replace("NAME", name)).map_err(fail)?;
    }
    fs::write(&list, text).map_err(|err| format!("{}: {err}", list.display()))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The list with the feature's two lines: the module in its alphabetical place, the feature last.
fn listed(text: &str, name: &str) -> Result<String, String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let module = format!("{MODULE}{name};");
    if lines.contains(&module) {
        return Err(format!("{name} is there already"));
    }
    let begin = lines.iter().position(|line| line.starts_with(LIST));
    let begin = begin.ok_or_else(|| format!("mod.rs has no line `{LIST}`"))?;
    let length = lines[begin..].iter().position(|line| line == "}").ok_or("the list has no end")?;
    lines.insert(begin + length, format!("    {name}: {name} with VARIABLES,"));
    let modules = || lines.iter().enumerate().filter(|(_, line)| line.starts_with(MODULE));
    let next = modules().find(|(_, line)| **line > module).map(|(at, _)| at);
    let after_last = || modules().next_back().map(|(at, _)| at + 1);
    let place = next.or_else(after_last).ok_or_else(|| format!("mod.rs has no `{MODULE}`"))?;
    lines.insert(place, module);
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    const OLD: &str = "//! All.\n\npub mod charset;\npub mod gzip;\n\n\
                       conf::features! {\n    into LocationBuilder;\n    gzip: gzip,\n}\n";

    #[test]
    fn the_two_lines_go_to_their_places() {
        let expected = "//! All.\n\npub mod charset;\npub mod dav;\npub mod gzip;\n\n\
                        conf::features! {\n    into LocationBuilder;\n    gzip: gzip,\n    \
                        dav: dav with VARIABLES,\n}\n";
        assert_eq!(listed(OLD, "dav"), Ok(expected.into()));
        let last = listed(OLD, "map").expect("the list is whole");
        assert!(last.contains("pub mod gzip;\npub mod map;\n\nconf::"), "{last}");
    }

    #[test]
    fn what_cannot_be_listed_is_refused() {
        assert!(listed(OLD, "gzip").is_err());
        assert!(listed("pub mod a;\n", "b").is_err());
        assert!(listed("conf::features! {\n}\n", "b").is_err());
        assert!(is_name("limit_req") && !is_name("../x") && !is_name("Gzip") && !is_name(""));
    }

    #[test]
    fn a_folder_that_exists_is_not_overwritten() {
        let features = std::env::temp_dir().join(format!("new-feature-{}", std::process::id()));
        fs::create_dir_all(features.join("dav")).expect("a folder");
        fs::write(features.join("mod.rs"), OLD).expect("a file");
        assert!(scaffold(&features, "dav").is_err());
        assert!(scaffold(&features, "map").is_ok());
        let module = fs::read_to_string(features.join("map/mod.rs")).expect("the module");
        assert!(module.starts_with("//! map") && !module.contains("NAME"), "{module}");
        let list = fs::read_to_string(features.join("mod.rs")).expect("the list");
        assert!(list.contains("mod map;") && !list.contains("mod dav;"), "{list}");
        fs::remove_dir_all(&features).expect("the folder is removed");
    }

    /// Copies what git tracks to `to`. Files that have not changed keep their times, so that a
    /// second build there is a short one.
    fn copy_project(to: &Path) -> Vec<String> {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "safe.directory=*", "ls-files", "-z"]).current_dir(project::root());
        let listed = String::from_utf8(project::output(&mut git).unwrap()).unwrap();
        let mut paths: Vec<String> = listed.split_terminator('\0').map(str::to_owned).collect();
        paths.retain(|path| project::root().join(path).is_file());
        for path in &paths {
            let (bytes, copy) = (fs::read(project::root().join(path)).unwrap(), to.join(path));
            if fs::read(&copy).ok().as_ref() != Some(&bytes) {
                fs::create_dir_all(copy.parent().unwrap()).unwrap();
                fs::write(&copy, bytes).unwrap();
            }
        }
        remove_others(&to.join("crates"), &paths.iter().map(|path| to.join(path)).collect());
        paths
    }

    /// Removes what the project no longer has: a module that has moved would be there twice.
    fn remove_others(folder: &Path, known: &BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                remove_others(&path, known);
            } else if !known.contains(&path) {
                fs::remove_file(&path).unwrap();
            }
        }
    }

    /// The lines of the copy that its original lacks; every line of the original is in the copy.
    fn added_lines(path: &str, copy: &Path) -> Vec<String> {
        let [old, new] = [project::root(), copy].map(|root| {
            let text = String::from_utf8(fs::read(root.join(path)).unwrap()).unwrap();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        });
        let mut old = old.into_iter().peekable();
        let added = new.into_iter().filter(|line| old.next_if_eq(line).is_none()).collect();
        assert_eq!(old.next(), None, "{path} has lost a line");
        added
    }

    #[test]
    #[ignore = "builds http in a copy of the project; `cargo xtask check` runs it"]
    fn a_new_feature_is_its_folder_and_two_lines_and_its_test_passes() {
        const NAME: &str = "new_feature_sample";
        let copy = project::root().join("target/new-feature/project");
        let paths = copy_project(&copy);
        let features = copy.join(FEATURES);
        let folder = features.join(NAME);
        let _ = fs::remove_dir_all(&folder);
        scaffold(&features, NAME).unwrap();

        let bytes = |root: &Path, path: &String| fs::read(root.join(path)).unwrap();
        let changed = |path: &&String| bytes(project::root(), path) != bytes(&copy, path);
        let changed: Vec<&String> = paths.iter().filter(changed).collect();
        let list = format!("{FEATURES}/mod.rs");
        assert_eq!(changed, [&list]);
        let lines = [format!("pub mod {NAME};"), format!("    {NAME}: {NAME} with VARIABLES,")];
        assert_eq!(added_lines(&list, &copy), lines);

        let filter = format!("features::{NAME}::");
        let mut cargo = project::cargo(&["test", "--package", "http@0.1.0", "--lib", &filter]);
        cargo.current_dir(&copy).env("CARGO_TARGET_DIR", copy.with_file_name("target"));
        let said = project::output(&mut cargo).unwrap_or_else(|why| panic!("{why}"));
        assert!(String::from_utf8_lossy(&said).contains("test result: ok. 1 passed"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
