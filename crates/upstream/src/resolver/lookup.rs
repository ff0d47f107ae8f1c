//! One lookup: sends its questions until each has an answer.
//!
//! All unanswered questions go to one name server and, if no answer comes in time, to the next, in
//! turn. Responses to earlier queries still count. A name server that cannot be reached is skipped
//! at once, but each only once before the next round.

use std::net::IpAddr;
use std::rc::Rc;

use net::{Task, Timer, clock};
use wire::dns::{DnsAnswer, DnsQuestion, DomainName, Rcode, RecordData, RecordType, Response};

use super::cache::{CachedResult, Fact, Topic};
use super::flight::{Flight, LookupOutcome};
use super::inbox::{Inbox, InboxEvent};
use super::line::{PendingQuery, Query};
use super::servers::ServerRotation;
use super::tcp;

pub(super) struct NameLookup<'s> {
    rotation: &'s ServerRotation,
    asked: Vec<SentQuery>,
    inbox: Rc<Inbox>,
    /// The current name server, by its position in the list.
    server: usize,
    /// The question that was answered last.
    last: usize,
}

struct SentQuery {
    question: Rc<DnsQuestion>,
    /// By name server.
    queries: Vec<Option<Query>>,
    /// Set by a truncated response: from then on the question is sent over TCP.
    over_tcp: bool,
    exchange: Option<TcpExchange>,
    response: Option<Response>,
}

/// A question sent over TCP, until this is dropped.
struct TcpExchange(Task);

impl Drop for TcpExchange {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl<'s> NameLookup<'s> {
    pub(super) fn new(rotation: &'s ServerRotation, topic: Topic, name: &DomainName) -> Self {
        let settings = &rotation.settings;
        let kinds: &[RecordType] = match topic {
            Topic::Addresses if !settings.ipv6 => &[RecordType::A],
            Topic::Addresses if !settings.ipv4 => &[RecordType::Aaaa],
            Topic::Addresses => &[RecordType::A, RecordType::Aaaa],
            Topic::Services => &[RecordType::Srv],
            Topic::Pointer => &[RecordType::Ptr],
        };
        let asked = kinds.iter().map(|kind| SentQuery {
            question: Rc::new(DnsQuestion { name: name.clone(), kind: *kind }),
            queries: rotation.servers.iter().map(|_| None).collect(),
            over_tcp: false,
            exchange: None,
            response: None,
        });
        let (asked, server) = (asked.collect(), rotation.next_server());
        if let Some(counters) = rotation.counters() {
            counters.asked(topic);
        }
        Self { rotation, asked, inbox: Rc::default(), server, last: 0 }
    }

    /// The outcome; `None` once no waiter is left.
    pub(super) async fn run(mut self, flight: &Flight) -> Option<LookupOutcome> {
        let outcome = self.ask(flight).await;
        if let Some(counters) = self.rotation.counters() {
            counters.told(
                outcome.as_ref().map(|outcome| outcome.as_ref().map(drop).map_err(|rcode| *rcode)),
            );
        }
        outcome
    }

    async fn ask(&mut self, flight: &Flight) -> Option<LookupOutcome> {
        let resend = Timer::new();
        loop {
            self.send();
            resend.set(self.rotation.resend_ms);
            if self.take_in(&resend).await {
                return Some(self.outcome());
            }
            if !flight.is_awaited() {
                return None;
            }
            self.move_on();
        }
    }

    /// Receives until it is time to send again. Returns whether all questions are answered.
    async fn take_in(&mut self, resend: &Timer) -> bool {
        let mut passes_left = self.rotation.servers.len() - 1;
        let inbox = self.inbox.clone();
        while let Some(event) = resend.limit(inbox.next()).await {
            match event {
                InboxEvent::Response { question, server, response } => {
                    self.take(question, server, response);
                }
                InboxEvent::Lost { server } => {
                    self.forget_lost(server);
                    if server == self.server && passes_left > 0 {
                        passes_left -= 1;
                        self.move_on();
                        self.send();
                    }
                }
            }
            if self.asked.iter().all(|asked| asked.response.is_some()) {
                return true;
            }
        }
        false
    }

    fn take(&mut self, index: usize, server: usize, response: Response) {
        let asked = &mut self.asked[index];
        if asked.response.is_some() {
            return;
        }
        if response == Response::Truncated {
            if !asked.over_tcp {
                asked.over_tcp = true;
                self.exchange(index, server);
            }
            return;
        }
        asked.response = Some(response);
        asked.queries.iter_mut().for_each(|query| *query = None);
        asked.exchange = None;
        self.last = index;
    }

