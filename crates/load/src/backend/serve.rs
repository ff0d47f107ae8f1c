//! A connection that speaks HTTP/1: a head is read, its body counted, the reply sent, and again.
//!
//! The other end is not watched while a request is served: few backends notice that nobody waits
//! any more, and what is in progress here is so for whoever limits it. A connection holds a buffer
//! only while there are bytes in it.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use net::{Alarm, Stream, buffers};
use wire::Method;
use wire::http1::framing::Framing;
use wire::http1::request::{HeadError, HeadLimits, Progress, RequestHead};
use wire::{Slice, Version};

use super::body::Rest;
use super::log::Line;
use super::misfortune::Fate;
use super::place::{Place, Turn};
use super::reply::{Client, Content, PIECES_MAX, Reply};
use super::stats::Count;

/// Bytes of a body that is sent back.
const ECHO_MAX: usize = 64 * 1024 * 1024;

/// Serves a connection to its end.
pub(super) async fn serve(fd: OwnedFd, place: Rc<Place>) {
    place.counts().add(Count::Accepted, 1);
    let mut connection = Connection::new(fd, place);
    if let Err(Failed::Refused(status)) = connection.run().await {
        let _ = connection.refuse(status).await;
    }
}

/// Why a connection ends early.
pub(super) enum Failed {
    /// The other end is gone.
    Gone,
    /// What it sent is not HTTP, or too much: the status says so.
    Refused(u16),
}

impl From<io::Error> for Failed {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<HeadError> for Failed {
    fn from(error: HeadError) -> Self {
        // nginx's own 494 says which of its pages is meant.
        Self::Refused(if error.status() == 494 { 431 } else { error.status() })
    }
}

struct Connection {
    stream: Stream,
    place: Rc<Place>,
    /// What has arrived, and how far it is used up.
    received: Vec<u8>,
    at: usize,
    head: RequestHead,
    /// The first time that something waits.
    alarm: Option<Alarm>,
    /// Requests so far.
    requests: u64,
    /// It only looks at the counts, and is in none.
    is_observer: bool,
}

/// A request whose head has arrived.
struct Asked {
    arrived: Instant,
    client: Client,
    is_head: bool,
    framing: Framing,
    /// Method and target, where they are logged.
    line: String,
}

/// What a head asks for.
enum Wish {
    Reply,
    Stats,
    Reset,
}

impl Connection {
    fn new(fd: OwnedFd, place: Rc<Place>) -> Self {
        let stream = Stream::new(fd);
        stream.set_nodelay();
        Self {
            stream,
            place,
            received: Vec::new(),
            at: 0,
            head: RequestHead::default(),
            alarm: None,
            requests: 0,
            is_observer: false,
        }
    }

    async fn run(&mut self) -> Result<(), Failed> {
        let mut goes_on = true;
        while goes_on && let Some(length) = self.read_head().await? {
            self.requests += 1;
            let wish = wish(self.head.path.of(&self.received[self.at..]));
            goes_on = match wish {
                Wish::Reply => {
                    let turn = Turn::begin(&self.place);
                    let asked = self.take_head(length)?;
                    self.answer(asked, turn).await?
                }
                Wish::Stats | Wish::Reset => self.tell(wish, length).await?,
            };
        }
        Ok(())
    }

    /// Waits for a head; how long it is, or `None` at the end of the connection.
    async fn read_head(&mut self) -> Result<Option<usize>, Failed> {
        self.head.reset();
        let limits = HeadLimits::default();
        loop {
            if self.at < self.received.len() {
                match self.head.parse(&self.received[self.at..], &limits) {
                    Ok(Progress::Complete { len }) => return Ok(Some(len)),
                    Ok(_) => {}
                    Err(error) => {
                        self.place.counts().add(Count::Requests, 1);
                        return Err(error.into());
                    }
                }
            }
            if self.read().await? == 0 {
                return Ok(None);
            }
        }
    }

