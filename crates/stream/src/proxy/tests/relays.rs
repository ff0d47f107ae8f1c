use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::task::Poll;

use net::testing::{advance, settle, stop_clock};
use net::{PIPE_SIZE, Stream};

use crate::proxy::relay::{Relay, RelayEnd, RelayPlan, RelayReason};

const PIECE: usize = 16 * 1024;
const TIMEOUT_MS: u64 = 5000;

/// A relay between a client and a server, both of which the test plays.
struct Relayed {
    client: UnixStream,
    server: UnixStream,
    near: Stream,
    far: Stream,
    relay: Relay,
}

fn plan() -> RelayPlan {
    RelayPlan {
        first: Vec::new(),
        received: 0,
        buffer_size: PIECE,
        upload_rate: 0,
        download_rate: 0,
        begun_s: net::clock::unix_ms() / 1000,
        timeout_ms: TIMEOUT_MS,
        half_close: false,
        client_ended: false,
    }
}

impl Relayed {
    fn new(plan: RelayPlan) -> Self {
        let pair = || {
            let (own, other) = UnixStream::pair().unwrap();
            own.set_nonblocking(true).unwrap();
            other.set_nonblocking(true).unwrap();
            (own, Stream::new(other.into()))
        };
        let ((client, near), (server, far)) = (pair(), pair());
        Self { client, server, near, far, relay: Relay::new(plan) }
    }

    /// Polls until only time or the peers can change anything.
    async fn run(&mut self) -> Option<RelayEnd> {
        let Self { near, far, relay, .. } = self;
        for _ in 0..64 {
            settle().await;
            let polled = std::future::poll_fn(|cx| Poll::Ready(relay.poll(cx, near, far)));
            if let Poll::Ready(end) = polled.await {
                return Some(end);
            }
        }
        None
    }

    /// Advances the clock in steps, and polls the relay after each.
    async fn pass(&mut self, ms: u64) -> Option<RelayEnd> {
        const STEP_MS: u64 = 100;
        for _ in 0..ms / STEP_MS {
            advance(STEP_MS).await;
            if let Some(end) = self.run().await {
                return Some(end);
            }
        }
        None
    }

    /// Everything that a peer can read now.
    fn take(mut peer: &UnixStream) -> Vec<u8> {
        let mut taken = Vec::new();
        let _ = peer.read_to_end(&mut taken);
        taken
    }
}

fn test(script: impl AsyncFnOnce()) {
    net::run(async {
        stop_clock();
        script().await;
    })
    .unwrap();
}

#[test]
fn bytes_are_relayed_both_ways_without_memory_between_them() {
    test(async || {
        let mut relayed = Relayed::new(RelayPlan { first: b"first ".to_vec(), ..plan() });
        relayed.client.write_all(b"ask").unwrap();
        relayed.server.write_all(b"answer").unwrap();
        assert!(relayed.run().await.is_none());
        assert_eq!(Relayed::take(&relayed.server), b"first ask");
        assert_eq!(Relayed::take(&relayed.client), b"answer");
        let Relay { up, down, .. } = &relayed.relay;
        assert_eq!((up.received, up.sent, down.received, down.sent), (3, 9, 6, 6));
        assert_eq!((up.memory(), down.memory()), (0, 0));
    });
}

#[test]
fn data_sent_before_an_end_is_delivered() {
    test(async || {
        let mut relayed = Relayed::new(plan());
        relayed.client.write_all(b"last words").unwrap();
        relayed.client.shutdown(Shutdown::Write).unwrap();
        let end = relayed.run().await.unwrap();
        assert!(matches!(end.reason, RelayReason::ClientEnded));
        assert_eq!(Relayed::take(&relayed.server), b"last words");

        let mut relayed = Relayed::new(plan());
        relayed.server.write_all(b"bye").unwrap();
        relayed.server.shutdown(Shutdown::Write).unwrap();
        let end = relayed.run().await.unwrap();
        assert!(matches!(end.reason, RelayReason::ServerEnded));
        assert_eq!(Relayed::take(&relayed.client), b"bye");
    });
}

#[test]
fn half_close_lets_the_other_side_continue() {
    test(async || {
        let mut relayed = Relayed::new(RelayPlan { half_close: true, ..plan() });
        relayed.client.write_all(b"ask").unwrap();
        relayed.client.shutdown(Shutdown::Write).unwrap();
        assert!(relayed.run().await.is_none());
        let mut asked = Vec::new();
        relayed.server.read_to_end(&mut asked).unwrap();
        assert_eq!(asked, b"ask");
        relayed.server.write_all(b"answer").unwrap();
        assert!(relayed.run().await.is_none());
        assert_eq!(Relayed::take(&relayed.client), b"answer");
        relayed.server.shutdown(Shutdown::Write).unwrap();
        assert!(relayed.run().await.is_some());
    });
}

#[test]
fn a_client_that_reads_nothing_holds_one_pipe() {
    test(async || {
        let mut relayed = Relayed::new(plan());
        let bytes = vec![7; 64 * PIECE];
        let mut written = 0;
        for _ in 0..100 {
            while let Ok(more) = relayed.server.write(&bytes[written..]) {
                written += more;
            }
            assert!(relayed.run().await.is_none());
        }
        let down = &relayed.relay.down;
        assert!(down.has_pending() && down.received - down.sent <= PIPE_SIZE as u64);
        assert!(written < bytes.len());
        let mut got = 0;
        while got < bytes.len() {
            let taken = Relayed::take(&relayed.client);
            assert!(taken.iter().all(|byte| *byte == 7));
            got += taken.len();
            while written < bytes.len()
                && let Ok(more) = relayed.server.write(&bytes[written..])
            {
                written += more;
            }
            assert!(relayed.run().await.is_none());
        }
        assert_eq!((got, relayed.relay.down.memory()), (bytes.len(), 0));
    });
}

