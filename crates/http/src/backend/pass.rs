//! One server after another, until one answers or none is left.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::upstream::pool::{PoolOrigin, PoolProtocol};
use ::upstream::{Attempt, Group, Until};
use conf::{SizeTemplate, units};
use net::{Timer, clock};
use observe::{Level, Text};
use session::backend::{NoServer, SecuredConnections, choose};
use wire::Known;
use wire::reply::{ReplyHead, ReplyName};

use super::Conf;
use super::body::{self, BodyPolicy, BusyServer, Receive};
use super::bound::Bound;
use super::call::{Answered, BackendCall, Calling, Trouble};
use super::caller::Caller;
use super::carrier::{BackendCarrier, CarrierConnection, CarrierFactory};
use super::connect::{self, CONNECTING, ConnectPlan, Connected};
use super::fetch;
use super::head::{self, HeaderFilter, ReplyRewriter};
use super::protocol::{ReplyLength, ReplyReader};
use super::request::BackendRequestBody;
use super::store::StoredReply;
use super::tunnel::Switched;
use super::values::NextUpstream;
use crate::answer;
use crate::exchange::{AskedBackend, CloseReason, Exchange, Flow};
use crate::rate::Rate;

/// A request, and what is done with the reply.
pub(crate) struct PassPlan<'a, S> {
    pub(crate) conf: &'a Conf,
    pub(crate) filter: &'a HeaderFilter,
    pub(crate) policy: &'a Arc<BodyPolicy>,
    pub(crate) rewriter: &'a dyn ReplyRewriter,
    pub(crate) group: &'a Arc<Group>,
    /// How connections are secured; `None`: they are not.
    pub(crate) tls: Option<SecuredConnections<'a>>,
    /// What stands before the body, in the protocol's own form.
    pub(crate) head: Vec<u8>,
    pub(crate) body: BackendRequestBody,
    /// What is spoken with the server.
    pub(crate) start: S,
}

/// Passes the exchange on. The plan is used up.
///
/// It is lent: given away, it would be copied into the future, which would have room for it twice.
pub(crate) async fn pass<S: CarrierFactory>(x: &mut Exchange, plan: &mut PassPlan<'_, S>) -> Flow {
    x.backends.set_schema(if plan.tls.is_some() { S::SECURE_SCHEMA } else { S::SCHEMA });
    let Ok(from) = connect::local_end(plan.conf, x) else { return Flow::Status(500) };
    x.backends.limited = plan.group.limit().map(|_| plan.group.clone());
    let mut passing = Passing {
        bound: Bound::of(x, plan.group),
        origin: origin(x, plan, from),
        plan,
        attempt: Attempt::default(),
        tries: 0,
        begun_ms: clock::now_ms(),
        is_first: true,
        request_sent: false,
        had_stale: false,
        server: None,
    };
    let flow = passing.run(x).await;
    x.backends.active = false;
    x.backends.request = std::mem::take(&mut passing.plan.head);
    flow
}

struct Passing<'p, 'a, S: CarrierFactory> {
    plan: &'p mut PassPlan<'a, S>,
    bound: Bound,
    /// How and for whom its connections are made; `None` for plain ones.
    origin: Option<Arc<PoolOrigin>>,
    attempt: Attempt,
    /// How many servers have been asked.
    tries: u32,
    begun_ms: u64,
    is_first: bool,
    /// Whether a server has been sent any of the request, or the client's body taken for it.
    request_sent: bool,
    /// Whether a kept connection turned out closed.
    had_stale: bool,
    /// The server that is asked; none before the first is chosen, and once it has answered.
    server: Option<BusyServer>,
}

/// How and for whom connections are made. With `keepalive N local`, nginx tells locations apart by
/// the address of their settings; the location's number also survives a reload.
fn origin<S: CarrierFactory>(
    x: &Exchange,
    plan: &PassPlan<'_, S>,
    from: Option<SocketAddr>,
) -> Option<Arc<PoolOrigin>> {
    let secured = plan.tls.as_ref().map(SecuredConnections::origin);
    let is_local = plan.group.pool().settings().local;
    let protocol = S::Connection::POOLED_AS;
    if from.is_none() && !is_local && protocol == PoolProtocol::Exclusive {
        return secured.cloned();
    }
    let secured = secured.and_then(|origin| origin.secured.clone());
    let location = is_local.then(|| x.location().pool_number);
    Some(Arc::new(PoolOrigin { from, secured, location, protocol }))
}

