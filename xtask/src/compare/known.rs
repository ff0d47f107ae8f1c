//! Differences of generated cases that are accepted: `conformance/known-differences.txt`.
//!
//! A difference is accepted only as a whole: each of its lines must be listed for its case.

use std::path::Path;

const FILE: &str = "../conformance/known-differences.txt";

/// The accepted lines, and in which cases they are.
pub(super) struct KnownDifferences(Vec<KnownLine>);

struct KnownLine {
    title: String,
    line: String,
    /// Another line of the difference, without which it is not accepted. Empty: none.
    beside: String,
}

impl KnownDifferences {
    /// Reads the list; `reference` is the version of the reference.
    pub(super) fn read(reference: &str) -> Result<KnownDifferences, String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{FILE}: {e}"))?;
        KnownDifferences::parse(&text, reference).map_err(|e| format!("{FILE}: {e}"))
    }

    fn parse(text: &str, reference: &str) -> Result<KnownDifferences, String> {
        let mut known = Vec::new();
        let (mut reason, mut applies) = (false, true);
        for line in text.lines() {
            if let Some(version) = line.strip_prefix("== ") {
                applies = version == "any" || version == reference;
            } else if line.is_empty() || line.starts_with('#') {
                reason = !line.is_empty();
            } else {
                let (title, rest) = line.split_once(" | ").ok_or(format!("no \" | \": {line}"))?;
                if !reason {
                    return Err(format!("no reason above: {line}"));
                }
                let (line, beside) = rest.split_once(" | ").unwrap_or((rest, ""));
                let [title, line, beside] = [title, line, beside].map(str::to_owned);
                known.extend(applies.then_some(KnownLine { title, line, beside }));
            }
        }
        Ok(KnownDifferences(known))
    }

    /// Whether every line of the difference is accepted in this case.
    pub(super) fn explain(&self, title: &str, difference: &[String]) -> bool {
        let is_beside = |known: &&KnownLine| {
            known.beside.is_empty() || difference.iter().any(|line| is_line(&known.beside, line))
        };
        let here = self.0.iter().filter(|known| matches(&known.title, title));
        let mut here = here.filter(is_beside).peekable();
        let here: Vec<_> = match here.peek() {
            None => return false,
            Some(_) => here.collect(),
        };
        difference.iter().all(|line| here.iter().any(|known| is_line(&known.line, line)))
    }
}

/// Whether a line of a difference is what `pattern` says, where `?` stands for either sign.
fn is_line(pattern: &str, line: &str) -> bool {
    match (pattern.strip_prefix("? "), line.get(2..)) {
        (Some(pattern), Some(rest)) => matches(pattern, rest),
        _ => matches(pattern, line),
    }
}

/// Whether `text` is what `pattern` says, where `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.split_once(part) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        assert!(matches("a*c*", "abcd") && matches("*", "") && matches("a", "a"));
        assert!(!matches("a*c", "abcd") && !matches("a", "ab") && !matches("a*b*b", "ab"));
    }

    #[test]
    fn only_what_is_listed_is_accepted() {
        let text = "# why\nx-* | - a*\nx-* | + b\n\n== 1.22.1\n# old\ny | *\n";
        let known = KnownDifferences::parse(text, "1.31.5").unwrap();
        let lines = |lines: &[&str]| lines.iter().map(|&l| l.to_owned()).collect::<Vec<_>>();
        assert!(known.explain("x-1", &lines(&["- ab", "+ b"])));
        assert!(!known.explain("x-1", &lines(&["- ab", "+ c"])));
        assert!(!known.explain("z-1", &lines(&["- ab"])));
        assert!(!known.explain("y", &lines(&["- ab"])));
        assert!(KnownDifferences::parse(text, "1.22.1").unwrap().explain("y", &lines(&["- ab"])));
        assert!(KnownDifferences::parse("x | y\n", "1").is_err());
    }

    #[test]
    fn a_line_may_need_another_beside_it() {
        let known = KnownDifferences::parse("# why\n* | ? a\n* | - b* | - c\n", "1").unwrap();
        let lines = |lines: &[&str]| lines.iter().map(|&l| l.to_owned()).collect::<Vec<_>>();
        assert!(known.explain("x", &lines(&["+ a", "- a"])));
        assert!(!known.explain("x", &lines(&["- b"])));
        assert!(!known.explain("x", &lines(&["- b", "- c"])));
        let known = KnownDifferences::parse("# why\n* | - b* | - c\n* | - c\n", "1").unwrap();
        assert!(known.explain("x", &lines(&["- b", "- c"])));
    }
}
