//! A session in the zone of its server.

use ::session::Client;
use ::session::status::{SessionEnd, ZoneCounters};
use net::tls::HandshakeFault;

/// A session that is counted as under way, until it is dropped. One that was not ended before was
/// passed on to another listening socket.
pub(crate) struct ZoneSession {
    zone: ZoneCounters<'static>,
    has_ended: bool,
}

impl ZoneSession {
    pub(crate) fn begin(zone: ZoneCounters<'static>) -> Self {
        zone.sessions().rise();
        Self { zone, has_ended: false }
    }

    /// Counts a TLS handshake.
    pub(crate) fn handshake(&self, client: &Client, fault: Option<HandshakeFault>) {
        match (fault, client.tls.get()) {
            (None, Some(tls)) if tls.is_resumed => self.zone.reuses().add(1),
            (None, _) => {}
            (Some(fault), _) => return self.zone.handshake_failed(fault),
        }
        self.zone.handshakes().add(1);
    }

    pub(crate) fn end(mut self, end: SessionEnd) {
        self.has_ended = true;
        self.zone.end(end);
    }
}

impl Drop for ZoneSession {
    fn drop(&mut self) {
        if !self.has_ended {
            self.zone.passed().add(1);
        }
        self.zone.sessions().fall();
    }
}