impl<S: CarrierFactory> Passing<'_, '_, S> {
    async fn run(&mut self, x: &mut Exchange) -> Flow {
        loop {
            if let Err(flow) = self.choose(x).await {
                return flow;
            }
            let trouble = match self.ask(x).await {
                Ok(Ok(flow)) => return flow,
                Ok(Err(status)) => {
                    x.debug(format_args!("http next upstream, {status}"));
                    continue;
                }
                Err(trouble) => trouble,
            };
            if let Err(flow) = self.after(x, trouble) {
                return flow;
            }
        }
    }

    /// Chooses the server to ask, once the last one is given back.
    async fn choose(&mut self, x: &mut Exchange) -> Result<(), Flow> {
        self.server = None;
        let group = self.plan.group;
        let timeout_ms = self.plan.conf.read_timeout.0;
        // When a client leaves, the driver drops the exchange.
        let left = |_: &mut Exchange, _: &mut Context<'_>| Poll::Pending;
        let chosen = choose(x, group, &mut self.attempt, self.bound.id(), timeout_ms, left).await;
        let (lease, waited_ms) = match chosen {
            Ok(chosen) => chosen,
            Err(NoServer { status: Some(status), waited_ms }) => {
                self.without_server(x, status, waited_ms);
                // Not the status of a client that was too slow.
                return Err(answer::with_status(x, status));
            }
            Err(NoServer { status: None, waited_ms }) => {
                self.without_server(x, 502, waited_ms);
                x.log(Level::Error, format_args!("no live upstreams"));
                return Err(Flow::Status(502));
            }
        };
        self.tries += 1;
        self.bound.choose(x, group, lease.server());
        let anew = std::mem::take(&mut self.is_first);
        let attempt = x.backends.begin(AskedBackend::Server(lease.server().clone()), anew);
        attempt.queue_ms.set(waited_ms);
        self.server = Some(BusyServer::new(lease, attempt, self.origin.clone()));
        Ok(())
    }

    fn server(&mut self) -> &mut BusyServer {
        self.server.as_mut().expect("one is chosen")
    }

    /// There is no server to ask.
    fn without_server(&mut self, x: &mut Exchange, status: u16, waited_ms: Option<u64>) {
        let anew = std::mem::take(&mut self.is_first);
        let attempt = x.backends.begin(AskedBackend::Group(self.plan.group.name().into()), anew);
        attempt.status.set(status);
        attempt.queue_ms.set(waited_ms);
        attempt.end();
        x.action = CONNECTING;
    }

    /// Asks the server, and makes what it answers the exchange's; `Ok(Err)`: another is asked.
    async fn ask(&mut self, x: &mut Exchange) -> Result<Result<Flow, u16>, Trouble> {
        let timer = Timer::new();
        let (conf, filter) = (self.plan.conf, self.plan.filter);
        let server = self.server.as_mut().expect("one is chosen");
        let connecting = ConnectPlan {
            group: self.plan.group,
            lease: &server.lease,
            conf,
            secured: self.plan.tls.as_ref(),
            origin: self.origin.clone(),
            reuses: !self.had_stale,
        };
        let caller = &mut ForClient { x: &mut *x, filter };
        let Connected { connection, reused } = connecting.connect(caller, &timer).await?;
        let attempt = server.attempt.clone();
        attempt.connect_ms.set(Some(attempt.age_ms()));
        x.backends.head.reset();
        let body = self.plan.body.source(x);
        let mut carrier = self.plan.start.carrier(connection, body);
        let call = BackendCall {
            carrier: &mut carrier,
            head: &self.plan.head,
            timer: &timer,
            times: conf.timeouts().into(),
            head_max: conf.buffer_size.0,
            received: &attempt.bytes_received,
        };
        let mut calling = Calling::new(call);
        let answered = poll_fn(|cx| calling.poll(cx, &mut ForClient { x: &mut *x, filter })).await;
        drop(calling);
        let progress = carrier.progress();
        attempt.bytes_sent.set(progress.written);
        // What the server refused to look at can be sent again, if it is still there.
        let is_refused = matches!(answered, Err(Trouble::Refused));
        let is_streamed = matches!(self.plan.body, BackendRequestBody::Streamed);
        self.request_sent |= progress.has_begun && (is_streamed || !is_refused);
        let is_silent = attempt.bytes_received.get() == 0;
        if reused && is_silent && (is_refused || matches!(answered, Err(Trouble::Error))) {
            // That a kept connection was closed meanwhile says little of its server. The next one
            // is new: a request that servers fail at must not use up all that are kept.
            self.had_stale = true;
            self.attempt.allow_another();
            self.tries -= 1;
        }
        let answered = answered?;
        Self::check_final(x, &answered, carrier.reply())?;
        Ok(self.answer(x, answered, &mut Some(carrier)))
    }

