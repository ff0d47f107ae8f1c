//! A server of the `h2` crate, on the same worker.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{RecvStream, SendStream};
use http_types::{Request, Response};
use net::{Stream, spawn};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{sockets, stream};
use crate::{Http2Client, Http2ClientLimits};

/// How a test controls a server, and what the server reports.
#[derive(Default)]
pub(super) struct ServerControl {
    pub(super) goes_away: Cell<bool>,
    /// How many requests it has accepted.
    pub(super) accepted: Cell<usize>,
    pub(super) is_over: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl ServerControl {
    pub(super) fn go_away(&self) {
        self.goes_away.set(true);
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

/// A client and a server that answers each request as a task of its own.
pub(super) fn connect<F: Future<Output = ()> + 'static>(
    builder: &Builder,
    answer: impl Fn(Request<RecvStream>, SendResponse<Bytes>) -> F + 'static,
) -> (Http2Client, Rc<ServerControl>) {
    let (near, far) = sockets();
    let control = Rc::new(ServerControl::default());
    spawn(serve(far, builder.clone(), answer, control.clone()));
    (Http2Client::start(stream(near), Http2ClientLimits::default()), control)
}

async fn serve<F: Future<Output = ()> + 'static>(
    socket: UnixStream,
    builder: Builder,
    answer: impl Fn(Request<RecvStream>, SendResponse<Bytes>) -> F + 'static,
    control: Rc<ServerControl>,
) {
    let mut connection: Connection<_, Bytes> =
        builder.handshake(TokioStream(stream(socket))).await.unwrap();
    poll_fn(|cx| {
        *control.waker.borrow_mut() = Some(cx.waker().clone());
        if control.goes_away.take() {
            connection.graceful_shutdown();
        }
        while let Some(Ok((request, respond))) = ready!(connection.poll_accept(cx)) {
            control.accepted.set(control.accepted.get() + 1);
            spawn(answer(request, respond));
        }
        Poll::Ready(())
    })
    .await;
    control.is_over.set(true);
}

/// Sends the head of a reply.
pub(super) fn respond(mut to: SendResponse<Bytes>) -> SendStream<Bytes> {
    to.send_response(Response::builder().status(200).body(()).unwrap(), false).unwrap()
}

/// Echoes the request's body as it arrives.
pub(super) async fn echo(request: Request<RecvStream>, to: SendResponse<Bytes>) {
    let (mut from, mut to) = (request.into_body(), respond(to));
    while let Some(data) = from.data().await {
        let Ok(data) = data else { return };
        from.flow_control().release_capacity(data.len()).unwrap();
        if !send(&mut to, data).await {
            return;
        }
    }
    let _ = to.send_data(Bytes::new(), true);
}

/// Sends as the windows allow. Returns whether the client accepts it.
pub(super) async fn send(to: &mut SendStream<Bytes>, mut data: Bytes) -> bool {
    while !data.is_empty() {
        to.reserve_capacity(data.len());
        let Some(Ok(room)) = poll_fn(|cx| to.poll_capacity(cx)).await else { return false };
        let piece = data.split_to(room.min(data.len()));
        if to.send_data(piece, false).is_err() {
            return false;
        }
    }
    true
}

/// A stream with `tokio`'s traits, which `h2` needs.
struct TokioStream(Stream);

impl AsyncRead for TokioStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = Vec::with_capacity(buffer.remaining());
        ready!(self.0.poll_read_most(cx, &mut bytes, buffer.remaining()))?;
        buffer.put_slice(&bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TokioStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, &[IoSlice::new(bytes)])
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_shutdown(cx)
    }
}
