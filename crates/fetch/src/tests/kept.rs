//! Connections that serve several requests.

use std::collections::VecDeque;

use upstream::ResolverPolicy;

use super::*;

const REPLY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
const IDLE_MS: u64 = 5000;

fn fetcher(idle_connections_max: usize) -> Fetcher {
    let names = ResolverPolicy::default();
    Fetcher::new(FetchSettings { names, idle_connections_max, idle_ms: IDLE_MS })
}

/// The replies of a peer on one connection, one for each request; `None` closes the connection
/// after the request was read.
type Replies = &'static [Option<&'static str>];

/// The requests that a peer received, each with the number of its connection.
type Requests = Rc<RefCell<Vec<(usize, String)>>>;

/// Runs a peer with these replies on its connections, in order. After its last reply, it keeps the
/// connections open.
fn serve(peer: Peer, connections: &[Replies]) -> Requests {
    let requests = Requests::default();
    let (seen, mut connections) = (requests.clone(), VecDeque::from(connections.to_vec()));
    net::spawn(async move {
        let mut number = 0;
        while let Some(replies) = connections.pop_front() {
            let connection = peer.accept().await;
            net::spawn(answer(connection, replies, number, seen.clone()));
            number += 1;
        }
    });
    requests
}

async fn answer(mut connection: PeerConnection, replies: Replies, number: usize, seen: Requests) {
    for reply in replies {
        let request = connection.request().await;
        let line = request.split(" HTTP/").next().unwrap_or_default().to_owned();
        seen.borrow_mut().push((number, line));
        match reply {
            Some(reply) => drop(connection.say(reply).await),
            None => return,
        }
    }
    connection.closed().await;
}

/// What the peer receives in a number of requests, and the last of their results.
fn sent(
    methods: &'static [Method],
    connections: &[Replies],
) -> (Vec<(usize, String)>, Result<u16, String>) {
    let simulated = simulate(async move {
        let peer = Peer::new();
        let (origin, name) = (peer.origin(), peer.address().to_string());
        let requests = serve(peer, connections);
        in_task(async move {
            let fetcher = fetcher(4);
            let mut last = Ok(0);
            for method in methods {
                let request = FetchRequest { method: *method, ..get(origin.clone()) };
                let fetched = fetcher.send(&request, &LIMITS).await;
                let status = fetched.map(|response| response.status());
                last = status.map_err(|error| error.to_string().replace(&name, "PEER"));
                // Gives the peer time to close the connection.
                net::sleep(std::time::Duration::from_millis(1)).await;
            }
            (requests.take(), last)
        })
        .await
    });
    simulated.expect("a worker").0
}

/// The numbers of the connections that the requests go to.
fn numbers(methods: &'static [Method], connections: &[Replies]) -> Vec<usize> {
    let (requests, last) = sent(methods, connections);
    assert_eq!(last, Ok(200));
    requests.into_iter().map(|(number, _)| number).collect()
}

const TWO: &[Method] = &[Method::Get; 2];

#[test]
fn the_next_request_goes_to_the_same_connection() {
    const CHUNKED: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    let replies: &[Replies] = &[&[Some(REPLY), Some(CHUNKED), Some(REPLY)], &[Some(REPLY)]];
    assert_eq!(numbers(&[Method::Get; 3], replies), [0, 0, 0]);
    let (requests, _) = sent(TWO, &[&[Some(REPLY); 2]]);
    assert_eq!(requests[1], (0, "GET /path?query".to_owned()));
}

#[test]
fn a_connection_that_the_reply_ends_is_not_used_again() {
    const CLOSES: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    const OLD: &str = "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n";
    const SURPLUS: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500 No\r\n\r\n";
    assert_eq!(numbers(TWO, &[&[Some(CLOSES)], &[Some(REPLY)]]), [0, 1]);
    assert_eq!(numbers(TWO, &[&[Some(OLD)], &[Some(REPLY)]]), [0, 1]);
    assert_eq!(numbers(TWO, &[&[Some(SURPLUS)], &[Some(REPLY)]]), [0, 1]);
}

