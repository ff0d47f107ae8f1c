//! The request.

use net::buffers;
use wire::host::Host;
use wire::request::{Field, FieldError, HeadLimits, InvalidParts, RequestHead, RequestParts};
use wire::trace_context::TraceParent;
use wire::{Known, Method, Slice, Version};

use super::RequestBody;

/// Memory of a head that is kept for the next one.
const COMPACT_MAX: usize = 4096;

/// Bytes that a field which the configuration sets may add to the head.
const FIELD_MAX: usize = 64 * 1024;

/// The path cannot be decoded, or leads above the root.
pub(crate) struct BadPath;

/// The parts of a request are invalid.
#[derive(Debug)]
pub(crate) struct BadParts;

/// A request as it was received, and its URI after rewrites.
#[derive(Default)]
pub struct Request {
    /// Offsets into `received`.
    pub head: RequestHead,
    /// The bytes received: the head, and perhaps the beginning of the following bytes.
    pub received: Vec<u8>,
    /// Memory of an earlier head, for moving the next one out of its buffer.
    compact: Vec<u8>,
    /// The path: decoded, dots resolved, slashes merged.
    pub uri: Vec<u8>,
    /// The arguments, without the question mark.
    pub args: Vec<u8>,
    /// Whether there are arguments, even empty ones: whether `$args` has a value.
    pub has_args: bool,
    /// The host in lower case, without port; empty if the request has none.
    pub host: Vec<u8>,
    /// Whether the path is unchanged since the client sent it, so that `received` has its raw form.
    pub uri_unchanged: bool,
    /// The bytes received: the head, and the body as far as it was read.
    pub length: u64,
    /// Whether at least a part of it had arrived before the previous request was answered.
    pub pipelined: bool,
    /// Whether the location was chosen by this path. Not so after `break` in a rewritten path,
    /// which does not begin with the location's name.
    pub valid_location: bool,
    pub body: RequestBody,
    /// The length of the head in `received`.
    pub head_bytes: usize,
    /// Whether the reply has no body.
    pub header_only: bool,
}

impl Request {
    pub(crate) fn new() -> Self {
        Self { uri_unchanged: true, valid_location: true, ..Self::default() }
    }

    /// Clears the request, keeps the memory, and returns its buffer.
    pub(crate) fn release(&mut self) {
        self.give_back_received();
        // All fields are listed, so that none is missed.
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

    /// Moves the head to memory of its own size, and returns its buffer. Otherwise, the heads of
    /// many waiting requests would compete for a few lines of the processor's cache, since buffers
    /// are aligned alike.
    pub(crate) fn make_compact(&mut self) {
        if self.received.capacity() != buffers::BUFFER_SIZE {
            return;
        }
        let mut compact = std::mem::take(&mut self.compact);
        compact.extend_from_slice(&self.received);
        buffers::give_back(std::mem::replace(&mut self.received, compact));
    }

    /// Frees unused memory, and returns the buffer of the head.
    pub(crate) fn shrink(&mut self) {
        let head = self.received[..self.head_bytes.min(self.received.len())].to_vec();
        net::buffers::give_back(std::mem::replace(&mut self.received, head));
        self.head.fields.shrink_to_fit();
        for text in [&mut self.uri, &mut self.args, &mut self.host] {
            text.shrink_to_fit();
        }
    }

    /// The memory that it keeps, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let texts = [&self.received, &self.compact, &self.uri, &self.args, &self.host];
        let slices = self.head.fields.capacity() * size_of::<Field>()
            + self.head.ignored.capacity() * size_of::<Slice>();
        texts.map(Vec::capacity).iter().sum::<usize>() + slices
    }

    /// Becomes a `GET` with the head and the body of another request; the caller sets the path.
    pub(crate) fn init_subrequest(&mut self, parent: &Self) {
        self.head.copy_from(&parent.head);
        self.head.method = Method::Get;
        self.received = std::mem::take(&mut self.compact);
        self.received.extend_from_slice(&parent.received);
        self.host.extend_from_slice(&parent.host);
        self.body = parent.body.share();
        self.head_bytes = parent.head_bytes;
        self.uri_unchanged = false;
    }

    /// Takes path and arguments from the request line; the path is normalised.
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

    /// Becomes a request that arrived in parts, not as text.
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

    /// Replaces all fields of a name by one; `Host` becomes the request's host, though the virtual
    /// server stays. After an error the request is as it was.
    pub(crate) fn set_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), FieldError> {
        let limits = self.edit_limits();
        self.head.set_field(&mut self.received, name, value, &limits)?;
        self.head_bytes = self.received.len();
        if Known::of(name) == Known::Host
            && let Some(host) = Host::parse(value)
        {
            self.host.clear();
            self.host.extend(value[..host.len].iter().map(u8::to_ascii_lowercase));
        }
        Ok(())
    }

    /// Has `traceparent` name a span. After an error the request is as it was.
    pub(crate) fn set_trace_parent(&mut self, parent: &TraceParent) -> Result<(), FieldError> {
        let limits = self.edit_limits();
        self.head.set_trace_parent(&mut self.received, parent, &limits)?;
        self.head_bytes = self.received.len();
        Ok(())
    }

    /// The limits of a head that the configuration changes.
    fn edit_limits(&self) -> HeadLimits {
        let large_client_header_buffers = (1, self.received.len() + FIELD_MAX);
        HeadLimits { large_client_header_buffers, ..HeadLimits::default() }
    }

    /// Removes all fields of a name. Returns whether there were any.
    pub(crate) fn remove_field(&mut self, name: &[u8]) -> bool {
        let removed = self.head.remove_field(&self.received, name);
        if removed && Known::of(name) == Known::Host {
            self.host.clear();
            self.host.extend_from_slice(self.head.host.of(&self.received));
            self.host.make_ascii_lowercase();
        }
        removed
    }

    /// Becomes a `GET` of Weir's own for a path, which is normalised.
    pub(crate) fn make_get(&mut self, uri: &[u8], merge_slashes: bool) {
        let (authority, version) = (&b""[..], Version::HTTP_10);
        let parts = RequestParts { method: b"GET", authority, target: uri, version };
        if self.build(&parts, [], &HeadLimits::default()).is_ok() {
            // A path that cannot be decoded has no `$uri`, and is requested unchanged.
            let _ = self.decode_target(merge_slashes);
        }
    }

    /// The method's name, as it was sent unless it has changed.
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

    /// The received part of the request line, without the line end.
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
