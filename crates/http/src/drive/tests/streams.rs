//! A driver of connections for tests: requests and replies are statuses, fields and bytes, and
//! several streams run on one connection. It has no text of HTTP/1 and no socket; tests poll it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use net::{SocketProbe, Timer};
use wire::request::RequestParts;
use wire::{Method, Version};

use crate::client::Client;
use crate::drive::{self, BodyBound, Framing, LentExchange, Outlet, WorkerContext, choose_server};
use crate::exchange::{
    Announced, BodyRules, Bytes, Downstream, Exchange, Fields, FileSlice, RequestBodyError,
    TunnelEnd,
};
use crate::site::policy::Output;
use crate::testing::TestSite;

/// The most bytes that an outlet gathers before a flush.
const GATHERED_MAX: usize = 4096;
/// The weight of a frame without data.
const FRAME_BYTES: usize = 9;
/// Bytes of bodies that a stream may send before the client grants more.
pub(super) const WINDOW: usize = 1000;

#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) target: &'static str,
    pub(super) fields: &'static [(&'static str, &'static str)],
    pub(super) announced: Announced,
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Interim(u16, Vec<String>),
    Head(u16, Vec<String>),
    Data(Vec<u8>),
    /// The end of the reply, with its trailers.
    End(Vec<String>),
    /// The end of an incomplete reply.
    Reset,
}

/// A connection with numbered streams.
pub(super) struct Connection {
    context: Rc<WorkerContext>,
    client: Rc<Client>,
    streams: BTreeMap<u32, Stream>,
    sent: Rc<RefCell<Vec<(u32, Frame)>>>,
}

struct Stream {
    end: Rc<StreamEnd>,
    exchange: Pin<Box<dyn Future<Output = ()>>>,
}

impl Connection {
    pub(super) fn new(site: &TestSite) -> Self {
        let client = Client::new(1, Some("127.0.0.1:12345".parse().unwrap()), SocketProbe::NONE, 0);
        Self {
            context: WorkerContext::new(site.generation.clone(), false),
            client: Rc::new(client),
            streams: BTreeMap::new(),
            sent: Rc::default(),
        }
    }

    /// Begins a stream.
    pub(super) fn ask(&mut self, number: u32, request: Request) {
        let end = Rc::new(StreamEnd {
            number,
            sent: self.sent.clone(),
            input: RefCell::default(),
            is_ended: Cell::new(request.announced == Announced::None),
            received: Cell::new(0),
            window: Cell::new(WINDOW),
        });
        let run = run(self.context.clone(), self.client.clone(), request, end.clone());
        self.streams.insert(number, Stream { end, exchange: Box::pin(run) });
    }

    /// Sends bytes of a request's body.
    pub(super) fn send(&mut self, number: u32, bytes: &str, is_last: bool) {
        let end = &self.streams[&number].end;
        end.input.borrow_mut().extend(bytes.as_bytes());
        end.is_ended.set(is_last);
    }

    /// Lets the stream send more bytes.
    pub(super) fn grant(&mut self, number: u32, bytes: usize) {
        let window = &self.streams[&number].end.window;
        window.set(window.get() + bytes);
    }

    /// Cancels a stream; its exchange is dropped.
    pub(super) fn cancel(&mut self, number: u32) {
        self.streams.remove(&number);
    }

    /// Polls every stream until none makes progress. Returns the frames that were sent.
    pub(super) fn turn(&mut self) -> Vec<(u32, Frame)> {
        let mut cx = Context::from_waker(Waker::noop());
        self.streams.retain(|_, stream| stream.exchange.as_mut().poll(&mut cx).is_pending());
        self.sent.take()
    }

    /// The numbers of the active streams.
    pub(super) fn open(&self) -> Vec<u32> {
        self.streams.keys().copied().collect()
    }
}

async fn run(context: Rc<WorkerContext>, client: Rc<Client>, request: Request, end: Rc<StreamEnd>) {
    let mut x = LentExchange::new(&context, &client).expect("the site has the socket");
    let refused = begin(&mut x, &request, &end).err();
    let mut outlet = StreamOutlet { end, gathered: VecDeque::new(), pause: Timer::new() };
    if drive::run(&context, &mut x, refused, &mut outlet).await.is_err() {
        outlet.end.send(Frame::Reset);
    }
}

fn begin(x: &mut Exchange, request: &Request, end: &Rc<StreamEnd>) -> Result<(), u16> {
    let parts = RequestParts {
        method: request.method.as_bytes(),
        authority: b"example.org",
        target: request.target.as_bytes(),
        version: Version::HTTP_2,
    };
    let fields = request.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let (limits, merge_slashes) = (x.server().reading.head, x.server().reading.merge_slashes);
    x.request.build(&parts, fields, &limits).map_err(|_| 400_u16)?;
    x.request.decode_target(merge_slashes).map_err(|_| 400_u16)?;
    choose_server(x);
    x.request.header_only = x.request.head.method == Method::Head;
    x.request.length = x.request.head_bytes as u64;
    x.request.body.announce(request.announced);
    x.keep_connection();
    x.downstream = Some(end.clone());
    Ok(())
}

/// State that a stream's exchange and its connection share.
struct StreamEnd {
    number: u32,
    sent: Rc<RefCell<Vec<(u32, Frame)>>>,
    input: RefCell<VecDeque<u8>>,
    is_ended: Cell<bool>,
    received: Cell<u64>,
    window: Cell<usize>,
}

impl StreamEnd {
    fn send(&self, frame: Frame) {
        self.sent.borrow_mut().push((self.number, frame));
    }

