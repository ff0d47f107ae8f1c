//! Regular expressions: PCRE2, as in nginx, so that patterns keep their meaning.
//!
//! A match allocates nothing: its positions go into memory that each thread has once for all
//! patterns. Matching is by byte, not by character, unless a pattern itself begins with `(*UTF)`.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;

use conf::{Directive, Load, VariableId, Word};
use observe::{Level, Text};
use pcre2::bytes::{CaptureLocations, Regex, RegexBuilder};

use crate::values::TooLong;
use crate::{Captures, Session, evaluate, variables};

/// A regular expression of the configuration, for sessions of type `X`.
pub struct Pattern<X> {
    text: Box<[u8]>,
    caseless: bool,
    compiled: Regex,
    /// The pattern without JIT, compiled when a match overflows the stack of the JIT code.
    interpreted: OnceLock<Option<Regex>>,
    /// The number of groups, including the whole match.
    groups: usize,
    /// The variables of named groups, with the numbers of the groups.
    names: Box<[(usize, VariableId)]>,
    session: PhantomData<fn(X)>,
}

/// A failed match: it would have taken too long or too much memory. It has been logged. Reply with
/// 500, because it is not known whether the subject matches.
#[derive(Debug)]
pub struct MatchError;

/// The reason for a failed match.
pub enum MatchFailure {
    /// PCRE2's error number.
    Code(i32),
    /// The subject is too long.
    SubjectLength,
}

thread_local! {
    /// The group positions of the last match, with room for the pattern with the most groups.
    static PLACES: RefCell<Option<CaptureLocations>> = const { RefCell::new(None) };
}

/// PCRE2's error number for an overflow of the JIT code's stack.
const JIT_STACK_LIMIT: i32 = -46;

impl<X: Session> Pattern<X> {
    /// Compiles a pattern, which is `word` or a part of it. Its named groups become variables.
    pub fn compile(
        text: &[u8],
        caseless: bool,
        word: &Word,
        from: &Directive,
        load: &mut Load<'_>,
    ) -> conf::Result<Self> {
        let mut pattern = Self::compile_alone(text, caseless, word, from)?;
        let mut names = Vec::new();
        for (group, name) in pattern.compiled.capture_names().iter().enumerate() {
            if let Some(name) = name {
                variables::define_captured::<X>(name.as_bytes(), from, load)?;
                names.push((group, load.names.number(name.as_bytes(), Some(word.span))));
            }
        }
        pattern.names = names.into();
        Ok(pattern)
    }

    /// Compiles a pattern whose groups are not used: for [`Pattern::is_match`].
    pub fn compile_alone(
        text: &[u8],
        caseless: bool,
        word: &Word,
        from: &Directive,
    ) -> conf::Result<Self> {
        let compiled = build(text, caseless, true)
            .map_err(|error| from.error_at(word, describe(&error, text)))?;
        Ok(Self {
            text: text.into(),
            caseless,
            groups: compiled.captures_len(),
            compiled,
            interpreted: OnceLock::new(),
            names: Box::default(),
            session: PhantomData,
        })
    }

    /// The pattern's text in the configuration.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The number of groups, without the whole match.
    pub fn groups(&self) -> usize {
        self.groups - 1
    }

    /// Whether the pattern has groups.
    pub fn has_groups(&self) -> bool {
        self.groups > 1
    }

    /// Whether the subject matches. If so, the session gets the groups, for `$1` and for the
    /// variables of named groups.
    pub fn matches(&self, subject: &[u8], x: &mut X) -> Result<bool, MatchError> {
        match self.capture(subject, x.captures()) {
            Ok(true) => self.set_names(subject, x).map(|()| true),
            Ok(false) => Ok(false),
            Err(failure) => Err(self.log_failure(&failure, subject, x)),
        }
    }

