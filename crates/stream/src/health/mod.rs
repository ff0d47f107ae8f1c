//! Active health checks: the checks of a configuration, and the probe of a server.
//!
//! ```text
//! connected -> PROXY header, TLS handshake, `send` written -> read until `expect` matches
//! ```
//!
//! `session::health` schedules probes and logs; `upstream::health` evaluates their results.

pub(crate) mod ask;
mod ask_udp;
pub(crate) mod matching;
#[cfg(test)]
mod tests;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use ::session::health::{HealthChecks, HealthProbe, Verdict};
use ::session::{Client, ControlJob};
use ::upstream::Server;
use ::upstream::health::HealthCheck;
use net::SocketProbe;
use observe::{Level, MessageSource};
use zones::Zones;

use crate::session::StreamSession;
use crate::site::{StreamGeneration, StreamHealthCheck, StreamServerId, StreamSite};

/// The checks of `stream {}`.
#[derive(Default)]
pub(crate) struct StreamHealth(HealthChecks<StreamProbe>);

impl ControlJob<Arc<StreamSite>> for StreamHealth {
    fn adopt(&mut self, site: &Arc<StreamSite>, _: &Zones) {
        self.0.serve(checks(site));
    }

    /// Stops the checks; the state of servers stays.
    fn leave(&mut self) {
        self.0.stop();
    }
}

/// The checks of a configuration, in the order of its servers.
fn checks(site: &Arc<StreamSite>) -> Vec<HealthCheck<StreamProbe>> {
    let generation = StreamGeneration::new(site.clone(), 0);
    let of_server = |server| {
        let StreamHealthCheck { group, terms, .. } = site.server(server).health_check.as_ref()?;
        let probe = StreamProbe { generation: generation.clone(), server };
        Some(HealthCheck { group: group.clone(), terms: *terms, probe })
    };
    (0..site.servers.len() as u32).map(StreamServerId).filter_map(of_server).collect()
}

/// No listening socket, because these sessions have no client.
const NO_LISTEN: u32 = u32::MAX;

/// A server of `stream {}` whose backends are checked.
#[derive(Clone)]
struct StreamProbe {
    generation: Rc<StreamGeneration>,
    server: StreamServerId,
}

impl StreamProbe {
    fn check(&self) -> &StreamHealthCheck {
        let check = &self.generation.server(self.server).health_check;
        check.as_ref().expect("a probe is made of one")
    }

    /// A session without a client.
    fn session(&self) -> StreamSession {
        let serial = observe::connection_number();
        let client = Client::new(serial, None, SocketProbe::NONE, NO_LISTEN);
        StreamSession::new(self.generation.clone(), self.server, Rc::new(client))
    }
}

impl HealthProbe for StreamProbe {
    type Kept = ();

    async fn ask(&self, server: &Arc<Server>, _: Option<()>) -> (Verdict, Option<()>) {
        let mut x = self.session();
        ((self.check().ask)(&mut x, server).await, None)
    }

    fn match_name(&self) -> &[u8] {
        &self.check().match_name
    }

    fn port(&self) -> Option<u16> {
        self.check().port
    }

    fn log(&self, level: Level, message: fmt::Arguments<'_>) {
        let log = &self.generation.server(self.server).error_log;
        log.write(level, MessageSource::default(), message, |_| ());
    }
}
