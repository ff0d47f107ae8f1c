//! The head of a request of any protocol: slices of a text that the caller owns.
//!
//! HTTP/1 sends that text, and `http1::request` finds the slices in it. For a protocol that sends
//! parts, the text is written: [`RequestHead::build`], then [`RequestHead::push`] for each field.

use alloc::vec::Vec;
use core::fmt;

use crate::host::Host;
use crate::trace_context::{TRACEPARENT_BYTES, TraceParent};
use crate::uri::UriTarget;
use crate::{Known, Method, Slice, Version};

/// The limits and switches that apply to a head: nginx's directives of the same names.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Bytes of the first buffer.
    pub client_header_buffer_size: usize,
    /// The number of larger buffers that may follow, and their size: the longest request line or
    /// header line.
    pub large_client_header_buffers: (usize, usize),
    /// The most header lines.
    pub max_headers: usize,
    /// Drop lines whose name has odd characters, rather than keep them.
    pub ignore_invalid_headers: bool,
    /// "_" is not an odd character.
    pub underscores_in_headers: bool,
    /// Stop after the `Host` line, so that the lines after it obey the limits of the server it
    /// names.
    pub pause_at_host: bool,
}

impl Default for HeadLimits {
    fn default() -> HeadLimits {
        HeadLimits {
            client_header_buffer_size: 1024,
            large_client_header_buffers: (4, 8192),
            max_headers: 1000,
            ignore_invalid_headers: true,
            underscores_in_headers: false,
            pause_at_host: false,
        }
    }
}

impl HeadLimits {
    /// The length of input at which a head is complete or refused, never partial; the caller's
    /// buffer must be able to hold it.
    pub fn input_max(&self) -> usize {
        let (number, size) = self.large_client_header_buffers;
        self.client_header_buffer_size.max(1).saturating_add(number.saturating_mul(size))
    }
}

/// A header line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name as sent.
    pub name: Slice,
    /// The value without spaces around it.
    pub value: Slice,
    /// The name as a number.
    pub id: Known,
}

/// The head of a request, as far as it is known. Reused for every request of a connection.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestHead {
    pub method: Method,
    /// The method as sent.
    pub method_text: Slice,
    /// nginx's `$request`: the line without its end. Empty until it was parsed as valid.
    pub line: Slice,
    /// nginx's `$request_uri`: path, arguments and fragment as sent; "/" for CONNECT.
    pub target: Slice,
    /// The scheme of an absolute-form target, or empty.
    pub schema: Slice,
    /// `host:port` of an absolute-form target or of CONNECT (valid as a host), or empty.
    pub authority: Slice,
    /// The requested host, as sent, without port and final dot: that of the authority, else that of
    /// the `Host` line; empty without both.
    pub host: Slice,
    /// Whether `host` has capitals. Servers are looked up in lower case.
    pub host_has_upper: bool,
    /// The port after `host`, or 0.
    pub port: u16,
    /// The path as sent, without arguments and fragment; begins with "/".
    pub path: Slice,
    /// The text after "?" up to a fragment; `None` without "?".
    pub args: Option<Slice>,
    /// `HTTP/1.1` as sent (nginx's `$server_protocol`). Empty at the beginning of a refused
    /// protocol, or at 0 without any.
    pub protocol: Slice,
    pub version: Version,
    /// The path has "%", "//" or "/." and so may not be its own normal form.
    pub needs_normalising: bool,
    /// The path has "%".
    pub quoted: bool,
    /// The path has "+".
    pub plus: bool,
    /// An absolute-form target without a path (`http://host?args`): `path` is "/", `target` is not.
    pub empty_path: bool,
    /// The header lines, in order.
    pub fields: Vec<Field>,
    /// Lines dropped because of `ignore_invalid_headers`; nginx logs each as
    /// `client sent invalid header line: "..."`, at info.
    pub ignored: Vec<Slice>,

    /// The well-known names among `fields`.
    seen: u64,
}

