//! One check of one server over UDP: sends a datagram, and waits for what comes of it.

use ::session::backend::{CONNECTING, log_refused};
use ::session::health::{CheckFailure, Verdict, probe_address};
use ::upstream::Server;
use net::{Datagram, Timer};
use observe::Errno;

use super::ask::{CHECKING, READING, SENDING, ServerQuestion};
use super::matching::{DataComparison, Expected};
use crate::session::StreamSession;

/// What NGINX Plus sends where nothing else is said.
const TEXT: &[u8] = b"nginx health check";

impl ServerQuestion {
    /// Asks a server. Without `expect`, it passes unless its system tells within the time for a
    /// check that nobody has the port.
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

/// A datagram is all that will come.
fn compare(expected: &Expected, received: &[u8], x: &StreamSession) -> Verdict {
    match expected.compare(received, x) {
        DataComparison::Equal => Ok(CHECKING),
        DataComparison::Open | DataComparison::Different => {
            Err(CheckFailure::new(CHECKING, "unexpected data"))
        }
    }
}