    fn take(&self, out: &mut Vec<u8>) -> usize {
        let mut input = self.input.borrow_mut();
        let count = input.len().min(out.capacity() - out.len());
        out.extend(input.drain(..count));
        self.received.set(self.received.get() + count as u64);
        count
    }
}

impl Downstream for StreamEnd {
    fn poll_body(
        &self,
        _: &mut Context<'_>,
        out: &mut Vec<u8>,
        rules: BodyRules,
    ) -> Poll<Result<usize, RequestBodyError>> {
        let (received, chunk) = (self.received.get(), self.input.borrow().len() as u64);
        if rules.size_max != 0 && received + chunk > rules.size_max {
            return Poll::Ready(Err(RequestBodyError::TooLarge { received, chunk }));
        }
        match self.take(out) {
            0 if !self.is_ended.get() && out.len() < out.capacity() => Poll::Pending,
            count => Poll::Ready(Ok(count)),
        }
    }

    fn whole_body(&self) -> Option<u64> {
        self.is_ended.get().then(|| self.input.borrow().len() as u64)
    }

    fn discard_body(&self) -> Result<bool, RequestBodyError> {
        self.input.borrow_mut().clear();
        Ok(self.is_ended.get())
    }

    fn takes_interim(&self) -> bool {
        true
    }

    fn send_interim(&self, status: u16, fields: &Fields) -> usize {
        self.send(Frame::Interim(status, lines(fields)));
        FRAME_BYTES
    }

    fn request_length(&self) -> u64 {
        self.received.get()
    }
}

struct StreamOutlet {
    end: Rc<StreamEnd>,
    gathered: VecDeque<Frame>,
    pause: Timer,
}

fn weight(frame: &Frame) -> usize {
    match frame {
        Frame::Data(bytes) => bytes.len(),
        _ => FRAME_BYTES,
    }
}

impl Outlet for StreamOutlet {
    fn put_head(&mut self, x: &mut Exchange, has_body: bool, _: &Output) -> Framing {
        let mut fields = Vec::new();
        let mut content_type = Vec::new();
        x.reply.write_media_type(&mut content_type);
        if !content_type.is_empty() {
            fields.push(format!("content-type: {}", String::from_utf8(content_type).unwrap()));
        }
        fields.extend(x.reply.content_length.map(|length| format!("content-length: {length}")));
        fields.extend(lines(&x.reply.fields));
        self.gathered.push_back(Frame::Head(x.reply.status, fields));
        x.reply.head_bytes = FRAME_BYTES as u64;
        let body = match x.reply.content_length {
            _ if !has_body => BodyBound::None,
            Some(length) => BodyBound::Length(length),
            None => BodyBound::Open,
        };
        Framing { body, has_trailers: has_body }
    }

    fn takes(&self, length: usize) -> bool {
        let gathered = self.gathered() as usize;
        gathered <= FRAME_BYTES || gathered.saturating_add(length) <= GATHERED_MAX
    }

    fn has_large(&self) -> bool {
        false
    }

    fn put_bytes(&mut self, bytes: Bytes) -> Option<Bytes> {
        self.gathered.push_back(Frame::Data(bytes.as_ref().to_vec()));
        Some(bytes)
    }

    fn sends_files(&self) -> bool {
        false
    }

    fn put_file(&mut self, _: FileSlice) {
        unreachable!("files are read");
    }

    fn put_end(&mut self, trailers: &Fields) {
        self.gathered.push_back(Frame::End(lines(trailers)));
    }

    fn gathered(&self) -> u64 {
        self.gathered.iter().map(weight).sum::<usize>() as u64
    }

    fn shrink(&mut self) {}

    fn begin_flush(&mut self) {}

    fn poll_flush(
        &mut self,
        _: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<usize, (&'static str, io::Error)>> {
        let Some(first) = self.gathered.front_mut() else { return Poll::Ready(Ok(0)) };
        let Frame::Data(bytes) = first else {
            let count = weight(first);
            self.end.send(first.clone());
            self.gathered.pop_front();
            return Poll::Ready(Ok(count));
        };
        let count = bytes.len().min(most).min(self.end.window.get());
        if count == 0 {
            return Poll::Pending;
        }
        self.end.window.set(self.end.window.get() - count);
        self.end.send(Frame::Data(bytes.drain(..count).collect()));
        if bytes.is_empty() {
            self.gathered.pop_front();
        }
        Poll::Ready(Ok(count))
    }

    fn end_flush(&mut self) -> Option<Bytes> {
        None
    }

    fn poll_stalled(&self, _: &mut Context<'_>, _: u64) -> Poll<()> {
        Poll::Pending
    }

    fn poll_pause(&self, cx: &mut Context<'_>, delay_ms: u64) -> Poll<()> {
        self.pause.set(delay_ms);
        self.pause.poll(cx)
    }

    fn end_wait(&self) {}

    fn forget_reader(&self) {}

    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        // A client that goes cancels the stream instead.
        Poll::Pending
    }

    fn poll_unwanted(&self, _: &mut Context<'_>) -> Poll<()> {
        self.end.input.borrow_mut().clear();
        Poll::Ready(())
    }

    fn release(&mut self) {
        self.gathered = VecDeque::new();
    }

    fn begin_tunnel(&mut self) {}
}

impl TunnelEnd for StreamOutlet {
    fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match self.end.take(buffer) {
            0 if !self.end.is_ended.get() => Poll::Pending,
            count => Poll::Ready(Ok(count)),
        }
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.end.send(Frame::Data(bytes.to_vec()));
        Poll::Ready(Ok(bytes.len()))
    }
}

fn lines(fields: &Fields) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase();
    fields.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
}
