//! `server_name`: the servers of one listening socket by name. In order of precedence: exact names,
//! `*.example.org`, `example.*`, regular expressions; longer wildcards come before shorter ones.
//!
//! Deliberately absent: the source of the host's name. In `http {}` it is a request or a TLS
//! handshake, in `stream {}` a TLS handshake.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Error, Inherited, Load, Result, Span, Value, Word};

use crate::regex::{MatchFailure, Pattern};
use crate::wildcards::{WildcardError, Wildcards};
use crate::{Captures, Session};

/// The servers of one listening socket, identified by `S`.
pub struct ServerNames<X, S> {
    /// The server for hosts that no name matches.
    pub default: S,
    names: Wildcards<S>,
    patterns: Vec<(Arc<Pattern<X>>, S)>,
    /// The server of the first name.
    owner: Option<S>,
    /// Whether the names belong to several servers, or a pattern has groups. If so the host matters
    /// even if the owner is the default.
    matter: bool,
    /// Names that could not be added.
    refused: Vec<(ServerName<X>, WildcardError)>,
}

/// A name of a server.
pub struct ServerName<X> {
    /// The text; names and wildcards are in lower case.
    pub text: Box<[u8]>,
    /// The pattern after `~`.
    pub pattern: Option<Arc<Pattern<X>>>,
    /// The place in the configuration.
    pub named: Option<Span>,
}

impl<X> ServerName<X> {
    /// A name or a wildcard.
    pub fn of(text: &[u8], named: Span) -> Self {
        Self { text: text.to_ascii_lowercase().into(), pattern: None, named: Some(named) }
    }
}

impl<X> Clone for ServerName<X> {
    fn clone(&self) -> Self {
        Self { text: self.text.clone(), pattern: self.pattern.clone(), named: self.named }
    }
}

/// The empty name, which is the name of a server without any other.
impl<X> Default for ServerName<X> {
    fn default() -> Self {
        Self { text: Box::default(), pattern: None, named: None }
    }
}

impl<X: Session, S: Copy + PartialEq> ServerNames<X, S> {
    /// A socket whose clients all go to `default` until names are added.
    pub fn new(default: S) -> Self {
        let (names, patterns) = (Wildcards::default(), Vec::new());
        Self { default, names, patterns, owner: None, matter: false, refused: Vec::new() }
    }

    /// Adds a name. If two servers have the same name, the first keeps it.
    pub fn add(&mut self, name: &ServerName<X>, server: S) {
        self.matter |= *self.owner.get_or_insert(server) != server;
        match &name.pattern {
            None => {
                if let Err(refused) = self.names.add(&name.text, server) {
                    self.refused.push((name.clone(), refused));
                }
            }
            Some(pattern) => {
                self.matter |= pattern.has_groups();
                self.patterns.push((pattern.clone(), server));
            }
        }
    }

    /// Reports the names that could not be added. Like nginx, it does so only if the names matter.
    /// `address` is the address of the socket.
    pub fn check(&mut self, address: &net::Address, load: &mut Load<'_>) -> Result<()> {
        let refused = std::mem::take(&mut self.refused);
        for (name, refused) in refused.into_iter().filter(|_| self.matter) {
            let shown = String::from_utf8_lossy(&name.text);
            let error = Error::bare(match refused {
                WildcardError::Conflicting => {
                    format!("conflicting server name \"{shown}\" on {address}, ignored")
                }
                WildcardError::Invalid => {
                    format!("invalid server name or wildcard \"{shown}\" on {address}")
                }
            });
            let error = Error { mark: name.named, ..error };
            match refused {
                WildcardError::Conflicting => load.warn(error),
                WildcardError::Invalid => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the server depends on the host that a client names.
    pub fn are_several(&self) -> bool {
        self.matter || self.owner.is_some_and(|owner| owner != self.default)
    }

    /// The server for a host in lower case, and the regular expression that matched, whose groups
    /// are in `captures`. `failed` is called for failed matches.
    pub fn find(
        &self,
        host: &[u8],
        captures: &mut Captures,
        failed: impl FnMut(&Pattern<X>, &MatchFailure),
    ) -> (S, Option<&Pattern<X>>) {
        self.named(host, captures, failed).unwrap_or((self.default, None))
    }

    /// Like [`find`](Self::find); `None` if no server has the name, or there is only one server.
    pub fn named(
        &self,
        host: &[u8],
        captures: &mut Captures,
        mut failed: impl FnMut(&Pattern<X>, &MatchFailure),
    ) -> Option<(S, Option<&Pattern<X>>)> {
        if !self.are_several() {
            return None;
        }
        if let Some(server) = self.names.find(host) {
            return Some((*server, None));
        }
        let by_pattern = self.patterns.iter().filter(|_| !host.is_empty()).find(|(pattern, _)| {
            pattern.capture(host, captures).unwrap_or_else(|failure| {
                failed(pattern, &failure);
                false
            })
        });
        by_pattern.map(|(pattern, server)| (*server, Some(&**pattern)))
    }

    /// The server for a host in lower case. The session gets the groups of the regular expression
    /// that matched.
    pub fn choose(&self, host: &[u8], x: &mut X) -> S {
        if !self.are_several() {
            return self.default;
        }
        let mut captures = std::mem::take(x.captures());
        let log = |pattern: &Pattern<X>, failure: &MatchFailure| {
            pattern.log_failure(failure, host, x);
        };
        let (server, pattern) = self.find(host, &mut captures, log);
        *x.captures() = captures;
        if let Some(pattern) = pattern {
            // A failure has been logged.
            let _ = pattern.set_names(host, x);
        }
        server
    }
}

pub struct ServerNameLine<X>(pub Vec<ServerName<X>>);

impl<X> Clone for ServerNameLine<X> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<X: Session> Value for ServerNameLine<X> {
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

/// A server without the directive has the empty name.
impl<X> Default for ServerNameLine<X> {
    fn default() -> Self {
        Self(vec![ServerName::default()])
    }
}

fn name<X: Session>(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<ServerName<X>> {
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
            // A host is in lower case already, so a pattern with capital letters could never match:
            // only such patterns are caseless.
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
