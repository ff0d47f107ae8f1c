//! Known requests give exactly these counts, over reloads, other numbers of workers, and a worker
//! process that is killed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use metrics::BOUNDS;
use serde_json::{Value, json};
use server::counting::Backend;
use testing::{Peer, Server, body, eventually, free_address, kill};

/// How long the slow page takes at least: in the bucket from 0.25 s to 0.5 s.
const PLANTED: Duration = Duration::from_millis(300);

/// A worker counts a request from the beginning of the turn in which it noticed it.
const TURN: Duration = Duration::from_millis(20);

/// What the clients know.
#[derive(Default)]
struct Known {
    requests: u64,
    sent: usize,
    received: usize,
    /// How long requests took: planted, and as the client saw it.
    times: Vec<(Duration, Duration)>,
    /// Attempts at servers of the group.
    attempts: usize,
    retries: usize,
}

impl Known {
    /// Sends a request, and returns the reply.
    fn ask(&mut self, server: &Server, path: &str) -> String {
        let begun = Instant::now();
        let (request, reply) = exchange(server, path);
        let planted = if path == "/slow" { PLANTED } else { Duration::ZERO };
        self.note(&request, &reply);
        self.times.push((planted, begun.elapsed()));
        reply
    }

    fn note(&mut self, request: &str, reply: &str) {
        self.requests += 1;
        self.received += request.len();
        self.sent += reply.len();
    }
}

fn exchange(server: &Server, path: &str) -> (String, String) {
    let request = format!("GET {path} HTTP/1.0\r\nHost: test\r\n\r\n");
    let (mut stream, mut reply) = (server.connect(), String::new());
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_string(&mut reply).unwrap();
    (request, reply)
}

/// What the page at that path shows; it is in no zone.
fn shown(server: &Server, path: &str) -> Value {
    let mut stream = server.connect();
    write!(stream, "GET /status{path}?extended HTTP/1.0\r\nHost: status\r\n\r\n").unwrap();
    serde_json::from_str(body(&std::io::read_to_string(stream).unwrap())).unwrap()
}

/// Counts the bucket of a time.
fn bucket(time: Duration) -> usize {
    BOUNDS.partition_point(|bound| Duration::from_nanos(*bound) < time)
}

/// The buckets of all times of a histogram, shortest first.
fn buckets(histogram: &Value) -> Vec<usize> {
    let counts = histogram["counts"].as_array().unwrap().iter().enumerate();
    counts.flat_map(|(at, count)| vec![at; count.as_u64().unwrap() as usize]).collect()
}

/// Every quantile is between that of what was planted and that of what the clients saw.
fn expect_times(histogram: &Value, times: &[(Duration, Duration)]) {
    let found = buckets(histogram);
    let sorted = |of: fn(&(Duration, Duration)) -> Duration| {
        let mut all: Vec<_> = times.iter().map(of).map(bucket).collect();
        all.sort_unstable();
        all
    };
    let (planted, seen) = (sorted(|(planted, _)| *planted), sorted(|(_, seen)| *seen + TURN));
    assert_eq!(found.len(), times.len());
    for ((least, found), most) in planted.iter().zip(&found).zip(&seen) {
        assert!((least..=most).contains(&found), "{planted:?} {found:?} {seen:?}");
    }
}

