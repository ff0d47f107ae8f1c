//! Sends batches to the collector: a job of the control thread.
//!
//! ```text
//! mailbox --batch--> sending --accepted--> exported
//!     a few at once    ^   \--refused, or tried often enough--> failed
//!                      \----- tried again after a pause
//! ```
//!
//! Nobody waits for the collector: batches that it does not take in time wait in the mailbox, whose
//! length the workers limit, and the workers drop spans beyond that.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fetch::{
    FetchError, FetchLimits, FetchOrigin, FetchRequest, FetchSettings, Fetcher, GrpcCaller,
};
use net::{Address, Mailbox, Task, clock};
use observe::{Level, Text};
use session::ControlJob;
use upstream::address::Endpoint;
use wire::Method;
use zones::Zones;

use super::batch::SpanBatch;
use super::exporter::{ExportTarget, ExportWork, OtelExporter};
use crate::site::Site;

/// Batches that are sent at once.
const SENDS_MAX: usize = 4;
/// How often a batch is tried.
const TRIES_MAX: u32 = 5;
/// The pause after the first try; each further pause is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// Failures are logged at most this often.
const LOG_PAUSE_MS: u64 = 10_000;
/// The bytes of a collector's answer that are logged.
const ANSWER_LOGGED_MAX: usize = 200;
/// How long an idle connection to the collector is kept.
const IDLE_MS: u64 = 60_000;
const LIMITS: FetchLimits = FetchLimits {
    head_bytes_max: 16 * 1024,
    body_bytes_max: 64 * 1024,
    connect_ms: 5_000,
    silence_ms: 10_000,
    total_ms: 10_000,
};
/// The method of gRPC.
const GRPC_METHOD: &[u8] = b"/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// The exporters of all configurations that are in use.
#[derive(Default)]
pub(crate) struct SpanExport {
    exports: Vec<(Rc<Export>, Task)>,
}

impl ControlJob<Arc<Site>> for SpanExport {
    fn adopt(&mut self, site: &Arc<Site>, _: &Zones) {
        self.exports.retain(|(export, _)| !export.is_over.get());
        let exporter = site.own.find::<Arc<OtelExporter>>();
        if let Some(ExportWork { batches, target }) = exporter.and_then(|one| one.take_work()) {
            let export = Export::new(target);
            let task = net::spawn(export.clone().run(batches));
            self.exports.push((export, task));
        }
    }

    /// The last sessions have spans, too.
    fn leave(&mut self) {}

    fn finish(&mut self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            self.exports.iter().for_each(|(export, _)| export.end());
            for (export, task) in &mut self.exports {
                // A collector that has not answered before is not waited for.
                if !export.is_failing.get() {
                    task.ended().await;
                }
            }
        })
    }
}

/// Sends the batches of one configuration.
struct Export {
    target: ExportTarget,
    client: ExportClient,
    /// Addresses of a name without a resolver, as the system has found them; the first is used.
    found: RefCell<Vec<Address>>,
    sending: Cell<usize>,
    /// Whether the last try has failed.
    is_failing: Cell<bool>,
    /// Whether the process ends.
    is_ending: Cell<bool>,
    is_over: Cell<bool>,
    waker: Cell<Option<Waker>>,
    logged_ms: Cell<Option<u64>>,
    /// Spans that have failed since the last line in the log.
    unlogged: Cell<usize>,
}

enum ExportClient {
    Http(Fetcher),
    Grpc(GrpcCaller),
}

/// Why a try has failed.
struct ExportFailure {
    reason: String,
    may_be_repeated: bool,
}

impl Export {
    fn new(target: ExportTarget) -> Rc<Self> {
        let names = target.names.clone();
        let client = match &target.endpoint.path {
            None => ExportClient::Grpc(GrpcCaller::new(names)),
            Some(_) => ExportClient::Http(Fetcher::new(FetchSettings {
                names,
                idle_connections_max: SENDS_MAX,
                idle_ms: IDLE_MS,
            })),
        };
        Rc::new(Self {
            target,
            client,
            found: RefCell::default(),
            sending: Cell::new(0),
            is_failing: Cell::new(false),
            is_ending: Cell::new(false),
            is_over: Cell::new(false),
            waker: Cell::new(None),
            logged_ms: Cell::new(None),
            unlogged: Cell::new(0),
        })
    }

    /// Sends batches until no worker can send more, or the process ends and none is left.
    async fn run(self: Rc<Self>, mut batches: Mailbox<SpanBatch>) {
        while let Some(batch) = poll_fn(|cx| self.poll_next(&mut batches, cx)).await {
            let sending = ExportUnderWay::new(&self);
            net::spawn(async move { sending.0.export(batch).await });
        }
        self.is_over.set(true);
    }

