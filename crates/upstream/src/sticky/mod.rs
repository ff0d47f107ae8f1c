//! Requests that stay with their server: by a cookie of the proxy, by a route that the server gives
//! the client, or by a session that is learned from its replies.
//!
//! The id of a server is its route, or the MD5 of its address if it has none. The id in a request
//! is only a preference: a server that cannot be used is not used.

mod cookie;
mod sessions;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::{Values, VariableId};

pub use cookie::Cookie;
pub(crate) use cookie::{CookieExpires, is_samesite};
pub(crate) use sessions::{Sessions, Time};

/// How requests are bound.
#[derive(Clone, Debug)]
pub enum Sticky {
    /// By a cookie of the proxy, whose value is the server's id.
    Cookie(Cookie),
    /// By the value of a variable, which is the server's route.
    Route(Vec<VariableId>),
    /// By sessions.
    Learn(Learn),
}

/// `sticky learn`
#[derive(Clone, Debug)]
pub struct Learn {
    pub(crate) create: Vec<VariableId>,
    pub(crate) lookup: Vec<VariableId>,
    /// Whether a session is learned from the head of the reply, not at its end.
    pub(crate) from_header: bool,
    pub(crate) timeout_ms: u64,
    pub(crate) sessions: Arc<Sessions>,
}

impl Sticky {
    /// Appends the id that binds the request, for [`Ask::sticky`](crate::Ask::sticky): the first
    /// variable that is not empty. False if there is none.
    pub fn id(&self, values: &mut impl Values, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Cookie(cookie) => first(std::slice::from_ref(&cookie.variable), values, out),
            Self::Route(variables) => first(variables, values, out),
            Self::Learn(learn) => first(&learn.lookup, values, out),
        }
    }

    /// The cookie to set, if requests are bound by one.
    pub fn cookie(&self) -> Option<&Cookie> {
        match self {
            Self::Cookie(cookie) => Some(cookie),
            _ => None,
        }
    }

    /// The settings of `sticky learn`, if requests are bound by sessions.
    pub fn learn(&self) -> Option<&Learn> {
        match self {
            Self::Learn(learn) => Some(learn),
            _ => None,
        }
    }

    /// The name of the server that a request with this id is bound to.
    pub(crate) fn server(&self, id: &[u8], now_ms: u64) -> Option<BoundName> {
        match self {
            Self::Learn(learn) => learn.sessions.find(id, learn.time(now_ms)),
            _ => Some(BoundName::from(id)),
        }
    }
}

impl Learn {
    /// Whether [`Learn::learn`] is to be called as soon as the head of the reply has arrived;
    /// otherwise at the end of the reply, if the server has not failed.
    pub fn is_from_header(&self) -> bool {
        self.from_header
    }

    /// Appends the session that a reply creates.
    pub fn created(&self, values: &mut impl Values, out: &mut Vec<u8>) -> bool {
        first(&self.create, values, out)
    }

    /// Records that a session is on a server. `created` is the session of the reply; without it the
    /// session of the request is kept alive, and moves to this server, but none is created.
    pub fn learn(
        &self,
        server: &crate::Server,
        created: Option<&[u8]>,
        brought: Option<&[u8]>,
        now_ms: u64,
    ) {
        if let Some(id) = created.or(brought) {
            self.sessions.note(id, server.sid(), created.is_some(), self.time(now_ms));
        }
    }

    fn time(&self, now_ms: u64) -> Time {
        Time { now_ms, timeout_ms: self.timeout_ms }
    }
}

fn first(variables: &[VariableId], values: &mut impl Values, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    variables.iter().any(|variable| {
        let found = values.variable(*variable, out) && out.len() > start;
        if !found {
            out.truncate(start);
        }
        found
    })
}

/// Longest route, and the length of an MD5 in hexadecimal digits.
pub(crate) const SID_LENGTH_MAX: usize = 32;

/// The name of the server that a request is bound to; a name longer than every server's matches
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoundName {
    text: [u8; SID_LENGTH_MAX],
    length: usize,
}

impl BoundName {
    pub fn text(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

impl From<&[u8]> for BoundName {
    fn from(id: &[u8]) -> Self {
        let mut text = [0; SID_LENGTH_MAX];
        let length = if id.len() > SID_LENGTH_MAX { 0 } else { id.len() };
        text[..length].copy_from_slice(&id[..length]);
        Self { text, length }
    }
}