fn conf(good: &Peer, refused: &str, queued: &Backend) -> String {
    format!(
        "limit_upstream_zone one 1m;
         upstream app {{ server {refused} max_fails=0; server {}; }}
         upstream one {{ server {}; limit_upstream_conn zone=one limit=1 backlog=2 timeout=60s; }}
         server {{ listen ADDRESS; server_name test; status_zone site;
             location / {{ return 404; }}
             location = /found {{ return 200 found; }}
             location = /moved {{ return 302 /found; }}
             location = /broken {{ return 500; }}
             location = /closed {{ return 444; }}
             location = /app {{ proxy_pass http://app; add_header Tried $upstream_addr; }}
             location = /slow {{ proxy_pass http://{}; }}
             location = /one {{ proxy_pass http://one; }} }}
         server {{ listen ADDRESS; server_name status; location /status/ {{ api /status/; }} }}",
        good.address, queued.address, good.address
    )
}

/// One round of requests.
fn traffic(server: &Server, queued: &Backend, known: &mut Known) {
    for path in ["/found", "/found", "/found", "/moved", "/broken", "/none", "/closed", "/slow"] {
        known.ask(server, path);
    }
    for _ in 0..4 {
        let reply = known.ask(server, "/app");
        let tried = testing::field(&reply, "Tried").expect(&reply).split(", ").count();
        known.attempts += tried;
        known.retries += tried - 1;
    }
    // One has the server, two wait, and one finds the queue full.
    let before = shown(server, "/http/upstreams/one/queue");
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..3)
            .map(|place| {
                let asked = scope.spawn(move || (Instant::now(), exchange(server, "/one")));
                eventually("its place in the queue", || {
                    let queue = shown(server, "/http/upstreams/one/queue");
                    (queued.counts(|counts| counts.in_progress) == 1 && queue["length"] == place)
                        .then_some(())
                });
                asked
            })
            .collect();
        let reply = known.ask(server, "/one");
        assert!(reply.starts_with("HTTP/1.1 502 "), "{reply}");
        queued.allow(3);
        for asked in waiting {
            let (begun, (request, reply)) = asked.join().unwrap();
            assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
            known.note(&request, &reply);
            known.times.push((Duration::ZERO, begun.elapsed()));
        }
    });
    let queue = shown(server, "/http/upstreams/one/queue");
    let more = |name: &str| queue[name].as_u64().unwrap() - before[name].as_u64().unwrap();
    assert_eq!((more("queued"), more("overflows"), more("timedout")), (2, 1, 0));
    assert_eq!(buckets(&queue["time"]).len(), buckets(&before["time"]).len() + 2);
}

#[test]
fn known_requests_are_counted_exactly() {
    let good = Peer::answering(|request| {
        if request.starts_with("GET /slow") {
            thread::sleep(PLANTED);
        }
        "HTTP/1.1 201 Created\nContent-Length: 5\n\nhello".into()
    });
    let (refused, queued) = (free_address().to_string(), Backend::start());
    let conf = conf(&good, &refused, &queued);
    let (server, mut known) = (Server::start("worker_processes 2;", &conf), Known::default());
    traffic(&server, &queued, &mut known);
    for workers in [2, 3, 1] {
        server.configure(&format!("worker_processes {workers};"), &conf);
        server.reload();
        traffic(&server, &queued, &mut known);
    }
    let started = server.log().matches("start worker process ").count();
    kill(server.worker_process(), "KILL");
    server.await_log("start worker process ", started + 1);
    traffic(&server, &queued, &mut known);

    const ROUNDS: u64 = 5;
    let site = eventually("the end of all requests", || {
        let site = shown(&server, "/http/server_zones/site");
        (site["requests"]["processing"] == 0).then_some(site)
    });
    assert_eq!(known.requests, ROUNDS * 16);
    assert_eq!(
        site["requests"],
        json!({"total": known.requests, "processing": 0, "discarded": ROUNDS})
    );
    let responses = json!({
        "200": 6 * ROUNDS, "201": 5 * ROUNDS, "302": ROUNDS, "404": ROUNDS, "500": ROUNDS,
        "502": ROUNDS,
    });
    assert_eq!(site["responses"], responses);
    assert_eq!(site["data"], json!({"sent": known.sent, "received": known.received}));
    expect_times(&site["time"], &known.times);

    let app = shown(&server, "/http/upstreams/app/peers");
    let (bad, good) = (&app[&refused], &app[good.address.to_string()]);
    assert_eq!(bad["selected"]["total"].as_u64().unwrap() + 4 * ROUNDS, known.attempts as u64);
    assert_eq!(bad["health"]["fails"], known.retries);
    assert_eq!((&bad["responses"], &bad["retries"]), (&json!({}), &json!(0)));
    assert_eq!(good["selected"]["total"], 4 * ROUNDS);
    assert_eq!(good["responses"], json!({"201": 4 * ROUNDS}));
    assert_eq!((&good["retries"], &good["health"]["fails"]), (&json!(known.retries), &json!(0)));
    let connections = &good["connections"];
    let used = |how: &str| connections[how].as_u64().unwrap();
    assert_eq!(used("opened") + used("reused"), 4 * ROUNDS);
    assert_eq!(buckets(&good["response_time"]).len() as u64, 4 * ROUNDS);

    let one = shown(&server, "/http/upstreams/one/peers");
    let one = &one[queued.address.to_string()];
    assert_eq!(one["responses"], json!({"200": 3 * ROUNDS}));
    assert_eq!(queued.counts(|counts| counts.came.len()) as u64, 3 * ROUNDS);
    // Only live workers are listed.
    let workers = shown(&server, "/workers");
    assert_eq!(workers.as_array().unwrap().len(), 1);
    assert_eq!(workers[0]["pid"], server.worker_process());
    let processes = shown(&server, "/processes");
    assert_eq!(processes.as_array().unwrap().len(), 1);
    assert!(processes[0]["tasks"].as_u64().unwrap() > 0, "{processes}");
    assert!(processes[0]["memory"].as_u64().unwrap() > 100_000, "{processes}");
}