#[test]
fn a_request_that_met_a_closing_connection_is_sent_once_more() {
    assert_eq!(numbers(TWO, &[&[Some(REPLY), None], &[Some(REPLY)]]), [0, 0, 1]);
    // Only if the method is idempotent, and no byte of a reply was received.
    let posts = sent(&[Method::Get, Method::Post], &[&[Some(REPLY), None], &[Some(REPLY)]]);
    let early = "the connection was closed early while";
    let waiting = format!("{early} waiting for the reply of PEER");
    assert_eq!((posts.0.len(), posts.1), (2, Err(waiting.clone())));
    // A request is not retried after a new connection fails.
    let (requests, last) = sent(TWO, &[&[Some(REPLY), None], &[None], &[Some(REPLY)]]);
    assert_eq!((requests.len(), last), (3, Err(waiting)));
    let (requests, _) = sent(&[Method::Get], &[&[None], &[Some(REPLY)]]);
    assert_eq!(requests.len(), 1);
}

#[test]
fn a_request_whose_reply_has_begun_is_not_repeated() {
    let simulated = simulate(async {
        let peer = Peer::new();
        let origin = peer.origin();
        net::spawn(async move {
            let mut connection = peer.accept().await;
            connection.answer(REPLY).await;
            connection.answer("HTTP/1.1 2").await;
            drop(connection);
            panic!("{}", peer.accept().await.request().await);
        });
        in_task(async move {
            let (fetcher, request) = (fetcher(1), get(origin));
            fetcher.send(&request, &LIMITS).await.expect("a reply");
            fetcher.send(&request, &LIMITS).await.expect_err("no reply").fault.to_string()
        })
        .await
    });
    assert_eq!(simulated.expect("a worker").0, "the connection was closed early");
}

#[test]
fn an_idle_connection_is_closed_after_its_time() {
    let simulated = simulate(async {
        let peer = Peer::new();
        let origin = peer.origin();
        let mut script = net::spawn(async move {
            let mut connection = peer.accept().await;
            connection.answer(REPLY).await;
            connection.closed().await;
        });
        let fetcher = Rc::new(fetcher(1));
        let own = fetcher.clone();
        let replied_ms = in_task(async move {
            own.send(&get(origin), &LIMITS).await.expect("a reply");
            clock::now_ms()
        });
        let replied_ms = replied_ms.await;
        script.ended().await;
        drop(fetcher);
        clock::now_ms() - replied_ms
    });
    let open_ms = simulated.expect("a worker").0;
    assert!((IDLE_MS..IDLE_MS + 1000).contains(&open_ms), "{open_ms}");
}

#[test]
fn a_fetcher_that_is_dropped_closes_its_connections() {
    let simulated = simulate(async {
        let peer = Peer::new();
        let origin = peer.origin();
        let mut script = net::spawn(async move {
            let mut connection = peer.accept().await;
            connection.answer(REPLY).await;
            connection.closed().await;
        });
        in_task(async move { fetcher(1).send(&get(origin), &LIMITS).await.expect("a reply") })
            .await;
        script.ended().await
    });
    let (is_closed, took_ms) = simulated.expect("a worker");
    assert!(is_closed && took_ms < IDLE_MS, "{took_ms}");
}

#[test]
fn the_number_of_kept_connections_is_bounded() {
    let simulated = simulate(async {
        let peers = [Peer::new(), Peer::new(), Peer::new()];
        let origins: Vec<_> = peers.iter().map(Peer::origin).collect();
        let asked = peers.map(|peer| serve(peer, &[&[Some(REPLY)], &[Some(REPLY)]]));
        in_task(async move {
            let fetcher = fetcher(2);
            // The third connection takes the place of the first.
            for at in [0, 1, 2, 0] {
                let request = get(origins[at].clone());
                fetcher.send(&request, &LIMITS).await.expect("a reply");
            }
        })
        .await;
        asked.map(|requests| requests.borrow().last().map(|(number, _)| *number))
    });
    assert_eq!(simulated.expect("a worker").0, [Some(1), Some(0), Some(0)]);
}

#[test]
fn connection_close_is_sent_if_none_is_kept() {
    for (kept, is_told) in [(0, true), (1, false)] {
        let simulated = simulate(async move {
            let peer = Peer::new();
            let origin = peer.origin();
            let request = Rc::new(RefCell::new(String::new()));
            let seen = request.clone();
            net::spawn(async move { *seen.borrow_mut() = peer.accept().await.answer(REPLY).await });
            in_task(async move { fetcher(kept).send(&get(origin), &LIMITS).await.map(drop) })
                .await
                .expect("a reply");
            request.take()
        });
        let request = simulated.expect("a worker").0;
        assert_eq!(request.contains("\r\nConnection: close\r\n"), is_told, "{request}");
    }
}