impl Default for RequestHead {
    fn default() -> RequestHead {
        RequestHead {
            method: Method::Other,
            method_text: Slice::default(),
            line: Slice::default(),
            target: Slice::default(),
            schema: Slice::default(),
            authority: Slice::default(),
            host: Slice::default(),
            host_has_upper: false,
            port: 0,
            path: Slice::default(),
            args: None,
            protocol: Slice::default(),
            version: Version::HTTP_09,
            needs_normalising: false,
            quoted: false,
            plus: false,
            empty_path: false,
            fields: Vec::new(),
            ignored: Vec::new(),
            seen: 0,
        }
    }
}

/// Why a field cannot be part of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// There are too many fields.
    TooMany,
    /// A field that may occur once occurs again.
    Duplicate {
        /// The second field.
        field: Field,
        /// The first field.
        previous: Field,
    },
    /// `Host` is not a valid host.
    InvalidHost,
    /// The name or the value has invalid bytes.
    Invalid,
    /// The whole head is too long.
    TooLarge,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "there are too many fields",
            Self::Duplicate { .. } => "the field may be there only once",
            Self::InvalidHost => "the value is not a host",
            Self::Invalid => "a byte is not allowed in a field",
            Self::TooLarge => "the head would be too large",
        })
    }
}

/// The parts of a request in a protocol without request lines (RFC 9113, section 8.3.1).
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'r> {
    pub method: &'r [u8],
    /// Host and port; if empty, the field `Host` has them.
    pub authority: &'r [u8],
    /// Path and arguments, beginning with a slash.
    pub target: &'r [u8],
    pub version: Version,
}

/// The parts are not a request: the method, the authority or the target is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidParts;

impl RequestHead {
    /// Clears the request and keeps the memory of `fields`.
    pub fn reset(&mut self) {
        let mut fields = core::mem::take(&mut self.fields);
        fields.clear();
        *self = RequestHead { fields, ..RequestHead::default() };
    }

    /// Becomes a copy of `other`, over a copy of the same bytes, and keeps the memory of its lists.
    pub fn copy_from(&mut self, other: &RequestHead) {
        let mut fields = core::mem::take(&mut self.fields);
        let mut ignored = core::mem::take(&mut self.ignored);
        fields.clear();
        fields.extend_from_slice(&other.fields);
        ignored.clear();
        ignored.extend_from_slice(&other.ignored);
        *self = RequestHead { fields, ignored, ..*other };
    }

    /// Becomes the head of a request in parts. Its text, with a request line for logs, is appended
    /// to `text`, which is empty.
    pub fn build(
        &mut self,
        text: &mut Vec<u8>,
        parts: &RequestParts<'_>,
    ) -> Result<(), InvalidParts> {
        let RequestParts { method, authority, target, version } = *parts;
        let is_method = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-');
        if method.is_empty() || !method.iter().all(is_method) || target.first() != Some(&b'/') {
            return Err(InvalidParts);
        }
        let parsed = UriTarget::parse(target).filter(|parsed| parsed.whole.len() == target.len());
        let parsed = parsed.ok_or(InvalidParts)?;
        self.reset();
        self.method = Method::of(method);
        self.method_text = append(text, method);
        text.push(b' ');
        let base = append(text, target).start as usize;
        self.note_target(&parsed, base);
        text.push(b' ');
        let (major, minor) = ((version.0 / 1000) as u8, (version.0 % 1000) as u8);
        self.protocol = append(text, b"HTTP/");
        text.extend_from_slice(&[b'0' + major % 10, b'.', b'0' + minor % 10]);
        self.protocol.end = text.len() as u32;
        self.version = version;
        self.line = Slice::new(0, text.len());
        self.authority = append(text, authority);
        match authority {
            b"" => Ok(()),
            _ => self.note_host(text, self.authority).ok_or(InvalidParts),
        }
    }

    /// Adds a field to a head that was built from parts.
    pub fn push(
        &mut self,
        text: &mut Vec<u8>,
        name: &[u8],
        value: &[u8],
        limits: &HeadLimits,
    ) -> Result<(), FieldError> {
        let field = append_field(text, name, value, limits)?;
        self.add(text, field, limits)
    }