    /// Like [`matches`](Self::matches), without a session: the groups go to `captures`, and
    /// variables of named groups are not set until [`set_names`](Self::set_names).
    pub fn capture(&self, subject: &[u8], captures: &mut Captures) -> Result<bool, MatchFailure> {
        PLACES.with_borrow_mut(|places| {
            let places = self.room(places);
            let found = self.find(places, subject);
            if found.map_err(|error| MatchFailure::Code(error.code()))? {
                self.keep(places, subject, captures)?;
                return Ok(true);
            }
            Ok(false)
        })
    }

    /// Whether the subject matches. The groups of an earlier match are kept.
    pub fn is_match(&self, subject: &[u8], x: &X) -> Result<bool, MatchError> {
        PLACES.with_borrow_mut(|places| {
            let places = self.room(places);
            self.find(places, subject)
                .map_err(|error| self.log_failure(&MatchFailure::Code(error.code()), subject, x))
        })
    }

    /// The ranges of the groups in the subject if it matches; the range of a group outside the
    /// match is empty. The groups of an earlier match are kept.
    pub fn groups_in<const N: usize>(
        &self,
        subject: &[u8],
        x: &X,
    ) -> Result<Option<[Range<usize>; N]>, MatchError> {
        PLACES.with_borrow_mut(|places| {
            let places = self.room(places);
            let found = self
                .find(places, subject)
                .map_err(|error| self.log_failure(&MatchFailure::Code(error.code()), subject, x))?;
            let group = |at: usize| places.get(at + 1).map_or(0..0, |(start, end)| start..end);
            Ok(found.then(|| std::array::from_fn(group)))
        })
    }

    /// Logs the reason for a failed match.
    pub fn log_failure(&self, failure: &MatchFailure, subject: &[u8], x: &X) -> MatchError {
        match failure {
            MatchFailure::Code(code) => {
                let (subject, pattern) = (Text(subject), Text(&self.text));
                let on = format_args!("{code} on \"{subject}\" using \"{pattern}\"");
                x.log(Level::Alert, format_args!("pcre2_match() failed: {on}"));
            }
            MatchFailure::SubjectLength => {
                let length = subject.len();
                let message = format_args!("a subject of {length} bytes is too long to match");
                x.log(Level::Error, message);
            }
        }
        MatchError
    }

    /// The thread's memory for positions, with room for this pattern's groups.
    fn room<'p>(&self, places: &'p mut Option<CaptureLocations>) -> &'p mut CaptureLocations {
        if places.as_ref().is_none_or(|places| places.len() < self.groups) {
            *places = None;
        }
        places.get_or_insert_with(|| self.compiled.capture_locations())
    }

    fn find(&self, places: &mut CaptureLocations, subject: &[u8]) -> Result<bool, pcre2::Error> {
        match self.compiled.captures_read(places, subject) {
            Err(error) if error.code() == JIT_STACK_LIMIT => {
                let interpreted =
                    self.interpreted.get_or_init(|| build(&self.text, self.caseless, false).ok());
                let pattern = interpreted.as_ref().ok_or(error)?;
                pattern.captures_read(places, subject).map(|found| found.is_some())
            }
            result => result.map(|found| found.is_some()),
        }
    }

    fn keep(
        &self,
        places: &CaptureLocations,
        subject: &[u8],
        captures: &mut Captures,
    ) -> Result<(), MatchFailure> {
        captures.groups.clear();
        if !self.has_groups() {
            return Ok(());
        }
        if u32::try_from(subject.len()).is_err() {
            return Err(MatchFailure::SubjectLength);
        }
        captures.subject.clear();
        captures.subject.extend_from_slice(subject);
        let group = |number| places.get(number).map(|(start, end)| (start as u32, end as u32));
        captures.groups.extend((0..self.groups).map(group));
        Ok(())
    }

    /// Sets the variables of named groups, which were captured from `subject`.
    pub fn set_names(&self, subject: &[u8], x: &mut X) -> Result<(), MatchError> {
        for (group, id) in &self.names {
            let range = x.captures().groups.get(*group).copied().flatten();
            let range = range.map_or(0..0, |(start, end)| start as usize..end as usize);
            evaluate::set(x, *id, &subject[range]).map_err(|TooLong| MatchError)?;
        }
        Ok(())
    }
}

