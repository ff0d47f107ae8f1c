//! `proxy_pass`: connects a session to a server, and relays bytes in both directions.
//!
//! ```text
//! server chosen -> connected, secured -> PROXY header, bytes read ahead -> relayed -> over
//!       ^              |
//!       +- next server +
//! ```
//!
//! As in `http`, `session::backend` finds the group, chooses a server and waits for one. Once bytes
//! are relayed, no other server is tried. Cancelling is dropping: dropping the future releases
//! connection and lease.

mod connect;
mod datagrams;
mod handshake;
mod intake;
mod plan;
mod relay;
#[cfg(test)]
mod tests;
mod way;

use std::future::poll_fn;

use ::upstream::Until;
use net::{Stream, clock};

use crate::session::StreamSession;
use connect::{INTERNAL_SERVER_ERROR, ServerConnection, ServerSearch};
pub(crate) use datagrams::proxy_datagrams;
use intake::ClientIntake;
use plan::rate;
pub(crate) use plan::{
    BackendSocket, DatagramCounts, NextServer, ProxyPlan, SentHeader, SessionTarget,
};
use relay::{Relay, RelayEnd, RelayPlan};

/// The status of a session that was relayed, whatever ended it.
const OK: u16 = 200;

/// Relays the session until it is over. Returns its status.
pub(crate) async fn proxy(plan: &ProxyPlan, x: &mut StreamSession, client: &mut Stream) -> u16 {
    x.upstream.is_proxied = true;
    x.debug(format_args!("proxy connection handler"));
    let begun_s = clock::unix_ms() / 1000;
    let Ok(group) = plan.target.group(x, &plan.names).await else { return INTERNAL_SERVER_ERROR };
    x.upstream.limited = group.limit().map(|_| group.clone());
    let rates =
        TransferRates { up: rate(&plan.upload_rate, x), down: rate(&plan.download_rate, x) };
    let intake = ClientIntake::new(client, rates.read_ahead_max(plan), plan.half_close);
    // Boxed, because it is large and short-lived, and must not enlarge the relay's future.
    let search = Box::pin(ServerSearch::new(plan, x, &group, Some(intake)).connect(x));
    let mut connected = match search.await {
        Ok(connected) => connected,
        Err(status) => return status,
    };
    x.action = "proxying connection";
    let mut relay = begin(plan, x, &connected, rates, begun_s);
    let end = poll_fn(|cx| {
        let end = relay.poll(cx, client, &mut connected.stream);
        note(x, &mut connected, &relay);
        end
    });
    let end = end.await;
    end.break_off(client, &mut connected.stream);
    finish(x, connected, end)
}

/// Bytes per second in each direction; 0: no limit.
struct TransferRates {
    up: u64,
    down: u64,
}

impl TransferRates {
    /// The most bytes to read from the client before there is a server.
    fn read_ahead_max(&self, plan: &ProxyPlan) -> usize {
        let a_second = usize::try_from(self.up).ok().filter(|bytes| *bytes > 0);
        a_second.map_or(plan.buffer_size, |bytes| bytes.min(plan.buffer_size))
    }
}

/// Begins the relay with the first bytes for the server: a PROXY header, and the bytes that were
/// read from the client.
fn begin(
    plan: &ProxyPlan,
    x: &mut StreamSession,
    connected: &ServerConnection,
    rates: TransferRates,
    begun_s: u64,
) -> Relay {
    let mut first = std::mem::take(&mut x.preread);
    // Over TLS, the header preceded the handshake.
    if plan.header != SentHeader::Off && plan.tls.is_none() {
        let mut header = Vec::new();
        plan.write_header(x, &mut header);
        header.extend_from_slice(&first);
        net::buffers::give_back(std::mem::replace(&mut first, header));
    }
    Relay::new(RelayPlan {
        first,
        received: x.bytes_received,
        client_ended: connected.client_ended,
        buffer_size: plan.buffer_size,
        upload_rate: rates.up,
        download_rate: rates.down,
        begun_s,
        timeout_ms: plan.timeout_ms,
        half_close: plan.half_close,
    })
}

/// Sets the counts of variables and log lines.
fn note(x: &mut StreamSession, connected: &mut ServerConnection, relay: &Relay) {
    (x.bytes_received, x.bytes_sent) = (relay.up.received, relay.down.sent);
    let attempt = &connected.attempt;
    attempt.bytes_sent.set(relay.up.sent);
    if attempt.bytes_received.replace(relay.down.received) == 0 && relay.down.received > 0 {
        attempt.head_arrived();
        connected.lease.reached(Until::FirstByte, attempt.age_ms());
    }
}

fn finish(x: &mut StreamSession, mut connected: ServerConnection, end: RelayEnd) -> u16 {
    end.log(x);
    connected.lease.last_byte(connected.attempt.age_ms());
    connected.attempt.end();
    connected.stream.close_session();
    OK
}
