//! Virtual servers of one listening socket by name: exact, `*.example.org`, `example.*`, regular
//! expressions, in this order of precedence, the longest wildcard first.

use std::sync::Arc;

use conf::Span;

use super::ServerId;
use crate::exchange::{Captures, Exchange};
use crate::regex::{MatchFailure, Pattern};
use crate::wildcards::{WildcardError, Wildcards};

/// The servers of one listening socket.
pub struct ServerNames {
    /// The one that answers when no name fits.
    pub default: ServerId,
    names: Wildcards<ServerId>,
    patterns: Vec<(Arc<Pattern>, ServerId)>,
    /// Whose names these are.
    owner: Option<ServerId>,
    /// Whether they are others' as well, or leave groups behind: then the host makes a difference
    /// even where the owner is the default.
    matter: bool,
    /// Names that could not be added.
    refused: Vec<(ServerName, WildcardError)>,
}

/// A name that `server_name` gives a server.
#[derive(Clone, Default)]
pub struct ServerName {
    /// As it was written; names and wildcards in lower case.
    pub text: Box<[u8]>,
    /// What follows a `~`.
    pub pattern: Option<Arc<Pattern>>,
    /// Where it is named.
    pub named: Option<Span>,
}

impl ServerName {
    /// A name or a wildcard.
    pub fn of(text: &[u8], named: Span) -> Self {
        Self { text: text.to_ascii_lowercase().into(), pattern: None, named: Some(named) }
    }
}

impl ServerNames {
    /// A socket whose requests all go to `default` until names are added.
    pub fn new(default: ServerId) -> Self {
        let (names, patterns) = (Wildcards::default(), Vec::new());
        Self { default, names, patterns, owner: None, matter: false, refused: Vec::new() }
    }

    /// Adds a name. The server that had it first keeps it.
    pub fn add(&mut self, name: &ServerName, server: ServerId) {
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

    /// The names that could not be added, if it matters: nginx looks at them only then.
    pub(super) fn refused(&mut self) -> impl Iterator<Item = (ServerName, WildcardError)> {
        let refused = std::mem::take(&mut self.refused);
        refused.into_iter().filter(|_| self.matter)
    }

    /// Whether the server depends on the host that a client names.
    pub fn are_several(&self) -> bool {
        self.matter || self.owner.is_some_and(|owner| owner != self.default)
    }

    /// The server for a host in lower case, and the regular expression that chose it, whose groups
    /// are in `captures`. `failed` is told of matches that were given up.
    pub fn find(
        &self,
        host: &[u8],
        captures: &mut Captures,
        mut failed: impl FnMut(&Pattern, &MatchFailure),
    ) -> (ServerId, Option<&Pattern>) {
        if !self.are_several() {
            return (self.default, None);
        }
        if let Some(server) = self.names.find(host) {
            return (*server, None);
        }
        let by_pattern = self.patterns.iter().filter(|_| !host.is_empty()).find(|(pattern, _)| {
            pattern.capture(host, captures).unwrap_or_else(|failure| {
                failed(pattern, &failure);
                false
            })
        });
        match by_pattern {
            Some((pattern, server)) => (*server, Some(pattern)),
            None => (self.default, None),
        }
    }

    /// The same for the exchange's host, whose variables get the groups.
    pub fn choose(&self, x: &mut Exchange) -> ServerId {
        if !self.are_several() {
            return self.default;
        }
        let host = std::mem::take(&mut x.request.host);
        let mut captures = std::mem::take(&mut x.captures);
        let log = |pattern: &Pattern, failure: &MatchFailure| {
            pattern.log_failure(failure, &host, x);
        };
        let (server, pattern) = self.find(&host, &mut captures, log);
        x.captures = captures;
        if let Some(pattern) = pattern {
            // What does not fit has been logged.
            let _ = pattern.set_names(&host, x);
        }
        x.request.host = host;
        server
    }
}
