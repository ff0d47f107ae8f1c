//! A client: one connection at a time, one turn after the other.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use net::{Address, Connect, Stream, Timer, buffers};

use super::failure::Failure;
use super::pace::{Seat, Turn};
use super::thread::Shared;
use crate::replies::{Found, HEAD_MAX, Replies, Reply};
use crate::script::ScriptError;
use crate::target::Scheme;

/// How long a client waits after it could not connect: a server that is down is not hammered, and
/// the client's CPU is not burnt.
pub(super) const CONNECT_PAUSE: Duration = Duration::from_millis(10);

/// Reads of a client before the others have their turn: a server may send without an end.
const READS_MAX: usize = 64;

pub(super) struct Client {
    shared: Rc<Shared>,
    seat: Rc<Seat>,
    address: Rc<Address>,
    connect: Connect,
    stream: Option<Stream>,
    timer: Timer,
    replies: Replies,
    /// Bytes received that belong to no complete reply yet.
    input: Vec<u8>,
    /// Requests that have been sent on this connection.
    asked: u64,
}

/// Why a turn was not taken to its end.
enum Trouble {
    /// It went wrong, and that cost so many requests.
    Failure(Failure, u64),
    /// The script did not say what to send.
    Script(ScriptError),
}

/// What a turn has come to so far.
struct Exchange {
    begun: Instant,
    output: Vec<u8>,
    written: usize,
    /// Whether others may be asked first: nobody answers at once.
    may_yield: bool,
    /// For every request whether its reply is a head alone; those answered are gone.
    to_head: VecDeque<bool>,
}

impl Client {
    /// The `number`th of all threads' clients.
    pub(super) fn new(shared: Rc<Shared>, address: Rc<Address>, number: u64) -> Self {
        let from = shared.plan.source(number).map(|ip| SocketAddr::new(ip, 0));
        Self {
            seat: shared.pace.seat(),
            address,
            connect: Connect { from, ..Connect::default() },
            stream: None,
            timer: Timer::new(),
            replies: Replies::default(),
            input: Vec::new(),
            asked: 0,
            shared,
        }
    }

    /// Takes turns until there are no more.
    pub(super) async fn run(mut self) {
        if self.shared.plan.per_connection.is_none() {
            self.set_timer();
            if let Err(failure) = self.open().await {
                self.fail(failure, 0).await;
            }
        }
        self.shared.pace.done();
        while let Some(turn) = self.turn().await {
            match self.take(turn).await {
                Ok(()) => {}
                Err(Trouble::Failure(failure, requests)) => self.fail(failure, requests).await,
                Err(Trouble::Script(error)) => return self.shared.halt(Err(error)),
            }
            self.shared.pace.done();
        }
    }

    /// Waits for a turn. A connection that the server closes meanwhile is opened anew when it is
    /// needed, as any client would.
    async fn turn(&mut self) -> Option<Turn> {
        poll_fn(|cx| {
            if let Poll::Ready(turn) = self.shared.pace.poll_turn(&self.seat, cx) {
                return Poll::Ready(turn);
            }
            if self.stream.as_mut().is_some_and(|stream| stream.poll_disturbed(cx).is_ready()) {
                self.close();
            }
            Poll::Pending
        })
        .await
    }

    /// A turn: its requests are sent, and their replies counted.
    async fn take(&mut self, turn: Turn) -> Result<(), Trouble> {
        self.pause().await?;
        self.set_timer();
        let mut begun = turn.intended.unwrap_or_else(Instant::now);
        if self.stream.is_none() {
            self.reopen().await.map_err(|failure| Trouble::Failure(failure, turn.requests))?;
            // Connections that stay open are opened aside, as wrk does.
            if turn.intended.is_none() && self.shared.plan.per_connection.is_none() {
                begun = Instant::now();
            }
        }
        if turn.intended.is_some() && turn.in_time {
            self.shared.is_late(begun.elapsed());
        }
        let mut exchange = self.begin(begun, turn.requests).map_err(Trouble::Script)?;
        let result = poll_fn(|cx| self.poll_exchange(&mut exchange, cx)).await;
        buffers::give_back(std::mem::take(&mut exchange.output));
        // What comes after the last reply, asked for by nobody, is a failure of its own.
        let lost = exchange.to_head.len().max(1) as u64;
        result.map_err(|failure| Trouble::Failure(failure, lost))?;
        self.asked += turn.requests;
        if self.shared.plan.per_connection.is_some_and(|most| self.asked >= most) {
            self.close();
        }
        Ok(())
    }

