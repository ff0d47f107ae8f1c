//! What an attack is; [`attacks`](super::attacks) lists them.

use super::client::ClientReply;

/// One way in which a server misbehaves.
pub(super) struct ServerAttack {
    pub(super) name: &'static str,
    /// The bytes of the client's body.
    pub(super) body_bytes: usize,
    /// What begins each connection.
    pub(super) begin: fn() -> Vec<u8>,
    pub(super) answers_pings: bool,
    pub(super) act: ServerAct,
    pub(super) reach: AttackReach,
    /// Whether the attacked requests end by a timeout.
    pub(super) is_silent: bool,
    /// How the attacked requests may end.
    pub(super) end: &'static [ClientReply],
    /// What the error log says.
    pub(super) log: &'static str,
}

/// What follows a request; bytes are for its stream.
#[derive(Clone, Copy)]
pub(super) enum ServerAct {
    Sends(fn(u32) -> Vec<u8>),
    /// Closes the connection afterwards.
    Closes(fn(u32) -> Vec<u8>),
    /// Sends the second again and again.
    Floods(fn(u32) -> Vec<u8>, fn(u32) -> Vec<u8>),
    /// Sends a large body, which the client reads late.
    Pours,
}

/// What an attack may end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AttackReach {
    /// Its own request: the others on its connection go on.
    Stream,
    /// All requests of the connection; new connections serve.
    Connection,
    /// All requests to the server.
    Server,
}

impl ServerAttack {
    /// Whether clients do not read at first.
    pub(super) fn is_unread(&self) -> bool {
        matches!(self.act, ServerAct::Pours)
    }

    /// How many requests are attacked at the same time.
    pub(super) fn clients(&self) -> usize {
        match (self.is_silent, self.reach) {
            // The bytes of a second attack would follow those of the first in its frame.
            (true, AttackReach::Connection) => 1,
            _ => 4,
        }
    }

    pub(super) const fn with_body(self, body_bytes: usize) -> Self {
        Self { body_bytes, ..self }
    }

    pub(super) const fn times_out(self) -> Self {
        Self { is_silent: true, ..self }
    }

    pub(super) const fn begins(self, begin: fn() -> Vec<u8>) -> Self {
        Self { begin, ..self }
    }
}