    /// Replaces all lines of a name by one, in the place of the first of them or at the end. The
    /// text is appended. After an error the head is unchanged.
    pub fn set_field(
        &mut self,
        text: &mut Vec<u8>,
        name: &[u8],
        value: &[u8],
        limits: &HeadLimits,
    ) -> Result<(), FieldError> {
        if Known::of(name) == Known::Host && Host::parse(value).is_none() {
            return Err(FieldError::InvalidHost);
        }
        let is_named = |field: &Field| field.name.of(text).eq_ignore_ascii_case(name);
        let first = self.fields.iter().position(is_named);
        if first.is_none() && self.fields.len() >= limits.max_headers {
            return Err(FieldError::TooMany);
        }
        let field = append_field(text, name, value, limits)?;
        self.remove_field(text, name);
        self.add(text, field, limits)?;
        if let Some(first) = first {
            self.fields[first..].rotate_right(1);
        }
        Ok(())
    }

    /// Replaces all lines of `traceparent` by one, in the place of the first of them or at the end.
    /// After an error the head is unchanged.
    pub fn set_trace_parent(
        &mut self,
        text: &mut Vec<u8>,
        parent: &TraceParent,
        limits: &HeadLimits,
    ) -> Result<(), FieldError> {
        const NAME: &[u8] = b"traceparent";
        let id = Known::TraceParent;
        if text.len() + NAME.len() + TRACEPARENT_BYTES > limits.input_max().min(Slice::BUFFER_MAX) {
            return Err(FieldError::TooLarge);
        }
        if !self.has_any(id.bit()) && self.fields.len() >= limits.max_headers {
            return Err(FieldError::TooMany);
        }
        let (name, value) = (append(text, NAME), append(text, &parent.text()));
        let field = Field { name, value, id };
        if self.has_any(id.bit()) {
            let mut is_first = true;
            self.fields.retain_mut(|line| match line.id == id {
                true => {
                    *line = field;
                    core::mem::take(&mut is_first)
                }
                false => true,
            });
        } else {
            self.seen |= id.bit();
            self.fields.push(field);
        }
        Ok(())
    }

    /// Removes all lines of a name. Their text stays where it is. Returns whether there were any.
    pub fn remove_field(&mut self, text: &[u8], name: &[u8]) -> bool {
        let before = self.fields.len();
        self.fields.retain(|field| !field.name.of(text).eq_ignore_ascii_case(name));
        if self.fields.len() == before {
            return false;
        }
        let id = Known::of(name);
        if id != Known::Other {
            self.seen &= !id.bit();
        }
        // The host of an authority does not depend on the line.
        if id == Known::Host && self.authority.is_empty() {
            self.host = Slice::default();
            (self.host_has_upper, self.port) = (false, 0);
        }
        true
    }

    /// Adds a field that needs no checks. Returns whether it was added: its name may occur more
    /// than once, and the number of fields is below the limit.
    #[inline(always)]
    pub(crate) fn add_usual(&mut self, field: Field, limits: &HeadLimits) -> bool {
        let bit = field.id.bit();
        if bit & Known::UNIQUE != 0 || self.fields.len() >= limits.max_headers {
            return false;
        }
        self.seen |= bit & !Known::Other.bit();
        self.fields.push(field);
        true
    }

    /// Adds a field after checking it. Its slices refer to `text`.
    #[inline]
    pub(crate) fn add(
        &mut self,
        text: &[u8],
        field: Field,
        limits: &HeadLimits,
    ) -> Result<(), FieldError> {
        if self.fields.len() >= limits.max_headers {
            return Err(FieldError::TooMany);
        }
        if field.id != Known::Other {
            if self.has_any(field.id.bit() & Known::UNIQUE)
                && let Some(&previous) = self.field(field.id)
            {
                return Err(FieldError::Duplicate { field, previous });
            }
            if field.id == Known::Host {
                self.note_host(text, field.value).ok_or(FieldError::InvalidHost)?;
            }
            self.seen |= field.id.bit();
        }
        self.fields.push(field);
        Ok(())
    }

    /// Whether there is a field with any of these names, given as bits ([`Known::bit`]).
    #[inline]
    pub fn has_any(&self, names: u64) -> bool {
        self.seen & names != 0
    }

