//! `server_name`: names, wildcards, regular expressions.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Inherited, Load, Result, Value, Word};

use crate::regex::Pattern;
use crate::site::ServerName;

/// The names of one server.
#[derive(Clone)]
pub struct ServerNameLine(pub Vec<ServerName>);

impl Value for ServerNameLine {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    const INHERITED: Inherited = Inherited::Never;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut names = Self(Vec::new());
        names.repeat(from, load)?;
        Ok(names)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        for word in &from.args {
            self.0.push(name(word, from, load)?);
        }
        Ok(())
    }
}

/// A server that says nothing has the empty name: it answers to requests without a host.
impl Default for ServerNameLine {
    fn default() -> Self {
        Self(vec![ServerName::default()])
    }
}

fn name(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<ServerName> {
    let invalid = match &*word.text {
        [b'*', rest @ ..] => rest.len() < 2 || rest[0] != b'.',
        text => text == b".",
    };
    if invalid {
        return Err(from.error_at(word, format!("server name \"{word}\" is invalid")));
    }
    if word.text.contains(&b'/') {
        let message = format!("server name \"{word}\" has suspicious symbols");
        load.warn(from.error_at(word, message));
    }
    match &*word.text {
        [b'~'] => Err(from.error_at(word, format!("empty regex in server name \"{word}\""))),
        [b'~', pattern @ ..] => {
            // A host is in lower case already: a pattern is compared without regard to case only
            // where it would never match otherwise.
            let caseless = pattern.iter().any(u8::is_ascii_uppercase);
            let pattern = Pattern::compile(pattern, caseless, word, from, load)?;
            let (text, named) = (word.text.clone(), Some(word.span));
            Ok(ServerName { text, pattern: Some(Arc::new(pattern)), named })
        }
        text if text.eq_ignore_ascii_case(b"$hostname") => {
            Ok(ServerName::of(observe::system().hostname.as_bytes(), word.span))
        }
        text => Ok(ServerName::of(text, word.span)),
    }
}
