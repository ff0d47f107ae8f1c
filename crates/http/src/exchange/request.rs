//! What was asked.

use net::buffers;
use wire::request::{Field, HeadLimits, InvalidParts, RequestHead, RequestParts};
use wire::{Known, Method, Slice, Version};

use super::RequestBody;

/// Memory of a head that is kept for the next one.
const COMPACT_MAX: usize = 4096;

/// A path that cannot be decoded, or that leads above the root.
pub(crate) struct BadPath;

/// The parts of a request make none: one of them cannot be what it is meant to be.
#[derive(Debug)]
pub(crate) struct BadParts;

/// A request as it was received, and its URI as it stands after rewrites.
#[derive(Default)]
pub struct Request {
    /// Offsets into `received`.
    pub head: RequestHead,
    /// The bytes received: the head, and perhaps the beginning of what follows it.
    pub received: Vec<u8>,
    /// Memory of an earlier head that was moved together.
    compact: Vec<u8>,
    /// The path: decoded, dots resolved, slashes merged.
    pub uri: Vec<u8>,
    /// The arguments, without the question mark.
    pub args: Vec<u8>,
    /// Whether there are arguments, be they empty by now: whether `$args` has a value.
    pub has_args: bool,
    /// The host, lower-cased, without port; empty where none was given.
    pub host: Vec<u8>,
    /// Whether the path is still what the client sent, so that `received` has its raw form.
    pub uri_unchanged: bool,
    /// Bytes received for it: its head, and its body as far as it was read.
    pub length: u64,
    /// Whether it had arrived, in part at least, before the one before it was answered.
    pub pipelined: bool,
    /// Whether the location was chosen by this path: not after `break` in a rewritten one, where
    /// nothing in the path stands for the location's name.
    pub valid_location: bool,
    /// The body.
    pub body: RequestBody,
    /// How many bytes of `received` are the head.
    pub head_bytes: usize,
    /// Whether the head is to be answered without a body.
    pub header_only: bool,
}

impl Request {
    pub(crate) fn new() -> Self {
        Self { uri_unchanged: true, valid_location: true, ..Self::default() }
    }

    /// Forgets the request, keeping the memory, and gives its buffer back.
    pub(crate) fn retire(&mut self) {
        self.give_back_received();
        // All fields are named, so that none is forgotten.
        let Self {
            received: _,
            compact: _,
            head,
            uri,
            args,
            has_args,
            host,
            uri_unchanged,
            length,
            pipelined,
            valid_location,
            body,
            head_bytes,
            header_only,
        } = self;
        head.reset();
        uri.clear();
        args.clear();
        *has_args = false;
        host.clear();
        body.clear();
        *head_bytes = 0;
        *length = 0;
        *pipelined = false;
        *uri_unchanged = true;
        *valid_location = true;
        *header_only = false;
    }

    fn give_back_received(&mut self) {
        let mut received = std::mem::take(&mut self.received);
        if received.capacity() == buffers::BUFFER_SIZE {
            return buffers::give_back(received);
        }
        if received.capacity() <= COMPACT_MAX {
            received.clear();
            self.compact = received;
        }
    }

    /// Moves the head to where it takes no more room than it needs, and gives its buffer back. Many
    /// that wait at a time would else share few lines of the processor's cache: buffers are alike.
    pub(crate) fn make_compact(&mut self) {
        if self.received.capacity() != buffers::BUFFER_SIZE {
            return;
        }
        let mut compact = std::mem::take(&mut self.compact);
        compact.extend_from_slice(&self.received);
        buffers::give_back(std::mem::replace(&mut self.received, compact));
    }

    /// Gives back the memory that it does not use, and the buffer that its head came in.
    pub(crate) fn shrink(&mut self) {
        let head = self.received[..self.head_bytes.min(self.received.len())].to_vec();
        net::buffers::give_back(std::mem::replace(&mut self.received, head));
        self.head.fields.shrink_to_fit();
        for text in [&mut self.uri, &mut self.args, &mut self.host] {
            text.shrink_to_fit();
        }
    }

    /// How much memory it keeps.
    pub(crate) fn memory(&self) -> usize {
        let texts = [&self.received, &self.compact, &self.uri, &self.args, &self.host];
        let slices = self.head.fields.capacity() * size_of::<Field>()
            + self.head.ignored.capacity() * size_of::<Slice>();
        texts.map(Vec::capacity).iter().sum::<usize>() + slices
    }

    /// Becomes a `GET` with the head and the body of another request; the path is not said yet.
    pub(crate) fn descend(&mut self, parent: &Self) {
        self.head.copy_from(&parent.head);
        self.head.method = Method::Get;
        self.received = std::mem::take(&mut self.compact);
        self.received.extend_from_slice(&parent.received);
        self.host.extend_from_slice(&parent.host);
        self.body = parent.body.share();
        self.head_bytes = parent.head_bytes;
        self.uri_unchanged = false;
    }

    /// The request line is there: the path in normal form, and the arguments.
    pub(crate) fn decode_target(&mut self, merge_slashes: bool) -> Result<(), BadPath> {
        let path = self.head.path.of(&self.received);
        if self.head.needs_normalising {
            wire::uri::normalise(path, merge_slashes, &mut self.uri).map_err(|_| BadPath)?;
        } else {
            self.uri.extend_from_slice(path);
        }
        if let Some(args) = self.head.args {
            self.args.extend_from_slice(args.of(&self.received));
            self.has_args = !self.args.is_empty();
        }
        Ok(())
    }

    /// Becomes a request that came in parts, not as text.
    pub(crate) fn build<'f>(
        &mut self,
        parts: &RequestParts<'_>,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        limits: &HeadLimits,
    ) -> Result<(), BadParts> {
        self.received.clear();
        self.head.build(&mut self.received, parts).map_err(|InvalidParts| BadParts)?;
        for (name, value) in fields {
            self.head.push(&mut self.received, name, value, limits).map_err(|_| BadParts)?;
        }
        self.head_bytes = self.received.len();
        Ok(())
    }

    /// Becomes a `GET` that no client has sent, for a path in normal form.
    pub(crate) fn make_get(&mut self, uri: &[u8], merge_slashes: bool) {
        let (authority, version) = (&b""[..], Version::HTTP_10);
        let parts = RequestParts { method: b"GET", authority, target: uri, version };
        if self.build(&parts, [], &HeadLimits::default()).is_ok() {
            // What cannot be decoded has no `$uri`, and is asked for as it is.
            let _ = self.decode_target(merge_slashes);
        }
    }

    /// The method's name: as it was sent, unless it is another by now.
    pub fn method_name(&self) -> &[u8] {
        match self.head.method {
            Method::Other => self.text(self.head.method_text),
            known => known.name(),
        }
    }

    /// The bytes of a slice of the head.
    pub fn text(&self, slice: Slice) -> &[u8] {
        slice.of(&self.received)
    }

    /// The request line without its end, as far as it was received.
    pub fn line(&self) -> &[u8] {
        if !self.head.line.is_empty() {
            return self.text(self.head.line);
        }
        let start = self.received.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
        let text = &self.received[start.unwrap_or(self.received.len())..];
        &text[..memchr::memchr2(b'\r', b'\n', text).unwrap_or(text.len())]
    }

    /// The value of the first field with that name.
    pub fn field(&self, known: Known) -> Option<&[u8]> {
        self.head.field(known).map(|field| field.value.of(&self.received))
    }
}
