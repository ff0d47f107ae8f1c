//! Rust source with its comments and literals blanked out, and the functions in it.
//!
//! Not a parser: it knows just enough of the lexical rules (The Rust Reference, chapter 2) that a
//! brace in a string or a word in a comment is not taken for code. Lines keep their numbers.

/// The same text with every comment, string and character literal replaced by spaces.
pub(super) fn code(text: &str) -> String {
    blanked(text, |_| true)
}

/// The same text with the strings and character literals replaced by spaces.
pub(super) fn code_and_comments(text: &str) -> String {
    blanked(text, |literal| !literal.starts_with('/'))
}

fn blanked(text: &str, unwanted: fn(&str) -> bool) -> String {
    let mut blanker = Blanker { rest: text, out: String::with_capacity(text.len()) };
    while let Some(character) = blanker.rest.chars().next() {
        match blanker.literal_length(character) {
            0 => blanker.take(character.len_utf8(), false),
            length => blanker.take(length, unwanted(blanker.rest)),
        }
    }
    blanker.out
}

struct Blanker<'a> {
    rest: &'a str,
    out: String,
}

impl Blanker<'_> {
    fn take(&mut self, length: usize, blank: bool) {
        let (taken, rest) = self.rest.split_at(length);
        self.out.extend(taken.chars().map(|c| if blank && c != '\n' { ' ' } else { c }));
        self.rest = rest;
    }

    /// How many bytes of comment or literal start here; 0 where code starts.
    fn literal_length(&self, first: char) -> usize {
        let rest = self.rest;
        match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => 1 + quoted(&rest[1..], '"'),
            '\'' => character_literal(rest),
            'r' if !self.in_word() => raw_string(rest),
            _ => 0,
        }
    }

    /// Whether the last character kept belongs to a name: the `r` of `for "` starts nothing, but
    /// that of `br"` does.
    fn in_word(&self) -> bool {
        let mut last = self.out.chars().rev();
        match last.next() {
            Some('b' | 'c') => last.next().is_some_and(is_word),
            Some(character) => is_word(character),
            None => false,
        }
    }
}

pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Block comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length up to and with the closing quote, a backslash escaping what follows it.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `'x'` and `'\n'` are literals, `'a` is a lifetime.
fn character_literal(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), _) => 1 + quoted(&text[1..], '\''),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

/// `r"..."`, `r#"..."#`; 0 for a raw name such as `r#type` and for an ordinary word.
fn raw_string(text: &str) -> usize {
    let hashes = text[1..].bytes().take_while(|byte| *byte == b'#').count();
    let Some(body) = text[1 + hashes..].strip_prefix('"') else { return 0 };
    let close = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - body.len();
    body.find(&close).map_or(text.len(), |end| start + end + close.len())
}

/// Whether `word` stands in this line of code as a word of its own; yields what follows it.
pub(super) fn after_word<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line.match_indices(word).find_map(|(at, _)| {
        let rest = &line[at + word.len()..];
        let alone = !line[..at].ends_with(is_word) && !rest.starts_with(is_word);
        alone.then_some(rest)
    })
}

/// A function with a body.
#[derive(Debug, PartialEq)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// The line of its `fn`, from 1.
    pub(super) line: usize,
    /// From that line to its closing brace.
    pub(super) lines: usize,
}

/// The functions in blanked code.
pub(super) fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let rest = &code[at + 3..];
        let name = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        if code[..at].ends_with(is_word) || name.is_empty() {
            continue;
        }
        if let Some(length) = through_body(rest) {
            let line = 1 + code[..at].matches('\n').count();
            found.push(Function { name, line, lines: 1 + rest[..length].matches('\n').count() });
        }
    }
    found
}

/// The length through the brace that closes the body; `None` for a declaration.
fn through_body(text: &str) -> Option<usize> {
    let mut round = 0_usize;
    let mut braces = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round = round.saturating_sub(1),
            b';' if round == 0 && braces == 0 => return None,
            b'{' => braces += 1,
            b'}' if braces <= 1 => return Some(at),
            b'}' => braces -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_kept() {
        let text =
            "a // b\n/* c /* d */ e */f \"g\\\"\nh\" 'i' '\\'' 'j: br#\"k\"l\"# for \"m\" r#n";
        let blanked = code(text);
        assert_eq!(
            blanked.split_whitespace().collect::<Vec<_>>(),
            ["a", "f", "'j:", "b", "for", "r#n"]
        );
        assert_eq!(blanked.matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn what_is_never_closed_ends_with_the_file() {
        for text in ["\"a", "/* a", "r#\"a\"", "'\\", "'", "r", "//"] {
            let _ = code(text);
        }
        assert_eq!(code("x \"é").trim_end(), "x");
    }

    #[test]
    fn a_word_is_found_only_on_its_own() {
        assert_eq!(after_word("x(unsafely, a_b) a b", "a"), Some(" b"));
        assert_eq!(after_word("unsafe_code", "unsafe"), None);
    }

    #[test]
    fn functions_are_measured_to_their_own_brace() {
        let text = "trait T { fn declared(&self, a: [u8; 2]); }\n\
                    fn outer(f: fn(u8)) {\n    if x { y }\n    \"}\";\n}\nfn one() {}\n";
        let blanked = code(text);
        let outer = Function { name: "outer", line: 2, lines: 4 };
        assert_eq!(functions(&blanked), [outer, Function { name: "one", line: 6, lines: 1 }]);
    }
}