/// Bytes that reveal a wrong order.
fn numbered(length: usize) -> Vec<u8> {
    (0..length as u32 / 4).flat_map(u32::to_be_bytes).collect()
}

/// Sends bytes through the relay in turns. Returns the bytes that the client received.
async fn transfer(relayed: &mut Relayed, bytes: &[u8]) -> Vec<u8> {
    let (mut written, mut got) = (0, Vec::new());
    while got.len() < bytes.len() {
        while written < bytes.len()
            && let Ok(more) = relayed.server.write(&bytes[written..])
        {
            written += more;
        }
        assert!(relayed.run().await.is_none());
        got.extend(Relayed::take(&relayed.client));
    }
    got
}

#[test]
fn only_bulk_transfers_use_a_pipe() {
    test(async || {
        let mut relayed = Relayed::new(plan());
        let bytes = numbered(256 * PIECE);
        assert!(transfer(&mut relayed, &bytes).await == bytes);
        assert!(relayed.relay.down.is_bulk() && !relayed.relay.up.is_bulk());
        assert_eq!(relayed.relay.down.memory(), 0);
        for _ in 0..64 {
            assert!(transfer(&mut relayed, b"little").await == b"little");
        }
        assert!(!relayed.relay.down.is_bulk());
        let end = bytes.len() as u64 + 64 * 6;
        let down = &relayed.relay.down;
        assert_eq!((down.received, down.sent, down.memory()), (end, end, 0));
    });
}

#[test]
fn data_in_a_pipe_is_delivered_after_the_end() {
    test(async || {
        let mut relayed = Relayed::new(plan());
        let bytes = numbered(256 * PIECE);
        assert!(transfer(&mut relayed, &bytes).await == bytes);
        let mut written = 0;
        while let Ok(more) = relayed.server.write(&bytes[written..]) {
            written += more;
            assert!(relayed.run().await.is_none());
        }
        assert!(relayed.relay.down.memory() > 0);
        relayed.server.shutdown(Shutdown::Write).unwrap();
        let mut got = Vec::new();
        let end = loop {
            let end = relayed.run().await;
            got.extend(Relayed::take(&relayed.client));
            if let Some(end) = end {
                break end;
            }
        };
        assert!(matches!(end.reason, RelayReason::ServerEnded));
        assert!(got == bytes[..written]);
    });
}

#[test]
fn a_small_buffer_or_a_rate_prevents_the_pipe() {
    test(async || {
        let bytes = numbered(64 * PIECE);
        let small = RelayPlan { buffer_size: PIECE / 2, ..plan() };
        let paced = RelayPlan { download_rate: 1 << 40, ..plan() };
        for plan in [small, paced] {
            let mut relayed = Relayed::new(plan);
            while (relayed.relay.down.sent as usize) < bytes.len() {
                let sent = relayed.relay.down.sent as usize;
                let _ = relayed.server.write(&bytes[sent..]);
                assert!(relayed.run().await.is_none());
                assert!(relayed.relay.down.memory() <= PIECE);
                Relayed::take(&relayed.client);
            }
        }
    });
}

#[test]
fn a_relay_without_traffic_times_out() {
    test(async || {
        let mut relayed = Relayed::new(plan());
        assert!(relayed.run().await.is_none());
        assert!(relayed.pass(TIMEOUT_MS - 500).await.is_none());
        relayed.server.write_all(b".").unwrap();
        assert!(relayed.run().await.is_none());
        assert!(relayed.pass(TIMEOUT_MS - 500).await.is_none());
        let end = relayed.pass(1000).await.unwrap();
        assert!(matches!(end.reason, RelayReason::TimedOut));
    });
}

#[test]
fn a_rate_limits_bytes_and_suspends_the_timeout() {
    test(async || {
        let mut relayed = Relayed::new(RelayPlan { download_rate: 100, ..plan() });
        relayed.server.write_all(&[1; 1000]).unwrap();
        assert!(relayed.run().await.is_none());
        let mut got = Relayed::take(&relayed.client).len();
        assert_eq!(got, 100);
        assert!(relayed.pass(5500).await.is_none());
        got += Relayed::take(&relayed.client).len();
        assert!((400..=700).contains(&got), "{got}");
        assert!(relayed.pass(6000).await.is_none());
        got += Relayed::take(&relayed.client).len();
        assert_eq!(got, 1000);
    });
}

#[test]
fn a_peer_that_is_gone_ends_the_relay() {
    test(async || {
        let mut relayed = Relayed::new(plan());
        // Unread bytes make closing a reset.
        relayed.client.write_all(b"ask").unwrap();
        assert!(relayed.run().await.is_none());
        let (server, _) = UnixStream::pair().unwrap();
        drop(std::mem::replace(&mut relayed.server, server));
        let end = relayed.run().await.unwrap();
        assert!(end.server_failed.is_some());
        assert!(matches!(end.reason, RelayReason::ServerEnded));
    });
}
