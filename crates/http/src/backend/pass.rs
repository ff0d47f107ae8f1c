//! One server after another, until one answers or none is left.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use ::upstream::{Ask, Attempt, Choice, Group, Lease};
use conf::{SizeTemplate, units};
use net::{Connect, Timer, clock};
use observe::{Level, Text};
use wire::Known;
use wire::http1::response::{ReplyBody, ReplyName};

use super::Conf;
use super::ask::{Answered, Asking, ClientTrouble, Request, Trouble};
use super::body::{self, Held, Manner, Rules};
use super::bound::{self, Bound};
use super::connect::{self, Connected};
use super::head::{self, Passed, Rewrite};
use super::outgoing::Body;
use super::queue::{Queue, Queued};
use super::store;
use super::tunnel::Switched;
use super::values::NextUpstream;
use crate::answer;
use crate::exchange::{CloseReason, Exchange, Flow, Kept};
use crate::exchange::{Named, Try};
use crate::rate::Rate;

/// What a request to a backend consists of.
pub(crate) struct Plan<'a> {
    pub(crate) conf: &'a Conf,
    pub(crate) passed: &'a Passed,
    pub(crate) rules: &'a Arc<Rules>,
    pub(crate) rewrite: &'a dyn Rewrite,
    pub(crate) group: &'a Arc<Group>,
    pub(crate) head: Vec<u8>,
    /// What is sent instead of the request's body.
    pub(crate) set_body: Option<Vec<u8>>,
    pub(crate) to_head: bool,
    /// How long the body is, as far as the head says.
    pub(crate) announced: Option<u64>,
    /// Whether the body is sent as it comes; `Some(true)`: in chunks.
    pub(crate) streams: Option<bool>,
}

/// Passes the exchange on.
///
/// Not an `async fn`: its future would have room for the plan twice, as an argument and inside.
pub(crate) fn pass(x: &mut Exchange, plan: Plan<'_>) -> impl Future<Output = Flow> {
    let mut passing = Passing::new(x, plan);
    async move {
        let Some(passing) = &mut passing else { return Flow::Status(500) };
        let flow = passing.run(x).await;
        x.backends.active = false;
        x.backends.request = std::mem::take(&mut passing.plan.head);
        flow
    }
}

struct Passing<'a> {
    plan: Plan<'a>,
    bound: Bound,
    manner: Connect,
    attempt: Attempt,
    /// How many servers have been asked.
    tries: u64,
    begun_ms: u64,
    is_first: bool,
    /// Whether a server has been sent any of the request, or the client's body taken for it.
    request_sent: bool,
    /// Whether a kept connection turned out closed.
    had_stale: bool,
}

impl<'a> Passing<'a> {
    /// `None`, with a line in the log: there is no way to connect to anybody.
    fn new(x: &mut Exchange, plan: Plan<'a>) -> Option<Self> {
        let manner = connect::manner(plan.conf, x).ok()?;
        let bound = Bound::of(x, plan.group);
        x.backends.limited = plan.group.limit().map(|_| plan.group.clone());
        Some(Self {
            plan,
            bound,
            manner,
            attempt: Attempt::default(),
            tries: 0,
            begun_ms: clock::now_ms(),
            is_first: true,
            request_sent: false,
            had_stale: false,
        })
    }

    async fn run(&mut self, x: &mut Exchange) -> Flow {
        loop {
            let (mut lease, waited_ms) = match self.choose(x).await {
                Ok(chosen) => chosen,
                Err(flow) => return flow,
            };
            let anew = std::mem::take(&mut self.is_first);
            let asked = x.backends.begin(Named::Server(lease.server().clone()), anew);
            asked.queue_ms.set(waited_ms);
            let trouble = match self.ask(x, &mut lease, &asked).await {
                Ok((connected, answered)) => {
                    match self.answer(x, lease, &asked, connected, answered) {
                        Ok(flow) => return flow,
                        Err(status) => {
                            asked.end();
                            x.debug(format_args!("http next upstream, {status}"));
                            continue;
                        }
                    }
                }
                Err(trouble) => trouble,
            };
            asked.end();
            if let Err(flow) = self.after(x, &mut lease, &asked, trouble) {
                return flow;
            }
        }
    }

