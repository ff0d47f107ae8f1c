//! `wire::http2` and the `h2` crate at the two ends of a connection: random streams, bodies,
//! trailers, windows and resets. Each seed is one connection, in either direction.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::pin::Pin;

use bytes::Bytes;
use h2::{RecvStream, SendStream};
use http_types::{HeaderMap, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use wire::http2::limits::Http2Limits;
use wire::http2::{
    Http2Code, Http2Config, Http2Endpoint, Http2Event, Http2Role, PREFACE, StreamKey, request,
};

const SEEDS: u64 = 40;
const STREAMS: usize = 24;
/// More than both ends send, so neither waits for the other to read.
const PIPE_BYTES: usize = 16 << 20;

/// Numbers that depend on a seed alone.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// The plan for one stream.
#[derive(Clone, Debug)]
struct Plan {
    path: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    trailers: Option<String>,
    /// The client resets the stream after this many bytes of the answer.
    cancel_after: Option<usize>,
}

fn plans(dice: &mut Dice) -> Vec<Plan> {
    (0..STREAMS)
        .map(|number| {
            let length = [0, 1, 100, 5_000, 70_000, 200_000][dice.below(6) as usize];
            let fields = (0..dice.below(6))
                .map(|n| (format!("x-{n}"), "v".repeat(dice.below(300) as usize)))
                .collect();
            let cancels = dice.below(6) == 0;
            Plan {
                path: format!("/{number}"),
                fields,
                body: (0..length).map(|_| dice.next() as u8).collect(),
                trailers: (dice.below(3) == 0).then(|| format!("t{}", dice.below(100))),
                cancel_after: cancels.then(|| dice.below(1 + length as u64) as usize),
            }
        })
        .collect()
}

fn runtime(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let timeout = std::time::Duration::from_secs(60);
    runtime.block_on(async { tokio::time::timeout(timeout, test).await.expect("no deadlock") });
}

/// Our end is the server: it returns each request's fields, body and trailers.
#[test]
fn an_h2_client_and_our_server_agree() {
    for seed in 1..=SEEDS {
        runtime(async {
            let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let plans = plans(&mut dice);
            let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
            let server = Echo::new(dice.clone()).serve(ours);
            tokio::join!(server, ask(theirs, plans, dice));
        });
    }
}

async fn ask(io: DuplexStream, plans: Vec<Plan>, mut dice: Dice) {
    let window = 5_000 + dice.below(100_000) as u32;
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(window).initial_connection_window_size(window.max(70_000));
    builder.header_table_size(dice.below(3) as u32 * 2048);
    let (client, connection) = builder.handshake::<_, Bytes>(io).await.unwrap();
    let streams = async move {
        let mut client = client.ready().await.unwrap();
        let mut asked = Vec::new();
        for plan in plans {
            client = client.ready().await.unwrap();
            let mut head = Request::post(format!("http://host{}", plan.path));
            for (name, value) in &plan.fields {
                head = head.header(name, value);
            }
            let (reply, body) = client.send_request(head.body(()).unwrap(), false).unwrap();
            asked.push(Box::pin(async move {
                let sending = send_all(body, plan.body.clone(), plan.trailers.clone());
                let receiving = async {
                    let (head, body) = reply.await.unwrap().into_parts();
                    check_fields(&head.headers, &plan);
                    check_body(body, &plan).await;
                };
                // A cancelled stream is dropped while it sends.
                let sent = async { sending.await.or(plan.cancel_after.map(|_| ())).unwrap() };
                tokio::join!(sent, receiving);
            }) as Pin<Box<dyn Future<Output = ()>>>);
        }
        drop(client);
        together(asked).await;
    };
    let ((), connection) = tokio::join!(streams, connection);
    connection.unwrap();
}

/// Runs all tasks until each is done.
async fn together(mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>>) {
    std::future::poll_fn(|cx| {
        tasks.retain_mut(|task| task.as_mut().poll(cx).is_pending());
        if tasks.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

async fn send_all(
    mut to: SendStream<Bytes>,
    body: Vec<u8>,
    trailers: Option<String>,
) -> Option<()> {
    let mut rest = Bytes::from(body);
    while !rest.is_empty() {
        to.reserve_capacity(rest.len());
        let room = std::future::poll_fn(|cx| to.poll_capacity(cx)).await?.ok()?;
        to.send_data(rest.split_to(room.min(rest.len())), false).ok()?;
    }
    match trailers {
        None => to.send_data(Bytes::new(), true).ok(),
        Some(value) => {
            let mut fields = HeaderMap::new();
            fields.insert("x-end", value.parse().unwrap());
            to.send_trailers(fields).ok()
        }
    }
}

fn check_fields(fields: &HeaderMap, plan: &Plan) {
    for (name, value) in &plan.fields {
        assert_eq!(fields[name.as_str()], value.as_str(), "{}", plan.path);
    }
}

async fn check_body(mut body: RecvStream, plan: &Plan) {
    let mut seen = 0;
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        assert_eq!(data[..], plan.body[seen..seen + data.len()], "{}", plan.path);
        seen += data.len();
        body.flow_control().release_capacity(data.len()).unwrap();
        if plan.cancel_after.is_some_and(|after| seen >= after) {
            return;
        }
    }
    assert_eq!(seen, plan.body.len(), "{}", plan.path);
    let trailers = body.trailers().await.unwrap();
    let end = trailers.as_ref().and_then(|fields| fields.get("x-end"));
    assert_eq!(end.map(|value| value.to_str().unwrap()), plan.trailers.as_deref());
}

/// A server that returns everything it receives.
struct Echo {
    endpoint: Http2Endpoint,
    streams: HashMap<u32, Returned>,
    dice: Dice,
}

/// The data received on a stream that is not yet returned.
struct Returned {
    key: StreamKey,
    body: Vec<u8>,
    trailers: Vec<(Vec<u8>, Vec<u8>)>,
    ended: bool,
}

impl Echo {
    fn new(mut dice: Dice) -> Self {
        let stream_window = 5_000 + dice.below(100_000) as u32;
        let config = Http2Config { stream_window, ..Http2Config::default() };
        let endpoint = Http2Endpoint::new(Http2Role::Server, config);
        Self { endpoint, streams: HashMap::new(), dice }
    }

    async fn serve(mut self, mut io: DuplexStream) {
        let mut buffer = vec![0; 1 + self.dice.below(30_000) as usize];
        loop {
            self.pump();
            flush(&mut self.endpoint, &mut io).await;
            if self.endpoint.can_rest() && self.dice.below(2) == 0 {
                let client = Http2Endpoint::new(Http2Role::Client, Http2Config::default());
                let endpoint = std::mem::replace(&mut self.endpoint, client);
                self.endpoint = Http2Endpoint::wake(endpoint.rest(), Http2Limits::default());
            }
            let count = io.read(&mut buffer).await.unwrap();
            if count == 0 {
                return assert_eq!(self.endpoint.open_streams(), 0);
            }
            let mut at = 0;
            loop {
                let input = &buffer[at..count];
                let received = self.endpoint.receive(input).unwrap();
                at += received.consumed;
                let Some(event) = received.event else { break };
                self.take(event, input);
            }
        }
    }

    fn take(&mut self, event: Http2Event, input: &[u8]) {
        match event {
            Http2Event::Head { stream, end_stream } => self.open(stream, end_stream),
            Http2Event::Data { stream, range, end_stream } => {
                let returned = self.streams.get_mut(&stream.id).unwrap();
                returned.body.extend_from_slice(&input[range]);
                returned.ended = end_stream;
                self.endpoint.raise_window(stream, 20_000 + self.dice.below(200_000) as u32);
            }
            Http2Event::Trailers { stream } => {
                let returned = self.streams.get_mut(&stream.id).unwrap();
                let fields = self.endpoint.fields().iter();
                returned.trailers = fields.map(|(n, v)| (n.to_vec(), v.to_vec())).collect();
                returned.ended = true;
            }
            Http2Event::Reset { stream, .. } => {
                self.streams.remove(&stream.id);
                self.endpoint.release(stream, Http2Code::CANCEL);
            }
            Http2Event::Malformed { what, .. } => panic!("client {what}"),
            Http2Event::Provoked { stream, code } => panic!("{stream:?} {code:?}"),
            _ => {}
        }
    }

    fn open(&mut self, key: StreamKey, ended: bool) {
        let fields = self.endpoint.fields().clone();
        let asked = request::parse(&fields).unwrap();
        assert_eq!((asked.method, asked.authority), (&b"POST"[..], Some(&b"host"[..])));
        let mut head = self.endpoint.begin_fields(key).unwrap();
        head.status(103);
        head.field(b"Link", b"</style>");
        head.finish_interim();
        let mut head = self.endpoint.begin_fields(key).unwrap();
        head.status(200);
        for (name, value) in fields.iter().skip(asked.pseudo_count) {
            head.field(name, value);
        }
        head.finish(false);
        let returned = Returned { key, body: Vec::new(), trailers: Vec::new(), ended };
        self.streams.insert(key.id, returned);
    }

    /// Sends data as the windows allow.
    fn pump(&mut self) {
        let Self { endpoint, streams, dice } = self;
        streams.retain(|_, returned| {
            let key = returned.key;
            let count = returned.body.len().min(endpoint.sendable(key));
            let is_last = returned.ended && count == returned.body.len();
            let ends = is_last && returned.trailers.is_empty();
            let data: Vec<u8> = returned.body.drain(..count).collect();
            endpoint.send_data(key, &data, ends, 3_000 + dice.below(40_000) as usize);
            if is_last && !ends {
                let mut trailers = endpoint.begin_fields(key).unwrap();
                returned.trailers.iter().for_each(|(name, value)| trailers.field(name, value));
                trailers.finish(true);
            }
            if is_last {
                endpoint.release(key, Http2Code::INTERNAL_ERROR);
            }
            !is_last
        });
    }
}

async fn flush(endpoint: &mut Http2Endpoint, io: &mut DuplexStream) {
    let output = endpoint.output().to_vec();
    endpoint.advance_output(output.len());
    // A client that has closed its end does not read.
    let _ = io.write_all(&output).await;
}

/// Our end is the client; theirs returns everything.
#[test]
fn our_client_and_an_h2_server_agree() {
    for seed in 1..=SEEDS {
        runtime(async {
            let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let plans = plans(&mut dice);
            let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
            let client = Asker::new(plans, dice.clone());
            tokio::join!(answer(theirs, dice), client.run(ours));
        });
    }
}

async fn answer(io: DuplexStream, mut dice: Dice) {
    let mut builder = h2::server::Builder::new();
    builder.initial_window_size(5_000 + dice.below(100_000) as u32);
    builder.initial_connection_window_size(70_000);
    builder.max_concurrent_streams(1 + dice.below(40) as u32);
    let mut connection = builder.handshake::<_, Bytes>(io).await.unwrap();
    let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    std::future::poll_fn(|cx| {
        loop {
            tasks.retain_mut(|task| task.as_mut().poll(cx).is_pending());
            match connection.poll_accept(cx) {
                std::task::Poll::Pending => return std::task::Poll::Pending,
                std::task::Poll::Ready(None) => return std::task::Poll::Ready(()),
                std::task::Poll::Ready(Some(accepted)) => {
                    let (request, mut respond) = accepted.unwrap();
                    let (head, body) = request.into_parts();
                    let mut reply = Response::builder().status(200);
                    for (name, value) in &head.headers {
                        reply = reply.header(name, value);
                    }
                    let send = respond.send_response(reply.body(()).unwrap(), false).unwrap();
                    tasks.push(Box::pin(echo(body, send)));
                }
            }
        }
    })
    .await;
}

/// Returns everything; `None` if the client resets the stream.
async fn echo_all(mut body: RecvStream, mut to: SendStream<Bytes>) -> Option<()> {
    while let Some(data) = body.data().await {
        let mut data = data.ok()?;
        body.flow_control().release_capacity(data.len()).ok()?;
        while !data.is_empty() {
            to.reserve_capacity(data.len());
            let room = std::future::poll_fn(|cx| to.poll_capacity(cx)).await?.ok()?;
            to.send_data(data.split_to(room.min(data.len())), false).ok()?;
        }
    }
    match body.trailers().await.ok()? {
        None => to.send_data(Bytes::new(), true).ok(),
        Some(fields) => to.send_trailers(fields).ok(),
    }
}

async fn echo(body: RecvStream, to: SendStream<Bytes>) {
    echo_all(body, to).await;
}

/// A client with a list of requests.
struct Asker {
    endpoint: Http2Endpoint,
    waiting: Vec<Plan>,
    asked: HashMap<u32, Asked>,
    dice: Dice,
    done: usize,
}

struct Asked {
    key: StreamKey,
    plan: Plan,
    sent: usize,
    is_sent: bool,
    seen: usize,
    is_over: bool,
}

impl Asker {
    fn new(waiting: Vec<Plan>, mut dice: Dice) -> Self {
        let stream_window = 5_000 + dice.below(100_000) as u32;
        let config = Http2Config { stream_window, ..Http2Config::default() };
        let endpoint = Http2Endpoint::new(Http2Role::Client, config);
        Self { endpoint, waiting, asked: HashMap::new(), dice, done: 0 }
    }

    async fn run(mut self, mut io: DuplexStream) {
        let mut buffer = vec![0; 1 + self.dice.below(30_000) as usize];
        let total = self.waiting.len();
        let mut knows_settings = false;
        while self.done < total {
            // Ended streams make room for others.
            self.pump();
            while knows_settings && let Some(plan) = self.waiting.pop() {
                let Some(key) = self.endpoint.open() else {
                    self.waiting.push(plan);
                    break;
                };
                self.begin(key, plan);
            }
            self.pump();
            flush(&mut self.endpoint, &mut io).await;
            if self.done == total {
                break;
            }
            let count = io.read(&mut buffer).await.unwrap();
            assert_ne!(count, 0);
            let mut at = 0;
            loop {
                let input = &buffer[at..count];
                let received = self.endpoint.receive(input).unwrap();
                at += received.consumed;
                let Some(event) = received.event else { break };
                knows_settings |= matches!(event, Http2Event::SettingsAcked);
                self.take(event, input);
            }
        }
        self.endpoint.go_away(Http2Code::NO_ERROR);
        flush(&mut self.endpoint, &mut io).await;
    }

    fn begin(&mut self, key: StreamKey, plan: Plan) {
        let mut head = self.endpoint.begin_fields(key).unwrap();
        for (name, value) in [(":method", "POST"), (":scheme", "http"), (":path", &plan.path)] {
            head.field(name.as_bytes(), value.as_bytes());
        }
        plan.fields.iter().for_each(|(name, value)| head.field(name.as_bytes(), value.as_bytes()));
        head.finish(false);
        let asked = Asked { key, plan, sent: 0, is_sent: false, seen: 0, is_over: false };
        self.asked.insert(key.id, asked);
    }

    fn pump(&mut self) {
        let Self { endpoint, asked, dice, done, .. } = self;
        asked.retain(|_, asked| {
            let Asked { key, plan, sent, .. } = asked;
            if !asked.is_sent {
                let rest = &plan.body[*sent..];
                let count = rest.len().min(endpoint.sendable(*key));
                let is_last = count == rest.len();
                let ends = is_last && plan.trailers.is_none();
                endpoint.send_data(*key, &rest[..count], ends, 3_000 + dice.below(40_000) as usize);
                *sent += count;
                asked.is_sent = is_last;
                if is_last && let Some(value) = &plan.trailers {
                    let mut trailers = endpoint.begin_fields(*key).unwrap();
                    trailers.field(b"X-End", value.as_bytes());
                    trailers.finish(true);
                }
            }
            if asked.is_over {
                endpoint.release(*key, Http2Code::CANCEL);
                *done += 1;
            }
            !asked.is_over
        });
    }

    fn take(&mut self, event: Http2Event, input: &[u8]) {
        match event {
            Http2Event::Head { stream, end_stream } => {
                let plan = &self.asked[&stream.id].plan;
                let fields = self.endpoint.fields();
                assert_eq!(fields.get(b":status"), Some(&b"200"[..]));
                for (name, value) in &plan.fields {
                    assert_eq!(fields.get(name.as_bytes()), Some(value.as_bytes()));
                }
                assert!(!end_stream);
            }
            Http2Event::Data { stream, range, end_stream } => {
                let Some(asked) = self.asked.get_mut(&stream.id) else { return };
                let data = &input[range];
                assert_eq!(data, &asked.plan.body[asked.seen..asked.seen + data.len()]);
                asked.seen += data.len();
                let cancels = asked.plan.cancel_after.is_some_and(|after| asked.seen >= after);
                asked.is_over = end_stream || cancels;
                if end_stream {
                    assert_eq!(asked.seen, asked.plan.body.len());
                    assert!(asked.plan.trailers.is_none());
                }
                self.endpoint.raise_window(stream, 20_000 + self.dice.below(200_000) as u32);
            }
            Http2Event::Trailers { stream } => {
                let asked = self.asked.get_mut(&stream.id).unwrap();
                let end = self.endpoint.fields().get(b"x-end");
                assert_eq!(end, asked.plan.trailers.as_ref().map(|value| value.as_bytes()));
                assert_eq!(asked.seen, asked.plan.body.len());
                asked.is_over = true;
            }
            Http2Event::Reset { stream, code } => panic!("{stream:?} {code:?}"),
            Http2Event::Malformed { what, .. } => panic!("server {what}"),
            Http2Event::Provoked { stream, code } => panic!("{stream:?} {code:?}"),
            _ => {}
        }
    }
}

/// Seeds of the fuzz target with a few changed bytes pass its check.
#[test]
fn changed_seeds_pass() {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/http2");
    let mut dice = Dice(7);
    for entry in std::fs::read_dir(seeds).unwrap() {
        let seed = std::fs::read(entry.unwrap().path()).unwrap();
        for _ in 0..100 {
            let mut input = seed.clone();
            for _ in 0..=dice.below(4) {
                let at = dice.below(input.len() as u64) as usize;
                input[at] = dice.next() as u8;
            }
            wire::fuzz::http2(&input);
        }
    }
    assert!(PREFACE.starts_with(b"PRI"));
}
