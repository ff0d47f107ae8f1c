//! Connections over socket pairs, with both ends on one worker whose clock is stopped.

mod end;
mod h2_server;
mod many;
mod scripted;
mod server_faults;

use std::cell::RefCell;
use std::future::poll_fn;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::task::{Context, Poll};

use net::{Stream, spawn, yield_now};
use wire::http2::FieldWriter;

use crate::{ClientHead, ClientStream, Http2Client, StreamFailure};

/// How often the worker's other tasks run before an event counts as never happening.
const LOOKS_MAX: usize = 200_000;

/// Runs a worker whose clock is stopped.
fn run(test: impl Future<Output = ()>) {
    net::run(async {
        net::testing::stop_clock();
        test.await;
    })
    .unwrap();
}

/// Runs a future as a task of its own, so that it continues only when it is woken.
async fn of<T: 'static>(future: impl Future<Output = T> + 'static) -> T {
    let done = Rc::new(RefCell::new(None));
    let place = done.clone();
    spawn(async move {
        let value = future.await;
        *place.borrow_mut() = Some(value);
    });
    for _ in 0..LOOKS_MAX {
        if let Some(value) = done.borrow_mut().take() {
            return value;
        }
        yield_now().await;
    }
    panic!("nothing comes of it");
}

async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        yield_now().await;
    }
    panic!("it is never so");
}

fn sockets() -> (UnixStream, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    (near, far)
}

fn stream(socket: UnixStream) -> Stream {
    Stream::new(socket.into())
}

/// Writes the head of a request.
fn head(method: &str, path: &str) -> impl FnMut(&mut FieldWriter<'_>) {
    let fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a")];
    let fields = fields.map(|(name, value)| (name, value.to_string()));
    move |writer| {
        fields.iter().for_each(|(name, value)| writer.field(name.as_bytes(), value.as_bytes()));
    }
}

fn get(client: &Http2Client) -> ClientStream {
    client.open(&mut head("GET", "/"), true).expect("a free stream")
}

fn post(client: &Http2Client) -> ClientStream {
    client.open(&mut head("POST", "/"), false).expect("a free stream")
}

async fn reply_head(stream: &mut ClientStream) -> Result<ClientHead, StreamFailure> {
    poll_fn(|cx| stream.poll_head(cx)).await
}

async fn reply_body(stream: &mut ClientStream) -> Result<Vec<u8>, StreamFailure> {
    let mut body = Vec::new();
    while poll_fn(|cx| stream.poll_body(cx, &mut body, 10_000)).await? > 0 {}
    Ok(body)
}

/// The status and the body of a reply.
async fn reply(mut stream: ClientStream) -> Result<(u16, Vec<u8>), StreamFailure> {
    let head = reply_head(&mut stream).await?;
    let body = reply_body(&mut stream).await?;
    assert!(stream.has_ended());
    Ok((head.status, body))
}

async fn send(
    stream: &mut ClientStream,
    mut bytes: &[u8],
    is_last: bool,
) -> Result<(), StreamFailure> {
    loop {
        let count = poll_fn(|cx| stream.poll_send(cx, bytes, is_last)).await?;
        bytes = &bytes[count..];
        if bytes.is_empty() {
            return Ok(());
        }
    }
}

/// Sends a body and takes the reply's body meanwhile.
async fn exchange(mut stream: ClientStream, body: Vec<u8>) -> Result<Vec<u8>, StreamFailure> {
    let (mut sent, mut is_sent, mut received) = (0, false, Vec::new());
    poll_fn(|cx| {
        while !is_sent && let Poll::Ready(count) = stream.poll_send(cx, &body[sent..], true)? {
            sent += count;
            is_sent = sent == body.len();
        }
        poll_rest(&mut stream, cx, &mut received)
    })
    .await?;
    assert!(is_sent && stream.has_ended());
    Ok(received)
}

fn poll_rest(
    stream: &mut ClientStream,
    cx: &mut Context<'_>,
    received: &mut Vec<u8>,
) -> Poll<Result<(), StreamFailure>> {
    loop {
        match stream.poll_body(cx, received, 7_000)? {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(0) => return Poll::Ready(Ok(())),
            Poll::Ready(_) => {}
        }
    }
}

/// Bytes that differ from place to place, and by seed.
fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251 + seed * 31) as u8).collect()
}