    /// The server to ask, and how long it was waited for.
    async fn choose(&mut self, x: &mut Exchange) -> Result<(Lease, Option<u64>), Flow> {
        let group = self.plan.group;
        let mut queue: Option<Queue<'_>> = None;
        let waited_ms = |queue: &Option<Queue<'_>>| queue.as_ref().map(Queue::waited_ms);
        let lease = loop {
            let limit = match self.choose_now(x) {
                Choice::Server(lease) => break lease,
                Choice::Busy => group.limit(),
                Choice::None => None,
            };
            let queued = match limit {
                None => Queued::NoServer,
                Some(limit) => {
                    let queue = queue
                        .get_or_insert_with(|| Queue::new(limit, self.plan.conf.read_timeout.0));
                    queue.wait(x, group, &mut self.attempt).await
                }
            };
            match queued {
                Queued::Server(lease) => break lease,
                Queued::Again => {}
                Queued::Refused(status) => {
                    self.without_server(x, status, waited_ms(&queue));
                    // As any other: it is not the client that was too slow.
                    return Err(answer::with_status(x, status));
                }
                Queued::NoServer => {
                    self.without_server(x, 502, waited_ms(&queue));
                    x.log(Level::Error, format_args!("no live upstreams"));
                    return Err(Flow::Status(502));
                }
            }
        };
        self.tries += 1;
        self.bound.choose(x, group, lease.server());
        Ok((lease, waited_ms(&queue)))
    }

    fn choose_now(&mut self, x: &mut Exchange) -> Choice {
        let client = bound::client_address(x);
        let key = self.plan.group.key().map(|template| x.render(template)).unwrap_or_default();
        let ask = Ask {
            client: client.bytes(),
            key: &key,
            sticky: self.bound.id(),
            now_ms: clock::now_ms(),
        };
        self.plan.group.choose(&mut self.attempt, &ask)
    }

    /// There is no server to ask.
    fn without_server(&mut self, x: &mut Exchange, status: u16, waited_ms: Option<u64>) {
        let anew = std::mem::take(&mut self.is_first);
        let asked = x.backends.begin(Named::Group(self.plan.group.name().into()), anew);
        asked.status.set(status);
        asked.queue_ms.set(waited_ms);
        asked.end();
        x.action = "connecting to upstream";
    }

    /// Asks one server.
    async fn ask(
        &mut self,
        x: &mut Exchange,
        lease: &mut Lease,
        asked: &Rc<Try>,
    ) -> Result<(Connected, Answered), Trouble> {
        let timer = Timer::new();
        let conf = self.plan.conf;
        let mut connected = connect::connect(
            x,
            (!self.had_stale).then_some(self.plan.group),
            lease,
            &self.manner,
            conf.connect_timeout.0,
            &timer,
        )
        .await?;
        asked.connect_ms.set(Some(asked.age_ms()));
        connected.connection.requests += 1;
        x.backends.head.reset();
        let mut body = self.body(x);
        let Plan { head, to_head, announced, passed, .. } = &self.plan;
        let (to_head, announced) = (*to_head, *announced);
        let request = Request { conf, passed, asked, head, to_head, announced };
        let mut asking = Asking::new(request, &mut connected.connection, &timer, &mut body);
        let answered = poll_fn(|cx| asking.poll(cx, x)).await;
        asked.bytes_sent.set(asking.written());
        self.request_sent |= asking.has_begun();
        drop(asking);
        let is_silent = asked.bytes_received.get() == 0;
        if connected.reused && is_silent && matches!(answered, Err(Trouble::Error)) {
            // That a kept connection was closed meanwhile says little of its server. The next one
            // is new: a request that servers fail at must not use up all that are kept.
            self.had_stale = true;
            self.attempt.allow_another();
            self.tries -= 1;
        }
        Ok((connected, answered?))
    }

    fn body(&self, x: &Exchange) -> Body {
        match (&self.plan.set_body, self.plan.streams) {
            (Some(bytes), _) => Body::Made(bytes.clone()),
            (None, _) if !self.plan.conf.pass_request_body => Body::None,
            (None, Some(chunked)) => Body::Streamed { chunked },
            (None, None) => match x.request.body.kept() {
                Some(Kept::Memory(_)) => Body::Kept,
                Some(Kept::File(file)) => Body::File(file.slice()),
                None => Body::None,
            },
        }
    }

