//! A translated page says which text of its English page it follows: the third line of
//! docs/zh-CN/NAME.md is `<!-- follows docs/NAME.md HASH -->`. A page whose English page has
//! changed since is reported, so that both change together.

use std::fs;
use std::path::Path;

use super::{Problem, SourceFile};

const FOLDER: &str = "docs/zh-CN/";
const ENGLISH: &str = "docs/";
const MARK: &str = "<!-- follows ";

pub(super) fn check(sources: &[SourceFile]) -> Vec<Problem> {
    let translated = sources.iter().filter(|file| file.path.starts_with(FOLDER));
    translated.filter_map(|file| problem(file, sources)).collect()
}

fn problem(page: &SourceFile, sources: &[SourceFile]) -> Option<Problem> {
    let name = page.path.strip_prefix(FOLDER)?;
    let english = format!("{ENGLISH}{name}");
    let Some(original) = sources.iter().find(|file| file.path == english) else {
        return Some(page.problem(0, format!("there is no {english} that it could follow")));
    };
    let wanted = mark(&english, &original.bytes);
    let found = page.text().lines().any(|line| line == wanted);
    let why = format!(
        "{english} has changed since: bring this page in step, then run `cargo xtask docs \
         --translated`"
    );
    (!found).then(|| page.problem(0, why))
}

/// The line that names the text of an English page.
fn mark(english: &str, text: &[u8]) -> String {
    format!("{MARK}{english} {:016x} -->", hash(text))
}

/// FNV-1a: tells texts apart, and needs no library.
fn hash(text: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Records that each translated page follows its English page as it is now.
pub(crate) fn renew(root: &Path) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let folder = root.join(FOLDER);
    for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, error))? {
        let path = entry.map_err(|error| failed(&folder, error))?.path();
        let english =
            format!("{ENGLISH}{}", path.file_name().unwrap_or_default().to_string_lossy());
        let original = root.join(&english);
        let original = fs::read(&original).map_err(|error| failed(&original, error))?;
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
        let wanted = mark(&english, &original);
        fs::write(&path, renewed(&text, &wanted)).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// A page with this mark below its title, instead of another.
fn renewed(text: &str, mark: &str) -> String {
    let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
    let rest: Vec<&str> = rest.lines().filter(|line| !line.starts_with(MARK)).collect();
    let rest = rest.join("\n");
    format!("{title}\n\n{mark}\n\n{}\n", rest.trim_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::project_of;

    #[test]
    fn a_translation_older_than_its_page_is_reported() {
        let page = renewed("# \u{9875}\n\ntext\n", &mark("docs/a.md", b"# A\n"));
        let sources = |english| project_of(&[("docs/a.md", english), ("docs/zh-CN/a.md", &page)]);
        assert_eq!(check(&sources("# A\n")), []);
        let found = check(&sources("# A\n\nmore\n"));
        assert!(found.len() == 1 && found[0].to_string().contains("--translated"), "{found:?}");
        let orphan = project_of(&[("docs/zh-CN/a.md", &page)]);
        assert!(check(&orphan)[0].to_string().contains("there is no docs/a.md"));
    }

    #[test]
    fn a_mark_is_renewed_in_place() {
        let first = renewed("# T\n\ntext\n", "<!-- follows docs/a.md 1 -->");
        assert_eq!(first, "# T\n\n<!-- follows docs/a.md 1 -->\n\ntext\n");
        let second = renewed(&first, "<!-- follows docs/a.md 2 -->");
        assert_eq!(second, "# T\n\n<!-- follows docs/a.md 2 -->\n\ntext\n");
    }
}
