//! `health_check`: servers are probed with requests of a location's backend.

use std::rc::Rc;
use std::sync::Arc;

use ::session::health::{CheckFailure, Verdict, probe_address};
use ::upstream::health::CheckTerms;
use ::upstream::{Group, Server};

use super::checkable::Checkable;
use super::grpc::GrpcCheck;
use super::matching::Match;
use crate::backend::check::{CheckCall, CheckReply, CheckTimes, KeptConnection, check};
use crate::backend::{CONNECTING, SENDING, connect_options, local_end};
use crate::client::Client;
use crate::exchange::Exchange;
use crate::site::{Generation, LocationId, ServerId};

/// A location's `health_check`, compiled.
pub struct LocationCheck {
    pub(crate) group: Arc<Group>,
    pub(crate) terms: CheckTerms,
    pub(crate) uri: Arc<[u8]>,
    pub(crate) port: Option<u16>,
    /// The age up to which a connection is reused for checks; 0: never.
    pub(crate) keepalive_time_ms: u64,
    pub(crate) matching: Arc<Match>,
    /// `type=grpc`, which has no use for `matching`.
    pub(crate) grpc: Option<GrpcCheck>,
    pub(crate) backend: Arc<dyn Checkable>,
}

/// A location whose backend probes its servers.
#[derive(Clone)]
pub(super) struct LocationProbe {
    generation: Rc<Generation>,
    server: ServerId,
    location: LocationId,
}

/// The most bytes of a body to match.
pub(super) const BODY_MAX: usize = 256 * 1024;

/// No listening socket: no client has sent these requests.
const NO_LISTEN: u32 = u32::MAX;

/// The locations of a site that have checks.
pub(super) fn probes(
    generation: &Rc<Generation>,
) -> impl Iterator<Item = (LocationProbe, &Arc<LocationCheck>)> {
    generation.locations.iter().enumerate().filter_map(|(at, location)| {
        let check = location.core.own.find::<Arc<LocationCheck>>()?;
        // A server's own block is numbered after the locations in it.
        let server = generation.servers.iter().position(|one| one.outer.0 as usize >= at)?;
        let (server, location) = (ServerId(server as u32), LocationId(at as u32));
        Some((LocationProbe { generation: generation.clone(), server, location }, check))
    })
}

impl LocationProbe {
    pub(super) fn check(&self) -> &Arc<LocationCheck> {
        let here = &self.generation.location(self.location).core;
        here.own.find().expect("a probe is made of a check")
    }

    pub(super) fn log(&self) -> &observe::ErrorLog {
        &self.generation.location(self.location).core.error_log
    }

    /// Probes a server.
    pub(super) async fn ask(
        &self,
        server: &Arc<Server>,
        kept: Option<KeptConnection>,
    ) -> (Verdict, Option<KeptConnection>) {
        let mut x = self.exchange(&self.check().uri);
        match self.answer(&mut x, server, kept).await {
            Err(failure) => (Err(failure), None),
            Ok(mut reply) => {
                let kept = reply.kept.take();
                x.backends.head = reply.head;
                x.backends.head_text = reply.text;
                let verdict = match &self.check().grpc {
                    Some(grpc) => grpc.judge(&x, reply.trailers.as_ref(), &reply.body),
                    None => self.check().matching.judge(&mut x, &reply.body),
                };
                (verdict, kept)
            }
        }
    }

    /// A request in the location that has no client.
    fn exchange(&self, uri: &[u8]) -> Exchange {
        let serial = observe::connection_number();
        let client = Rc::new(Client::new(serial, None, net::SocketProbe::NONE, NO_LISTEN));
        let mut x = Exchange::new(client.clone(), self.generation.clone());
        x.reset(&client, &self.generation);
        (x.server, x.location) = (self.server, self.location);
        let merge_slashes = x.server().reading.merge_slashes;
        x.request.make_get(uri, merge_slashes);
        x
    }

    async fn answer(
        &self,
        x: &mut Exchange,
        server: &Arc<Server>,
        kept: Option<KeptConnection>,
    ) -> Result<CheckReply, CheckFailure> {
        let own = self.check();
        let family = own.backend.family();
        let from = local_end(family, x)
            .map_err(|()| CheckFailure::new(CONNECTING, "invalid local address"))?;
        let request = match &own.grpc {
            Some(grpc) => own.backend.health_call(x, &grpc.service),
            None => own.backend.request(x, &own.uri),
        };
        let request = request.ok_or_else(|| CheckFailure::new(SENDING, "there is no request"))?;
        let secured = own.backend.tls().map(|tls| tls.connections(&own.group, x));
        let question = CheckCall {
            to: probe_address(server, own.port),
            name: server.name(),
            options: connect_options(family, from, None),
            secured: secured.as_ref(),
            request: &request,
            times: CheckTimes::Steps(family.timeouts()),
            head_max: family.head_bytes_max() as u64,
            body_max: (own.grpc.is_some() || own.matching.needs_body()).then_some(BODY_MAX),
            keeps: own.keepalive_time_ms > 0,
        };
        let is_young = |kept: &KeptConnection| kept.connection.age_ms() <= own.keepalive_time_ms;
        let attempt = x.backends.begin(Ok(server.clone()), true);
        let reply = check(&question, kept.filter(is_young)).await;
        attempt.end();
        if let Ok(reply) = &reply {
            attempt.status.set(reply.head.status);
        }
        reply
    }
}
