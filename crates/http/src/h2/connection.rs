//! A connection: its socket, its frame machine, and the loop that drives both.

use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use metrics::WaitingConnection;
use net::{Stream, buffers, clock};
use observe::{Errno, Level};
use wire::http2::counts::Http2Count;
use wire::http2::limits::Http2Limits;
use wire::http2::{Http2Code, Http2Config, Http2Endpoint, Http2Role};

use super::head;
use super::idle::ParkableHttp2;
use super::ready::ReadyStreams;
use super::shared::Http2Shared;
use super::stream_link::StreamLink;
use super::stream_reply::{OUTPUT_BYTES_MAX, StreamReply};
use super::streams::Http2Streams;
use super::timers::Http2Timers;
use super::totals;
use crate::client::Client;
use crate::drive::{self, LentExchange, Preread, WorkerContext};
use crate::exchange::{CloseReason, Downstream};
use crate::site::Location;
use crate::site::policy::{Close, Lingering};

/// With more unsent output, nothing is read from the client, because the client does not read.
const OUTPUT_READ_MAX: usize = 4 * OUTPUT_BYTES_MAX;

/// Pseudo-header fields, which `max_headers` does not count.
const PSEUDO_FIELDS_MAX: u32 = 8;

/// An HTTP/2 connection. `F` is the future of a stream.
pub(super) struct Http2Connection<F> {
    pub(super) context: Rc<WorkerContext>,
    pub(super) client: Rc<Client>,
    pub(super) stream: Stream,
    pub(super) shared: Rc<Http2Shared>,
    ready: Arc<ReadyStreams>,
    pub(super) streams: Http2Streams<F>,
    pub(super) timers: Http2Timers,
    /// Bytes received from the client. The first `taken` of them are processed.
    pub(super) input: Vec<u8>,
    pub(super) taken: usize,
    /// Counts the connection as waiting while it has no stream.
    pub(super) waiting: Option<WaitingConnection>,
    /// Nothing more is read: the client has closed, or broken the protocol.
    pub(super) reads_done: bool,
    writes_done: bool,
    /// Nothing was read in the last round because the client does not read.
    pub(super) was_backpressured: bool,
    /// The oldest generation whose streams go on.
    oldest_served: u64,
    /// The connection has been idle long enough to be parked.
    pub(super) is_idle: bool,
    /// Others need its place: it ends without waiting for its client.
    pub(super) gives_way: bool,
    writes: u8,
}

/// What a connection begins with, or goes on with after it was parked.
pub(super) struct Http2Begin {
    pub(super) endpoint: Http2Endpoint,
    pub(super) timers: Http2Timers,
    /// Bytes of the client that were received before.
    pub(super) input: Vec<u8>,
    /// Others need its place.
    pub(super) gives_way: bool,
}

enum Http2End {
    Close,
    Linger,
    Park,
}

/// Serves a connection until it is over, or idle.
pub(crate) async fn serve(
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    stream: Stream,
    preread: Preread,
) -> Option<ParkableHttp2> {
    let config = config_of(&context, &client)?;
    let endpoint = Http2Endpoint::new(Http2Role::Server, config);
    let timers = Http2Timers::first(preread.left_ms);
    let begin = Http2Begin { endpoint, timers, input: preread.bytes, gives_way: false };
    run_connection(context, client, stream, begin).await
}

/// Runs a connection until it is over or idle.
pub(super) async fn run_connection(
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    stream: Stream,
    begin: Http2Begin,
) -> Option<ParkableHttp2> {
    let run = |link: Rc<StreamLink>, end_stream: bool| {
        run_stream(context.clone(), client.clone(), link, end_stream)
    };
    let mut connection = Http2Connection::new(context.clone(), client.clone(), stream, begin);
    let end = std::future::poll_fn(|cx| connection.poll_turn(cx, &run)).await;
    observe::end_turn();
    totals::add(&connection.shared.endpoint.borrow_mut().take_counts());
    let rules = connection.policy(|location| location.core.lingering);
    if let Http2End::Park = end {
        return connection.park();
    }
    let Http2Connection { mut stream, streams, .. } = connection;
    drop(streams);
    match end {
        Http2End::Linger if rules.close != Close::Off => linger(&context, stream, rules).await,
        _ => stream.close_session(),
    }
    None
}

/// The configuration of a connection, from the default server of the listening socket.
pub(super) fn config_of(context: &WorkerContext, client: &Client) -> Option<Http2Config> {
    let generation = context.generation();
    let listen = generation.listen(client.listen)?;
    let server = generation.server(listen.names.default);
    let (buffers, buffer_size) = server.reading.head.large_client_header_buffers;
    let bytes = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    let fields_bytes_max = bytes(buffers.saturating_mul(buffer_size));
    let limits = Http2Limits {
        fields_max: bytes(server.reading.head.max_headers).saturating_add(PSEUDO_FIELDS_MAX),
        field_bytes_max: bytes(buffer_size),
        fields_bytes_max,
        block_bytes_max: fields_bytes_max.saturating_mul(2),
        ..Http2Limits::default()
    };
    Some(Http2Config {
        max_concurrent_streams: server.http2.max_concurrent_streams,
        stream_window: server.http2.body_preread_size,
        limits,
        ..Http2Config::default()
    })
}

