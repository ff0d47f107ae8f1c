//! Tries servers of a group until one answers.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::cache::FillFailure;
use ::tls::backend::SecuredConnections;
use ::upstream::pool::{PoolKey, PoolOrigin, PoolProtocol};
use ::upstream::{Attempt, Group, Lease, Until};
use conf::{SizeTemplate, units};
use net::{Timer, clock};
use observe::{Level, Text};
use session::backend::{NoServer, choose};
use wire::Known;

use super::Conf;
use super::body::{self, BodyPolicy, BusyServer};
use super::cache::{self, CacheAttempt, ReplyRules};
use super::call::{Answered, CallError, UpstreamRequest};
use super::carrier::{BackendCarrier, CarrierConnection, CarrierFactory};
use super::connect::{self, CONNECTING};
use super::fetch;
use super::head::{self, HeaderFilter, ReplyRewriter, ReplySource};
use super::protocol::{ReplyLength, ReplyReader};
use super::request::BackendRequestBody;
use super::sticky::StickySession;
use super::store::StoredReply;
use super::tunnel::Switched;
use super::values::NextUpstream;
use crate::answer;
use crate::exchange::{CloseReason, Exchange, Flow, TimedPhase};
use crate::rate::Rate;

/// How often a request that servers have not processed is sent again in spite of their number.
const REFUSALS_MAX: u8 = 3;

/// How long a request waits for the connection that another one opens, before it opens its own.
const OPENING_MS_MAX: u64 = 5000;

/// How many connections of others a request waits for, if none of them has a stream left.
const OPENINGS_MAX: u32 = 3;

/// A request to a group, and the settings for its reply.
pub(crate) struct PassPlan<'a, S> {
    pub(crate) conf: &'a Conf,
    pub(crate) filter: &'a HeaderFilter,
    pub(crate) policy: &'a Arc<BodyPolicy>,
    pub(crate) rewriter: &'a dyn ReplyRewriter,
    pub(crate) group: &'a Arc<Group>,
    /// The TLS of connections; `None`: plain ones.
    pub(crate) tls: Option<SecuredConnections<'a>>,
    /// The head of the request in the protocol's own form.
    pub(crate) head: Vec<u8>,
    pub(crate) body: BackendRequestBody,
    /// What a cache does with the reply; `None`: nothing.
    pub(crate) cache: Option<Box<CacheAttempt>>,
    /// The protocol spoken to the server.
    pub(crate) start: S,
}

impl<'a, S> PassPlan<'a, S> {
    fn rules(&self) -> ReplyRules<'a> {
        ReplyRules { conf: self.conf, filter: self.filter, rewriter: self.rewriter }
    }
}

/// Passes the exchange on, and uses up the plan.
///
/// The plan is borrowed: if it were moved, the future would contain it twice.
pub(crate) async fn pass<S: CarrierFactory>(x: &mut Exchange, plan: &mut PassPlan<'_, S>) -> Flow {
    x.backends.set_schema(if plan.tls.is_some() { S::SECURE_SCHEMA } else { S::SCHEMA });
    let Ok(from) = connect::local_end(plan.conf, x) else { return Flow::Status(500) };
    if plan.cache.as_ref().is_some_and(|cache| cache.is_cacheable()) {
        x.outlives_client.set(true);
    }
    x.backends.limited = plan.group.limit().map(|_| plan.group.clone());
    let mut passing = Passing {
        session: StickySession::of(x, plan.group),
        origin: origin(x, plan, from),
        plan,
        attempt: Attempt::default(),
        tries: 0,
        begun_ms: clock::now_ms(),
        is_first: true,
        request_sent: false,
        reused_was_closed: false,
        refusals: 0,
        server: None,
    };
    let flow = passing.run(x).await;
    x.backends.active = false;
    x.backends.request = std::mem::take(&mut passing.plan.head);
    flow
}

struct Passing<'p, 'a, S: CarrierFactory> {
    plan: &'p mut PassPlan<'a, S>,
    /// `None` for a group without `sticky`.
    session: Option<Box<StickySession>>,
    /// The origin of its connections in the pool; `None` for plain ones.
    origin: Option<Arc<PoolOrigin>>,
    attempt: Attempt,
    /// The number of servers tried.
    tries: u32,
    begun_ms: u64,
    is_first: bool,
    /// Whether a part of the request was sent, or a part of the client's body taken for it.
    request_sent: bool,
    /// Whether a reused connection was closed by its server.
    reused_was_closed: bool,
    /// How often servers have refused the request without having processed it.
    refusals: u8,
    /// The server being tried; `None` before the first is chosen, and after one has answered.
    server: Option<BusyServer>,
}