fn build(text: &[u8], caseless: bool, jit: bool) -> Result<Regex, pcre2::Error> {
    let mut builder = RegexBuilder::new();
    builder.caseless(caseless).jit_if_available(jit);
    match std::str::from_utf8(text) {
        Ok(text) => builder.build(text),
        Err(_) => builder.build(&escape_high_bytes(text)),
    }
}

/// nginx's message for an invalid pattern.
fn describe(error: &pcre2::Error, text: &[u8]) -> String {
    let offset = error.offset().unwrap_or(text.len());
    let words = error.to_string();
    let prefix = format!("PCRE2: error compiling pattern at offset {offset}: ");
    let words = words.strip_prefix(&prefix).unwrap_or(&words);
    let shown = String::from_utf8_lossy(text);
    match text.get(offset..) {
        None | Some([]) => format!("pcre2_compile() failed: {words} in \"{shown}\""),
        Some(rest) => {
            let rest = String::from_utf8_lossy(rest);
            format!("pcre2_compile() failed: {words} in \"{shown}\" at \"{rest}\"")
        }
    }
}

/// The pattern in ASCII, because the compiler takes text: other bytes become `\xHH`, for which a
/// `\Q...\E` around them must be left.
fn escape_high_bytes(pattern: &[u8]) -> String {
    let mut out = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for &byte in pattern {
        match byte {
            b'Q' if escaped && !quoted => quoted = true,
            b'E' if escaped && quoted => quoted = false,
            _ => {}
        }
        if byte.is_ascii() {
            out.push(char::from(byte));
        } else {
            // A backslash before such a byte only makes it literal.
            if escaped && !quoted {
                out.pop();
            }
            let text = format!("\\x{byte:02x}");
            out.push_str(&if quoted { format!("\\E{text}\\Q") } else { text });
        }
        escaped = byte == b'\\' && (quoted || !escaped);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_matched() {
        let table: [(&[u8], &str); 6] = [
            (b"\xe9", "\\xe9"),
            (b"a\\\xe9", "a\\xe9"),
            (b"\\\\\xe9", "\\\\\\xe9"),
            (b"[\xe0-\xff]", "[\\xe0-\\xff]"),
            (b"\\Qa\xe9\\E\xe9", "\\Qa\\E\\xe9\\Q\\E\\xe9"),
            (b"\\Q\\\xe9", "\\Q\\\\E\\xe9\\Q"),
        ];
        for (pattern, expected) in table {
            assert_eq!(escape_high_bytes(pattern), expected);
        }
        let matches = |pattern: &[u8], subject: &[u8]| {
            build(pattern, false, true).and_then(|regex| regex.is_match(subject)).expect("valid")
        };
        assert!(matches(b"^\\Q\\.\xe9\\E\xe9$", b"\\.\xe9\xe9"));
        assert!(matches(b"^[\xe0-\xff]$", b"\xe9") && !matches(b"^[\xe0-\xef]$", b"\xff"));
        // A character of two bytes counts as two.
        assert!(matches("^..$".as_bytes(), "\u{e9}".as_bytes()));
    }

    #[test]
    fn a_long_subject_outgrows_the_stack_of_jit_code() {
        let jit = build(b"^/(a|b)*c$", false, true).expect("valid");
        let long = format!("/{}c", "ab".repeat(4000));
        assert_eq!(jit.is_match(long.as_bytes()).expect_err("too long").code(), JIT_STACK_LIMIT);
        let interpreted = build(b"^/(a|b)*c$", false, false).expect("valid");
        assert!(interpreted.is_match(long.as_bytes()).expect("no limit"));
    }
}