    /// As long as the script says.
    async fn pause(&self) -> Result<(), Trouble> {
        if let Some(script) = &self.shared.script {
            let delay = script.delay().map_err(Trouble::Script)?;
            if !delay.is_zero() {
                net::sleep(delay).await;
            }
        }
        Ok(())
    }

    async fn reopen(&mut self) -> Result<(), Failure> {
        match self.shared.plan.per_connection {
            None => self.open().await,
            Some(_) => self.open_as_it_sends(),
        }
    }

    async fn open(&mut self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::of_connect(&error);
        let begun = self.connect.begin(&self.address);
        let mut connecting = begun.map_err(|(_, error)| failed(error))?;
        let connected = poll_fn(|cx| {
            if let Poll::Ready(connected) = connecting.poll(cx) {
                return Poll::Ready(connected.map_err(failed));
            }
            self.timer.poll(cx).map(|()| Err(Failure::Timeout))
        });
        let stream = connected.await?;
        stream.set_nodelay();
        self.stream = Some(stream);
        Ok(())
    }

    /// Opens a connection for a few requests: the first of them finds out whether it stands.
    fn open_as_it_sends(&mut self) -> Result<(), Failure> {
        let begun = self.connect.begin_stream(&self.address);
        self.stream = Some(begun.map_err(|(_, error)| Failure::of_connect(&error))?);
        Ok(())
    }

    /// Counts what went wrong. Without a server the client pauses.
    async fn fail(&mut self, failure: Failure, requests: u64) {
        self.close();
        failure.count(requests, &mut self.shared.tally.borrow_mut().errors);
        if failure.is_of_connect() {
            net::sleep(CONNECT_PAUSE).await;
        }
    }

    fn close(&mut self) {
        self.stream = None;
        self.asked = 0;
        self.replies.reset();
        buffers::give_back(std::mem::take(&mut self.input));
    }

    fn set_timer(&self) {
        self.timer.set(self.shared.plan.timeout_ms());
    }

    fn begin(&mut self, begun: Instant, requests: u64) -> Result<Exchange, ScriptError> {
        let mut exchange = Exchange {
            begun,
            output: buffers::lend(),
            written: 0,
            may_yield: self.asked == 0,
            to_head: VecDeque::new(),
        };
        if let Some(script) = &self.shared.script {
            if script.fill(&mut exchange.output)? {
                self.shared.halt(Ok(()));
            }
            self.replies.listen(script.listens());
            let to_head = exchange.output.starts_with(b"HEAD ");
            exchange.to_head.extend((0..script.at_once()).map(|_| to_head));
            return Ok(exchange);
        }
        for _ in 0..requests {
            let request = self.shared.next_request();
            exchange.output.extend_from_slice(&request.bytes);
            exchange.to_head.push_back(request.to_head);
            if self.shared.plan.scheme == Scheme::Tcp {
                self.replies.expect_echo(request.bytes.len());
            }
        }
        Ok(exchange)
    }