    /// Refuses an interim status of a final reply: the client would wait for another reply. 101 is
    /// final where the client has asked for it.
    fn check_final(
        x: &Exchange,
        answered: &Answered,
        reply: &(impl ReplyReader + ?Sized),
    ) -> Result<(), Trouble> {
        let status = x.backends.head.status;
        let switches =
            || reply.switches() && answered.sent && x.request.field(Known::Upgrade).is_some();
        if status >= 200 || status == 101 && switches() {
            return Ok(());
        }
        x.log(Level::Error, format_args!("upstream sent unexpected status {status}"));
        Err(Trouble::InvalidHeader)
    }

    /// Makes the server's answer the exchange's; `Err`: another server is asked.
    fn answer(
        &mut self,
        x: &mut Exchange,
        answered: Answered,
        carrier: &mut Option<S::Carrier>,
    ) -> Result<Flow, u16> {
        let conf = self.plan.conf;
        head::drop_duplicates(x);
        let status = x.backends.head.status;
        let BusyServer { attempt, lease, .. } = self.server();
        attempt.status.set(status);
        attempt.header_ms.set(Some(attempt.age_ms()));
        lease.reached(Until::FirstByte, attempt.age_ms());
        let reasons = NextUpstream::of_status(status);
        if reasons != 0 && self.may_go_on(x, reasons) && self.attempt.tries_left() > 0 {
            match status {
                403 | 404 => self.server().lease.succeeded(clock::now_ms()),
                _ => self.failed(x),
            }
            self.end_attempt();
            return Err(status);
        }
        let mut server = self.server.take().expect("it has answered");
        server.session = self.bound.learn(x, self.plan.group, server.lease.server());
        server.sent = answered.sent;
        if conf.intercept_errors && status >= 300 && answer::has_page(x, status) {
            server.end_unread(carrier, self.plan.group.pool(), &answered);
            return Ok(intercept(x, status));
        }
        let mut buffering = conf.buffering;
        let flow = head::apply_accel_fields(x, conf, self.plan.rewriter, &mut buffering);
        if let Some(flow) = flow {
            server.end_unread(carrier, self.plan.group.pool(), &answered);
            return Ok(flow);
        }
        Ok(self.reply(x, server, carrier, answered, buffering))
    }

    /// Makes the reply of it.
    fn reply(
        &self,
        x: &mut Exchange,
        server: BusyServer,
        carrier: &mut Option<S::Carrier>,
        answered: Answered,
        buffering: bool,
    ) -> Flow {
        let PassPlan { conf, policy, group, .. } = &*self.plan;
        self.bound.tell(x);
        head::copy(x, conf, self.plan.filter, self.plan.rewriter);
        x.reply.content_length = match answered.body {
            ReplyLength::Known(length) => Some(length),
            ReplyLength::None => head_length(x),
            ReplyLength::Unknown => None,
        };
        if carrier.as_ref().is_some_and(|carrier| carrier.reply().switches()) {
            x.close_after(CloseReason::Switched);
            let connection = carrier.as_mut().and_then(BackendCarrier::take_connection);
            let Some(connection) = connection else { return Flow::Status(502) };
            return switch(x, Switched::new(server, connection, answered, conf));
        }
        let rate = match buffering {
            true => self.rate(x),
            false => {
                // So nginx has it: what is not buffered goes as fast as it comes.
                x.reply.limit_rate = Some(0);
                Rate::default()
            }
        };
        let is_stored = buffering && answered.body != ReplyLength::None;
        let body =
            body::receive(x, server, carrier, answered, Receive { policy, group, buffering, rate });
        let stored = is_stored.then(|| StoredReply::begin(x, conf, &policy.temp_path)).flatten();
        x.reply.body = match stored {
            Some(stored) => fetch::keep(x, stored, body),
            None => body,
        };
        Flow::Done
    }

