//! A check of a server over UDP: sends a datagram, and waits for a reply or an error.

use ::session::backend::{CONNECTING, log_refused};
use ::session::health::{CheckFailure, Verdict, probe_address};
use ::upstream::Server;
use net::{Datagram, Timer};
use observe::Errno;

use super::ask::{CHECKING, READING, SENDING, ServerQuestion};
use super::matching::{DataComparison, Expected};
use crate::session::StreamSession;

/// The default text of NGINX Plus.
const TEXT: &[u8] = b"nginx health check";

impl ServerQuestion {
    /// Probes a server. Without `expect`, the check passes unless its timeout ends with an ICMP
    /// error for a closed port.
    pub(super) async fn ask_over_udp(
        &self,
        x: &mut StreamSession,
        server: &Server,
        timer: &Timer,
    ) -> Verdict {
        let datagram = self.open_datagram(x, server)?;
        let text = self.matching.send.as_deref().unwrap_or(TEXT);
        let sent = datagram.send(text);
        sent.map_err(|error| {
            CheckFailure::new(SENDING, format!("send() failed{}", Errno(&error)))
        })?;
        let mut buffer = vec![0; self.plan.buffer_size];
        let answer = timer.limit(Box::pin(datagram.receive(&mut buffer))).await;
        match (answer, &self.matching.expect) {
            (Some(Err(error)), _) => {
                Err(CheckFailure::new(READING, format!("recv() failed{}", Errno(&error))))
            }
            (_, None) => Ok(SENDING),
            (Some(Ok(length)), Some(expected)) => compare(expected, &buffer[..length], x),
            (None, Some(_)) => {
                let error = net::timed_out();
                let cause = format!("upstream timed out{}", Errno(&error));
                Err(CheckFailure::new(READING, cause))
            }
        }
    }

    fn open_datagram(
        &self,
        x: &mut StreamSession,
        server: &Server,
    ) -> Result<Datagram, CheckFailure> {
        let failure = |cause: &str| CheckFailure::new(CONNECTING, cause);
        let from = self.plan.local_address(x);
        let from = from.map_err(|_| failure("invalid local address"))?;
        let to = probe_address(server, self.port);
        let opened = self.plan.connect_options(from).datagram(&to).map_err(|refusal| {
            let mut cause = String::new();
            log_refused(refusal, server.name(), from, |_, message| cause = message.to_string());
            failure(&cause)
        })?;
        Datagram::of(opened)
            .map_err(|error| failure(&format!("epoll_ctl() failed{}", Errno(&error))))
    }
}

/// Compares a datagram, after which no more data is expected.
fn compare(expected: &Expected, received: &[u8], x: &StreamSession) -> Verdict {
    match expected.compare(received, x) {
        DataComparison::Equal => Ok(CHECKING),
        DataComparison::Open | DataComparison::Different => {
            Err(CheckFailure::new(CHECKING, "unexpected data"))
        }
    }
}
