//! `ssl_preread`: reads the first message of a TLS client before content begins, and passes it on
//! with everything else. TLS is not terminated.
//!
//! ```text
//! bytes -> Partial: read more, up to `preread_buffer_size` and `preread_timeout`
//!       -> ClientHello: sets variables; the session continues with the server that it names
//!       -> anything else: the session continues without values
//! ```

use std::future::poll_fn;
use std::task::Poll;

use ::session::Session as _;
use net::{Stream, Timer, buffers, memory};
use observe::Level;
use wire::client_hello::{ClientHello, ObservedHello, observe};

use crate::secure::choose_server;
use crate::session::{PrereadHello, StreamSession};
use crate::site::PrereadPolicy;

/// The status that the session ends with. Errors were logged.
pub(crate) struct PrereadEnded(pub(crate) u16);

const TLS_1_3: u16 = 0x304;

/// nginx's `NGX_STREAM_OK`: the client is gone, or has sent nothing.
const OK: u16 = 200;
const BAD_REQUEST: u16 = 400;
const INTERNAL_SERVER_ERROR: u16 = 500;

/// Reads a ClientHello.
pub(crate) async fn preread(
    x: &mut StreamSession,
    stream: &mut Stream,
) -> Result<(), PrereadEnded> {
    let policy = x.server().preread;
    x.action = "prereading client data";
    let mut received = std::mem::take(&mut x.preread);
    let read = read(x, stream, &mut received, policy).await;
    if read.is_err() {
        buffers::give_back(std::mem::take(&mut received));
    }
    x.preread = received;
    x.preread_hello = read?.map(Box::new);
    let name = x.preread_hello.as_ref().map(|hello| hello.server_name.clone());
    choose_server(x, name.as_deref());
    Ok(())
}

/// Reads until the ClientHello is complete, or the data is found not to be one.
async fn read(
    x: &mut StreamSession,
    stream: &mut Stream,
    received: &mut Vec<u8>,
    policy: PrereadPolicy,
) -> Result<Option<PrereadHello>, PrereadEnded> {
    let timer = Timer::new();
    timer.set(policy.timeout_ms);
    loop {
        match observe(received) {
            ObservedHello::Partial => {}
            ObservedHello::Other => return Ok(None),
            ObservedHello::OldForm(version) => return Ok(Some(PrereadHello::old(version))),
            ObservedHello::Complete(message) => return Ok(PrereadHello::parse(&message)),
        }
        let room = policy.buffer_size.saturating_sub(received.len());
        if room == 0 {
            x.log(Level::Error, format_args!("preread buffer full"));
            return Err(PrereadEnded(BAD_REQUEST));
        }
        if received.capacity() > 0 && received.len() == received.capacity() {
            memory::try_reserve(received, room).map_err(|error| {
                x.log(Level::Emerg, format_args!("{error}"));
                PrereadEnded(INTERNAL_SERVER_ERROR)
            })?;
        }
        let count = poll_fn(|cx| match stream.poll_read_most(cx, received, room) {
            Poll::Ready(read) => Poll::Ready(read.unwrap_or(0)),
            Poll::Pending => timer.poll(cx).map(|()| 0),
        });
        match count.await {
            0 => return Err(PrereadEnded(OK)),
            count => x.bytes_received += count as u64,
        }
    }
}

impl PrereadHello {
    fn old(version: u16) -> Self {
        Self { version, server_name: Box::default(), protocols: Box::default() }
    }

    fn parse(message: &[u8]) -> Option<Self> {
        let hello = ClientHello::parse(message)?;
        let protocols: Vec<&[u8]> = hello.protocols().collect();
        Some(Self {
            // As in nginx, a client that lists its versions supports TLS 1.3.
            version: if hello.versions.is_empty() { hello.legacy_version } else { TLS_1_3 },
            server_name: hello.server_name.unwrap_or_default().into(),
            protocols: protocols.join(&b',').into(),
        })
    }
}
