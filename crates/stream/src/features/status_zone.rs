//! `status_zone`: counts sessions per server (`session::status`).

use std::sync::Arc;

use ::session::WorkerSlotKinds;
use ::session::status::{CountedIn, SessionEnd, StatusBook, StatusZone, ZoneCache, ZoneLevel};
use conf::Result;
use net::clock;

use crate::session::StreamSession;
use crate::site::{Decision, PhaseHandler, ServerBuilder, StreamGeneration};
use crate::zone_session::ZoneSession;

conf::directives! {
    in SERVER;

    /// Counts the sessions of a server in a zone: how many, how they ended, how many bytes, and how
    /// long they took. Servers with the same name share a zone.
    ///
    /// With a key, there is a zone for each value of the key, up to the number after the colon
    /// (default: 1). Sessions with other values are counted under the zone's own name, those with
    /// an empty value nowhere.
    ///
    /// Syntax: NAME | off
    /// Syntax: KEY zone=NAME[:NUMBER]
    /// Differs: not in nginx's sources; as in NGINX Plus, and with a key as in Angie.
    ///
    /// ```nginx
    /// server {
    ///     listen 5432;
    ///     status_zone databases;
    ///     proxy_pass 127.0.0.1:5433;
    /// }
    /// ```
    status_zone: Option<StatusZone>,
}

/// Counts the beginning and the end of each session.
pub fn install(conf: &Arc<Conf>, place: &mut ServerBuilder<'_, '_>) -> Result<()> {
    let Some(line) = &conf.status_zone else { return Ok(()) };
    let Some(counted) = CountedIn::of(line, ZoneLevel::Server, place.load) else { return Ok(()) };
    if place.server.tls.tls.is_some() {
        place.load.own.of::<StatusBook>().speaks_tls(&counted.name);
    }
    place.load.own.of::<WorkerSlotKinds<StreamGeneration>>().declare::<ZoneCache>();
    // A key may depend on a handshake, or on what the client sends first.
    if counted.is_fixed() {
        let begin: PhaseHandler = Box::new(|x| {
            x.begin_to_count();
            Decision::Next
        });
        let begin = place.hook(begin);
        place.server.postaccept.insert(0, begin);
    }
    place.server.begins_to_count = Some(Box::new(move |x| {
        let generation = x.generation.clone();
        let zone = counted.counters(x, generation.worker.of::<ZoneCache>());
        x.counted = zone.map(ZoneSession::begin);
    }));
    place.server.loggers.push(Box::new(end));
    Ok(())
}

fn end(x: &mut StreamSession) {
    x.begin_to_count();
    let Some(counted) = x.counted.take() else { return };
    counted.end(SessionEnd {
        status: x.status,
        received: x.bytes_received,
        sent: x.bytes_sent,
        time_ns: x.age_ms() * 1_000_000,
        unix_ms: clock::unix_ms(),
    });
}
