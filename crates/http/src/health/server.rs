//! `check`: servers are probed as an `upstream` block demands, whatever locations pass requests to
//! them.

use std::sync::Arc;

use ::session::health::{Verdict, probe_address};
use ::upstream::Server;
use ::upstream::settings::{Alive, CheckKind, ServerCheck};
use net::Connect;

use super::matching::{CHECKING_STATUS, unexpected_status};
use crate::backend::BackendRequestBody;
use crate::backend::check::{
    CheckCall, CheckRequest, CheckTimes, KeptConnection, check, check_connection,
};
use crate::backend::protocol::http1;

/// The longest head of a reply.
const HEAD_MAX: u64 = 16 * 1024;

/// A group's check.
#[derive(Clone)]
pub(super) struct ServerProbe {
    pub(super) check: Arc<ServerCheck>,
}

impl ServerProbe {
    /// Probes a server.
    pub(super) async fn ask(
        &self,
        server: &Server,
        kept: Option<KeptConnection>,
    ) -> (Verdict, Option<KeptConnection>) {
        match &self.check.kind {
            CheckKind::Tcp => {
                let to = probe_address(server, self.check.port);
                (check_connection(&to, server.name(), self.check.timeout_ms).await, None)
            }
            CheckKind::Http { send, alive, requests } => {
                self.ask_http(server, send, *alive, *requests, kept).await
            }
        }
    }

    async fn ask_http(
        &self,
        server: &Server,
        send: &[u8],
        alive: Alive,
        requests: u64,
        kept: Option<KeptConnection>,
    ) -> (Verdict, Option<KeptConnection>) {
        let count = kept.as_ref().map_or(0, |kept| kept.connection.requests) + 1;
        let to_head = send.starts_with(b"HEAD ");
        let start = http1::Http1Start { to_head, ..http1::Http1Start::default() };
        let request = CheckRequest::new(send.to_vec(), BackendRequestBody::None, start);
        let question = CheckCall {
            to: probe_address(server, self.check.port),
            name: server.name(),
            options: Connect::default(),
            secured: None,
            request: &request,
            times: CheckTimes::Whole(self.check.timeout_ms),
            head_max: HEAD_MAX,
            body_max: None,
            keeps: count < requests,
        };
        match check(&question, kept).await {
            Err(failure) => (Err(failure), None),
            Ok(reply) => {
                let status = reply.head.status;
                let verdict = match alive.has(status) {
                    true => Ok(CHECKING_STATUS),
                    false => Err(unexpected_status(status)),
                };
                (verdict, reply.kept)
            }
        }
    }
}