/// One stream, from its head to the end of its reply.
async fn run_stream(
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    link: Rc<StreamLink>,
    end_stream: bool,
) {
    clock::pass();
    let mut counted = context.counts.request();
    counted.head_complete();
    let Some(mut x) = LentExchange::new(&context, &client) else {
        return link.release(Http2Code::REFUSED_STREAM);
    };
    let refused = head::begin(&mut x, &link, end_stream).err();
    // The connection processes the rest of its input first: perhaps a body, or a reset.
    link.yield_once().await;
    let mut reply = StreamReply::new(link.clone());
    let ran = drive::run(&context, &mut x, refused, &mut reply).await;
    x.reply.head_bytes += link.overhead.get();
    x.request.length = link.request_length();
    if ran.is_ok() {
        x.close_after(CloseReason::Over);
    }
    let rules = x.location().core.lingering;
    drop(x);
    if ran.is_ok() {
        link.await_rest(rules.timeout_ms).await;
    }
    link.release(match link.timed_out.get() {
        true => Http2Code::PROTOCOL_ERROR,
        false => Http2Code::INTERNAL_ERROR,
    });
}

/// Closes this side, and reads what the client still sends, until others need its place.
async fn linger(context: &WorkerContext, mut stream: Stream, rules: Lingering) {
    let timer = net::Timer::new();
    let until_ms = clock::now_ms().saturating_add(rules.time_ms);
    timer.set(rules.timeout_ms.min(rules.time_ms));
    let mut is_shut = false;
    std::future::poll_fn(|cx| {
        if !is_shut && let Poll::Ready(shut) = stream.poll_shutdown(cx) {
            is_shut = shut.is_ok();
        }
        // Reading ends with the task's share.
        loop {
            let mut buffer = Vec::new();
            let read = stream.poll_read(cx, &mut buffer);
            buffers::give_back(buffer);
            match read {
                Poll::Ready(Ok(1..)) => {
                    let left_ms = until_ms.saturating_sub(clock::now_ms());
                    timer.set(rules.timeout_ms.min(left_ms));
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending if context.wants_back() => return Poll::Ready(()),
                Poll::Pending => return timer.poll(cx),
            }
        }
    })
    .await;
}

impl<F: Future<Output = ()>> Http2Connection<F> {
    fn new(
        context: Rc<WorkerContext>,
        client: Rc<Client>,
        stream: Stream,
        Http2Begin { endpoint, timers, input, gives_way }: Http2Begin,
    ) -> Self {
        let ready = Arc::new(ReadyStreams::default());
        Self {
            waiting: Some(context.counts.wait()),
            streams: Http2Streams::new(ready.clone()),
            timers,
            input,
            taken: 0,
            shared: Rc::new(Http2Shared::new(endpoint)),
            context,
            client,
            stream,
            ready,
            reads_done: false,
            writes_done: false,
            was_backpressured: false,
            oldest_served: 0,
            is_idle: false,
            gives_way,
            writes: 0,
        }
    }

    /// A setting of the default server, outside its locations.
    pub(super) fn policy<T: Default>(&self, get: impl FnOnce(&Location) -> T) -> T {
        let generation = self.context.generation();
        let Some(listen) = generation.listen(self.client.listen) else { return T::default() };
        get(generation.location(generation.server(listen.names.default).outer))
    }

    fn poll_turn<R>(&mut self, cx: &mut Context<'_>, run: &R) -> Poll<Http2End>
    where
        R: Fn(Rc<StreamLink>, bool) -> F,
    {
        self.ready.begin_turn(cx.waker());
        self.timers.replenish(&mut self.shared.endpoint.borrow_mut());
        loop {
            // Streams that had no share of the last turn run before more input is taken.
            let mut moves = !self.streams.has_left_out() && self.poll_input(cx, run);
            moves |= self.streams.run_ready();
            self.check_leaving();
            moves |= self.poll_write(cx);
            if let Some(end) = self.end() {
                return Poll::Ready(end);
            }
            moves |= self.poll_timers(cx);
            if !moves || net::poll_share(cx).is_pending() {
                break;
            }
        }
        if !self.ready.end_turn() {
            net::defer(cx.waker());
        }
        Poll::Pending
    }

    /// How the connection ends, if it is over.
    fn end(&self) -> Option<Http2End> {
        if self.is_idle {
            return Some(Http2End::Park);
        }
        let endpoint = self.shared.endpoint.borrow();
        let is_written = self.writes_done || endpoint.output().is_empty();
        let is_done = self.streams.len() == 0 && is_written;
        match (is_done, endpoint.is_going_away()) {
            (true, _) if self.writes_done => Some(Http2End::Close),
            (true, true) if self.gives_way => Some(Http2End::Close),
            (true, true) => Some(Http2End::Linger),
            _ => None,
        }
    }

    /// Sends GOAWAY if the worker is about to stop, the listening socket is gone, or clients are to
    /// go elsewhere; ends streams whose generation has had its time.
    fn check_leaving(&mut self) {
        if !self.context.keeps(&self.client) {
            self.go_away(Http2Code::NO_ERROR);
        } else if self.context.sends_away(self.client.serial) && self.timers.is_used {
            // A connection without any stream would be useless to its client.
            self.shared.endpoint.borrow_mut().announce_end();
        }
        let oldest_served = self.context.tracker.least_age();
        if std::mem::replace(&mut self.oldest_served, oldest_served) != oldest_served {
            self.streams.cut_before(oldest_served);
        }
    }

    pub(super) fn go_away(&mut self, code: Http2Code) {
        self.shared.endpoint.borrow_mut().go_away(code);
    }

    /// Processes input left over from the last turn, or else reads more. Returns whether there was
    /// any.
    fn poll_input<R>(&mut self, cx: &mut Context<'_>, run: &R) -> bool
    where
        R: Fn(Rc<StreamLink>, bool) -> F,
    {
        if self.reads_done || self.is_backpressured() {
            return false;
        }
        if self.input.is_empty() && !self.poll_read(cx) {
            return false;
        }
        self.take_input(run);
        true
    }

    /// Reads once. Returns whether anything was read, or is the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> bool {
        match self.stream.poll_read(cx, &mut self.input) {
            Poll::Pending => return false,
            Poll::Ready(Ok(1..)) => self.is_idle = false,
            Poll::Ready(Ok(0)) => {
                let is_incomplete = self.shared.endpoint.borrow().is_within_frame();
                if is_incomplete || self.streams.len() > 0 {
                    self.log(Level::Info, format_args!("client prematurely closed connection"));
                }
                self.lose_client();
            }
            Poll::Ready(Err(error)) => {
                self.log(Level::Info, format_args!("recv() failed{}", Errno(&error)));
                self.lose_client();
            }
        }
        true
    }

    /// Whether the client has to read before it may send more.
    fn is_backpressured(&mut self) -> bool {
        let mut endpoint = self.shared.endpoint.borrow_mut();
        let is_backpressured = endpoint.output().len() > OUTPUT_READ_MAX;
        if is_backpressured && !self.was_backpressured {
            endpoint.count(Http2Count::PausedReads);
        }
        self.was_backpressured = is_backpressured;
        is_backpressured
    }

    /// The client is gone: streams end, or continue without it.
    pub(super) fn lose_client(&mut self) {
        self.writes_done = true;
        self.stop_streams();
    }

    /// Stops reading from the client.
    pub(super) fn stop_streams(&mut self) {
        self.reads_done = true;
        buffers::give_back(std::mem::take(&mut self.input));
        self.taken = 0;
        self.streams.links().for_each(|link| link.lose_client());
    }

    /// Writes the output of all streams. Returns whether anything was written.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moves = false;
        while !self.writes_done {
            let mut endpoint = self.shared.endpoint.borrow_mut();
            if endpoint.output().is_empty() {
                break;
            }
            note_write(&mut self.writes, &self.stream);
            match self.stream.poll_write(cx, &[IoSlice::new(endpoint.output())]) {
                Poll::Pending => break,
                Poll::Ready(Ok(count)) => {
                    endpoint.advance_output(count);
                    self.timers.note_written();
                    moves = true;
                }
                Poll::Ready(Err(error)) => {
                    drop(endpoint);
                    self.log(Level::Info, format_args!("send() failed{}", Errno(&error)));
                    self.lose_client();
                    return true;
                }
            }
        }
        self.give_room();
        moves
    }

    /// Wakes streams that wait for room in the output, and returns an unneeded buffer.
    fn give_room(&mut self) {
        let mut endpoint = self.shared.endpoint.borrow_mut();
        if self.writes_done || endpoint.output().len() < OUTPUT_BYTES_MAX {
            self.shared.give_room();
        }
        if endpoint.output().is_empty()
            && self.streams.len() == 0
            && let Some(buffer) = endpoint.take_buffer()
        {
            buffers::give_back(buffer);
        }
    }

    pub(super) fn log(&self, level: Level, message: std::fmt::Arguments<'_>) {
        let generation = self.context.generation();
        let Some(listen) = generation.listen(self.client.listen) else { return };
        let outer = generation.server(listen.names.default).outer;
        let log = &*generation.location(outer).core.error_log;
        self.client.log(log, level, message, "processing HTTP/2 connection", &listen.address);
    }
}

/// Sets TCP_NODELAY before the second write, so that unacknowledged data does not delay what
/// follows.
fn note_write(writes: &mut u8, stream: &Stream) {
    if *writes == 1 {
        stream.set_nodelay();
    }
    *writes = writes.saturating_add(1);
}
