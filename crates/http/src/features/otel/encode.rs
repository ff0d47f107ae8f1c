//! Spans in protobuf, as `opentelemetry/proto/trace/v1/trace.proto` defines them.
//!
//! A message is a list of fields: a tag (the field's number and its kind), for texts and messages a
//! length, and the value. The length of a span is known at its end and has room before it: a number
//! may be written with more bytes than it needs.

use std::borrow::Cow;

/// The kind of a span: who has sent the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

pub(super) struct SpanHead<'a> {
    pub(super) trace_id: &'a [u8; 16],
    pub(super) span_id: &'a [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) tracestate: &'a [u8],
    pub(super) name: &'a [u8],
    pub(super) kind: SpanKind,
    pub(super) begun_ms: u64,
    pub(super) ended_ms: u64,
}

/// Writes one span at the end of a buffer.
pub(super) struct SpanEncoder<'o> {
    out: &'o mut Vec<u8>,
    /// Where the contents begin.
    start: usize,
}

/// The most bytes of a text; the rest is cut off.
pub(super) const TEXT_BYTES_MAX: usize = 8 * 1024;
/// Bytes for the length of a span.
const LENGTH_BYTES: usize = 3;
/// The longest span that this length can express.
const SPAN_BYTES_MAX: usize = (1 << (7 * LENGTH_BYTES)) - 1;
/// The room that is made for a span.
const SPAN_BYTES_USUAL: usize = 1024;
pub(super) const NS_PER_MS: u64 = 1_000_000;

// Tags: the number of the field times 8, plus 0 for a number, 1 for eight bytes, 2 for a length.
const SPANS: u8 = 0x12;
const TRACE_ID: u8 = 0x0a;
const SPAN_ID: u8 = 0x12;
const TRACE_STATE: u8 = 0x1a;
const PARENT_SPAN_ID: u8 = 0x22;
const NAME: u8 = 0x2a;
const KIND: u8 = 0x30;
const START_TIME: u8 = 0x39;
const END_TIME: u8 = 0x41;
const ATTRIBUTES: u8 = 0x4a;
const STATUS: u8 = 0x7a;
const STATUS_CODE: u8 = 0x18;
const STATUS_CODE_ERROR: u8 = 2;
const KEY: u8 = 0x0a;
const VALUE: u8 = 0x12;
const STRING_VALUE: u8 = 0x0a;
const INT_VALUE: u8 = 0x18;
const ARRAY_VALUE: u8 = 0x2a;
const ARRAY_ELEMENT: u8 = 0x0a;
const RESOURCE_SPANS: u8 = 0x0a;
const RESOURCE: u8 = 0x0a;
const RESOURCE_ATTRIBUTES: u8 = 0x0a;
const SCOPE_SPANS: u8 = 0x12;
const SCOPE: u8 = 0x0a;
const SCOPE_NAME: u8 = 0x0a;
const SCOPE_VERSION: u8 = 0x12;

impl<'o> SpanEncoder<'o> {
    pub(super) fn begin(out: &'o mut Vec<u8>, head: &SpanHead<'_>) -> Self {
        out.reserve(SPAN_BYTES_USUAL);
        out.extend_from_slice(&[SPANS, 0, 0, 0]);
        let start = out.len();
        put_bytes(TRACE_ID, head.trace_id, out);
        put_bytes(SPAN_ID, head.span_id, out);
        if !head.tracestate.is_empty() {
            put_bytes(TRACE_STATE, head.tracestate, out);
        }
        if let Some(parent) = head.parent {
            put_bytes(PARENT_SPAN_ID, &parent, out);
        }
        put_bytes(NAME, &valid(head.name), out);
        out.extend_from_slice(&[KIND, head.kind as u8, START_TIME]);
        out.extend_from_slice(&(head.begun_ms * NS_PER_MS).to_le_bytes());
        out.push(END_TIME);
        out.extend_from_slice(&(head.ended_ms * NS_PER_MS).to_le_bytes());
        Self { out, start }
    }

    /// Adds attributes in the form in which they are sent.
    pub(super) fn put(&mut self, attributes: &[u8]) {
        self.out.extend_from_slice(attributes);
    }