    /// The first line of that name. For [`Known::Other`] compare names in `fields`.
    pub fn field(&self, id: Known) -> Option<&Field> {
        self.fields_of(id).next()
    }

    /// Every line of that name, in order.
    pub fn fields_of(&self, id: Known) -> impl DoubleEndedIterator<Item = &Field> {
        let fields = if self.has_any(id.bit()) { &self.fields[..] } else { &[] };
        fields.iter().filter(move |field| field.id == id)
    }

    /// Stores the parts of the target, which begins at `base`.
    #[inline]
    pub(crate) fn note_target(&mut self, target: &UriTarget, base: usize) {
        self.target = target.whole.shifted(base);
        self.path = target.path.shifted(base);
        self.args = target.args.map(|args| args.shifted(base));
        self.needs_normalising = target.needs_normalising;
        (self.quoted, self.plus) = (target.quoted, target.plus);
    }

    /// Stores the host in `text`; `None` if it is not valid. The first host has precedence.
    pub(crate) fn note_host(&mut self, input: &[u8], text: Slice) -> Option<()> {
        let host = Host::parse(text.of(input))?;
        if self.host.is_empty() {
            self.host = Slice { start: text.start, end: text.start + host.len as u32 };
            self.host_has_upper = host.has_upper;
            self.port = host.port;
        }
        Some(())
    }
}

/// Appends a field to a text, unless it is invalid.
#[inline(always)] // Into `push`, which builds every head of HTTP/2.
fn append_field(
    text: &mut Vec<u8>,
    name: &[u8],
    value: &[u8],
    limits: &HeadLimits,
) -> Result<Field, FieldError> {
    let is_name = |byte: &u8| !matches!(byte, 0..=0x20 | b':' | 0x7f..);
    let is_value = |byte: &u8| !matches!(byte, 0 | b'\r' | b'\n');
    if name.is_empty() || !name.iter().all(is_name) || !value.iter().all(is_value) {
        return Err(FieldError::Invalid);
    }
    let length = text.len().saturating_add(name.len()).saturating_add(value.len());
    if length > limits.input_max().min(Slice::BUFFER_MAX) {
        return Err(FieldError::TooLarge);
    }
    let (name, id) = (append(text, name), Known::of(name));
    Ok(Field { name, value: append(text, value), id })
}

