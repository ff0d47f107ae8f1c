//! Rules that replace text in a field of a reply: `proxy_redirect` and the like.
//!
//! A value that no rule matches costs no allocation.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use conf::{Directive, Load, Result, Template, Value, Word};

use crate::exchange::Exchange;
use crate::regex::Pattern;

/// Lines, or a single `off`.
#[derive(Clone)]
pub enum RuleLines<T> {
    /// No lines, not even those of outer blocks.
    Off,
    /// These lines, in order.
    Are(Vec<T>),
}

pub trait RuleLine: Clone {
    /// The allowed numbers of words.
    const ARGS: RangeInclusive<usize> = 1..=2;
    /// Parses a line of two words or more.
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self>;
    /// Parses a line of one word that is not `off`.
    fn parse_word(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        Err(from.error_at(word, format!("invalid parameter \"{word}\"")))
    }
}

impl<T: RuleLine> Value for RuleLines<T> {
    const ARGS: RangeInclusive<usize> = T::ARGS;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        match says_off(from) {
            true => Ok(Self::Off),
            false => Ok(Self::Are(vec![line(from, load)?])),
        }
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        match self {
            Self::Are(lines) if !says_off(from) => lines.push(line(from, load)?),
            _ => return Err(from.refuse("is duplicate")),
        }
        Ok(())
    }
}

fn says_off(from: &Directive) -> bool {
    from.args.len() == 1 && &*from.arg(0).text == b"off"
}

fn line<T: RuleLine>(from: &Directive, load: &mut Load<'_>) -> Result<T> {
    match from.args.len() {
        1 => T::parse_word(from, load),
        _ => T::parse(from, load),
    }
}

impl<T: Clone> RuleLines<T> {
    /// The lines of an optional directive.
    pub(super) fn of(lines: Option<&Self>) -> Vec<T> {
        match lines {
            Some(Self::Are(lines)) => lines.clone(),
            Some(Self::Off) | None => Vec::new(),
        }
    }
}

#[derive(Clone)]
pub struct RewriteRule {
    sought: Sought,
    replacement: Template,
}

#[derive(Clone)]
enum Sought {
    /// This beginning of the value.
    Start(Template),
    /// The whole value except a leading dot, in any case.
    Domain(Template),
    /// The whole value, if it matches.
    Pattern(Arc<Pattern>),
}

impl RewriteRule {
    /// A rule for a beginning, or after `~` or `~*` for a regular expression.
    pub(super) fn of_start(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let sought = match &*word.text {
            [b'~', b'*', text @ ..] => pattern(text, true, word, from, load)?,
            [b'~', text @ ..] => pattern(text, false, word, from, load)?,
            _ => Sought::Start(Template::compile(word, from, load)?),
        };
        Ok(Self { sought, replacement: Template::compile(from.arg(1), from, load)? })
    }

    /// A rule for a domain, or after `~` for a regular expression, which ignores case.
    pub(super) fn of_domain(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (word, other) = (from.arg(0), from.arg(1));
        if let [b'~', text @ ..] = &*word.text {
            let sought = pattern(text, true, word, from, load)?;
            return Ok(Self { sought, replacement: Template::compile(other, from, load)? });
        }
        let without_dot = |word: &Word, load: &mut Load<'_>| {
            let text = word.text.strip_prefix(b".").unwrap_or(&word.text);
            Template::from_bytes(text, word, from, load)
        };
        let sought = Sought::Domain(without_dot(word, load)?);
        Ok(Self { sought, replacement: without_dot(other, load)? })
    }

    /// A rule for a beginning, without variables.
    pub(super) fn fixed(start: &[u8], replacement: &[u8]) -> Self {
        let sought = Sought::Start(Template::fixed(start));
        Self { sought, replacement: Template::fixed(replacement) }
    }

    /// The value with the match, which is searched from that byte on, replaced.
    pub(super) fn rewritten(&self, x: &mut Exchange, value: &[u8], at: usize) -> Option<Vec<u8>> {
        let found = self.find(x, value, at)?;
        let mut out = value[..found.start].to_vec();
        self.replacement.render(x, &mut out);
        out.extend_from_slice(&value[found.end..]);
        Some(out)
    }

    fn find(&self, x: &mut Exchange, value: &[u8], at: usize) -> Option<Range<usize>> {
        match &self.sought {
            Sought::Start(start) => with_text(start, x, |start| {
                value[at..].starts_with(start).then_some(at..at + start.len())
            }),
            Sought::Domain(domain) => {
                let at = at + usize::from(value.get(at) == Some(&b'.'));
                let is_same = |domain: &[u8]| value[at..].eq_ignore_ascii_case(domain);
                with_text(domain, x, is_same).then_some(at..value.len())
            }
            Sought::Pattern(pattern) => {
                // A match that failed with an error has been logged.
                let matches = pattern.matches(&value[at..], x).unwrap_or(false);
                matches.then_some(at..value.len())
            }
        }
    }
}

fn pattern(
    text: &[u8],
    caseless: bool,
    word: &Word,
    from: &Directive,
    load: &mut Load<'_>,
) -> Result<Sought> {
    Pattern::compile(text, caseless, word, from, load).map(|p| Sought::Pattern(Arc::new(p)))
}

/// Calls `look` with the text of a template.
pub(super) fn with_text<T>(
    template: &Template,
    x: &mut Exchange,
    look: impl FnOnce(&[u8]) -> T,
) -> T {
    if let Some(text) = template.as_fixed() {
        return look(text);
    }
    let mut text = x.scratch();
    template.render(x, &mut text);
    let seen = look(&text);
    x.give_scratch(text);
    seen
}
