//! `health_check`: servers are asked as a location passes requests on.

use std::rc::Rc;
use std::sync::Arc;

use ::upstream::health::Terms;
use ::upstream::{Group, Server};
use net::clock;

use super::http::{self, Answer, Failure, Kept, Question, Times};
use super::matching::Match;
use super::{Checkable, Verdict, place};
use crate::backend;
use crate::client::Client;
use crate::exchange::Exchange;
use crate::exchange::Named;
use crate::site::{Generation, LocationId, ServerId};

/// A location's `health_check`, compiled.
pub struct LocationCheck {
    pub(crate) group: Arc<Group>,
    pub(crate) terms: Terms,
    pub(crate) uri: Arc<[u8]>,
    pub(crate) port: Option<u16>,
    /// How long a connection serves for further checks; 0: for one.
    pub(crate) keepalive_time_ms: u64,
    pub(crate) matching: Arc<Match>,
    pub(crate) backend: Arc<dyn Checkable>,
}

/// A location that says how its backends are checked.
#[derive(Clone)]
pub(super) struct Probe {
    generation: Rc<Generation>,
    server: ServerId,
    location: LocationId,
}

/// No listening socket: no client has sent these requests.
const NO_LISTEN: u32 = u32::MAX;

/// The locations of a site that have checks.
pub(super) fn probes(
    generation: &Rc<Generation>,
) -> impl Iterator<Item = (Probe, &Arc<LocationCheck>)> {
    generation.locations.iter().enumerate().filter_map(|(at, location)| {
        let check = location.core.own.find::<Arc<LocationCheck>>()?;
        // A server's own block is numbered after the locations in it.
        let server = generation.servers.iter().position(|one| one.outer.0 as usize >= at)?;
        let (server, location) = (ServerId(server as u32), LocationId(at as u32));
        Some((Probe { generation: generation.clone(), server, location }, check))
    })
}

impl Probe {
    /// The check.
    pub(super) fn check(&self) -> &Arc<LocationCheck> {
        let here = &self.generation.location(self.location).core;
        here.own.find().expect("a probe is made of one")
    }

    /// The log of the location.
    pub(super) fn log(&self) -> &observe::ErrorLog {
        &self.generation.location(self.location).core.error_log
    }

    /// Asks a server.
    pub(super) async fn ask(
        &self,
        server: &Arc<Server>,
        kept: Option<Kept>,
    ) -> (Verdict, Option<Kept>) {
        let mut x = self.exchange(&self.check().uri);
        match self.answer(&mut x, server, kept).await {
            Err(failure) => (Err(failure), None),
            Ok(mut answer) => {
                let kept = answer.kept.take();
                let body = answer.show(&mut x);
                (self.check().matching.judge(&mut x, &body), kept)
            }
        }
    }

    /// A request that nobody sent, in the location.
    fn exchange(&self, uri: &[u8]) -> Exchange {
        let serial = observe::connection_number();
        let client = Rc::new(Client::new(serial, None, net::Probe::NONE, NO_LISTEN));
        let mut x = Exchange::new(client.clone(), self.generation.clone());
        x.renew(&client, &self.generation);
        (x.server, x.location) = (self.server, self.location);
        let merge_slashes = x.server().reading.merge_slashes;
        x.request.make_get(uri, merge_slashes);
        x
    }

    async fn answer(
        &self,
        x: &mut Exchange,
        server: &Arc<Server>,
        kept: Option<Kept>,
    ) -> Result<Answer, Failure> {
        let check = self.check();
        let family = check.backend.family();
        let manner = backend::manner(family, x)
            .map_err(|()| Failure::new(http::CONNECTING, "invalid local address"))?;
        let asked = check.backend.ask(x, &check.uri);
        let asked = asked.ok_or_else(|| Failure::new(http::SENDING, "there is no request"))?;
        let question = Question {
            to: place(server, check.port),
            manner,
            request: &asked.request,
            to_head: asked.to_head,
            times: Times::Steps(family.timeouts()),
            head_max: family.head_bytes_max(),
            needs_body: check.matching.needs_body(),
            keeps: check.keepalive_time_ms > 0,
        };
        let is_young =
            |kept: &Kept| clock::now_ms().saturating_sub(kept.opened_ms) <= check.keepalive_time_ms;
        let tried = x.backends.begin(Named::Server(server.clone()), true);
        let answer = http::ask(&question, kept.filter(is_young)).await;
        tried.end();
        if let Ok(answer) = &answer {
            tried.status.set(answer.head.status);
        }
        answer
    }
}

impl Answer {
    /// Makes the head what variables see as the backend's, and hands the body out.
    fn show(self, x: &mut Exchange) -> Vec<u8> {
        let Self { head, mut bytes, head_bytes, .. } = self;
        let body = bytes.split_off(head_bytes);
        x.backends.head = head;
        x.backends.head_text = bytes;
        body
    }
}
