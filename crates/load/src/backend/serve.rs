//! Serves an HTTP/1 connection: a request is read and counted, takes its configured time, and is
//! answered.
//!
//! The client is not watched meanwhile, because few backends notice a disconnect, and a limiting
//! proxy should count a request as long as it is in progress here.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use wire::http1::framing::{BodyLength, RequestFraming};
use wire::http1::request::HeadError;
use wire::{Known, Method, Slice, Version};

use super::faults::{RequestEnd, RequestRandom};
use super::link::{BackendLink, EarlyEnd, ReplyPart};
use super::log::LogEntry;
use super::place::{RequestInProgress, ServedAddress};
use super::reply::{BackendReply, ReplyContents, RequestFormat};
use super::stats::Count;

/// The longest body to echo.
const ECHO_MAX: usize = 64 * 1024 * 1024;

/// Serves a connection to its end.
pub(super) async fn serve(fd: OwnedFd, place: Rc<ServedAddress>) {
    place.counts().add(Count::Accepted, 1);
    let mut connection =
        ServedConnection { link: BackendLink::new(fd), place, requests: 0, is_observer: false };
    if let Err(EarlyEnd::Refused(status)) = connection.run().await {
        let _ = connection.refuse(status).await;
    }
}

struct ServedConnection {
    link: BackendLink,
    place: Rc<ServedAddress>,
    requests: u64,
    /// Whether it only reads the counters, and is not counted.
    is_observer: bool,
}

/// A request whose head was received.
struct ReceivedHead {
    arrived: Instant,
    client: RequestFormat,
    is_head: bool,
    framing: RequestFraming,
    /// Method and target, if they are logged.
    line: String,
    /// The whole head, if it is sent back.
    head: Vec<u8>,
}

#[derive(Default)]
struct ReceivedBody {
    length: u64,
    /// Its bytes, if they are sent back.
    echoed: Option<Vec<u8>>,
}

impl ServedConnection {
    async fn run(&mut self) -> Result<(), EarlyEnd> {
        let mut goes_on = true;
        while goes_on && let Some(length) = self.read_head().await? {
            self.requests += 1;
            let path = self.link.head.path.of(self.link.input());
            goes_on = match path {
                b"/_stats" => self.send_counts(length, false).await?,
                b"/_stats/reset" => self.send_counts(length, true).await?,
                _ => {
                    let turn = RequestInProgress::begin(&self.place);
                    let protocol = self.requested_protocol();
                    let received_head = self.take_head(length)?;
                    match protocol {
                        Some(protocol) => self.switch(&received_head, &protocol, turn).await?,
                        None => self.answer(received_head, turn).await?,
                    }
                }
            };
        }
        Ok(())
    }

    async fn read_head(&mut self) -> Result<Option<usize>, EarlyEnd> {
        let head = self.link.read_head().await;
        if let Err(EarlyEnd::Refused(_)) = head {
            // It may have been a request.
            self.place.counts().add(Count::Requests, 1);
        }
        head
    }

    fn take_head(&mut self, length: usize) -> Result<ReceivedHead, HeadError> {
        let (head, input) = (&self.link.head, self.link.input());
        let framing = RequestFraming::of(head, input, false)?;
        let text = |part: Slice| String::from_utf8_lossy(part.of(input));
        let is_11 = head.version >= Version::HTTP_11;
        let received_head = ReceivedHead {
            arrived: Instant::now(),
            client: RequestFormat { is_11, keeps: framing.keep_alive },
            is_head: head.method == Method::Head,
            framing,
            line: match self.place.log {
                Some(_) => format!("{} {}", text(head.method_text), text(head.target)),
                None => String::new(),
            },
            head: match self.place.backend.settings.whoami {
                true => input[..length].to_vec(),
                false => Vec::new(),
            },
        };
        self.link.consume(length);
        Ok(received_head)
    }

    /// The protocol that the client wants to switch to, if `--upgrade` is set.
    fn requested_protocol(&self) -> Option<Vec<u8>> {
        let field = self.link.head.field(Known::Upgrade)?;
        let is_wanted = self.place.backend.settings.upgrade;
        is_wanted.then(|| field.value.of(self.link.input()).to_vec())
    }

    /// Switches protocols, and echoes input until the end; no request follows.
    async fn switch(
        &mut self,
        received_head: &ReceivedHead,
        protocol: &[u8],
        turn: RequestInProgress,
    ) -> Result<bool, EarlyEnd> {
        self.read_body(&received_head.framing).await?;
        let begun = self.now_if_logged();
        let lines = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ";
        let head = [lines, protocol, b"\r\n\r\n"].concat();
        drop(turn);
        self.link.write(&head).await?;
        let place = self.place.clone();
        let counts = place.counts();
        counts.add_status(101);
        counts.add(Count::Sent, head.len() as u64);
        self.note(received_head, begun, 101, head.len() as u64);
        let went = |bytes| {
            counts.add(Count::Received, bytes);
            counts.add(Count::Sent, bytes);
        };
        self.link.send_back(went).await?;
        Ok(false)
    }

    /// Answers a request. Returns whether the connection is kept.
    async fn answer(
        &mut self,
        mut received_head: ReceivedHead,
        mut turn: RequestInProgress,
    ) -> Result<bool, EarlyEnd> {
        let place = self.place.clone();
        let (backend, settings) = (&*place.backend, &place.backend.settings);
        if let Some(pause) = &settings.pause {
            pause.note(received_head.arrived);
        }
        let mut random = backend.random();
        let received = self.read_body(&received_head.framing).await?;
        let Ok(number) = turn.be_served().await else {
            self.note(&received_head, self.now_if_logged(), 0, 0);
            return Ok(false);
        };
        self.work(number, &mut random).await?;
        let outcome = settings.faults.outcome(&mut random);
        let own;
        let body = match settings.whoami {
            true => Some(whoami(std::mem::take(&mut received_head.head), received.length)),
            false => received.echoed,
        };
        let reply = match (outcome, body) {
            (RequestEnd::Error, _) => backend.error(received_head.client),
            (_, None) => backend.answer(received_head.client),
            (_, Some(body)) => {
                let content = ReplyContents { status: settings.status, ..ReplyContents::of(body) };
                own = BackendReply::new(&settings.apply_to(content), received_head.client);
                &own
            }
        };
        self.finish(&received_head, outcome, reply, turn).await
    }

