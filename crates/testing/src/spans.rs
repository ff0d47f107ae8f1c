//! What a collector gets: spans in OpenTelemetry's protobuf messages.

use std::collections::BTreeMap;

/// A request to a collector, of one resource and one scope.
#[derive(Debug, Default)]
pub struct ReceivedSpans {
    /// The attributes of the resource.
    pub resource: BTreeMap<String, String>,
    /// The name of the program.
    pub scope: String,
    pub spans: Vec<ReceivedSpan>,
}

/// A span; ids in hexadecimal digits.
#[derive(Clone, Debug, Default)]
pub struct ReceivedSpan {
    pub trace_id: String,
    pub span_id: String,
    pub parent: String,
    pub tracestate: String,
    pub name: String,
    /// 1: internal, 2: a server's, 3: a client's.
    pub kind: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Values as text; lists in brackets.
    pub attributes: BTreeMap<String, String>,
    pub is_failure: bool,
}

impl ReceivedSpans {
    /// Decodes a message. Panics if it is not one.
    pub fn decode(message: &[u8]) -> Self {
        let mut received = Self::default();
        for resource_spans in messages(message, 1) {
            for (number, value) in fields(resource_spans) {
                match (number, value) {
                    (1, ProtobufValue::Bytes(resource)) => {
                        received.resource = attributes(resource, 1)
                    }
                    (2, ProtobufValue::Bytes(scope_spans)) => received.add_scope(scope_spans),
                    other => panic!("unexpected {other:?}"),
                }
            }
        }
        received
    }

    fn add_scope(&mut self, scope_spans: &[u8]) {
        for (number, value) in fields(scope_spans) {
            match (number, value) {
                (1, ProtobufValue::Bytes(scope)) => self.scope = text(messages(scope, 1)[0]),
                (2, ProtobufValue::Bytes(span)) => self.spans.push(ReceivedSpan::decode(span)),
                other => panic!("unexpected {other:?}"),
            }
        }
    }
}

impl ReceivedSpan {
    fn decode(message: &[u8]) -> Self {
        let mut span = Self { attributes: attributes(message, 9), ..Self::default() };
        for (number, value) in fields(message) {
            match (number, value) {
                (1, ProtobufValue::Bytes(id)) => span.trace_id = hex(id),
                (2, ProtobufValue::Bytes(id)) => span.span_id = hex(id),
                (3, ProtobufValue::Bytes(state)) => span.tracestate = text(state),
                (4, ProtobufValue::Bytes(id)) => span.parent = hex(id),
                (5, ProtobufValue::Bytes(name)) => span.name = text(name),
                (6, ProtobufValue::Number(kind)) => span.kind = kind,
                (7, ProtobufValue::Number(time)) => span.start_ns = time,
                (8, ProtobufValue::Number(time)) => span.end_ns = time,
                (9, _) => {}
                (15, ProtobufValue::Bytes(status)) => {
                    span.is_failure = fields(status)[..] == [(3, ProtobufValue::Number(2))];
                }
                other => panic!("unexpected {other:?}"),
            }
        }
        span
    }

    /// The attribute of that name; empty if there is none.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProtobufValue<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

/// The numbers and values of a message's fields.
fn fields(mut message: &[u8]) -> Vec<(u64, ProtobufValue<'_>)> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let value = match tag & 7 {
            0 => ProtobufValue::Number(varint(&mut message)),
            1 => {
                ProtobufValue::Number(u64::from_le_bytes(take(&mut message, 8).try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut message) as usize;
                ProtobufValue::Bytes(take(&mut message, length))
            }
            kind => panic!("a field of kind {kind}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

/// The messages, or texts, in the fields of a number.
fn messages(message: &[u8], number: u64) -> Vec<&[u8]> {
    let of_number = fields(message).into_iter().filter_map(|(own, value)| match value {
        ProtobufValue::Bytes(bytes) if own == number => Some(bytes),
        _ => None,
    });
    of_number.collect()
}

fn attributes(message: &[u8], number: u64) -> BTreeMap<String, String> {
    let attribute = |pair| (text(messages(pair, 1)[0]), attribute_value(messages(pair, 2)[0]));
    messages(message, number).into_iter().map(attribute).collect()
}

fn attribute_value(value: &[u8]) -> String {
    match fields(value)[..] {
        [(1, ProtobufValue::Bytes(string))] => text(string),
        [(3, ProtobufValue::Number(number))] => number.to_string(),
        [(5, ProtobufValue::Bytes(list))] => {
            let elements = messages(list, 1).into_iter().map(attribute_value);
            format!("[{}]", elements.collect::<Vec<_>>().join(", "))
        }
        ref other => panic!("a value {other:?}"),
    }
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut number = 0;
    for place in 0.. {
        let byte = take(message, 1)[0];
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

fn take<'m>(message: &mut &'m [u8], length: usize) -> &'m [u8] {
    let (taken, rest) = message.split_at(length);
    *message = rest;
    taken
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
