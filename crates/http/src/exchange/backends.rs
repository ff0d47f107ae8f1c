//! An exchange's requests to backends, for variables and log lines.
//!
//! The body of a reply outlives the handler and has no access to the exchange, so it shares this
//! record.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ::upstream::{Group, Server};
use session::backend::Attempts;
pub(crate) use session::backend::UpstreamAttempt;
use wire::reply::{ReplyField, ReplyHead, ReplyName};

use super::Fields;

/// The requests of an exchange to backends.
#[derive(Default)]
pub struct Backends {
    /// The servers tried, in order.
    pub(crate) attempts: Rc<Attempts>,
    /// The head of the last reply.
    pub(crate) head: ReplyHead,
    /// The bytes that `head` points into, as far as they were read.
    pub(crate) head_text: Vec<u8>,
    pub(crate) trailers: Rc<RefCell<Fields>>,
    /// Whether `clear` has anything to do.
    used: bool,
    /// The scheme in log lines: `http://`.
    pub(super) schema: &'static str,
    /// Memory for the head of a request.
    pub(crate) request: Vec<u8>,
    /// The URI that was sent to the server.
    pub(crate) uri: Vec<u8>,
    /// Whether a request is in progress.
    pub(crate) active: bool,
    /// The group of the last request, if it has a limit.
    pub(crate) limited: Option<Arc<Group>>,
    /// Whether log lines name the last server.
    pub(crate) named: bool,
    /// The request, for variables.
    pub(crate) request_to: RequestTo,
}

/// Properties of a request to a backend, for variables.
#[derive(Default)]
pub(crate) struct RequestTo {
    /// Whether there is a request to a backend.
    pub(crate) begun: bool,
    pub(crate) host: Vec<u8>,
    pub(crate) port: Vec<u8>,
    /// The length of its body, if known.
    pub(crate) length: Option<u64>,
    /// Whether its body is sent in chunks.
    pub(crate) chunked: bool,
}

impl RequestTo {
    pub(crate) fn name(&mut self, host: &[u8], port: &[u8]) {
        self.host.extend_from_slice(host);
        self.port.extend_from_slice(port);
    }
}

impl Backends {
    /// Clears the record, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        if !std::mem::take(&mut self.used) {
            return;
        }
        match Rc::get_mut(&mut self.attempts) {
            Some(attempts) => attempts.clear(),
            None => self.attempts = Rc::default(),
        }
        self.head.reset();
        self.head_text.clear();
        match Rc::get_mut(&mut self.trailers) {
            Some(trailers) => trailers.get_mut().clear(),
            // A stored reply is still being read: its trailers do not belong to the next request.
            None => self.trailers = Rc::default(),
        }
        self.uri.clear();
        self.schema = "";
        self.active = false;
        self.named = false;
        self.request_to.begun = false;
        self.limited = None;
    }

    /// Sets the scheme of the protocol in use.
    pub(crate) fn set_schema(&mut self, schema: &'static str) {
        (self.used, self.schema) = (true, schema);
    }

    /// Whether the backend is an HTTP server.
    pub(crate) fn are_http(&self) -> bool {
        self.schema.starts_with("http")
    }

    /// Begins a request in a protocol without host and path.
    pub(crate) fn begin_unnamed_request(&mut self, schema: &'static str) {
        self.begin_request();
        self.set_schema(schema);
        self.request_to.begun = false;
        self.uri.clear();
    }

    /// Begins a request whose backend is not known yet. Clears the last reply.
    pub(crate) fn begin_request(&mut self) {
        self.used = true;
        self.head.reset();
        self.head_text.clear();
        let to = &mut self.request_to;
        to.host.clear();
        to.port.clear();
        (to.begun, to.length, to.chunked) = (true, None, false);
        self.named = false;
    }

    /// Keeps the received part of a reply's head.
    pub(crate) fn note_head(&mut self, text: &[u8]) {
        self.head_text.clear();
        self.head_text.extend_from_slice(text);
    }

    pub(crate) fn shrink(&mut self) {
        self.head.fields.shrink_to_fit();
        self.head_text.shrink_to_fit();
        self.uri.shrink_to_fit();
        self.request = Vec::new();
    }

    /// The memory that it keeps, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let RequestTo { host, port, .. } = &self.request_to;
        let texts = [&self.head_text, &self.request, &self.uri, host, port];
        texts.map(Vec::capacity).iter().sum::<usize>()
            + self.head.fields.capacity() * size_of::<ReplyField>()
            + self.trailers.borrow().memory()
            + self.attempts.memory()
    }

    /// Begins an attempt; `Err` is the name of a group without an available server.
    pub(crate) fn begin(
        &mut self,
        server: Result<Arc<Server>, Box<[u8]>>,
        anew: bool,
    ) -> Rc<UpstreamAttempt> {
        self.used = true;
        let begun = self.attempts.begin(server, anew);
        self.active = true;
        self.named = true;
        begun
    }

    pub(crate) fn last(&self) -> Option<Rc<UpstreamAttempt>> {
        self.attempts.last()
    }

    /// The bytes that all servers have sent.
    pub(crate) fn bytes_received(&self) -> u64 {
        self.attempts.bytes_received()
    }

    /// Ends the attempt in progress, because the client has left. Whether there was one.
    pub(crate) fn abandon(&mut self) -> bool {
        let last = self.last().filter(|last| self.named && last.response_ms.get().is_none());
        if let Some(last) = &last {
            last.end();
        }
        last.is_some()
    }

    /// The `WWW-Authenticate` fields of the last reply: names and values.
    pub(crate) fn challenges(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let fields = self.head.fields.iter();
        fields
            .filter(|field| field.id == ReplyName::WwwAuthenticate)
            .map(|field| (field.name.of(&self.head_text), field.value.of(&self.head_text)))
    }
}