/// The origin of connections in the pool. With `keepalive N local`, nginx tells locations apart by
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
            let error = match self.try_server(x).await {
                Ok(Ok(flow)) => return flow,
                Ok(Err(status)) => {
                    x.debug(format_args!("http next upstream, {status}"));
                    continue;
                }
                Err(error) => error,
            };
            if let Err(flow) = self.after_error(x, error) {
                return flow;
            }
        }
    }

    /// Releases the last server and chooses the next one.
    async fn choose(&mut self, x: &mut Exchange) -> Result<(), Flow> {
        self.server = None;
        let group = self.plan.group;
        let timeout_ms = self.plan.conf.read_timeout.0;
        // When a client leaves, the driver drops the exchange.
        let left = |_: &mut Exchange, _: &mut Context<'_>| Poll::Pending;
        let session = self.session.as_ref().and_then(|session| session.id());
        x.waits_for(TimedPhase::Queue);
        let chosen = choose(x, group, &mut self.attempt, session, timeout_ms, left).await;
        let (lease, waited_ms) = match chosen {
            Ok(chosen) => chosen,
            Err(NoServer { status: Some(status), waited_ms }) => {
                self.record_no_server(x, status, waited_ms);
                if let Some(mut cache) = self.plan.cache.take() {
                    let was_sent = self.request_sent;
                    cache.fail(FillFailure { status, reasons: 0, is_error: false, was_sent });
                }
                // `Flow::Status` would close the connection on 408, as if the client were too slow.
                return Err(answer::with_status(x, status));
            }
            Err(NoServer { status: None, waited_ms }) => {
                self.record_no_server(x, 502, waited_ms);
                x.log(Level::Error, format_args!("no live upstreams"));
                return Err(self.give_up(x, NextUpstream::ERROR, 502));
            }
        };
        self.tries += 1;
        if let Some(session) = &mut self.session {
            session.choose(x, lease.server());
        }
        let anew = std::mem::take(&mut self.is_first);
        let attempt = x.backends.begin(Ok(lease.server().clone()), anew);
        attempt.queue_ms.set(waited_ms);
        self.server = Some(BusyServer::new(lease, attempt, self.origin.clone()));
        Ok(())
    }

    fn server(&mut self) -> &mut BusyServer {
        self.server.as_mut().expect("one is chosen")
    }

    /// Records an attempt without an available server.
    fn record_no_server(&mut self, x: &mut Exchange, status: u16, waited_ms: Option<u64>) {
        let anew = std::mem::take(&mut self.is_first);
        let attempt = x.backends.begin(Err(self.plan.group.name().into()), anew);
        attempt.status.set(status);
        attempt.queue_ms.set(waited_ms);
        attempt.end();
        x.action = CONNECTING;
    }

    /// Sends the request to the chosen server, and makes its reply the exchange's; `Ok(Err)`:
    /// another server is tried.
    async fn try_server(&mut self, x: &mut Exchange) -> Result<Result<Flow, u16>, CallError> {
        let timer = Timer::new();
        let connection = self.connect(x, &timer).await?;
        let is_reused = connection.is_reused();
        let attempt = self.server().attempt.clone();
        attempt.connected();
        attempt.is_reused.set(is_reused);
        x.backends.head.reset();
        let body = self.plan.body.source(x);
        let mut carrier = self.plan.start.carrier(connection, body);
        let (head, received) = (&self.plan.head, &attempt.bytes_received);
        let (timeouts, head_max) = (Some(&self.plan.policy.timeouts), self.plan.conf.buffer_size.0);
        let mut request =
            UpstreamRequest::new(&mut carrier, head, &timer, timeouts, head_max, received);
        request.early_hints = Some(self.plan.filter);
        let answered = poll_fn(|cx| request.poll(cx, x)).await;
        drop(request);
        let progress = carrier.progress();
        attempt.bytes_sent.set(progress.written);
        let has_begun = progress.has_begun;
        let is_silent = attempt.bytes_received.get() == 0;
        let is_refused = matches!(answered, Err(CallError::Refused | CallError::Leaving));
        if is_refused && self.can_send_again(&mut carrier) {
            if answered.as_ref().is_err_and(|error| self.server_works(error)) {
                self.allow_again();
            }
        } else {
            self.request_sent |= has_begun;
        }
        if is_reused && is_silent && matches!(answered, Err(CallError::Error)) {
            // A reused connection that is closed is hardly its server's fault. The next connection
            // is a new one: a request that makes servers fail must not use up all idle connections.
            self.reused_was_closed = true;
            self.attempt.allow_another();
            self.tries -= 1;
        }
        let answered = answered?;
        Self::check_final(x, &answered, carrier.reply())?;
        Ok(self.answer(x, answered, &mut Some(carrier)))
    }

    /// Whether a request that a server has not processed is still complete.
    fn can_send_again(&mut self, carrier: &mut S::Carrier) -> bool {
        match &mut self.plan.body {
            BackendRequestBody::Streamed(again) => {
                *again = carrier.take_source();
                again.is_some()
            }
            BackendRequestBody::None | BackendRequestBody::Stored(_) => true,
        }
    }

    /// Allows another try after a refusal, also of the same server: it may have learned of the
    /// server's limit, or need a new connection.
    fn allow_again(&mut self) {
        self.refusals = self.refusals.saturating_add(1);
        if self.refusals <= REFUSALS_MAX {
            self.attempt.allow_again();
            self.tries -= 1;
        }
        self.reused_was_closed |= self.refusals > 1;
    }

    /// Whether a server is fine although it refuses a request: it ends connections in good order,
    /// or has too many requests on one.
    fn server_works(&self, error: &CallError) -> bool {
        match error {
            CallError::Leaving => true,
            CallError::Refused => {
                self.server.as_ref().is_some_and(|server| server.attempt.is_reused.get())
            }
            _ => false,
        }
    }

    /// Takes an idle connection to the chosen server from the group's pool, or opens one.
    async fn connect(&self, x: &mut Exchange, timer: &Timer) -> Result<S::Connection, CallError> {
        let key = self.pool_key();
        let most = if self.reused_was_closed { 0 } else { OPENINGS_MAX };
        for _ in 0..most {
            if let Some(connection) = S::Connection::take(self.plan.group.pool(), &key) {
                return Ok(connection);
            }
            let wait = S::Connection::join_opening(self.plan.group.pool(), &key);
            let Some(wait) = wait else { break };
            x.action = CONNECTING;
            x.waits_for(TimedPhase::Connect);
            if !is_shared_in_time(wait, timer, self.plan.conf.connect_timeout.0).await {
                break;
            }
        }
        let opening = S::Connection::opening(self.plan.group.pool(), &key);
        x.action = CONNECTING;
        x.waits_for(TimedPhase::BackendTls);
        timer.set(self.plan.conf.connect_timeout.0);
        let transport = match &self.plan.tls {
            Some(secured) => {
                let protocols = S::Connection::PROTOCOLS;
                Some(connect::transport(x, secured, &key.to, protocols, timer).await?)
            }
            None => None,
        };
        let connecting = {
            let from = key.origin.as_ref().and_then(|origin| origin.from);
            let options = connect::connect_options(self.plan.conf, from, transport);
            connect::begin(x, &key.to, self.lease().name(), &options)?
        };
        timer.set(self.plan.conf.connect_timeout.0);
        let stream = connect::finish(x, connecting, self.plan.tls.as_ref(), timer).await?;
        Ok(S::Connection::begin(stream, self.plan.group.pool(), || self.pool_key(), opening))
    }

    fn pool_key(&self) -> PoolKey {
        PoolKey { to: self.lease().address().clone(), origin: self.origin.clone() }
    }

    fn lease(&self) -> &Lease {
        &self.server.as_ref().expect("one is chosen").lease
    }

    /// Rejects an interim status of a final reply: the client would wait for another reply. 101 is
    /// final if the client has requested an upgrade.
    fn check_final(
        x: &Exchange,
        answered: &Answered,
        reply: &(impl ReplyReader + ?Sized),
    ) -> Result<(), CallError> {
        let status = x.backends.head.status;
        let switches =
            || reply.switches() && answered.sent && x.request.field(Known::Upgrade).is_some();
        if status >= 200 || status == 101 && switches() {
            return Ok(());
        }
        x.log(Level::Error, format_args!("upstream sent unexpected status {status}"));
        Err(CallError::InvalidHeader)
    }

    /// Makes the server's reply the exchange's; `Err`: another server is tried.
    fn answer(
        &mut self,
        x: &mut Exchange,
        answered: Answered,
        carrier: &mut Option<S::Carrier>,
    ) -> Result<Flow, u16> {
        let conf = self.plan.conf;
        head::drop_duplicates(x);
        if let Some(cache) = &mut self.plan.cache {
            cache.read_head(x);
        }
        let status = x.backends.head.status;
        let BusyServer { attempt, lease, .. } = self.server();
        attempt.status.set(status);
        attempt.head_arrived();
        lease.reached(Until::FirstByte, attempt.age_ms());
        let reasons = NextUpstream::of_status(status);
        if reasons != 0 && self.may_try_another(x, reasons) && self.attempt.tries_left() > 0 {
            match status {
                403 | 404 => self.server().lease.succeeded(clock::now_ms()),
                _ => self.failed(x),
            }
            self.end_attempt();
            return Err(status);
        }
        let mut server = self.server.take().expect("it has answered");
        server.session = self.session.take();
        if let Some(session) = &mut server.session {
            session.take_head(x, server.lease.server());
        }
        server.sent = answered.sent;
        if let Some(flow) = self.answer_from_cache(x, status, reasons) {
            server.end_unread(carrier, self.plan.group.pool(), &answered);
            return Ok(flow);
        }
        if conf.intercept_errors && status >= 300 && answer::has_page(x, status) {
            if let Some(mut cache) = self.plan.cache.take() {
                cache.intercept(status);
            }
            server.end_unread(carrier, self.plan.group.pool(), &answered);
            return Ok(intercept(x, status));
        }
        let mut buffering = conf.buffering;
        let flow = head::apply_accel_fields(x, conf, self.plan.rewriter, &mut buffering);
        if let Some(flow) = flow {
            if let Some(mut cache) = self.plan.cache.take() {
                cache.leave_unstored(status);
            }
            server.end_unread(carrier, self.plan.group.pool(), &answered);
            return Ok(flow);
        }
        Ok(self.reply(x, server, carrier, answered, buffering))
    }

    fn reply(
        &mut self,
        x: &mut Exchange,
        server: BusyServer,
        carrier: &mut Option<S::Carrier>,
        answered: Answered,
        buffering: bool,
    ) -> Flow {
        let cache = self.plan.cache.take();
        let PassPlan { conf, policy, group, .. } = &*self.plan;
        if let Some(session) = &server.session {
            session.set_cookie(x);
        }
        let source = match cache.as_ref().is_some_and(|cache| cache.may_store()) {
            true => ReplySource::Whole,
            false => ReplySource::Backend,
        };
        head::copy(x, conf, self.plan.filter, self.plan.rewriter, source);
        x.reply.content_length = match answered.body {
            ReplyLength::Known(length) => Some(length),
            ReplyLength::None => head::announced_length(x),
            ReplyLength::Unknown => None,
        };
        if carrier.as_ref().is_some_and(|carrier| carrier.reply().switches()) {
            x.close_after(CloseReason::Switched);
            let connection = carrier.as_mut().and_then(BackendCarrier::take_connection);
            let Some(connection) = connection else { return Flow::Status(502) };
            return switch(x, Switched::new(server, connection, answered, conf));
        }
        let buffered_rate = buffering.then(|| self.rate(x));
        if !buffering {
            // As in nginx, a reply that is not buffered goes as fast as it comes.
            x.reply.limit_rate = Some(0);
        }
        let is_stored = buffering && answered.body != ReplyLength::None;
        let has_cache = cache.is_some();
        let cached = cache.and_then(|mut attempt| {
            let cached = match buffering {
                true => attempt.begin_store(x, &answered, &policy.temp_path),
                false => {
                    attempt.leave_unstored(x.backends.head.status);
                    None
                }
            };
            if cached.is_none() {
                conf.decide_client_abort(x);
            }
            cached
        });
        if has_cache {
            cache::add_to_forwarded(x);
        }
        let body = body::receive(x, server, carrier, answered, policy, group, buffered_rate);
        let stored = is_stored.then(|| StoredReply::begin(x, conf, &policy.temp_path)).flatten();
        x.reply.body = match (stored, cached) {
            (Some(stored), _) => fetch::keep(x, stored, body),
            (None, Some(cached)) => fetch::keep(x, cached, body),
            (None, None) => body,
        };
        Flow::Done
    }

    /// The rate at which the reply is read.
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

    /// Decides what follows when a server did not answer; `Ok`: another server is tried.
    fn after_error(&mut self, x: &mut Exchange, error: CallError) -> Result<(), Flow> {
        self.end_attempt();
        let server_works = self.server_works(&error);
        let (reason, status) = match error {
            CallError::Error | CallError::Refused | CallError::Leaving => {
                (NextUpstream::ERROR, 502)
            }
            CallError::Timeout => (NextUpstream::TIMEOUT, 504),
            CallError::InvalidHeader => (NextUpstream::INVALID_HEADER, 502),
            // The latter for nginx, which calls a stream that is reset an invalid header.
            CallError::Aborted => match self.plan.conf.next_upstream.has(NextUpstream::ERROR) {
                true => (NextUpstream::ERROR, 502),
                false => (NextUpstream::INVALID_HEADER, 502),
            },
            CallError::Internal => return Err(Flow::Status(500)),
            CallError::Client(error) => return Err(error.into_flow(x)),
        };
        self.server().attempt.status.set(status);
        if !server_works {
            self.failed(x);
        }
        if self.may_try_another(x, reason) && self.attempt.tries_left() > 0 {
            return Ok(());
        }
        Err(self.give_up(x, reason, status))
    }

    /// Ends without a reply of a server: with an expired reply if there is one.
    fn give_up(&mut self, x: &mut Exchange, reason: u16, status: u16) -> Flow {
        let Some(mut cache) = self.plan.cache.take() else { return Flow::Status(status) };
        let stale = cache.stale_after(x, self.plan.rules(), reason, true);
        let may_remember = stale.is_none() && matches!(status, 502 | 504);
        if !(may_remember && cache.remember_error(status, false)) {
            let was_sent = self.request_sent;
            cache.fail(FillFailure { status, reasons: reason, is_error: true, was_sent });
        }
        stale.unwrap_or(Flow::Status(status))
    }

    /// Answers with an expired reply, because the server has found it valid or sent an error.
    fn answer_from_cache(&mut self, x: &mut Exchange, status: u16, reasons: u16) -> Option<Flow> {
        let mut cache = self.plan.cache.take()?;
        let rules = self.plan.rules();
        let flow = match cache.is_revalidated_by(status) {
            true => return Some(cache.revalidated(x, rules)),
            false => cache.stale_after(x, rules, reasons, false),
        };
        match flow {
            None => self.plan.cache = Some(cache),
            Some(_) => {
                cache.fail(FillFailure { status, reasons, is_error: false, was_sent: true });
            }
        }
        flow
    }

    fn failed(&mut self, x: &Exchange) {
        if let Some(event) = self.server().lease.failed(clock::now_ms()) {
            x.log(Level::Warn, format_args!("{event}"));
        }
    }

    fn end_attempt(&mut self) {
        self.server().attempt.end();
    }

    /// Whether one of these reasons allows another server, and limits allow it too.
    fn may_try_another(&self, x: &Exchange, mut reasons: u16) -> bool {
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
        let streamed =
            self.request_sent && matches!(self.plan.body, BackendRequestBody::Streamed(_));
        conf.next_upstream.allows(reasons) && !too_late && !too_often && !streamed
    }
}

/// Whether the connection that another request opens can be shared within this time.
async fn is_shared_in_time(
    mut wait: impl Future<Output = bool> + Unpin,
    timer: &Timer,
    timeout_ms: u64,
) -> bool {
    timer.set(timeout_ms.min(OPENING_MS_MAX));
    poll_fn(|cx| match Pin::new(&mut wait).poll(cx) {
        Poll::Ready(is_shared) => Poll::Ready(is_shared),
        Poll::Pending => timer.poll(cx).map(|()| false),
    })
    .await
}

/// Makes the connection a tunnel.
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
