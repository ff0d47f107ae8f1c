//! A directive's documentation, written as the doc comment of its declaration.
//!
//! Paragraphs and lists describe the directive. A paragraph that begins with a key is a field of
//! its own, and a fenced block is an example:
//!
//! ```text
//! /// Closes a client's idle connection after TIME.
//! ///
//! /// Syntax: TIME [HEADER_TIME]
//! /// Default: 75s                      where the declaration cannot say it
//! /// Differs: what Weir does otherwise than nginx.
//! /// Refused: why a configuration with it is not accepted.
//! ///
//! /// ```nginx
//! /// keepalive_timeout 30s;
//! /// ```
//! ```
//!
//! Deliberately absent: the layout of the reference, which the program decides.

/// The documentation of one directive, split into fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doc {
    /// The description. A list item begins with `- `.
    pub paragraphs: Vec<String>,
    /// The arguments, one string for each form.
    pub syntax: Vec<String>,
    /// The default, if the declaration has none.
    pub default: Option<String>,
    /// Differences from nginx.
    pub differs: Vec<String>,
    /// Why the directive is not accepted.
    pub refused: Option<String>,
    pub example: Vec<String>,
}

/// The part that the next line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    /// Nothing: the line before was blank.
    Nothing,
    Paragraph,
    Syntax,
    Default,
    Differs,
    Refused,
    Example,
}

const KEYS: [(&str, Into); 4] = [
    ("Syntax: ", Into::Syntax),
    ("Default: ", Into::Default),
    ("Differs: ", Into::Differs),
    ("Refused: ", Into::Refused),
];
const FENCE: &str = "```";

impl Doc {
    /// Splits the lines of a doc comment into fields and paragraphs.
    pub fn parse(lines: &[&str]) -> Self {
        let mut doc = Self::default();
        let mut into = Into::Nothing;
        for line in lines {
            let line = line.strip_prefix(' ').unwrap_or(line);
            into = doc.line(line, into);
        }
        doc
    }

    /// A short description: the first sentence without its full stop.
    pub fn summary(&self) -> &str {
        let first = self.paragraphs.first().map_or("", String::as_str);
        first.split_once(". ").map_or(first, |(sentence, _)| sentence).trim_end_matches(['.', ':'])
    }

    fn line(&mut self, line: &str, into: Into) -> Into {
        if into == Into::Example {
            if line == FENCE {
                return Into::Nothing;
            }
            self.example.push(line.to_owned());
            return into;
        }
        if line.starts_with(FENCE) {
            return Into::Example;
        }
        if line.is_empty() {
            return Into::Nothing;
        }
        if let Some((key, into)) = KEYS.iter().find(|(key, _)| line.starts_with(key)) {
            self.begin(&line[key.len()..], *into);
            return *into;
        }
        if into == Into::Nothing || line.starts_with("- ") {
            self.begin(line, Into::Paragraph);
            return Into::Paragraph;
        }
        self.go_on(line.trim_start(), into);
        into
    }

    fn begin(&mut self, text: &str, into: Into) {
        let text = text.to_owned();
        match into {
            Into::Syntax => self.syntax.push(text),
            Into::Default => self.default = Some(text),
            Into::Differs => self.differs.push(text),
            Into::Refused => self.refused = Some(text),
            Into::Paragraph | Into::Example | Into::Nothing => self.paragraphs.push(text),
        }
    }

    fn go_on(&mut self, text: &str, into: Into) {
        let slot = match into {
            Into::Syntax => self.syntax.last_mut(),
            Into::Default => self.default.as_mut(),
            Into::Differs => self.differs.last_mut(),
            Into::Refused => self.refused.as_mut(),
            Into::Paragraph | Into::Example | Into::Nothing => self.paragraphs.last_mut(),
        };
        if let Some(slot) = slot {
            slot.push(' ');
            slot.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lists_and_examples_are_distinguished() {
        let doc = Doc::parse(&[
            " Does a thing. And more",
            " of it:",
            " - `a=N`: one,",
            "   and still one",
            " - `b`: two",
            "",
            " Syntax: NAME [a=N]",
            " Syntax: off",
            " Default: what the",
            " system says",
            " Differs: in this.",
            " Differs: and in that.",
            "",
            " ```nginx",
            " thing x {",
            "     a;",
            "",
            " }",
            " ```",
        ]);
        assert_eq!(doc.summary(), "Does a thing");
        assert_eq!(
            doc.paragraphs,
            ["Does a thing. And more of it:", "- `a=N`: one, and still one", "- `b`: two"]
        );
        assert_eq!(doc.syntax, ["NAME [a=N]", "off"]);
        assert_eq!(doc.default.as_deref(), Some("what the system says"));
        assert_eq!(doc.differs, ["in this.", "and in that."]);
        assert_eq!(doc.refused, None);
        assert_eq!(doc.example, ["thing x {", "    a;", "", "}"]);
    }

    #[test]
    fn a_single_line_is_its_own_summary() {
        let doc = Doc::parse(&[" Does a thing."]);
        assert_eq!((doc.summary(), doc.paragraphs.len()), ("Does a thing", 1));
        assert_eq!(Doc::parse(&[]).summary(), "");
    }
}
