//! `sticky`: the session that binds a request to a server.

use std::sync::Arc;

use ::upstream::{Group, Server};
use net::clock;

use crate::exchange::Exchange;

/// The session of a request to a group with `sticky`.
pub(super) struct StickySession {
    group: Arc<Group>,
    /// The session's id in the request; empty: the request has none.
    id: Vec<u8>,
    /// The cookie that tells the client its server; empty: none is set.
    cookie: Vec<u8>,
    /// The id of the session that the reply creates, if it creates one.
    created: Option<Vec<u8>>,
}

impl StickySession {
    /// The request's session; `None` for a group without `sticky`.
    pub(super) fn of(x: &mut Exchange, group: &Arc<Group>) -> Option<Box<Self>> {
        let sticky = group.sticky()?;
        let mut id = Vec::new();
        sticky.id(x, &mut id);
        Some(Box::new(Self { group: group.clone(), id, cookie: Vec::new(), created: None }))
    }

    pub(super) fn id(&self) -> Option<&[u8]> {
        (!self.id.is_empty()).then_some(&self.id)
    }

    /// Makes the cookie for the chosen server.
    pub(super) fn choose(&mut self, x: &mut Exchange, server: &Server) {
        if let Some(cookie) = self.group.sticky().and_then(|sticky| sticky.cookie()) {
            self.cookie.clear();
            cookie.write(server, clock::unix_ms() / 1000, x, &mut self.cookie);
        }
    }

    /// Adds the cookie to the reply for the client.
    pub(super) fn set_cookie(&self, x: &mut Exchange) {
        if !self.cookie.is_empty() {
            x.reply.fields.append(b"Set-Cookie", &self.cookie);
        }
    }

    /// Takes the session that the reply creates from its head. With `header`, the server is
    /// recorded now.
    pub(super) fn take_head(&mut self, x: &mut Exchange, server: &Server) {
        let Some(learn) = self.group.sticky().and_then(|sticky| sticky.learn()) else { return };
        let mut created = Vec::new();
        self.created = learn.created(x, &mut created).then_some(created);
        if learn.is_from_header() {
            self.record(server);
        }
    }

    /// Records the server at the end of the reply, unless that was done at its head.
    pub(super) fn end(&self, server: &Server) {
        let learn = self.group.sticky().and_then(|sticky| sticky.learn());
        if learn.is_some_and(|learn| !learn.is_from_header()) {
            self.record(server);
        }
    }

    fn record(&self, server: &Server) {
        if let Some(learn) = self.group.sticky().and_then(|sticky| sticky.learn()) {
            learn.learn(server, self.created.as_deref(), self.id(), clock::now_ms());
        }
    }
}