    /// Reads a body to its end.
    async fn read_body(&mut self, framing: &RequestFraming) -> Result<ReceivedBody, EarlyEnd> {
        let echoed = self.place.backend.settings.echo.then(Vec::new);
        let mut received = ReceivedBody { length: 0, echoed };
        if framing.body == BodyLength::None {
            return Ok(received);
        }
        let counts = self.place.counts();
        let take = |part: &[u8]| {
            counts.add(Count::Received, part.len() as u64);
            received.length += part.len() as u64;
            if let Some(echoed) = &mut received.echoed {
                if echoed.len() + part.len() > ECHO_MAX {
                    return Err(EarlyEnd::Refused(413));
                }
                echoed.extend_from_slice(part);
            }
            Ok(())
        };
        self.link.read_body(framing, take).await?;
        Ok(received)
    }

    /// Spends the configured time.
    async fn work(&mut self, number: u64, random: &mut RequestRandom) -> Result<(), EarlyEnd> {
        let settings = &self.place.backend.settings;
        let time = settings.work.time(number, random) + settings.faults.delay(random);
        if !time.is_zero() {
            self.link.wait_until(Instant::now() + time).await?;
        }
        settings.work.spin();
        if let Some(end) = settings.pause.as_ref().and_then(|pause| pause.end(Instant::now())) {
            self.link.wait_until(end).await?;
        }
        Ok(())
    }

    /// Sends the reply, or the part of it that the outcome demands.
    async fn finish(
        &mut self,
        received_head: &ReceivedHead,
        outcome: RequestEnd,
        reply: &BackendReply,
        turn: RequestInProgress,
    ) -> Result<bool, EarlyEnd> {
        let begun = self.now_if_logged();
        let upto = match outcome {
            RequestEnd::Disconnect | RequestEnd::Reset => {
                if outcome == RequestEnd::Reset {
                    self.link.reset()?;
                }
                self.note(received_head, begun, 0, 0);
                return Ok(false);
            }
            RequestEnd::Cut => reply.middle(received_head.is_head),
            RequestEnd::Answer | RequestEnd::Error => reply.end(received_head.is_head),
        };
        let counts = self.place.counts();
        counts.add_status(reply.status);
        let mut sent = 0;
        let went = |bytes| {
            sent += bytes;
            counts.add(Count::Sent, bytes);
        };
        let trickle = self.place.backend.settings.trickle;
        let part = ReplyPart { upto, head: reply.end(true), trickle };
        let done = self.link.send(reply, part, || drop(turn), went).await;
        self.note(received_head, begun, reply.status, sent);
        done?;
        Ok(outcome != RequestEnd::Cut && !reply.closes)
    }

    /// Answers a request for the counters, which is not counted.
    async fn send_counts(&mut self, length: usize, resets: bool) -> Result<bool, EarlyEnd> {
        let received_head = self.take_head(length)?;
        if self.requests == 1 {
            self.is_observer = true;
            self.place.counts().take_back(Count::Accepted);
        }
        if resets {
            self.place.backend.reset();
        }
        let headers = vec!["Content-Type: application/json".to_owned()];
        let json = self.place.backend.stats.json().into_bytes();
        // A body of the request is not read.
        let keeps = received_head.client.keeps && received_head.framing.body == BodyLength::None;
        let reply = BackendReply::new(
            &ReplyContents { headers, ..ReplyContents::of(json) },
            RequestFormat { keeps, ..received_head.client },
        );
        let all = ReplyPart::at_once(reply.end(received_head.is_head));
        self.link.send(&reply, all, || (), |_| ()).await?;
        Ok(keeps)
    }

    /// Answers an invalid request.
    async fn refuse(&mut self, status: u16) -> Result<(), EarlyEnd> {
        let reply = BackendReply::new(
            &ReplyContents::status(status),
            RequestFormat { is_11: true, keeps: false },
        );
        let counts = self.place.counts();
        counts.add_status(status);
        self.link
            .send(
                &reply,
                ReplyPart::at_once(reply.length()),
                || (),
                |bytes| {
                    counts.add(Count::Sent, bytes);
                },
            )
            .await?;
        Ok(self.link.end().await?)
    }

    fn now_if_logged(&self) -> Option<Instant> {
        self.place.log.is_some().then(Instant::now)
    }

    fn note(&self, received_head: &ReceivedHead, begun: Option<Instant>, status: u16, bytes: u64) {
        if let (Some(log), Some(begun)) = (&self.place.log, begun) {
            let (arrived, written) = (received_head.arrived, Instant::now());
            let request = &*received_head.line;
            log.add(&LogEntry { arrived, begun, written, status, bytes, request });
        }
    }
}

/// A description of the request, to show what a proxy sent.
fn whoami(head: Vec<u8>, body: u64) -> Vec<u8> {
    let mut text = head;
    text.extend_from_slice(format!("body: {body} bytes\n").as_bytes());
    text
}

impl Drop for ServedConnection {
    fn drop(&mut self) {
        if !self.is_observer {
            self.place.counts().add(Count::Closed, 1);
        }
    }
}