    /// Adds a text. `key` is in the form of [`key`].
    pub(super) fn text(&mut self, key: &[u8], text: &[u8]) {
        put_text(key, text, self.out);
    }

    /// Adds a list of one text.
    pub(super) fn list(&mut self, key: &[u8], text: &[u8]) {
        let text = valid(text);
        let element = 1 + varint_bytes(text.len()) + text.len();
        let array = 1 + varint_bytes(element) + element;
        put_key(ATTRIBUTES, key, 1 + varint_bytes(array) + array, self.out);
        put_head(ARRAY_VALUE, array, self.out);
        put_head(ARRAY_ELEMENT, element, self.out);
        put_bytes(STRING_VALUE, &text, self.out);
    }

    pub(super) fn number(&mut self, key: &[u8], number: u64) {
        put_key(ATTRIBUTES, key, 1 + varint_bytes(number as usize), self.out);
        self.out.push(INT_VALUE);
        put_varint(number as usize, self.out);
    }

    /// Ends the span. Returns the number of spans: a span that is too long is taken back.
    pub(super) fn finish(self, is_failure: bool) -> usize {
        let Self { out, start } = self;
        if is_failure {
            out.extend_from_slice(&[STATUS, 2, STATUS_CODE, STATUS_CODE_ERROR]);
        }
        let length = out.len() - start;
        if length > SPAN_BYTES_MAX {
            out.truncate(start - LENGTH_BYTES - 1);
            return 0;
        }
        let more = |places: usize| 0x80 | (length >> (7 * places)) as u8;
        out[start - LENGTH_BYTES..start].copy_from_slice(&[more(0), more(1), (length >> 14) as u8]);
        1
    }
}

/// Appends an attribute of a span. `key` is in the form of [`key`].
pub(super) fn put_text(key: &[u8], text: &[u8], out: &mut Vec<u8>) {
    let text = valid(text);
    put_key(ATTRIBUTES, key, 1 + varint_bytes(text.len()) + text.len(), out);
    put_bytes(STRING_VALUE, &text, out);
}

/// Begins an attribute whose value has this length.
fn put_key(tag: u8, key: &[u8], value: usize, out: &mut Vec<u8>) {
    put_head(tag, key.len() + varint_bytes(value) + value, out);
    out.extend_from_slice(key);
    put_varint(value, out);
}

/// A key with its tag and length, and the tag of the value that follows.
pub(super) fn key(name: &[u8]) -> Box<[u8]> {
    let mut out = Vec::new();
    put_bytes(KEY, &valid(name), &mut out);
    out.push(VALUE);
    out.into()
}

/// The parts of a request to the collector besides the spans.
pub(super) struct ExportPreamble {
    resource: Vec<u8>,
    scope: Vec<u8>,
}

impl ExportPreamble {
    pub(super) fn new<'a>(
        attributes: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        (program, version): (&str, &str),
    ) -> Self {
        let (mut contents, mut resource, mut scope) = (Vec::new(), Vec::new(), Vec::new());
        for (name, text) in attributes {
            let (key, text) = (key(name), valid(text));
            let value = 1 + varint_bytes(text.len()) + text.len();
            put_key(RESOURCE_ATTRIBUTES, &key, value, &mut contents);
            put_bytes(STRING_VALUE, &text, &mut contents);
        }
        put_bytes(RESOURCE, &contents, &mut resource);
        contents.clear();
        put_bytes(SCOPE_NAME, program.as_bytes(), &mut contents);
        put_bytes(SCOPE_VERSION, version.as_bytes(), &mut contents);
        put_bytes(SCOPE, &contents, &mut scope);
        Self { resource, scope }
    }

    /// The message with these spans.
    pub(super) fn message(&self, spans: &[u8]) -> Vec<u8> {
        let Self { resource, scope } = self;
        let scope_spans = scope.len() + spans.len();
        let resource_spans = resource.len() + 1 + varint_bytes(scope_spans) + scope_spans;
        let mut out = Vec::with_capacity(1 + varint_bytes(resource_spans) + resource_spans);
        put_head(RESOURCE_SPANS, resource_spans, &mut out);
        out.extend_from_slice(resource);
        put_head(SCOPE_SPANS, scope_spans, &mut out);
        out.extend_from_slice(scope);
        out.extend_from_slice(spans);
        out
    }
}

