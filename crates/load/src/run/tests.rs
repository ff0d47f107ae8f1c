use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use testing::{Peer, PeerConnection};
use wire::http2::{Http2Code, Http2Config, Http2Endpoint, Http2Event, Http2Role};

use super::plan::RunPlan;
use super::{explained, run};
use crate::called_as::CalledAs;
use crate::results::{LoadKind, Results};
use crate::settings::{LoadSettings, RequestedRun};

fn plan(line: &str) -> RunPlan {
    let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
    let RequestedRun::Load(settings) = LoadSettings::read(&words, CalledAs::Load).unwrap() else {
        panic!("{line}")
    };
    settings.plan().unwrap()
}

fn results(plan: &RunPlan) -> Results {
    run(plan, &mut || Ok(()), &mut |_| {}).unwrap().results
}

#[test]
fn requests_in_progress_at_the_end_time_out() {
    // The kernel accepts the connections, and nothing answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let (plan, began) =
        (plan(&format!("--rate 200 -d 100ms --timeout 2s -c 40 -t 2 {url}")), Instant::now());
    let results = results(&plan);
    let tally = results.tally;
    assert_eq!((tally.errors.timeout, tally.errors.sum(), tally.unsent), (20, 20, 0));
    // Waiting for replies does not count as time of starts.
    assert!(results.elapsed + Duration::from_secs(2) <= began.elapsed(), "{:?}", results.elapsed);
}

#[test]
fn an_open_loop_keeps_its_schedule_without_a_server() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", server.local_addr().unwrap());
    let plan = plan(&format!("--rate 8..12 -d 350ms -c 1 -t 1 {url}"));
    drop(server);
    let results = results(&plan);
    assert_eq!((results.tally.replies, results.tally.errors.refused), (0, 4));
    // The ramp ends at the end of the run.
    assert!(matches!(results.pace, LoadKind::Open { to: 12.0, .. }), "{:?}", results.pace);
}

#[test]
fn a_limit_of_the_system_is_named() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = plan(&format!("-c 100 http://{}/", server.local_addr().unwrap()));
    let error = io::Error::from_raw_os_error(net::listening::EMFILE);
    assert!(explained(&error, &plan).ends_with(": ulimit -n is too low for 100 connections"));
}

/// Answers every request over HTTP/2 with 200 and a short body, without TLS.
fn http2_server() -> String {
    format!("http://{}/", Peer::playing(serve_http2).address)
}

fn serve_http2(mut connection: PeerConnection) -> Option<()> {
    let mut endpoint = Http2Endpoint::new(Http2Role::Server, Http2Config::default());
    loop {
        connection.send_raw(endpoint.output())?;
        endpoint.advance_output(endpoint.output().len());
        let (input, mut at) = (connection.take()?, 0);
        loop {
            let received = endpoint.receive(&input[at..]).ok()?;
            at += received.consumed;
            match received.event {
                None => break,
                Some(
                    Http2Event::Head { stream, end_stream: true }
                    | Http2Event::Data { stream, end_stream: true, .. },
                ) => {
                    let mut head = endpoint.begin_fields(stream)?;
                    head.status(200);
                    head.field(b"content-length", b"5");
                    head.finish(false);
                    endpoint.send_data(stream, b"hello", true, 16_384);
                    endpoint.release(stream, Http2Code::NO_ERROR);
                }
                Some(_) => {}
            }
        }
    }
}

#[test]
fn the_number_of_requests_over_http2_is_exact() {
    let url = http2_server();
    for options in ["-n 500", "-n 500 --per-connection 7", "-n 40 --close", "-n 100 -b body"] {
        let plan = plan(&format!("--h2 --streams 8 -c 3 -t 2 {options} {url}"));
        let results = results(&plan);
        let requests = plan.requests.unwrap();
        assert_eq!((results.tally.replies, results.tally.errors.sum()), (requests, 0), "{options}");
        assert_eq!(results.tally.statuses.codes(), [(200, requests)]);
    }
}

#[test]
fn an_open_loop_over_http2_starts_every_request() {
    let url = http2_server();
    let plan = plan(&format!("--h2 --streams 4 -c 2 -t 1 --rate 500 -d 200ms {url}"));
    let results = results(&plan);
    assert_eq!((results.tally.replies, results.tally.errors.sum()), (100, 0));
}

#[test]
fn a_server_without_tls_fails_the_handshake() {
    let server = Peer::playing(|mut peer| peer.send_raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    let url = format!("https://{}/", server.address);
    let results = results(&plan(&format!("-n 1 -c 1 -t 1 -d 5s {url}")));
    assert_eq!((results.tally.replies, results.tally.errors.handshake), (0, 1));
    assert!(results.tally.tls.first_error.is_some());
}

const SHORT: &str = "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi";

#[test]
fn idle_connections_stay_open_beside_the_load() {
    let server = Peer::replying(SHORT);
    let url = format!("http://{}/", server.address);
    let results = results(&plan(&format!("-n 30 -c 2 -t 2 --idle 75 {url}")));
    let idle = results.tally.background.idle;
    assert_eq!((idle.connections, idle.open, idle.closed, idle.failed), (75, 75, 0, 0));
    // The replies to idle connections are not those of the load. One more connection has tried
    // whether there is a server.
    assert_eq!((results.tally.replies, server.connections()), (30, 78));
}

#[test]
fn a_server_that_keeps_no_connection_has_no_idle_ones() {
    let server = Peer::replying("HTTP/1.1 200 OK\nConnection: close\nContent-Length: 2\n\nhi");
    let results = results(&plan(&format!("-n 3 -c 1 -t 1 --idle 5 http://{}/", server.address)));
    let idle = results.tally.background.idle;
    assert_eq!((idle.connections, idle.open, idle.closed), (5, 0, 0));
    assert!(idle.failed >= 5, "{idle:?}");
    assert_eq!((results.tally.replies, results.tally.errors.sum()), (3, 0));
}

#[test]
fn slow_clients_read_at_their_rate() {
    let long = format!("HTTP/1.1 200 OK\nContent-Length: 1000000\n\n{}", "x".repeat(1_000_000));
    let server = Peer::answering(move |request| match request.contains("/slow") {
        true => long.clone(),
        false => SHORT.to_owned(),
    });
    let url = format!("http://{}/slow", server.address);
    let words = format!("-d 200ms -c 1 -t 1 --timeout 100ms --slow 2,10k {url}");
    let mut plan = self::plan(&words);
    plan.mix = self::plan(&format!("http://{}/", server.address)).mix;
    let began = Instant::now();
    let results = results(&plan);
    let slow = results.tally.background.slow;
    // The first read waits for nothing, and a read takes a twentieth of a second.
    let most = 2.0 * 10_240.0 * (began.elapsed().as_secs_f64() + 0.05);
    assert!((slow.bytes as f64) <= most, "{slow:?}");
    assert_eq!((slow.connections, slow.replies, slow.failed), (2, 0, 0));
    assert!(results.tally.replies > 0 && results.tally.errors.sum() == 0);
}
