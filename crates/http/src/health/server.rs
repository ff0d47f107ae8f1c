//! `check`: servers are asked as an `upstream` block says, whoever passes requests on to them.

use std::sync::Arc;

use ::upstream::Server;
use ::upstream::health::connect;
use ::upstream::settings::{Alive, Kind, ServerCheck};
use net::{Connect, Timer};

use super::http::{self, CONNECTING, Failure, Kept, Question, Times};
use super::matching::CHECKING_STATUS;
use super::{Verdict, place};

/// The longest head of a reply.
const HEAD_MAX: usize = 16 * 1024;

/// A group's check.
#[derive(Clone)]
pub(super) struct Probe {
    pub(super) check: Arc<ServerCheck>,
}

impl Probe {
    /// Asks a server.
    pub(super) async fn ask(&self, server: &Server, kept: Option<Kept>) -> (Verdict, Option<Kept>) {
        match &self.check.kind {
            Kind::Tcp => (self.ask_tcp(server).await, None),
            Kind::Http { send, alive, requests } => {
                self.ask_http(server, send, *alive, *requests, kept).await
            }
        }
    }

    async fn ask_tcp(&self, server: &Server) -> Verdict {
        let timer = Timer::new();
        timer.set(self.check.timeout_ms);
        let connected = connect(&Connect::default(), &place(server, self.check.port), &timer).await;
        match connected {
            Ok(_) => Ok(CONNECTING),
            Err((call, error)) => Err(Failure::of_call(CONNECTING, call, &error)),
        }
    }

    async fn ask_http(
        &self,
        server: &Server,
        send: &[u8],
        alive: Alive,
        requests: u64,
        kept: Option<Kept>,
    ) -> (Verdict, Option<Kept>) {
        let count = kept.as_ref().map_or(0, |kept| kept.requests) + 1;
        let question = Question {
            to: place(server, self.check.port),
            manner: Connect::default(),
            request: send,
            to_head: send.starts_with(b"HEAD "),
            times: Times::Whole(self.check.timeout_ms),
            head_max: HEAD_MAX,
            needs_body: false,
            keeps: count < requests,
        };
        match http::ask(&question, kept).await {
            Err(failure) => (Err(failure), None),
            Ok(answer) => {
                let status = answer.head.status;
                let verdict = match alive.has(status) {
                    true => Ok(CHECKING_STATUS),
                    false => Err(Failure::status(status)),
                };
                (verdict, answer.kept)
            }
        }
    }
}
