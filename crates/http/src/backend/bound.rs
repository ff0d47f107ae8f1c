//! `sticky`: what binds a request to its server, and what is to be remembered of the choice.

use std::sync::Arc;

use ::upstream::{Group, Server};
use net::clock;

use crate::exchange::Exchange;

/// What binds a request.
#[derive(Default)]
pub(super) struct Bound {
    /// Empty: nothing.
    id: Vec<u8>,
    /// The cookie that tells the client its server; empty: none is set.
    cookie: Vec<u8>,
}

impl Bound {
    pub(super) fn of(x: &mut Exchange, group: &Group) -> Self {
        let mut bound = Self::default();
        if let Some(sticky) = group.sticky() {
            sticky.id(x, &mut bound.id);
        }
        bound
    }

    pub(super) fn id(&self) -> Option<&[u8]> {
        (!self.id.is_empty()).then_some(&self.id)
    }

    /// A server was chosen.
    pub(super) fn choose(&mut self, x: &mut Exchange, group: &Group, server: &Server) {
        if let Some(cookie) = group.sticky().and_then(|sticky| sticky.cookie()) {
            self.cookie.clear();
            cookie.write(server, clock::unix_ms() / 1000, x, &mut self.cookie);
        }
    }

    /// Has the client remember its server.
    pub(super) fn tell(&self, x: &mut Exchange) {
        if !self.cookie.is_empty() {
            x.reply.fields.append(b"Set-Cookie", &self.cookie);
        }
    }

    /// The head of a reply is there: its session is learned now or, if there is one to return, at
    /// the reply's end.
    pub(super) fn learn(
        &self,
        x: &mut Exchange,
        group: &Arc<Group>,
        server: &Server,
    ) -> Option<Box<SessionToLearn>> {
        let learn = group.sticky()?.learn()?;
        let mut created = Vec::new();
        let created = learn.created(x, &mut created).then_some(created);
        let session = SessionToLearn {
            group: group.clone(),
            created,
            brought: self.id().map(<[u8]>::to_vec),
        };
        if learn.is_from_header() {
            session.learn(server);
            return None;
        }
        Some(Box::new(session))
    }
}

/// What is to be learned from a reply.
pub(super) struct SessionToLearn {
    group: Arc<Group>,
    created: Option<Vec<u8>>,
    brought: Option<Vec<u8>>,
}

impl SessionToLearn {
    pub(super) fn learn(&self, server: &Server) {
        if let Some(learn) = self.group.sticky().and_then(|sticky| sticky.learn()) {
            let (created, brought) = (self.created.as_deref(), self.brought.as_deref());
            learn.learn(server, created, brought, clock::now_ms());
        }
    }
}