    fn take_head(&mut self, length: usize) -> Result<Asked, HeadError> {
        let input = &self.received[self.at..][..length];
        let framing = Framing::of(&self.head, input, false)?;
        let text = |part: Slice| String::from_utf8_lossy(part.of(input));
        let asked = Asked {
            arrived: Instant::now(),
            client: Client {
                is_11: self.head.version >= Version::HTTP_11,
                keeps: framing.keep_alive,
            },
            is_head: self.head.method == Method::Head,
            framing,
            line: match self.place.log {
                Some(_) => format!("{} {}", text(self.head.method_text), text(self.head.target)),
                None => String::new(),
            },
        };
        self.at += length;
        Ok(asked)
    }

    /// Answers a request; whether the connection goes on.
    async fn answer(&mut self, asked: Asked, mut turn: Turn) -> Result<bool, Failed> {
        let place = self.place.clone();
        let (backend, settings) = (&*place.backend, &place.backend.settings);
        if let Some(pause) = &settings.pause {
            pause.note(asked.arrived);
        }
        let mut luck = backend.luck();
        let echoed = self.read_body(&asked.framing).await?;
        let Ok(number) = turn.be_served().await else {
            self.note(&asked, self.now_if_logged(), 0, 0);
            return Ok(false);
        };
        let time = settings.work.time(number, &mut luck) + settings.misfortunes.delay(&mut luck);
        if !time.is_zero() {
            self.wait_until(Instant::now() + time).await?;
        }
        spin(settings.work.spin);
        if let Some(pause) = &settings.pause
            && let Some(end) = pause.end(Instant::now())
        {
            self.wait_until(end).await?;
        }
        let fate = settings.misfortunes.fate(&mut luck);
        let own;
        let reply = match (fate, echoed) {
            (Fate::Error, _) => backend.error(asked.client),
            (_, Some(body)) => {
                let status = Content { status: settings.status, ..Content::of(body) };
                own = Reply::new(&settings.dress(status), asked.client);
                &own
            }
            (_, None) => backend.answer(asked.client),
        };
        self.finish(&asked, fate, reply, turn).await
    }

    /// Sends the reply, or as much of it as fate has it.
    async fn finish(
        &mut self,
        asked: &Asked,
        fate: Fate,
        reply: &Reply,
        turn: Turn,
    ) -> Result<bool, Failed> {
        let begun = self.now_if_logged();
        let upto = match fate {
            Fate::Answer | Fate::Error if asked.is_head => reply.head_length(),
            Fate::Answer | Fate::Error => reply.length(),
            Fate::Cut => reply.middle(),
            Fate::Disconnect | Fate::Reset => {
                if fate == Fate::Reset {
                    self.stream.reset_on_close()?;
                }
                self.note(asked, begun, 0, 0);
                return Ok(false);
            }
        };
        self.place.counts().add_status(reply.status);
        self.send(reply, upto, Some(turn), true).await?;
        self.note(asked, begun, reply.status, upto);
        Ok(fate != Fate::Cut && !reply.closes)
    }

    /// Reads a body to its end; its bytes, where they are sent back.
    async fn read_body(&mut self, framing: &Framing) -> Result<Option<Vec<u8>>, Failed> {
        let mut echoed = self.place.backend.settings.echo.then(Vec::new);
        let mut rest = Rest::of(framing.body);
        if framing.expects_continue && !rest.is_over() && self.at == self.received.len() {
            const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
            let pieces = [IoSlice::new(CONTINUE)];
            poll_fn(|cx| self.stream.poll_write(cx, &pieces)).await?;
        }
        while !rest.is_over() {
            if self.at == self.received.len() && self.read().await? == 0 {
                return Err(Failed::Gone);
            }
            let input = &self.received[self.at..];
            let (part, used) = rest.next(input).map_err(|_| Failed::Refused(400))?;
            self.place.counts().add(Count::Received, part.len() as u64);
            if let Some(echoed) = &mut echoed {
                if echoed.len() + part.len() > ECHO_MAX {
                    return Err(Failed::Refused(413));
                }
                echoed.extend_from_slice(&input[part]);
            }
            self.at += used;
        }
        Ok(echoed)
    }

