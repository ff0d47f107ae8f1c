//! `status_zone`: counts requests per server and per location.
//!
//! A request belongs to the zone of its server from its beginning on, and to that of its last
//! location at its end.

use std::sync::Arc;

use ::session::status::{CountedIn, SessionEnd, StatusZone, ZoneCache, ZoneCounters, ZoneLevel};
use conf::{Directive, Load, Result, Value};
use net::clock;
use net::tls::HandshakeFault;

use crate::exchange::{Exchange, FeatureState, Flow};
use crate::site::{BlockContext, Generation, Location, LocationBuilder, ServerId};

conf::directives! {
    in SERVER | LOCATION;

    /// Counts the requests of a server or of a location in a zone: how many, with which statuses,
    /// how many bytes, and how long they took. Servers with the same name share a zone, and so do
    /// locations. A location inside inherits the zone of the location around it; `off` ends that.
    ///
    /// With a key, there is a zone for each value of the key, up to the number after the colon
    /// (default: 1). Requests with other values are counted under the zone's own name, those with
    /// an empty value nowhere.
    ///
    /// Syntax: NAME | off
    /// Syntax: KEY zone=NAME[:NUMBER]
    /// Differs: not in nginx's sources; as in NGINX Plus, and with a key as in Angie.
    ///
    /// ```nginx
    /// server {
    ///     server_name example.com *.example.com;
    ///     status_zone $host zone=hosts:100;
    ///
    ///     location /api/ {
    ///         status_zone api;
    ///     }
    /// }
    /// ```
    status_zone + IF_IN_LOCATION: Option<StatusZoneLine>,
}

/// The line, and whether it is the server's.
#[derive(Clone)]
pub struct StatusZoneLine {
    zone: StatusZone,
    level: ZoneLevel,
}

impl Value for StatusZoneLine {
    const ARGS: std::ops::RangeInclusive<usize> = StatusZone::ARGS;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let level = match load.registry.of::<BlockContext>() {
            BlockContext::Server => ZoneLevel::Server,
            _ => ZoneLevel::Location,
        };
        Ok(Self { zone: StatusZone::parse(from, load)?, level })
    }
}

/// Where the requests of a server are counted.
struct ServerCounted(CountedIn);

/// The zone of an exchange's server, in which it is under way.
#[derive(Default)]
struct CountedRequest(Option<ZoneCounters<'static>>);

impl FeatureState for CountedRequest {
    fn clear(&mut self) {
        if let Some(zone) = self.0.take() {
            zone.sessions().fall();
        }
    }
}

/// Counts the beginning in the server's zone, and the end in both.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let Some(StatusZoneLine { zone, level }) = &conf.status_zone else { return Ok(()) };
    location.worker_slot::<ZoneCache>();
    let counted = CountedIn::of(zone, *level, location.load);
    let counted = match (level, counted) {
        (ZoneLevel::Server, Some(counted)) => {
            location.core.own.add(ServerCounted(counted));
            location.postread(|x| {
                begin(x);
                Flow::Next
            });
            None
        }
        (_, counted) => counted,
    };
    location.logger(move |x| end(x, counted.as_ref()));
    Ok(())
}

/// The zone of a server with these settings.
pub(crate) fn server_zone(outer: &Location) -> Option<&[u8]> {
    outer.core.own.find::<ServerCounted>().map(|ServerCounted(counted)| &*counted.name)
}

/// How a TLS handshake has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeResult {
    New,
    /// It has resumed an earlier session.
    Resumed,
    Failed(HandshakeFault),
}

/// Whether the handshakes of a server are counted.
pub(crate) fn counts_handshakes(generation: &Generation, server: ServerId) -> bool {
    let outer = generation.location(generation.server(server).outer);
    outer.core.own.find::<ServerCounted>().is_some()
}

/// Counts a handshake in the zone of the exchange's server; the exchange is not served.
pub(crate) fn count_handshake(x: &mut Exchange, result: HandshakeResult) {
    let generation = x.generation.clone();
    let outer = generation.location(x.server().outer);
    let Some(ServerCounted(counted)) = outer.core.own.find::<ServerCounted>() else { return };
    let Some(zone) = counters(counted, x) else { return };
    match result {
        HandshakeResult::New => zone.handshakes().add(1),
        HandshakeResult::Resumed => {
            zone.handshakes().add(1);
            zone.reuses().add(1);
        }
        HandshakeResult::Failed(fault) => zone.handshake_failed(fault),
    }
}

fn begin(x: &mut Exchange) -> Option<ZoneCounters<'static>> {
    let generation = x.generation.clone();
    let outer = generation.location(x.server().outer);
    let ServerCounted(counted) = outer.core.own.find::<ServerCounted>()?;
    let zone = counters(counted, x)?;
    zone.sessions().rise();
    x.states.of::<CountedRequest>().0 = Some(zone);
    Some(zone)
}

fn end(x: &mut Exchange, location: Option<&CountedIn>) {
    let begun = x.states.find::<CountedRequest>().and_then(|state| state.0);
    // A request with an invalid head has not begun.
    let server = begun.or_else(|| begin(x));
    let location = location.and_then(|counted| counters(counted, x));
    let end = SessionEnd {
        status: if x.reply.bytes_sent == 0 { 0 } else { x.status() },
        received: x.request_length(),
        sent: x.reply.bytes_sent,
        time_ns: clock::precise_ns().saturating_sub(x.started_ns),
        unix_ms: clock::unix_ms(),
    };
    if let Some(zone) = server {
        zone.end(end);
        x.states.of::<CountedRequest>().clear();
    }
    if let Some(zone) = location {
        zone.sessions().rise();
        zone.end(end);
        zone.sessions().fall();
    }
}

fn counters(counted: &CountedIn, x: &mut Exchange) -> Option<ZoneCounters<'static>> {
    let generation = x.generation.clone();
    counted.counters(x, generation.worker.of::<ZoneCache>())
}
