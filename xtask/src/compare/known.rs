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
    /// All of them must hold.
    conditions: Vec<LineCondition>,
}

/// What must be so for a line to be accepted.
enum LineCondition {
    /// Another line of the difference is this.
    Beside(String),
    /// A line of the case, or two neighbouring ones, are this.
    Case(String),
}

/// One difference, and what it is a difference of.
pub(super) struct Difference<'a> {
    pub(super) title: &'a str,
    pub(super) lines: &'a [String],
    /// The configuration, and the lines that belong to the request.
    pub(super) case: &'a str,
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
                let mut parts = line.split(" | ").map(str::to_owned);
                let (Some(title), Some(accepted)) = (parts.next(), parts.next()) else {
                    return Err(format!("no \" | \": {line}"));
                };
                if !reason {
                    return Err(format!("no reason above: {line}"));
                }
                let conditions = parts.map(LineCondition::parse).collect();
                known.extend(applies.then_some(KnownLine { title, line: accepted, conditions }));
            }
        }
        Ok(KnownDifferences(known))
    }

    /// Whether every line of the difference is accepted in this case.
    pub(super) fn explain(&self, difference: &Difference<'_>) -> bool {
        let applies = |known: &&KnownLine| {
            matches(&known.title, difference.title)
                && known.conditions.iter().all(|condition| condition.holds(difference))
        };
        let here: Vec<&KnownLine> = self.0.iter().filter(applies).collect();
        difference.lines.iter().all(|line| here.iter().any(|known| is_line(&known.line, line)))
    }
}

impl LineCondition {
    fn parse(text: String) -> LineCondition {
        match text.strip_prefix("case: ") {
            Some(lines) => LineCondition::Case(lines.replace("\\n", "\n")),
            None => LineCondition::Beside(text),
        }
    }

    fn holds(&self, difference: &Difference<'_>) -> bool {
        match self {
            LineCondition::Beside(pattern) => {
                difference.lines.iter().any(|line| is_line(pattern, line))
            }
            LineCondition::Case(pattern) => {
                let lines: Vec<&str> = difference.case.lines().map(str::trim).collect();
                let size = 1 + pattern.matches('\n').count();
                lines.windows(size).any(|some| matches(pattern, &some.join("\n")))
            }
        }
    }
}

/// Whether a line of a difference is what `pattern` says, where `?` stands for either sign.
fn is_line(pattern: &str, line: &str) -> bool {
    match pattern.strip_prefix("? ") {
        Some(pattern) => matches(pattern, line.get(2..).unwrap_or_default()),
        None => matches(pattern, line),
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

    fn explains(known: &KnownDifferences, title: &str, lines: &[&str], case: &str) -> bool {
        let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        known.explain(&Difference { title, lines: &lines, case })
    }

    #[test]
    fn only_what_is_listed_is_accepted() {
        let text = "# why\nx-* | - a*\nx-* | + b\n\n== 1.22.1\n# old\ny | *\n";
        let known = KnownDifferences::parse(text, "1.31.5").unwrap();
        assert!(explains(&known, "x-1", &["- ab", "+ b"], ""));
        assert!(!explains(&known, "x-1", &["- ab", "+ c"], ""));
        assert!(!explains(&known, "z-1", &["- ab"], ""));
        assert!(!explains(&known, "y", &["- ab"], ""));
        let old = KnownDifferences::parse(text, "1.22.1").unwrap();
        assert!(explains(&old, "y", &["- ab"], ""));
        assert!(KnownDifferences::parse("x | y\n", "1").is_err());
        assert!(KnownDifferences::parse("# why\nx\n", "1").is_err());
    }

    #[test]
    fn a_line_may_need_another_beside_it() {
        let known = KnownDifferences::parse("# why\n* | ? a\n* | - b* | - c\n", "1").unwrap();
        assert!(explains(&known, "x", &["+ a", "- a"], ""));
        let all = KnownDifferences::parse("# why\n* | ? *\n", "1").unwrap();
        assert!(explains(&all, "x", &["+", "- a"], ""));
        assert!(!explains(&known, "x", &["- b"], ""));
        assert!(!explains(&known, "x", &["- b", "- c"], ""));
        let known = KnownDifferences::parse("# why\n* | - b* | - c\n* | - c\n", "1").unwrap();
        assert!(explains(&known, "x", &["- b", "- c"], ""));
    }

    #[test]
    fn a_line_may_need_lines_of_its_case() {
        let text = "# why\n* | ? a | case: one *;\n* | ? b | case: two *\\n=close | + a\n";
        let known = KnownDifferences::parse(text, "1").unwrap();
        assert!(explains(&known, "x", &["+ a"], "zero;\n    one 1;\n"));
        assert!(!explains(&known, "x", &["+ a"], "one 1\n"));
        let case = "one 1;\ntwo 2\n=close\n";
        assert!(explains(&known, "x", &["+ a", "- b"], case));
        assert!(!explains(&known, "x", &["- a", "- b"], case));
        assert!(!explains(&known, "x", &["+ a", "- b"], "one 1;\ntwo 2\n=end\n=close\n"));
    }
}