    fn poll_next(
        &self,
        batches: &mut Mailbox<SpanBatch>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<SpanBatch>> {
        self.waker.set(Some(cx.waker().clone()));
        if self.sending.get() >= SENDS_MAX {
            return Poll::Pending;
        }
        match batches.poll_next(cx) {
            Poll::Ready(Some(batch)) => Poll::Ready(Some(batch)),
            end => {
                let is_done = end.is_ready() || self.is_ending.get();
                if is_done && self.sending.get() == 0 { Poll::Ready(None) } else { Poll::Pending }
            }
        }
    }

    fn end(&self) {
        self.is_ending.set(true);
        self.wake();
    }

    fn wake(&self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }

    async fn export(&self, batch: SpanBatch) {
        let message = self.target.preamble.message(&batch.spans);
        let mut request = self.request(message);
        for tries in 1.. {
            let failure = match self.send(&mut request).await {
                Ok(()) => {
                    self.is_failing.set(false);
                    return batch.exported();
                }
                Err(failure) => failure,
            };
            self.is_failing.set(true);
            self.found.borrow_mut().clear();
            let is_last = !failure.may_be_repeated || tries == TRIES_MAX || self.is_ending.get();
            self.log(&failure, if is_last { batch.count() } else { 0 });
            if is_last {
                return;
            }
            net::sleep(PAUSE * 2u32.pow(tries - 1)).await;
        }
    }

    fn request(&self, body: Vec<u8>) -> FetchRequest {
        let ExportTarget { endpoint, fields, .. } = &self.target;
        let mut fields = fields.clone();
        let target = match &endpoint.path {
            None => GRPC_METHOD.to_vec(),
            Some(path) => {
                fields.push((b"content-type".to_vec(), b"application/x-protobuf".to_vec()));
                path.clone()
            }
        };
        let (place, host) = (endpoint.place.clone(), endpoint.host.clone());
        let origin = FetchOrigin { place, host, transport: endpoint.transport.clone() };
        FetchRequest { origin, method: Method::Post, target, fields, body }
    }

    async fn send(&self, request: &mut FetchRequest) -> Result<(), ExportFailure> {
        if let Some(place) = self.look_up().await? {
            request.origin.place = place;
        }
        match &self.client {
            ExportClient::Http(fetcher) => {
                let reply = fetcher.send(request, &LIMITS).await?;
                match reply.status() {
                    200..300 => Ok(()),
                    status => Err(ExportFailure {
                        reason: format!("status {status}{}", Answer(&reply.body)),
                        may_be_repeated: matches!(status, 429 | 502..=504),
                    }),
                }
            }
            ExportClient::Grpc(caller) => {
                let reply = caller.call(request, &LIMITS).await?;
                match reply.status {
                    0 => Ok(()),
                    status => Err(ExportFailure {
                        reason: format!("gRPC status {status}{}", Answer(&reply.text)),
                        may_be_repeated: is_passing(status),
                    }),
                }
            }
        }
    }

    /// The address of a name that no resolver looks up: asked for in another thread, because the
    /// system may block, and again after a failure. `None`: the endpoint is used as it is.
    async fn look_up(&self) -> Result<Option<Endpoint>, ExportFailure> {
        let place = &self.target.endpoint.place;
        if matches!(place, Endpoint::At(_)) || self.target.names.servers.is_some() {
            return Ok(None);
        }
        if self.found.borrow().is_empty() {
            let asked = place.clone();
            let found = net::offload(move || asked.addresses()).await;
            self.found.replace(found);
        }
        match self.found.borrow().first() {
            Some(address) => Ok(Some(Endpoint::At(address.clone()))),
            None => Err(ExportFailure {
                reason: format!("host not found: {place}"),
                may_be_repeated: true,
            }),
        }
    }

    /// Logs a failure, with the number of spans that are lost, unless that was done just before.
    fn log(&self, failure: &ExportFailure, lost: usize) {
        let lost = self.unlogged.take() + lost;
        let now_ms = clock::now_ms();
        if self.logged_ms.get().is_some_and(|logged| now_ms < logged + LOG_PAUSE_MS) {
            return self.unlogged.set(lost);
        }
        self.logged_ms.set(Some(now_ms));
        let (reason, place) = (&failure.reason, &self.target.endpoint.place);
        let text = format_args!("otel cannot export to {place}: {reason}; {lost} spans are lost");
        observe::log(Level::Error, text);
    }
}

/// Whether a status of gRPC may pass, as OpenTelemetry's protocol lists them.
fn is_passing(status: u32) -> bool {
    const CANCELLED: u32 = 1;
    const DEADLINE_EXCEEDED: u32 = 4;
    const RESOURCE_EXHAUSTED: u32 = 8;
    const ABORTED: u32 = 10;
    const OUT_OF_RANGE: u32 = 11;
    const UNAVAILABLE: u32 = 14;
    const DATA_LOSS: u32 = 15;
    matches!(
        status,
        CANCELLED
            | DEADLINE_EXCEEDED
            | RESOURCE_EXHAUSTED
            | ABORTED
            | OUT_OF_RANGE
            | UNAVAILABLE
            | DATA_LOSS
    )
}

/// Counts a batch that is being sent.
struct ExportUnderWay(Rc<Export>);

impl ExportUnderWay {
    fn new(export: &Rc<Export>) -> Self {
        export.sending.set(export.sending.get() + 1);
        Self(export.clone())
    }
}

impl Drop for ExportUnderWay {
    fn drop(&mut self) {
        self.0.sending.set(self.0.sending.get() - 1);
        self.0.wake();
    }
}

impl From<FetchError> for ExportFailure {
    fn from(error: FetchError) -> Self {
        use fetch::FetchFault::{InvalidReply, InvalidRequest, TooLargeBody, TooLargeHead};
        let fault = &error.fault;
        let is_final = matches!(
            fault,
            InvalidRequest(_) | InvalidReply(_) | TooLargeHead(_) | TooLargeBody(_)
        );
        Self { reason: error.to_string(), may_be_repeated: !is_final }
    }
}

/// The beginning of an answer, in a log line: `: text`.
struct Answer<'a>(&'a [u8]);

impl fmt::Display for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..self.0.len().min(ANSWER_LOGGED_MAX)] {
            b"" => Ok(()),
            text => write!(f, ": {}", Text(text)),
        }
    }
}