/// Appends bytes to a text. Returns their place in it.
fn append(text: &mut Vec<u8>, bytes: &[u8]) -> Slice {
    let start = text.len();
    text.extend_from_slice(bytes);
    Slice::new(start, text.len())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::http1::request::RequestHeadParser;

    const PARTS: RequestParts<'_> =
        RequestParts { method: b"GET", authority: b"", target: b"/", version: Version::HTTP_2 };

    fn texts<'t>(head: &RequestHead, text: &'t [u8]) -> [&'t [u8]; 6] {
        let args = head.args.unwrap_or_default();
        [head.method_text, head.target, head.path, args, head.host, head.line].map(|s| s.of(text))
    }

    #[test]
    fn a_head_of_parts_equals_the_parsed_text() {
        for (method, target) in [("GET", "/a/../b%20c?d=e+f"), ("X-Y", "/"), ("HEAD", "//+?")] {
            let (mut text, mut built) = (Vec::new(), RequestHead::default());
            let (method, target) = (method.as_bytes(), target.as_bytes());
            let parts = RequestParts { method, target, version: Version::HTTP_11, ..PARTS };
            built.build(&mut text, &parts).unwrap();
            let limits = HeadLimits::default();
            built.push(&mut text, b"Host", b"Example.org:81", &limits).unwrap();
            built.push(&mut text, b"x-other", b"", &limits).unwrap();
            let input =
                [method, b" ", target, b" HTTP/1.1\r\nHost: Example.org:81\r\nx-other:\r\n\r\n"];
            let (input, mut parsed) = (input.concat(), RequestHead::default());
            RequestHeadParser::default().parse(&mut parsed, &input, &limits).unwrap();
            assert_eq!(texts(&built, &text), texts(&parsed, &input));
            assert_eq!(
                (built.method, built.version, built.port),
                (parsed.method, parsed.version, 81)
            );
            let flags = |head: &RequestHead| [head.needs_normalising, head.quoted, head.plus];
            assert_eq!(flags(&built), flags(&parsed));
            for (built, parsed) in built.fields.iter().zip(&parsed.fields) {
                assert_eq!(built.id, parsed.id);
                assert_eq!(built.name.of(&text), parsed.name.of(&input));
                assert_eq!(built.value.of(&text), parsed.value.of(&input));
            }
            assert_eq!(built.fields.len(), 2);
        }
    }

    #[test]
    fn the_authority_is_the_host() {
        let (mut text, mut head) = (Vec::new(), RequestHead::default());
        let parts = RequestParts { authority: b"h.:8", ..PARTS };
        head.build(&mut text, &parts).unwrap();
        assert_eq!((head.host.of(&text), head.port), (&b"h"[..], 8));
        assert_eq!(head.line.of(&text), b"GET / HTTP/2.0");
        assert_eq!(head.protocol.of(&text), b"HTTP/2.0");
    }

    #[test]
    fn invalid_parts_are_refused() {
        let table = [
            RequestParts { method: b"", ..PARTS },
            RequestParts { method: b"G T", ..PARTS },
            RequestParts { target: b"", ..PARTS },
            RequestParts { target: b"a", ..PARTS },
            RequestParts { target: b"/a b", ..PARTS },
            RequestParts { target: b"/\r\n", ..PARTS },
            RequestParts { authority: b"a b", ..PARTS },
        ];
        for parts in table {
            let built = RequestHead::default().build(&mut Vec::new(), &parts);
            assert_eq!(built, Err(InvalidParts), "{parts:?}");
        }
    }

    #[test]
    fn fields_are_held_to_the_limits() {
        let limits = HeadLimits { max_headers: 3, ..HeadLimits::default() };
        let push = |fields: &[(&[u8], &[u8])]| {
            let (mut text, mut head) = (Vec::new(), RequestHead::default());
            head.build(&mut text, &PARTS).unwrap();
            let pushed =
                |(name, value): &(&[u8], &[u8])| head.push(&mut text, name, value, &limits);
            fields.iter().map(pushed).collect::<Result<Vec<_>, _>>().map(drop)
        };
        assert_eq!(push(&[(&b"a"[..], &b"\t \xff"[..]); 3]), Ok(()));
        assert_eq!(push(&[(&b"a"[..], &b""[..]); 4]), Err(FieldError::TooMany));
        let invalid: [(&[u8], &[u8]); 4] =
            [(b"", b""), (b"a b", b""), (b":a", b""), (b"a", b"b\nc")];
        for (name, value) in invalid {
            assert_eq!(push(&[(name, value)]), Err(FieldError::Invalid), "{name:?} {value:?}");
        }
        assert_eq!(push(&[(b"host", b"a b")]), Err(FieldError::InvalidHost));
        let twice = push(&[(b"Host", b"a"), (b"host", b"a")]);
        assert!(matches!(twice, Err(FieldError::Duplicate { .. })), "{twice:?}");
        let long = vec![b'x'; limits.input_max()];
        assert_eq!(push(&[(b"a", &long)]), Err(FieldError::TooLarge));
    }

    #[test]
    fn a_trace_parent_is_set_as_any_field() {
        let parent = TraceParent { trace_id: [1; 16], span_id: [2; 8], sampled: true };
        let limits = HeadLimits { max_headers: 4, ..HeadLimits::default() };
        let other: &[u8] = b"x-a";
        let name: &[u8] = b"TraceParent";
        for names in [&[][..], &[other], &[name], &[other, name, other, name], &[other; 4]] {
            let set = |is_direct: bool| {
                let (mut text, mut head) = (Vec::new(), RequestHead::default());
                head.build(&mut text, &PARTS).unwrap();
                for name in names {
                    head.push(&mut text, name, b"1", &limits).unwrap();
                }
                let set = match is_direct {
                    true => head.set_trace_parent(&mut text, &parent, &limits),
                    false => head.set_field(&mut text, b"traceparent", &parent.text(), &limits),
                };
                let found = head.field(Known::TraceParent).map(|field| field.value.of(&text));
                (set, lines(&head, &text), found.map(<[u8]>::to_vec))
            };
            assert_eq!(set(true), set(false), "{names:?}");
        }
    }

    fn lines(head: &RequestHead, text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        head.fields.iter().map(|f| (f.name.of(text).to_vec(), f.value.of(text).to_vec())).collect()
    }

    #[test]
    fn edits_in_any_order_match_a_plain_list() {
        let names: [&[u8]; 6] = [b"Host", b"Cookie", b"Content-Length", b"x-a", b"X-A", b"x-b"];
        let limits = HeadLimits {
            max_headers: 4,
            large_client_header_buffers: (1000, 8192),
            ..HeadLimits::default()
        };
        let (mut text, mut head) = (Vec::new(), RequestHead::default());
        head.build(&mut text, &PARTS).unwrap();
        let mut model: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut random = 1_u32;
        for step in 0..5000_u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let name = names[(random >> 16) as usize % names.len()];
            let is_same = |line: &(Vec<u8>, Vec<u8>)| line.0.eq_ignore_ascii_case(name);
            let value = [b'0' + (step % 10) as u8];
            let first = model.iter().position(is_same);
            match (random >> 28) % 3 {
                0 => {
                    assert_eq!(head.remove_field(&text, name), first.is_some());
                    model.retain(|line| !is_same(line));
                }
                1 => {
                    let line = (name.to_vec(), value.to_vec());
                    let set = head.set_field(&mut text, name, &value, &limits);
                    assert_eq!(set.is_ok(), first.is_some() || model.len() < 4);
                    if set.is_ok() {
                        model.retain(|line| !is_same(line));
                        model.insert(first.unwrap_or(model.len()), line);
                    }
                }
                _ => {
                    if head.push(&mut text, name, &value, &limits).is_ok() {
                        model.push((name.to_vec(), value.to_vec()));
                    }
                }
            }
            assert_eq!(lines(&head, &text), model);
            let host = model.iter().find(|line| line.0 == b"Host");
            assert_eq!(head.host.of(&text), host.map_or(&b""[..], |line| &line.1));
            for id in [Known::Host, Known::Cookie, Known::ContentLength] {
                let has = model.iter().any(|line| Known::of(&line.0) == id);
                assert_eq!(head.field(id).is_some(), has);
                assert_eq!(head.has_any(id.bit()), has);
            }
        }
    }

    #[test]
    fn a_field_that_cannot_be_set_changes_nothing() {
        let limits = HeadLimits::default();
        let (mut text, mut head) = (Vec::new(), RequestHead::default());
        head.build(&mut text, &PARTS).unwrap();
        head.push(&mut text, b"Host", b"A.org:81", &limits).unwrap();
        let before = (lines(&head, &text), text.len());
        let long = vec![b'x'; limits.input_max()];
        let table: [(&[u8], &[u8], FieldError); 3] = [
            (b"host", b"a b", FieldError::InvalidHost),
            (b"host", &long, FieldError::TooLarge),
            (b"a", b"b\nc", FieldError::Invalid),
        ];
        for (name, value, error) in table {
            assert_eq!(head.set_field(&mut text, name, value, &limits), Err(error));
            assert_eq!((lines(&head, &text), text.len()), before);
            assert_eq!(
                (head.host.of(&text), head.port, head.host_has_upper),
                (&b"A.org"[..], 81, true)
            );
        }
        head.set_field(&mut text, b"host", b"b.org", &limits).unwrap();
        assert_eq!(
            (head.host.of(&text), head.port, head.host_has_upper),
            (&b"b.org"[..], 0, false)
        );
    }

    #[test]
    fn the_host_of_an_authority_stays_without_its_line() {
        let limits = HeadLimits::default();
        let (mut text, mut head) = (Vec::new(), RequestHead::default());
        head.build(&mut text, &RequestParts { authority: b"h:8", ..PARTS }).unwrap();
        head.push(&mut text, b"host", b"other", &limits).unwrap();
        assert!(head.remove_field(&text, b"HOST"));
        assert_eq!((head.host.of(&text), head.port), (&b"h"[..], 8));
    }
}
