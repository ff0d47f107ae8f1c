//! Chooses the server to try next, and waits for one while all are at their limits.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use net::clock;
use upstream::{Ask, Attempt, Group, Lease, ServerChoice};

use super::Backed;
use super::queue::{QueueTime, Queued};
use crate::Client;

/// The status of a session whose client left before a server was chosen.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// There is no server to try.
pub struct NoServer {
    /// The status after a timeout in the queue, or after the client left; `None`: "no live
    /// upstreams".
    pub status: Option<u16>,
    /// How long the session waited.
    pub waited_ms: Option<u64>,
}

/// Chooses the server to try next. Returns it with the time spent waiting. `sticky` binds the
/// session to a server; `queue_timeout_ms` limits the wait if the group's limit does not; `left` is
/// polled during the wait, and ready once the client has left.
pub async fn choose<X: Backed>(
    x: &mut X,
    group: &Arc<Group>,
    attempt: &mut Attempt,
    sticky: Option<&[u8]>,
    queue_timeout_ms: u64,
    mut left: impl FnMut(&mut X, &mut Context<'_>) -> Poll<()>,
) -> Result<(Lease, Option<u64>), NoServer> {
    let mut queue: Option<QueueTime<'_>> = None;
    loop {
        let limit = match choose_now(x, group, attempt, sticky) {
            ServerChoice::Server(lease) => return Ok((lease, waited_ms(&queue))),
            ServerChoice::Busy => group.limit(),
            ServerChoice::None => None,
        };
        let queued = match limit {
            None => Queued::NoServer,
            Some(limit) => {
                let queue = queue.get_or_insert_with(|| QueueTime::new(limit, queue_timeout_ms));
                queue.wait(x, group, attempt, &mut left).await
            }
        };
        let status = match queued {
            Queued::Server(lease) => return Ok((lease, waited_ms(&queue))),
            Queued::Again => continue,
            Queued::Refused(status) => Some(status),
            Queued::Left => Some(CLIENT_CLOSED_REQUEST),
            Queued::NoServer => None,
        };
        return Err(NoServer { status, waited_ms: waited_ms(&queue) });
    }
}

fn waited_ms(queue: &Option<QueueTime<'_>>) -> Option<u64> {
    queue.as_ref().map(QueueTime::waited_ms)
}

fn choose_now<X: Backed>(
    x: &mut X,
    group: &Group,
    attempt: &mut Attempt,
    sticky: Option<&[u8]>,
) -> ServerChoice {
    let client = ClientAddress::of(x.client());
    let mut key = Vec::new();
    if let Some(template) = group.key() {
        template.render(x, &mut key);
    }
    let ask = Ask { client: client.bytes(), key: &key, sticky, now_ms: clock::now_ms() };
    group.choose(attempt, &ask)
}

/// The client's address as balancers hash it.
enum ClientAddress {
    V4([u8; 4]),
    V6([u8; 16]),
    None,
}

impl ClientAddress {
    fn of(client: &Client) -> Self {
        match client.peer.map(|peer| peer.ip()) {
            Some(IpAddr::V4(v4)) => Self::V4(v4.octets()),
            Some(IpAddr::V6(v6)) => Self::V6(v6.octets()),
            None => Self::None,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
            Self::None => &[],
        }
    }
}