    /// Answers a request about the counts, which is not among them.
    async fn tell(&mut self, wish: Wish, length: usize) -> Result<bool, Failed> {
        let asked = self.take_head(length)?;
        if self.requests == 1 {
            self.is_observer = true;
            self.place.counts().take_back(Count::Accepted);
        }
        let backend = self.place.backend.clone();
        if matches!(wish, Wish::Reset) {
            backend.reset();
        }
        let headers = vec!["Content-Type: application/json".to_owned()];
        let content = Content { headers, ..Content::of(backend.stats.json().into_bytes()) };
        // A body that came with it is not read.
        let keeps = asked.client.keeps && Rest::of(asked.framing.body).is_over();
        let reply = Reply::new(&content, Client { keeps, ..asked.client });
        self.send(&reply, reply.length(), None, false).await?;
        Ok(!reply.closes)
    }

    async fn refuse(&mut self, status: u16) -> Result<(), Failed> {
        let reply = Reply::new(&Content::status(status), Client { is_11: true, keeps: false });
        self.place.counts().add_status(status);
        self.send(&reply, reply.length(), None, true).await?;
        // What was not read would make the system reset the connection, and the reply may be lost.
        self.stream.shutdown_write()?;
        Ok(())
    }

    /// Writes a reply up to there. The request is over when the last of it is about to be written:
    /// the other end may send its next one before this one is told that it has been.
    async fn send(
        &mut self,
        reply: &Reply,
        upto: u64,
        mut turn: Option<Turn>,
        is_counted: bool,
    ) -> Result<(), Failed> {
        let mut at = 0;
        while at < upto {
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let (count, bytes) = reply.pieces(at..upto, &mut pieces);
            if at + bytes == upto {
                turn = None;
            }
            let write = |cx: &mut Context<'_>| self.stream.poll_write(cx, &pieces[..count]);
            let written = poll_fn(write).await? as u64;
            at += written;
            if is_counted {
                self.place.counts().add(Count::Sent, written);
            }
        }
        drop(turn);
        Ok(())
    }

    /// Reads more behind what is there; 0 is the end.
    async fn read(&mut self) -> io::Result<usize> {
        if self.at == self.received.len() {
            buffers::give_back(std::mem::take(&mut self.received));
            self.at = 0;
        }
        poll_fn(|cx| self.poll_read(cx)).await
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.received.is_empty() {
            self.received = buffers::lend();
        } else if self.received.len() == self.received.capacity() {
            self.received.drain(..self.at);
            self.at = 0;
            self.received
                .reserve(buffers::BUFFER_SIZE - self.received.len() % buffers::BUFFER_SIZE);
        }
        let read = self.stream.poll_read(cx, &mut self.received);
        if self.received.is_empty() {
            buffers::give_back(std::mem::take(&mut self.received));
        }
        read
    }

    async fn wait_until(&mut self, at: Instant) -> io::Result<()> {
        let alarm = match &mut self.alarm {
            Some(alarm) => alarm,
            none => {
                let alarm = Alarm::new().inspect_err(|error| {
                    eprintln!("weir: backend: timerfd_create(): {error}");
                })?;
                none.insert(alarm)
            }
        };
        alarm.wait_until(at).await;
        Ok(())
    }

    fn now_if_logged(&self) -> Option<Instant> {
        self.place.log.is_some().then(Instant::now)
    }

    fn note(&self, asked: &Asked, begun: Option<Instant>, status: u16, bytes: u64) {
        if let (Some(log), Some(begun)) = (&self.place.log, begun) {
            let (arrived, written) = (asked.arrived, Instant::now());
            log.add(&Line { arrived, begun, written, status, bytes, asked: &asked.line });
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.is_observer {
            self.place.counts().add(Count::Closed, 1);
        }
    }
}

fn wish(path: &[u8]) -> Wish {
    match path {
        b"/_stats" => Wish::Stats,
        b"/_stats/reset" => Wish::Reset,
        _ => Wish::Reply,
    }
}

/// Burns CPU: the loop of the document that asked for it.
fn spin(additions: u64) {
    let mut sum = 0u64;
    for number in 0..additions {
        sum = std::hint::black_box(sum.wrapping_add(number));
    }
}