    fn move_on(&mut self) {
        self.server = self.rotation.after(self.server);
    }

    fn forget_lost(&mut self, server: usize) {
        for query in self.asked.iter_mut().map(|asked| &mut asked.queries[server]) {
            query.take_if(|query| query.is_lost());
        }
    }

    /// Sends unanswered questions; if that fails at once, to the next name server.
    fn send(&mut self) {
        if !self.send_to(self.server) {
            self.move_on();
            self.send_to(self.server);
        }
    }

    fn send_to(&mut self, server: usize) -> bool {
        let unanswered = |index: &usize| self.asked[*index].response.is_none();
        let indices: Vec<_> = (0..self.asked.len()).filter(unanswered).collect();
        indices.into_iter().all(|index| match self.asked[index].over_tcp {
            true => {
                self.exchange(index, server);
                true
            }
            false => self.datagram(index, server),
        })
    }

    fn datagram(&mut self, index: usize, server: usize) -> bool {
        let asked = &mut self.asked[index];
        let query = &mut asked.queries[server];
        if query.is_none() {
            let (question, inbox) = (asked.question.clone(), self.inbox.clone());
            *query = self.rotation.servers[server].query(PendingQuery {
                question,
                index,
                server,
                inbox,
            });
        }
        let sent = query.as_ref().is_some_and(|query| query.send(&asked.question));
        if !sent {
            *query = None;
        } else if let Some(counters) = self.rotation.counters() {
            counters.sent(asked.question.kind);
        }
        sent
    }

    fn exchange(&mut self, index: usize, server: usize) {
        let asked = &mut self.asked[index];
        let (question, inbox) = (asked.question.clone(), self.inbox.clone());
        let address = self.rotation.servers[server].address;
        asked.exchange = Some(TcpExchange(net::spawn(async move {
            inbox.put(match tcp::ask(address, &question).await {
                Some(response) => InboxEvent::Response { question: index, server, response },
                None => InboxEvent::Lost { server },
            });
        })));
    }

    /// As in nginx: a failure of any question is the outcome; then records count, whichever
    /// question they answer; an alias only if the last response had it.
    fn outcome(&self) -> LookupOutcome {
        let failed = |response: &Response| match response {
            Response::Failed(rcode) => Some(*rcode),
            _ => None,
        };
        let last = self.asked[self.last].response.as_ref();
        let mut responses = last.into_iter().chain(self.responses());
        if let Some(rcode) = responses.find_map(failed) {
            return Err(rcode);
        }
        let ttl_s = self.answers().filter(|answer| !answer.is_empty()).map(|answer| answer.ttl_s);
        let ttl_ms = u64::from(ttl_s.min().unwrap_or(0)) * 1000;
        let valid_ms = self.rotation.settings.valid_ms.unwrap_or(ttl_ms);
        let valid_until_ms = clock::now_ms().saturating_add(valid_ms);
        let found = found(self.answers().flat_map(|answer| &answer.records));
        let alias = || match last {
            Some(Response::Answer(answer)) => answer.alias.clone().map(CachedResult::Alias),
            _ => None,
        };
        let found = found.or_else(alias).ok_or(Rcode::NXDOMAIN)?;
        Ok(Rc::new(Fact { found, valid_until_ms }))
    }

    fn responses(&self) -> impl Iterator<Item = &Response> {
        self.asked.iter().filter_map(|asked| asked.response.as_ref())
    }

    fn answers(&self) -> impl Iterator<Item = &DnsAnswer> {
        self.responses().filter_map(|response| match response {
            Response::Answer(answer) => Some(answer),
            _ => None,
        })
    }
}

/// The result of records, which all have one type; `None` if there are none.
fn found<'r>(records: impl Iterator<Item = &'r RecordData>) -> Option<CachedResult> {
    let (mut v4, mut v6, mut services) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        match record {
            RecordData::Address(IpAddr::V4(ip)) => v4.push(*ip),
            RecordData::Address(IpAddr::V6(ip)) => v6.push(*ip),
            RecordData::Service(service) => services.push(service.clone()),
            RecordData::Pointer(name) => return Some(CachedResult::Pointer(name.clone())),
            // No topic asks for them.
            RecordData::NameServer(_) | RecordData::Text(_) => {}
        }
    }
    match services.is_empty() {
        false => Some(CachedResult::Services(services)),
        true if v4.is_empty() && v6.is_empty() => None,
        true => Some(CachedResult::Addresses(v4, v6)),
    }
}