/// A text as protobuf demands it, in UTF-8: other bytes are replaced. One such text would make a
/// collector refuse the whole batch.
fn valid(text: &[u8]) -> Cow<'_, [u8]> {
    let text = match text.len() {
        0..=TEXT_BYTES_MAX => text,
        _ => &text[..TEXT_BYTES_MAX],
    };
    match text.is_ascii() || std::str::from_utf8(text).is_ok() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(String::from_utf8_lossy(text).into_owned().into_bytes()),
    }
}

fn put_bytes(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    put_head(tag, bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn put_head(tag: u8, length: usize, out: &mut Vec<u8>) {
    match length {
        0..0x80 => out.extend_from_slice(&[tag, length as u8]),
        0x80..0x4000 => {
            out.extend_from_slice(&[tag, 0x80 | length as u8, (length >> 7) as u8]);
        }
        _ => {
            out.push(tag);
            put_varint(length, out);
        }
    }
}

/// Seven bits a byte, the lowest first.
fn put_varint(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(0x80 | number as u8);
        number >>= 7;
    }
    out.push(number as u8);
}

fn varint_bytes(number: usize) -> usize {
    let bits = usize::BITS - (number | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use ::testing::ReceivedSpans;

    use super::*;

    const HEAD: SpanHead<'_> = SpanHead {
        trace_id: &[1; 16],
        span_id: &[2; 8],
        parent: None,
        tracestate: b"",
        name: b"n",
        kind: SpanKind::Client,
        begun_ms: 3,
        ended_ms: 1 << 43,
    };

    fn decoded(spans: &[u8]) -> ReceivedSpans {
        let preamble = ExportPreamble::new([(&b"r"[..], &b"\xfe"[..])], ("p", "1"));
        ReceivedSpans::decode(&preamble.message(spans))
    }

    #[test]
    fn lengths_and_numbers_of_every_size_are_decoded() {
        let mut out = Vec::new();
        for length in [0, 1, 100, 127, 128, 5000, TEXT_BYTES_MAX] {
            let mut span = SpanEncoder::begin(&mut out, &HEAD);
            span.text(&key(b"text"), &vec![b'x'; length]);
            span.list(&key(b"list"), &vec![b'y'; length]);
            span.number(&key(b"number"), 1 << (length % 50));
            assert_eq!(span.finish(length == 1), 1);
        }
        let received = decoded(&out);
        assert_eq!(received.resource["r"], "\u{fffd}");
        assert_eq!(received.spans.len(), 7);
        for (span, length) in received.spans.iter().zip([0, 1, 100, 127, 128, 5000, TEXT_BYTES_MAX])
        {
            assert_eq!(span.attribute("text").len(), length);
            assert_eq!(span.attribute("list").len(), length + "[]".len());
            assert_eq!(span.attribute("number"), (1u64 << (length % 50)).to_string());
            assert_eq!((span.is_failure, span.kind), (length == 1, 3));
            assert_eq!((span.start_ns, span.end_ns), (3_000_000, (1 << 43) * NS_PER_MS));
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut out = Vec::new();
        let mut span = SpanEncoder::begin(&mut out, &SpanHead { name: b"/\xff", ..HEAD });
        span.text(&key(b"k\xff"), "\u{e9}".as_bytes());
        span.finish(false);
        let span = &decoded(&out).spans[0];
        assert_eq!((&*span.name, span.attribute("k\u{fffd}")), ("/\u{fffd}", "\u{e9}"));
    }

    #[test]
    fn a_span_that_is_too_long_is_taken_back() {
        let mut out = b"before".to_vec();
        let mut span = SpanEncoder::begin(&mut out, &HEAD);
        for _ in 0..=SPAN_BYTES_MAX / TEXT_BYTES_MAX {
            span.text(&key(b"text"), &[b'x'; TEXT_BYTES_MAX]);
        }
        assert_eq!(span.finish(false), 0);
        assert_eq!(out, b"before");
    }
}