    /// Writes and reads at once: a server may answer before it has read everything.
    fn poll_exchange(
        &mut self,
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Failure>> {
        let mut unwritable = None;
        while exchange.written < exchange.output.len() {
            let Some(stream) = &mut self.stream else { return Poll::Ready(Err(Failure::Closed)) };
            match stream.poll_write(cx, &[IoSlice::new(&exchange.output[exchange.written..])]) {
                Poll::Ready(Ok(written)) => exchange.written += written,
                Poll::Ready(Err(error)) => {
                    // What the server had to say is read first.
                    let is_new = self.asked == 0 && exchange.written == 0;
                    let failure = if is_new { Failure::of_connect } else { Failure::of_write };
                    unwritable = Some(failure(&error));
                    break;
                }
                Poll::Pending => break,
            }
        }
        // The kernel is asked for the reply once the others have sent, too: then it may be there,
        // and a connection for one request never enters an epoll set.
        if std::mem::take(&mut exchange.may_yield) && unwritable.is_none() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match (self.poll_replies(exchange, cx), unwritable) {
            // The kernel tells only once how a connection has ended: to the write.
            (Poll::Ready(Err(Failure::Closed | Failure::Reset)) | Poll::Pending, Some(failure)) => {
                Poll::Ready(Err(failure))
            }
            (Poll::Ready(done), _) => Poll::Ready(done),
            (Poll::Pending, None) => self.timer.poll(cx).map(|()| Err(Failure::Timeout)),
        }
    }

    /// Reads until every request has its reply.
    fn poll_replies(
        &mut self,
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Failure>> {
        for _ in 0..READS_MAX {
            let read = ready!(self.poll_read(cx))?;
            if read == 0 {
                return Poll::Ready(self.end(exchange));
            }
            if self.look(exchange)? {
                return Poll::Ready(Ok(()));
            }
        }
        // The others have their turn, and so has the clock.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Failure>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(Err(Failure::Closed)) };
        if self.input.capacity() == 0 {
            self.input = buffers::lend();
        }
        if self.input.len() == self.input.capacity() {
            self.input.reserve(HEAD_MAX);
        }
        match stream.poll_read(cx, &mut self.input) {
            Poll::Pending => {
                if self.input.is_empty() {
                    buffers::give_back(std::mem::take(&mut self.input));
                }
                Poll::Pending
            }
            Poll::Ready(read) => {
                let read = read.map_err(|_| Failure::Reset)?;
                self.shared.tally.borrow_mut().bytes += read as u64;
                Poll::Ready(Ok(read))
            }
        }
    }

    /// Looks for replies in what has come. Whether all are there.
    fn look(&mut self, exchange: &mut Exchange) -> Result<bool, Failure> {
        let now = Instant::now();
        let (mut at, mut keep) = (0, true);
        while let Some(&to_head) = exchange.to_head.front() {
            if at == self.input.len() && at > 0 {
                break;
            }
            match self.replies.take(&self.input[at..], to_head) {
                Err(_) => return Err(Failure::Invalid),
                Ok(Found::More(taken)) => {
                    at += taken;
                    break;
                }
                Ok(Found::Reply(taken, reply)) => {
                    at += taken;
                    self.count(exchange, reply, now);
                    keep = reply.keep;
                    if !keep {
                        break;
                    }
                }
            }
        }
        self.input.drain(..at);
        let is_complete = exchange.to_head.is_empty();
        if is_complete && (!keep || exchange.written < exchange.output.len()) {
            self.close();
        } else if !keep {
            return Err(Failure::Closed);
        } else if is_complete && !self.input.is_empty() {
            // What nobody asked for.
            return Err(Failure::Invalid);
        }
        Ok(is_complete)
    }

    /// The server has closed the connection.
    fn end(&mut self, exchange: &mut Exchange) -> Result<(), Failure> {
        let Some(reply) = self.replies.end() else {
            let is_within = self.replies.is_within(self.input.len());
            return Err(if is_within { Failure::Short } else { Failure::Closed });
        };
        self.count(exchange, reply, Instant::now());
        self.close();
        if exchange.to_head.is_empty() { Ok(()) } else { Err(Failure::Closed) }
    }

    fn count(&self, exchange: &mut Exchange, reply: Reply, now: Instant) {
        exchange.to_head.pop_front();
        self.shared.replied(reply.status, exchange.begun, now);
        if let (Some(script), Some(heard)) = (&self.shared.script, self.replies.heard()) {
            match script.hear(reply.status, heard) {
                Ok(false) => {}
                Ok(true) => self.shared.halt(Ok(())),
                Err(error) => self.shared.halt(Err(error)),
            }
        }
    }
}