    /// Makes the server's answer the exchange's; `Err`: another server is asked.
    fn answer(
        &mut self,
        x: &mut Exchange,
        mut lease: Lease,
        asked: &Rc<Try>,
        connected: Connected,
        answered: Answered,
    ) -> Result<Flow, u16> {
        let conf = self.plan.conf;
        head::drop_duplicates(x);
        let status = x.backends.head.status;
        asked.status.set(status);
        asked.header_ms.set(Some(asked.age_ms()));
        lease.header_time(asked.age_ms());
        let reasons = NextUpstream::of_status(status);
        if reasons != 0 && self.may_go_on(x, reasons) && self.attempt.tries_left() > 0 {
            match status {
                403 | 404 => lease.succeeded(clock::now_ms()),
                _ => self.failed(x, &mut lease),
            }
            return Err(status);
        }
        let session = self.bound.learn(x, self.plan.group, lease.server());
        let held = Held {
            session,
            keepalive: answered.sent
                && status != 101
                && !x.backends.head.closes(&x.backends.head_text),
            connection: connected.connection,
            lease,
            group: self.plan.group.clone(),
            from: self.manner.from,
            asked: asked.clone(),
        };
        if conf.intercept_errors && status >= 300 && answer::has_page(x, status) {
            held.end_unread(&answered);
            return Ok(intercept(x, status));
        }
        let mut buffering = conf.buffering;
        if let Some(flow) = head::obey(x, conf, self.plan.rewrite, &mut buffering) {
            held.end_unread(&answered);
            return Ok(flow);
        }
        Ok(self.reply(x, held, answered, buffering))
    }

    /// Makes the reply of it.
    fn reply(&self, x: &mut Exchange, held: Held, answered: Answered, buffering: bool) -> Flow {
        let (conf, status) = (self.plan.conf, x.backends.head.status);
        self.bound.tell(x);
        head::copy(x, conf, self.plan.passed, self.plan.rewrite);
        x.reply.content_length = match answered.body {
            ReplyBody::Length(length) => Some(length),
            ReplyBody::None => head_length(x),
            ReplyBody::Chunked | ReplyBody::Close => None,
        };
        if status == 101 {
            x.close_after(CloseReason::Switched);
        }
        if status == 101 && answered.sent && x.request.field(Known::Upgrade).is_some() {
            return switch(x, held, answered, conf);
        }
        let rate = match buffering {
            true => self.rate(x),
            false => {
                // So nginx has it: what is not buffered goes as fast as it comes.
                x.reply.limit_rate = Some(0);
                Rate::default()
            }
        };
        let manner = Manner { rules: self.plan.rules, buffering, rate };
        let body = body::receive(x, held, answered, manner);
        x.reply.body = match buffering && !self.plan.to_head {
            true => store::store(x, conf, &self.plan.rules.temp_path, body),
            false => body,
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
    fn after(
        &mut self,
        x: &mut Exchange,
        lease: &mut Lease,
        asked: &Rc<Try>,
        trouble: Trouble,
    ) -> Result<(), Flow> {
        let (reason, status) = match trouble {
            Trouble::Error => (NextUpstream::ERROR, 502),
            Trouble::Timeout => (NextUpstream::TIMEOUT, 504),
            Trouble::InvalidHeader => (NextUpstream::INVALID_HEADER, 502),
            Trouble::Internal => return Err(Flow::Status(500)),
            Trouble::Client(ClientTrouble(flow)) => return Err(flow),
        };
        asked.status.set(status);
        self.failed(x, lease);
        if self.may_go_on(x, reason) && self.attempt.tries_left() > 0 {
            return Ok(());
        }
        Err(Flow::Status(status))
    }

    fn failed(&self, x: &Exchange, lease: &mut Lease) {
        if let Some(event) = lease.failed(clock::now_ms()) {
            x.log(Level::Warn, format_args!("{event}"));
        }
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
        let too_often = tries_max > 0 && self.tries >= tries_max;
        let streamed = self.request_sent && self.plan.streams.is_some();
        conf.next_upstream.allows(reasons) && !too_late && !too_often && !streamed
    }
}

/// The connection speaks another protocol from now on.
fn switch(x: &mut Exchange, held: Held, answered: Answered, conf: &Conf) -> Flow {
    if x.is_subrequest() {
        x.log(Level::Error, format_args!("connection upgrade in subrequest"));
        return Flow::Drop(0);
    }
    x.action = "proxying upgraded connection";
    x.reply.tunnel = Some(Box::new(Switched::new(held, answered, conf)));
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
