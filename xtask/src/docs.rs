//! The pages in docs/ that are written from what others know: the program its directives and
//! variables, docs/cost.md the figures of the README's picture.

mod cost_figure;

use std::fs;
use std::process::{Command, Stdio};

use crate::args::Args;
use crate::tidy::translations;
use crate::{licenses, project};

pub(crate) const HELP: &str =
    "write the pages in docs/ that list directives and variables, from the program's own tables,
the picture of costs, and the licences of all that is linked into weir

Usage: cargo xtask docs [--check | --translated]

  --check       write nothing, fail when a page is not what would be written
  --translated  record that the pages in docs/zh-CN follow the English pages as they are now;
                for whoever has brought them in step
";

/// A page, and the option of `weir reference` that prints it.
const PAGES: [(&str, &str); 3] = [
    ("docs/directives.md", "--markdown"),
    ("docs/variables.md", "--variables"),
    ("docs/unsupported.md", "--unsupported"),
];

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let (only_check, translated) = (args.flag("--check"), args.flag("--translated"));
    args.end()?;
    if translated {
        return translations::renew(project::root());
    }
    if only_check {
        return check();
    }
    for (page, text) in pages()? {
        let path = project::root().join(page);
        fs::write(&path, text).map_err(|err| format!("{}: {err}", path.display()))?;
    }
    licenses::write()
}

/// Compares the pages with what would be written.
pub(crate) fn check() -> Result<(), String> {
    for (page, text) in pages()? {
        compare(page, fs::read(project::root().join(page)).ok(), text)?;
    }
    licenses::check()
}

/// The pages with their texts.
fn pages() -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    let weir = project::debug("weir")?;
    let mut pages = Vec::new();
    for (page, option) in PAGES {
        pages.push((page, printed(&mut Command::new(&weir), option)?));
    }
    let costs = project::root().join("docs/cost.md");
    let costs = fs::read_to_string(&costs).map_err(|err| format!("{}: {err}", costs.display()))?;
    pages.push(("docs/cost.svg", cost_figure::draw(&costs)?.into_bytes()));
    Ok(pages)
}

fn compare(page: &str, kept: Option<Vec<u8>>, printed: Vec<u8>) -> Result<(), String> {
    match kept {
        Some(kept) if kept == printed => Ok(()),
        _ => Err(format!("{page} is stale: run `cargo xtask docs` and commit it")),
    }
}

/// A page as the program prints it.
fn printed(weir: &mut Command, option: &str) -> Result<Vec<u8>, String> {
    let text = project::output(weir.args(["reference", option]).stdin(Stdio::null()))?;
    if text.is_empty() { Err(format!("weir reference {option} prints nothing")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_or_missing_page_is_refused() {
        let text = || b"text".to_vec();
        assert_eq!(compare("a page", Some(text()), text()), Ok(()));
        assert!(compare("a page", None, text()).is_err());
        assert!(compare("a page", Some(text()), b"other".to_vec()).is_err());
    }

    #[test]
    fn a_program_that_fails_or_prints_nothing_has_no_page() {
        let said = |script| printed(Command::new("sh").args(["-c", script]), "--markdown");
        assert_eq!(said("echo text"), Ok(b"text\n".to_vec()));
        assert!(said("true").is_err_and(|why| why.contains("prints nothing")));
        assert!(said("echo invalid option >&2; exit 1").is_err_and(|why| why.contains("invalid")));
    }
}