    /// How fast the reply is read.
    fn rate(&self, x: &mut Exchange) -> Rate {
        let per_second = match &self.plan.conf.limit_rate {
            SizeTemplate::Fixed(rate) => *rate,
            SizeTemplate::Computed(template) => {
                let text = x.render(template);
                units::size(&text).unwrap_or_else(|| {
                    let text = Text(&text);
                    x.log(Level::Error, format_args!("invalid size \"{text}\""));
                    0
                })
            }
        };
        match per_second {
            0 => Rate::default(),
            rate => Rate::new(rate, 0, clock::unix_ms() / 1000),
        }
    }

    /// What follows when a server did not answer; `Ok`: another is asked.
    fn after(&mut self, x: &mut Exchange, trouble: Trouble) -> Result<(), Flow> {
        self.end_attempt();
        let is_refused = matches!(trouble, Trouble::Refused);
        let (reason, status) = match trouble {
            Trouble::Error | Trouble::Refused => (NextUpstream::ERROR, 502),
            Trouble::Timeout => (NextUpstream::TIMEOUT, 504),
            Trouble::InvalidHeader => (NextUpstream::INVALID_HEADER, 502),
            Trouble::Internal => return Err(Flow::Status(500)),
            Trouble::Client(error) => return Err(error.settle(x)),
        };
        self.server().attempt.status.set(status);
        if !is_refused {
            self.failed(x);
        }
        if self.may_go_on(x, reason) && self.attempt.tries_left() > 0 {
            return Ok(());
        }
        Err(Flow::Status(status))
    }

    fn failed(&mut self, x: &Exchange) {
        if let Some(event) = self.server().lease.failed(clock::now_ms()) {
            x.log(Level::Warn, format_args!("{event}"));
        }
    }

    fn end_attempt(&mut self) {
        self.server().attempt.end();
    }

    /// Whether this is a reason to ask another server, and it is not too late for it.
    fn may_go_on(&self, x: &Exchange, mut reasons: u16) -> bool {
        use wire::Method;
        let conf = self.plan.conf;
        let unsafe_method =
            matches!(x.request.head.method, Method::Post | Method::Lock | Method::Patch);
        if self.request_sent && unsafe_method {
            reasons |= NextUpstream::NON_IDEMPOTENT;
        }
        let timeout_ms = conf.next_upstream_timeout.0;
        let too_late = timeout_ms > 0 && clock::now_ms() - self.begun_ms >= timeout_ms;
        let tries_max = conf.next_upstream_tries.0;
        let too_often = tries_max > 0 && u64::from(self.tries) >= tries_max;
        let streamed = self.request_sent && matches!(self.plan.body, BackendRequestBody::Streamed);
        conf.next_upstream.allows(reasons) && !too_late && !too_often && !streamed
    }
}

/// A request that is made for a client's exchange.
pub(super) struct ForClient<'a> {
    pub(super) x: &'a mut Exchange,
    /// Which early hints are passed on.
    pub(super) filter: &'a HeaderFilter,
}

impl Caller for ForClient<'_> {
    fn set_action(&mut self, action: &'static str) {
        self.x.action = action;
    }

    fn log(&mut self, level: Level, message: fmt::Arguments<'_>) {
        self.x.log(level, message);
    }

    fn reply_head(&mut self) -> &mut ReplyHead {
        &mut self.x.backends.head
    }

    fn note_text(&mut self, text: &[u8]) {
        self.x.backends.note_head(text);
    }

    fn early_hints(&mut self) {
        head::send_early_hints(self.x, self.filter);
    }
}

/// The connection speaks another protocol from now on.
fn switch(x: &mut Exchange, switched: Switched) -> Flow {
    if x.is_subrequest() {
        x.log(Level::Error, format_args!("connection upgrade in subrequest"));
        return Flow::Drop(0);
    }
    x.action = "proxying upgraded connection";
    x.reply.tunnel = Some(Box::new(switched));
    Flow::Done
}

/// Leaves the reply to `error_page`.
fn intercept(x: &mut Exchange, status: u16) -> Flow {
    if status == 401 {
        for (name, value) in x.backends.challenges() {
            x.reply.fields.append(name, value);
        }
    }
    Flow::Status(status)
}

/// The length that a reply without a body announces: what a GET would have got.
fn head_length(x: &Exchange) -> Option<u64> {
    let field = x.backends.head.field(ReplyName::ContentLength)?;
    conf::units::number(field.value.of(&x.backends.head_text))
}
