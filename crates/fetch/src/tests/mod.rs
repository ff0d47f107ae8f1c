//! Requests to peers that follow a script, over sockets. Time passes only while both ends wait.

mod grpc;
mod kept;
mod limits;
mod peer;
mod places;
mod replies;
mod tls;

use std::cell::RefCell;
use std::rc::Rc;

use net::clock;
use net::testing::simulate;
use wire::Method;

use crate::{FetchLimits, FetchOrigin, FetchRequest, FetchResponse, FetchSettings, Fetcher};
use peer::{Peer, PeerConnection};

const LIMITS: FetchLimits = FetchLimits {
    head_bytes_max: 1000,
    body_bytes_max: 1000,
    connect_ms: 1000,
    silence_ms: 2000,
    total_ms: 10_000,
};

/// The result of one request to a peer with this script, and how long it takes.
fn fetched_in(
    limits: &FetchLimits,
    request: impl FnOnce(FetchOrigin) -> FetchRequest,
    script: impl AsyncFnOnce(PeerConnection) + 'static,
) -> (Result<FetchResponse, String>, u64) {
    let simulated = simulate(fetched_from(*limits, request, script));
    simulated.expect("a worker").0
}

/// The result of one request while the clock runs by itself: a handshake or a large request takes
/// more turns than a simulation allows before it advances time.
fn fetched_at_once(
    request: impl FnOnce(FetchOrigin) -> FetchRequest,
    script: impl AsyncFnOnce(PeerConnection) + 'static,
) -> Result<FetchResponse, String> {
    const PATIENT: FetchLimits =
        FetchLimits { connect_ms: 60_000, silence_ms: 60_000, total_ms: 60_000, ..LIMITS };
    net::run(fetched_from(PATIENT, request, script)).expect("a worker").0
}

/// The same on a worker, with the time that it takes.
async fn fetched_from(
    limits: FetchLimits,
    request: impl FnOnce(FetchOrigin) -> FetchRequest,
    script: impl AsyncFnOnce(PeerConnection) + 'static,
) -> (Result<FetchResponse, String>, u64) {
    let peer = Peer::new();
    let origin = peer.origin();
    net::spawn(async move { script(peer.accept().await).await });
    let name = origin.place.to_string();
    let request = request(origin);
    let fetcher = Fetcher::new(FetchSettings::default());
    in_task(async move {
        let began_ms = clock::now_ms();
        let fetched = fetcher.send(&request, &limits).await;
        let fetched = fetched.map_err(|error| error.to_string().replace(&name, "PEER"));
        (fetched, clock::now_ms() - began_ms)
    })
    .await
}

/// Runs work in a task of its own: a simulation advances time once all tasks wait.
async fn in_task<T: 'static>(work: impl Future<Output = T> + 'static) -> T {
    let done = Rc::new(RefCell::new(None));
    let result = done.clone();
    let task = async move {
        let value = work.await;
        *result.borrow_mut() = Some(value);
    };
    net::spawn(task).ended().await;
    done.take().expect("it did not panic")
}

/// The same of a GET request with the usual limits: the status and the body.
fn fetched(script: impl AsyncFnOnce(PeerConnection) + 'static) -> Result<(u16, Vec<u8>), String> {
    let (fetched, _) = fetched_in(&LIMITS, get, script);
    fetched.map(|response| (response.status(), response.body))
}

fn get(origin: FetchOrigin) -> FetchRequest {
    FetchRequest::get(origin, "/path?query")
}

fn post(origin: FetchOrigin, body: impl Into<Vec<u8>>) -> FetchRequest {
    FetchRequest { method: Method::Post, body: body.into(), ..get(origin) }
}
