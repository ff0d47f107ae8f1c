//! What is known of the servers that an exchange has asked: for variables, and for log lines.
//!
//! The body of a reply outlives the handler that asked for it and knows no exchange, so the record
//! is shared with it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ::upstream::Group;
use session::backend::Attempts;
pub(crate) use session::backend::{AskedBackend, UpstreamAttempt};
use wire::reply::{ReplyField, ReplyHead, ReplyName};

use super::Fields;

/// What an exchange knows of its backends.
#[derive(Default)]
pub struct Backends {
    /// The servers asked, in order.
    pub(crate) asked: Rc<Attempts>,
    /// The head of the last reply, and its bytes.
    pub(crate) head: ReplyHead,
    /// The bytes that `head` points into, however much of it was read.
    pub(crate) head_text: Vec<u8>,
    /// The fields after its body.
    pub(crate) trailers: Rc<RefCell<Fields>>,
    /// Whether anything is to be forgotten.
    used: bool,
    /// The protocol's name as it stands in log lines: `http://`.
    pub(super) schema: &'static str,
    /// Memory for the head of a request.
    pub(crate) request: Vec<u8>,
    /// The request's URI as the server was asked for it.
    pub(crate) uri: Vec<u8>,
    /// Whether a server is being asked now.
    pub(crate) active: bool,
    /// The group that was passed on to last, if it has a limit.
    pub(crate) limited: Option<Arc<Group>>,
    /// Whether log lines name the server that was asked last.
    pub(crate) named: bool,
    /// What is asked for, as variables tell.
    pub(crate) request_to: RequestTo,
}

/// A request to a backend, as variables tell.
#[derive(Default)]
pub(crate) struct RequestTo {
    /// Whether there is one.
    pub(crate) begun: bool,
    pub(crate) host: Vec<u8>,
    pub(crate) port: Vec<u8>,
    /// How long its body is, if that is known.
    pub(crate) length: Option<u64>,
    /// Whether its body is sent in chunks.
    pub(crate) chunked: bool,
}

impl RequestTo {
    /// The backend is known.
    pub(crate) fn name(&mut self, host: &[u8], port: &[u8]) {
        self.host.extend_from_slice(host);
        self.port.extend_from_slice(port);
    }
}

impl Backends {
    /// Forgets everything, keeping the memory.
    pub(crate) fn clear(&mut self) {
        if !std::mem::take(&mut self.used) {
            return;
        }
        match Rc::get_mut(&mut self.asked) {
            Some(asked) => asked.clear(),
            None => self.asked = Rc::default(),
        }
        self.head.reset();
        self.head_text.clear();
        match Rc::get_mut(&mut self.trailers) {
            Some(trailers) => trailers.get_mut().clear(),
            // A reply that is stored is read on, and its trailers are not the next request's.
            None => self.trailers = Rc::default(),
        }
        self.uri.clear();
        self.schema = "";
        self.active = false;
        self.named = false;
        self.request_to.begun = false;
        self.limited = None;
    }

    /// Requests are sent in a protocol whose addresses begin with that from now on.
    pub(crate) fn set_schema(&mut self, schema: &'static str) {
        (self.used, self.schema) = (true, schema);
    }

    /// Whether they speak HTTP.
    pub(crate) fn are_http(&self) -> bool {
        self.schema.starts_with("http")
    }

    /// The same in a protocol that names neither host nor path.
    pub(crate) fn begin_unnamed_request(&mut self, schema: &'static str) {
        self.begin_request();
        self.set_schema(schema);
        self.request_to.begun = false;
        self.uri.clear();
    }

    /// A request to a backend is made, but it is not known to which. What an earlier one answered
    /// is over.
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

    /// Keeps what has come of a reply's head.
    pub(crate) fn note_head(&mut self, text: &[u8]) {
        self.head_text.clear();
        self.head_text.extend_from_slice(text);
    }

    /// Gives back the memory that it does not use.
    pub(crate) fn shrink(&mut self) {
        self.head.fields.shrink_to_fit();
        self.head_text.shrink_to_fit();
        self.uri.shrink_to_fit();
        self.request = Vec::new();
    }

    /// How much memory it keeps.
    pub(crate) fn memory(&self) -> usize {
        let RequestTo { host, port, .. } = &self.request_to;
        let texts = [&self.head_text, &self.request, &self.uri, host, port];
        texts.map(Vec::capacity).iter().sum::<usize>()
            + self.head.fields.capacity() * size_of::<ReplyField>()
            + self.trailers.borrow().memory()
            + self.asked.memory()
    }

    /// A server is asked.
    pub(crate) fn begin(&mut self, server: AskedBackend, anew: bool) -> Rc<UpstreamAttempt> {
        self.used = true;
        let begun = self.asked.begin(server, anew);
        self.active = true;
        self.named = true;
        begun
    }

    /// The server asked last.
    pub(crate) fn last(&self) -> Option<Rc<UpstreamAttempt>> {
        self.asked.last()
    }

    /// Ends what is under way, since the client has gone. Whether there was anything.
    pub(crate) fn abandon(&mut self) -> bool {
        let last = self.last().filter(|last| self.named && last.response_ms.get().is_none());
        if let Some(last) = &last {
            last.end();
        }
        last.is_some()
    }

    /// The fields by which the last reply asks for a password: names and values.
    pub(crate) fn challenges(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let fields = self.head.fields.iter();
        fields
            .filter(|field| field.id == ReplyName::WwwAuthenticate)
            .map(|field| (field.name.of(&self.head_text), field.value.of(&self.head_text)))
    }
}
