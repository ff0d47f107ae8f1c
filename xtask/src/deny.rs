//! `xtask deny`: whether the crates from outside keep to deny.toml: their licences, where they come
//! from, and the ones that must not be there.
//!
//! cargo-deny reads the same file and checks more, but takes minutes to build. What is read of the
//! file here is the lists named `allow` and `deny`.

use std::fs;

use crate::args::Args;
use crate::project;

pub(crate) const HELP: &str = "check crates from outside against deny.toml

Licences, sources and banned crates of everything that is built here, tests included.
";

const FILE: &str = "deny.toml";

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    Args::new(words).end()?;
    let path = project::root().join(FILE);
    let rules = fs::read_to_string(&path).map_err(|err| format!("{}: {err}", path.display()))?;
    let rules = DenyRules { licences: list(&rules, "allow")?, banned: list(&rules, "deny")? };
    let tree = [
        "tree",
        "--workspace",
        "--locked",
        "--prefix=none",
        "--no-dedupe",
        "--edges=normal,build,dev",
        "--format={p}|{l}",
    ];
    let tree = project::output(&mut project::cargo(&tree))?;
    let problems = rules.problems(&String::from_utf8_lossy(&tree));
    problems.iter().for_each(|problem| println!("{problem}"));
    match problems.len() {
        0 => Ok(()),
        count => Err(format!("deny: {count} against {FILE}")),
    }
}

struct DenyRules<'a> {
    licences: Vec<&'a str>,
    banned: Vec<&'a str>,
}

impl DenyRules<'_> {
    /// What is wrong with crates: `NAME VERSION [(SOURCE)]|LICENCE` in each line.
    fn problems(&self, tree: &str) -> Vec<String> {
        let mut lines: Vec<&str> = tree.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        let mut problems = Vec::new();
        for line in lines {
            let Some((package, licence)) = line.split_once('|') else { continue };
            let name = package.split(' ').next().unwrap_or_default();
            if self.banned.contains(&name) {
                problems.push(format!("{package} is banned"));
            }
            if package.contains("://") {
                problems.push(format!("{package} does not come from crates.io"));
            } else if !package.contains("(/") && !self.allows(licence) {
                problems.push(format!("{package} has the licence \"{licence}\""));
            }
        }
        problems
    }

    /// Whether an SPDX expression can be satisfied. AND binds more tightly than OR.
    fn allows(&self, expression: &str) -> bool {
        let mut rest = expression.trim();
        let allowed = self.any(&mut rest);
        allowed && rest.is_empty()
    }

    fn any(&self, rest: &mut &str) -> bool {
        let mut allowed = self.all(rest);
        while take(rest, "OR ") || take(rest, "/") {
            allowed |= self.all(rest);
        }
        allowed
    }

    fn all(&self, rest: &mut &str) -> bool {
        let mut allowed = self.one(rest);
        while take(rest, "AND ") {
            allowed &= self.one(rest);
        }
        allowed
    }

    fn one(&self, rest: &mut &str) -> bool {
        if take(rest, "(") {
            let allowed = self.any(rest);
            return take(rest, ")") && allowed;
        }
        let ends = [" AND ", " OR ", "/", ")"].map(|end| rest.find(end));
        let end = ends.into_iter().flatten().min().unwrap_or(rest.len());
        let name = rest[..end].trim_end();
        *rest = rest[end..].trim_start();
        self.licences.contains(&name)
    }
}

fn take(rest: &mut &str, word: &str) -> bool {
    let Some(after) = rest.strip_prefix(word) else { return false };
    *rest = after.trim_start();
    true
}

/// The texts in the list of that name, which begins in a line of its own.
fn list<'a>(rules: &'a str, name: &str) -> Result<Vec<&'a str>, String> {
    let start = format!("\n{name} = [");
    let (_, after) = rules.split_once(&start).ok_or(format!("{FILE} has no list \"{name}\""))?;
    let (items, _) = after.split_once(']').ok_or(format!("the list \"{name}\" does not end"))?;
    Ok(items.split('"').skip(1).step_by(2).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_sources_and_names_are_held_to_the_rules() {
        let text = "\nallow = [\"MIT\", \"Zlib\"]\n\ndeny = [\n    \"openssl\",\n]\n";
        let licences = list(text, "allow").unwrap();
        let rules = DenyRules { licences, banned: list(text, "deny").unwrap() };
        let tree = "a v1|MIT\nb v1|GPL-2.0 OR (MIT AND Zlib)\nc v1|MIT AND GPL-2.0\nc v1|GPL-2.0\n\
                    weir v1 (/home/weir)|\nd v1 (https://d.test/d#1)|MIT\nopenssl v1|MIT/GPL-2.0\n";
        let expected = [
            "c v1 has the licence \"GPL-2.0\"",
            "c v1 has the licence \"MIT AND GPL-2.0\"",
            "d v1 (https://d.test/d#1) does not come from crates.io",
            "openssl v1 is banned",
        ];
        assert_eq!(rules.problems(tree), expected);
        assert!(list(text, "none").is_err());
    }
}
