//! Properties that hold for any input, as functions that panic if they do not.
//!
//! Shared by the fuzz targets (`fuzz/`) and by the tests that run their seeds; not part of the
//! crate's interface.

use alloc::vec::Vec;
use core::ops::Range;

use crate::Slice;
use crate::accept_encoding::accepts_gzip;
pub use crate::acme::fuzz::acme;
use crate::cgi;
use crate::client_hello::{self, ClientHello, HelloBytes, ObservedHello};
use crate::dns::{self, DnsQuestion, DomainName, NAME_BYTES_MAX, RecordData, RecordType, Response};
use crate::dns::{TsigAlgorithm, TsigKey, TxtChange, TxtUpdate, UpdateError};
use crate::encrypted_key::EncryptedKey;
use crate::fastcgi::{self, RecordDecoder, RecordError};
use crate::grpc::health_status;
use crate::host::Host;
use crate::hpack::{self, FieldLimits, HpackError};
use crate::http1::chunked::{ChunkDecoded, ChunkedDecoder, InvalidChunked};
use crate::http1::framing::{BodyLength, RequestFraming};
use crate::http1::request::{self, HeadError, HeadProgress};
use crate::http1::response::{self, ReplyBody, ReplyError};
use crate::http2::frame::{FRAME_HEAD_BYTES, FrameHead};
use crate::http2::reply::{Http2Reply, InvalidReply};
use crate::http2::{
    self, FieldBlock, Http2Config, Http2Endpoint, Http2Error, Http2Event, Http2Role,
};
use crate::json::{self, JsonLimits, JsonValue};
use crate::memcached::{self, MemcachedAnswer, ValueDecoder};
use crate::ocsp::{OcspCertificateId, OcspResponse};
use crate::pem::{self, PemSections};
use crate::proxy_protocol::{self, HeaderError, Read, TlvName};
use crate::range::{self, Ranges};
use crate::reply::{FIELDS_MAX, ReplyHead};
use crate::request::{HeadLimits, RequestHead};
use crate::resp::{RespLimits, RespReader};
use crate::tls::{self, CipherList, GroupList};
use crate::trace_context::{self, TRACESTATE_BYTES_MAX, TraceParent};
use crate::uri::{self, EscapeSet, Unescape, UriTarget};
use crate::x509::{NAME_COMPARISONS_MAX, RevocationListParts, TrustSettings, X509};
pub use crate::xds::fuzz::xds;
use crate::{Known, Version};

/// Panics if a property does not hold.
pub type Check = fn(&[u8]);

/// The checks by the names of their fuzz targets.
pub const CHECKS: &[(&str, Check)] = &[
    ("http1_request", http1_request),
    ("http1_response", http1_response),
    ("http1_chunked", http1_chunked),
    ("http2", http2),
    ("http2_reply", http2_reply),
    ("uri", uri),
    ("range", range),
    ("accept_encoding", accept_encoding),
    ("proxy_protocol", proxy_protocol),
    ("dns", dns),
    ("cgi", cgi),
    ("fastcgi", fastcgi),
    ("memcached", memcached),
    ("resp", resp),
    ("grpc_health", grpc_health),
    ("json", json),
    ("tls_lists", tls_lists),
    ("pem", pem),
    ("hpack", hpack),
    ("x509", x509),
    ("client_hello", client_hello),
    ("observed_hello", observed_hello),
    ("ocsp", ocsp),
    ("trace_context", trace_context),
    ("acme", acme),
    ("dns_update", dns_update),
    ("xds", xds),
];

/// The most prefixes of an input that are tried.
const CUTS_MAX: usize = 600;

/// The number of random splits, and of their cuts. They depend on the input alone, so that a
/// finding can be repeated.
const SPLITS: usize = 4;

/// A request head parses alike in pieces and whole, and lies within its input.
pub fn http1_request(input: &[u8]) {
    for limits in head_limits() {
        let (head, whole) = parse_pieces(input, &limits, &[input.len()]);
        check_head(&head, whole, input);
        for ends in splits(input) {
            let (pieces_head, pieces) = parse_pieces(input, &limits, &ends);
            assert_eq!(pieces, whole, "in pieces {ends:?}");
            assert!(whole.is_err() || pieces_head == head, "in pieces {ends:?}");
        }
    }
}

/// A list of ciphers or groups selects something, and nothing twice.
pub fn tls_lists(input: &[u8]) {
    if let Ok(list) = CipherList::parse(input) {
        assert!(!list.suites.is_empty() && all_differ(&list.suites), "{list:?}");
    }
    if let Ok(GroupList::Groups { groups, lacking }) = GroupList::parse(input) {
        assert!(!groups.is_empty() && all_differ(&groups), "{groups:?}");
        assert!(lacking.iter().all(|(start, end)| input.get(*start..*end).is_some()));
    }
    assert!(all_differ(&tls::parse_tls13_suites(input)));
}

fn all_differ<T: PartialEq>(items: &[T]) -> bool {
    items.iter().enumerate().all(|(at, item)| !items[..at].contains(item))
}

/// A decoded PEM section survives encoding and decoding, and an encrypted key fits its cipher.
pub fn pem(input: &[u8]) {
    for section in PemSections::new(input).map_while(Result::ok) {
        let mut text = Vec::new();
        pem::encode("KEY", &section.contents, &mut text);
        let again = PemSections::new(&text).next().expect("a section").expect("a good one");
        assert_eq!(again.contents, section.contents);
        if let Some(Ok(key)) = EncryptedKey::of(&section) {
            assert_eq!(key.iv.len(), key.cipher.block_len());
            assert!(key.ciphertext.len().is_multiple_of(key.cipher.block_len()));
        }
    }
}

/// More bytes do not change the decision of an observer, and it does not see a ClientHello where a
/// server sees none.
pub fn observed_hello(input: &[u8]) {
    let whole = client_hello::observe(input);
    for end in (0..input.len()).rev().take(CUTS_MAX) {
        let part = client_hello::observe(&input[..end]);
        assert!(part == ObservedHello::Partial || part == whole, "{end}");
    }
    if let ObservedHello::Complete(message) = whole {
        assert_eq!(client_hello::message(input), HelloBytes::Complete(message));
    }
}

/// More bytes do not change a complete ClientHello, and its parts lie within it.
pub fn client_hello(input: &[u8]) {
    let mut complete = None;
    let fault = client_hello::fault(input);
    for end in (0..=input.len()).rev().take(CUTS_MAX) {
        let known = client_hello::fault(&input[..end]);
        assert!(known.is_none() || known == fault, "{end}");
        match (client_hello::message(&input[..end]), &complete) {
            (HelloBytes::Complete(message), None) if end == input.len() => complete = Some(message),
            (HelloBytes::Complete(message), whole) => assert_eq!(Some(&message), whole.as_ref()),
            (HelloBytes::NotTls, None) => return,
            (HelloBytes::NotTls, Some(_)) => panic!("no TLS any more"),
            (HelloBytes::Partial, _) => {}
        }
    }
    let Some(hello) = complete.as_deref().and_then(ClientHello::parse) else { return };
    let numbers = [hello.cipher_suites, hello.groups, hello.signature_schemes, hello.versions];
    let numbers: usize = numbers.iter().map(|list| client_hello::numbers(list).count() * 2).sum();
    let names: usize = hello.protocols().map(<[u8]>::len).sum();
    let name = hello.server_name.map_or(0, <[u8]>::len);
    assert!(numbers + names + name <= client_hello::MESSAGE_MAX);
}

/// The parts of a response lie within it and do not overlap.
pub fn ocsp(input: &[u8]) {
    let Ok(response) = OcspResponse::parse(input) else { return };
    let certificates: usize = response.certificates().map(<[u8]>::len).sum();
    assert!(certificates + response.signed.len() + response.signature.bits.len() <= input.len());
    let nobody = OcspCertificateId { name_hash: [0; 20], key_hash: [0; 20], serial: Vec::new() };
    let _ = response.answer(&nobody);
}

/// All values of a certificate can be written, as ASCII without line breaks.
pub fn x509(input: &[u8]) {
    if let Ok(list) = RevocationListParts::parse(input) {
        let _ = list.revokes(&[1]);
        if let Ok(certificate) = X509::parse(CERTIFICATE) {
            let _ = list.scope_of(&certificate);
        }
    }
    if let Ok((certificate, settings)) = TrustSettings::split(input) {
        assert!(input.starts_with(certificate));
        let _ = settings.of(1);
    }
    let Ok(x509) = X509::parse(input) else { return };
    let mut out = Vec::new();
    for name in [x509.subject, x509.issuer] {
        let _ = name.write_rfc2253(&mut out);
        let _ = name.write_legacy(&mut out);
    }
    x509.not_before.write(&mut out);
    x509.not_after.write(&mut out);
    assert!(out.iter().all(|byte| matches!(byte, b' '..=b'~')), "{out:?}");
    x509.write_serial(&mut out);
    assert!(x509.days_left(0) >= 0);
    let _ = (x509.ocsp_responder(), x509.may_sign_ocsp(), x509.may_issue(0));
    let _ = (x509.has_purpose(1), x509.has_unknown_critical(), x509.is_of_host(b"a.b.c"));
    let _ = (x509.may_shake_hands(1), x509.has_invalid_extension(), x509.names_issuer(&x509));
    let mut comparisons = NAME_COMPARISONS_MAX;
    let _ = x509.keeps_to(&x509, true, &mut comparisons);
}

/// A certificate with distribution points, for revocation lists.
const CERTIFICATE: &[u8] = include_bytes!("../../../fuzz/seeds/x509/listed");

/// A reply's head parses alike in pieces and whole, lies within its input, and no byte in its lines
/// could end one.
pub fn http1_response(input: &[u8]) {
    let (head, parser, whole) = parse_reply(input, &[input.len()]);
    for ends in splits(input) {
        let (pieces, _, end) = parse_reply(input, &ends);
        assert_eq!(end, whole, "in pieces {ends:?}");
        if matches!(whole, Ok(Some(_))) {
            assert_eq!((pieces.status, &pieces.fields), (head.status, &head.fields), "{ends:?}");
        }
    }
    let Ok(Some(length)) = whole else { return };
    assert!(length <= input.len() && head.fields.len() <= FIELDS_MAX);
    for field in &head.fields {
        let (name, value) = (field.name.of(input), field.value.of(input));
        assert!(!name.is_empty() && !name.iter().any(|byte| *byte <= 0x20 || *byte == b':'));
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
    }
    let reason = head.status_line.of(input);
    assert!((1..=999).contains(&head.status) && !reason.iter().any(|b| matches!(b, b'\r' | b'\n')));
    let of_get = ReplyBody::of(&head, input, false);
    assert!(of_get.is_err() || ReplyBody::of(&head, input, true) == Ok(ReplyBody::None));
    parser.closes(&head, input);
}

fn parse_reply(
    input: &[u8],
    ends: &[usize],
) -> (ReplyHead, response::ResponseHeadParser, Result<Option<usize>, ReplyError>) {
    let (mut head, mut parser) = (ReplyHead::default(), response::ResponseHeadParser::default());
    let mut parsed = Ok(None);
    for &end in ends {
        parsed = parser.parse(&mut head, &input[..end]);
        if parsed != Ok(None) {
            break;
        }
    }
    (head, parser, parsed)
}

fn head_limits() -> [HeadLimits; 3] {
    let usual = HeadLimits::default();
    let lenient = HeadLimits {
        ignore_invalid_headers: false,
        underscores_in_headers: true,
        pause_at_host: true,
        ..usual
    };
    let small = HeadLimits {
        client_header_buffer_size: 24,
        large_client_header_buffers: (3, 40),
        max_headers: 4,
        ..usual
    };
    [usual, lenient, small]
}

fn parse_pieces(
    input: &[u8],
    limits: &HeadLimits,
    ends: &[usize],
) -> (RequestHead, Result<HeadProgress, HeadError>) {
    let (mut head, mut parser) = (RequestHead::default(), request::RequestHeadParser::default());
    let mut progress = Ok(HeadProgress::Partial);
    for &end in ends {
        progress = parser.parse(&mut head, &input[..end], limits);
        if progress == Ok(HeadProgress::Host) {
            progress = parser.parse(&mut head, &input[..end], limits);
        }
        if progress != Ok(HeadProgress::Partial) {
            break;
        }
        assert!(end < limits.input_max());
    }
    (head, progress)
}

fn check_head(head: &RequestHead, progress: Result<HeadProgress, HeadError>, input: &[u8]) {
    let len = match progress {
        Err(error) => return check_error(error, input),
        Ok(HeadProgress::Complete { len }) => len,
        Ok(HeadProgress::Host) => panic!("a second pause"),
        Ok(HeadProgress::Partial) => return,
    };
    assert!(len <= input.len() && head.line.of(input).len() < len);
    assert!(head.path.of(input).starts_with(b"/"));
    assert!(head.host.is_empty() || Host::parse(head.host.of(input)).is_some());
    for field in &head.fields {
        let (name, value) = (field.name.of(input), field.value.of(input));
        assert!(!name.is_empty() && name.iter().all(|&byte| byte > b' ' && byte != b':'));
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        assert_eq!(field.id, Known::of(name));
    }
    check_edits(head, input);
    check_path(head.path.of(input), !head.needs_normalising);
    match RequestFraming::of(head, input, true) {
        Err(error) => check_error(error, input),
        Ok(RequestFraming { body: BodyLength::Chunked, .. }) => {
            assert!(head.version >= Version::HTTP_11);
            assert!(head.field(Known::ContentLength).is_none());
        }
        Ok(_) => assert!(head.field(Known::TransferEncoding).is_none()),
    }
}

/// Fields that are set and removed as the input directs equal those of a plain list.
fn check_edits(parsed: &RequestHead, input: &[u8]) {
    const NAMES: [&[u8]; 4] = [b"hOST", b"Cookie", b"content-length", b"x-other"];
    const EDITS_MAX: usize = 32;
    let limits = HeadLimits { large_client_header_buffers: (1000, 65536), ..HeadLimits::default() };
    let (mut text, mut head) = (input.to_vec(), RequestHead::default());
    head.copy_from(parsed);
    let lines = |head: &RequestHead, text: &[u8]| -> Vec<[Vec<u8>; 2]> {
        head.fields
            .iter()
            .map(|field| [field.name, field.value].map(|s| s.of(text).to_vec()))
            .collect()
    };
    let mut model = lines(&head, &text);
    for &byte in input.iter().rev().take(EDITS_MAX) {
        let at = usize::from(byte >> 1) % (NAMES.len() + model.len());
        let name = match NAMES.get(at) {
            Some(name) => name.to_vec(),
            None => model[at - NAMES.len()][0].clone(),
        };
        let is_same = |line: &[Vec<u8>; 2]| line[0].eq_ignore_ascii_case(&name);
        let first = model.iter().position(is_same);
        if byte & 1 == 0 {
            assert_eq!(head.remove_field(&text, &name), first.is_some());
            model.retain(|line| !is_same(line));
        } else if head.set_field(&mut text, &name, b"1", &limits).is_ok() {
            model.retain(|line| !is_same(line));
            model.insert(first.unwrap_or(model.len()), [name.clone(), b"1".to_vec()]);
        }
        assert_eq!(lines(&head, &text), model);
        let id = Known::of(&name);
        if id != Known::Other {
            assert_eq!(head.field(id).is_some(), model.iter().any(is_same));
        }
        let host = model.iter().find(|line| Known::of(&line[0]) == Known::Host);
        assert!(host.is_some() || !head.authority.is_empty() || head.host.is_empty());
    }
}

fn check_error(error: HeadError, input: &[u8]) {
    assert!((400..600).contains(&error.status()));
    let mut message = Vec::new();
    error.write_message(input, &mut message);
    assert!(message.starts_with(b"client sent "));
}

/// A chunked body decodes alike in pieces and whole.
pub fn http1_chunked(input: &[u8]) {
    let whole = decode_pieces(input, &[input.len()]);
    for ends in splits(input) {
        assert_eq!(decode_pieces(input, &ends), whole, "in pieces {ends:?}");
    }
}

/// The body so far, and the offset of its end in the input.
fn decode_pieces(input: &[u8], ends: &[usize]) -> (Vec<u8>, Result<Option<usize>, InvalidChunked>) {
    let mut decoder = ChunkedDecoder::default();
    let mut body = Vec::new();
    let mut at = 0;
    for &end in ends {
        loop {
            match decoder.decode(&input[at..end]) {
                Ok(ChunkDecoded::Data(Range { start, end })) => {
                    assert!(start < end);
                    body.extend_from_slice(&input[at + start..at + end]);
                    at += end;
                }
                Ok(ChunkDecoded::More) => break at = end,
                Ok(ChunkDecoded::Trailers(_)) => unreachable!("they are skipped"),
                Ok(ChunkDecoded::End(end)) => return (body, Ok(Some(at + end))),
                Err(error) => return (body, Err(error)),
            }
        }
    }
    (body, Ok(None))
}

/// Input of a connection has the same effects in pieces and whole, and the answers are whole
/// frames.
pub fn http2(input: &[u8]) {
    for role in [Http2Role::Server, Http2Role::Client] {
        let whole = http2_in_pieces(role, input, &[input.len()]);
        for ends in splits(input) {
            assert_eq!(http2_in_pieces(role, input, &ends), whole, "in pieces {ends:?}");
        }
        let mut output = &whole.output[..];
        if role == Http2Role::Client {
            output = &output[http2::PREFACE.len()..];
        }
        while let Some((head, rest)) = output.split_first_chunk::<FRAME_HEAD_BYTES>() {
            output = &rest[FrameHead::parse(head).length as usize..];
        }
        assert!(output.is_empty());
    }
}

/// The effects of an input: events, all data, all fields, and the output.
#[derive(Debug, PartialEq)]
struct Http2Seen {
    events: Vec<Http2Event>,
    data: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    output: Vec<u8>,
    end: Result<(), Http2Error>,
}

fn http2_in_pieces(role: Http2Role, input: &[u8], ends: &[usize]) -> Http2Seen {
    let mut endpoint = Http2Endpoint::new(role, Http2Config::default());
    if role == Http2Role::Client
        && let Some(stream) = endpoint.open()
    {
        endpoint.begin_fields(stream).expect("a new stream").finish(true);
        endpoint.receive(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).expect("SETTINGS without parameters");
    } else {
        endpoint.receive(http2::PREFACE).expect("the preface");
    }
    let (events, data, fields) = (Vec::new(), Vec::new(), Vec::new());
    let mut seen = Http2Seen { events, data, fields, output: Vec::new(), end: Ok(()) };
    let mut at = 0;
    for &end in ends {
        loop {
            let received = match endpoint.receive(&input[at..end]) {
                Ok(received) => received,
                Err(error) => {
                    seen.end = Err(error);
                    seen.output = endpoint.output().to_vec();
                    return seen;
                }
            };
            let taken = &input[at..end];
            at += received.consumed;
            let Some(event) = received.event else { break };
            note_http2(&mut seen, (role, &endpoint), event, taken);
        }
        assert_eq!(at, end);
    }
    seen.output = endpoint.output().to_vec();
    seen
}

fn note_http2(
    seen: &mut Http2Seen,
    (role, endpoint): (Http2Role, &Http2Endpoint),
    event: Http2Event,
    taken: &[u8],
) {
    match event {
        Http2Event::Data { stream, range, end_stream } => {
            assert!(end_stream || !range.is_empty());
            seen.data.extend_from_slice(&taken[range]);
            // The events do not show where a frame was cut.
            if end_stream {
                seen.events.push(Http2Event::Data { stream, range: 0..0, end_stream });
            }
        }
        Http2Event::Head { .. } | Http2Event::Trailers { .. } | Http2Event::Interim { .. } => {
            let fields = endpoint.fields().iter().map(|(name, value)| (name.into(), value.into()));
            seen.fields.extend(fields);
            let is_head = !matches!(event, Http2Event::Trailers { .. });
            if role == Http2Role::Client && is_head {
                assert_eq!(http2::reply::parse(endpoint.fields()), Ok(endpoint.reply()));
            }
            if let Ok(request) = http2::request::parse(endpoint.fields()) {
                assert!(!request.method.is_empty() && !request.path.is_empty());
            }
            seen.events.push(event);
        }
        event => seen.events.push(event),
    }
}

/// Lines of the form "name=value" as the fields of a reply. In a valid reply, the first one is the
/// only status, and there is at most one length; the reply stays valid with its status alone, and
/// becomes invalid with a forbidden field.
pub fn http2_reply(input: &[u8]) {
    let mut lines: Vec<(&[u8], &[u8])> = Vec::new();
    for line in input.split(|&byte| byte == b'\n') {
        let at = line.iter().position(|&byte| byte == b'=').unwrap_or(line.len());
        lines.push((&line[..at], line.get(at + 1..).unwrap_or_default()));
    }
    let Ok(reply) = parse_http2_reply(&lines) else { return };
    assert!((100..=999).contains(&reply.status) && reply.status != 101);
    let mut digits = [b'0'; 3];
    let mut rest = reply.status;
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    assert_eq!(lines[0], (&b":status"[..], &digits[..]));
    assert_eq!(parse_http2_reply(&lines[..1]).map(|least| least.status), Ok(reply.status));
    for (name, value) in &lines[1..] {
        assert!(!name.is_empty() && !name.starts_with(b":") && *name == name.to_ascii_lowercase());
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
    }
    let lengths = lines.iter().filter(|line| line.0 == b"content-length").count();
    assert_eq!(lengths, usize::from(reply.content_length.is_some()));
    for refused in [&b":status"[..], b"connection", b"transfer-encoding", b"te", b"A"] {
        lines.push((refused, b"200"));
        assert!(parse_http2_reply(&lines).is_err());
        lines.pop();
    }
}

fn parse_http2_reply(lines: &[(&[u8], &[u8])]) -> Result<Http2Reply, InvalidReply> {
    let mut block = FieldBlock::default();
    lines.iter().for_each(|(name, value)| block.push(name, value));
    http2::reply::parse(&block)
}

/// Normal paths stay normal, and escaped text can be unescaped.
pub fn uri(input: &[u8]) {
    if let Some(target) = UriTarget::parse(input) {
        let Slice { end, .. } = target.whole;
        assert!(matches!(input.get(end as usize), None | Some(b' ')));
        check_path(target.path.of(input), !target.needs_normalising);
    }
    check_path(input, false);
    let mut location = Vec::new();
    if uri::parse_unsafe(input, &mut location).is_some() {
        assert!(location.split(|&byte| byte == b'/').all(|segment| segment != b".."));
    }
    for kind in [
        EscapeSet::Uri,
        EscapeSet::Args,
        EscapeSet::UriComponent,
        EscapeSet::Html,
        EscapeSet::Memcached,
    ] {
        let (mut escaped, mut unescaped) = (Vec::new(), Vec::new());
        uri::escape(kind, input, &mut escaped);
        uri::unescape(Unescape::All, &escaped, &mut unescaped);
        assert_eq!(unescaped, input, "{kind:?}");
    }
    for kind in [Unescape::All, Unescape::Uri, Unescape::Redirect] {
        let mut unescaped = Vec::new();
        uri::unescape(kind, input, &mut unescaped);
        assert!(unescaped.len() <= input.len());
    }
}

fn check_path(path: &[u8], is_normal: bool) {
    for merge_slashes in [false, true] {
        let mut normal = Vec::new();
        if uri::normalise(path, merge_slashes, &mut normal).is_err() {
            assert!(normal.is_empty() && !(is_normal && path.first() == Some(&b'/')));
            continue;
        }
        assert!(normal.starts_with(b"/") && normal.len() <= path.len());
        assert!(!is_normal || normal == path);
        let segments = || normal.split(|&byte| byte == b'/');
        assert!(segments().all(|segment| segment != b"." && segment != b".."));
        assert!(!merge_slashes || segments().filter(|segment| segment.is_empty()).count() <= 2);
        let (mut escaped, mut again) = (Vec::new(), Vec::new());
        uri::escape(EscapeSet::Uri, &normal, &mut escaped);
        assert!(uri::normalise(&escaped, merge_slashes, &mut again).is_ok());
        assert_eq!(again, normal);
    }
}

/// Ranges lie within the length, and are limited in number and total length.
pub fn range(input: &[u8]) {
    let mut ranges = Vec::new();
    for length in [0, 1, 1000, 1 << 20, i64::MAX as u64, u64::MAX] {
        for max_ranges in [None, Some(0), Some(1), Some(3)] {
            let answer = range::parse(input, length, max_ranges, &mut ranges);
            let count = ranges.len();
            assert!(max_ranges.is_none_or(|max| count <= max as usize));
            assert!(ranges.iter().all(|range| range.start < range.end && range.end <= length));
            if answer == Ranges::Partial {
                let total: u128 = ranges.iter().map(|r| u128::from(r.end - r.start)).sum();
                assert!(count == 1 || count > 1 && total <= u128::from(length));
            }
        }
    }
}

/// A span that was read is written so that it is read alike, and a list of states that was accepted
/// is accepted again, unchanged. The first line is `traceparent`, the others are `tracestate`.
pub fn trace_context(input: &[u8]) {
    let mut lines = input.split(|byte| *byte == b'\n');
    if let Some(parent) = lines.next().and_then(TraceParent::parse) {
        assert_eq!(TraceParent::parse(&parent.text()), Some(parent));
    }
    let (mut joined, mut again) = (Vec::new(), Vec::new());
    trace_context::join_tracestate(lines, &mut joined);
    trace_context::join_tracestate([&joined[..]], &mut again);
    assert_eq!(joined, again);
    assert!(joined.len() <= TRACESTATE_BYTES_MAX);
    assert!(joined.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')));
}

/// Case does not matter, nor does the text after the first `gzip` and its comma.
pub fn accept_encoding(input: &[u8]) {
    let accepted = accepts_gzip(input);
    // `gzip,` in lower case is accepted whatever follows.
    if !input.to_ascii_lowercase().starts_with(b"gzip,") {
        assert_eq!(accepts_gzip(&input.to_ascii_uppercase()), accepted);
    }
    if input.ends_with(b"gzip") && accepted {
        let mut longer = input.to_vec();
        longer.extend_from_slice(b", br;q=0");
        assert!(accepts_gzip(&longer));
    }
}

/// A PROXY protocol header reads alike in pieces and whole, and its values lie within it.
pub fn proxy_protocol(input: &[u8]) {
    let whole = proxy_protocol::read(input);
    for ends in splits(input) {
        assert_eq!(proxy_header_in_pieces(input, &ends), whole, "in pieces {ends:?}");
    }
    match whole {
        Ok(Read::Partial) => assert!(input.len() < proxy_protocol::V2_MAX),
        Ok(Read::Complete { len, header }) => {
            assert!(len <= input.len().min(proxy_protocol::V2_MAX));
            let mut value = Vec::new();
            for name in [&b"alpn"[..], b"0x02", b"0x100", b"ssl_verify", b"ssl_cn", input] {
                let Some(header) = &header else { continue };
                let found = header.tlv(TlvName::parse(name), &mut value);
                assert!(found == Ok(true) || value.is_empty());
                assert!(value.len() < len);
                value.clear();
            }
        }
        Err(error) => error.write_message(input, &mut Vec::new()),
    }
}

fn proxy_header_in_pieces(input: &[u8], ends: &[usize]) -> Result<Read, HeaderError> {
    let reads = ends.iter().map(|&end| proxy_protocol::read(&input[..end]));
    let mut last = Ok(Read::Partial);
    for read in reads {
        last = read;
        if last != Ok(Read::Partial) {
            break;
        }
    }
    last
}

/// Only requested records come out of a message, and a written query can be read.
pub fn dns(input: &[u8]) {
    const NAMES: [&[u8]; 3] = [b"example.net", b"_http._tcp.example.net", b"a"];
    for (text, known) in NAMES.iter().map(|text| (*text, true)).chain([(input, false)]) {
        let name = DomainName::from_text(text);
        assert!(name.is_ok() || !known);
        let Ok(name) = name else { continue };
        for kind in DNS_TYPES {
            let question = DnsQuestion { name: name.clone(), kind };
            check_response(input, &question, dns::id_of(input).unwrap_or_default());
            check_echo(&question);
        }
    }
}

/// Without the right signature, no message is the response to an update; a key has a secret.
pub fn dns_update(input: &[u8]) {
    for parsed in [TsigKey::parse(input), TsigKey::parse_line(input)] {
        assert!(!parsed.is_ok_and(|key| key.secret.is_empty()));
    }
    let name = DomainName::from_text(b"a.test").expect("a name");
    let algorithm = TsigAlgorithm::HmacSha256;
    let key = TsigKey { name: name.clone(), algorithm, secret: Vec::new() };
    let (zone, change) = (&name, TxtChange::Remove);
    let update = TxtUpdate { zone, name: zone, value: b"value", change };
    let nobody = |_, _: &[u8], message: &[u8]| [message.len() as u8; 32].to_vec();
    let signed = update.sign(dns::id_of(input).unwrap_or_default(), 0, &key, &nobody);
    let other = |algorithm, secret: &[u8], message: &[u8]| {
        nobody(algorithm, secret, message).iter().map(|byte| !byte).collect()
    };
    if signed.verdict(input, 0, &key, &nobody).is_ok() {
        let verdict = signed.verdict(input, 0, &key, &other);
        assert_eq!(verdict, Err(UpdateError::Signature));
    }
}

const DNS_TYPES: [RecordType; 7] = [
    RecordType::A,
    RecordType::Cname,
    RecordType::Aaaa,
    RecordType::Srv,
    RecordType::Ptr,
    RecordType::Ns,
    RecordType::Txt,
];

fn check_response(message: &[u8], question: &DnsQuestion, id: u16) {
    let Ok(response) = dns::parse(message, question, id) else { return };
    assert_ne!(dns::parse(message, question, !id).ok(), Some(response.clone()));
    let Response::Answer(answer) = response else { return };
    assert!(answer.alias.is_none() || answer.records.is_empty());
    assert!(answer.ttl_s <= i32::MAX as u32);
    for record in &answer.records {
        let same = match record {
            RecordData::Address(ip) => {
                question.kind == if ip.is_ipv4() { RecordType::A } else { RecordType::Aaaa }
            }
            RecordData::Service(_) => question.kind == RecordType::Srv,
            RecordData::Pointer(_) => question.kind == RecordType::Ptr,
            RecordData::NameServer(_) => question.kind == RecordType::Ns,
            RecordData::Text(_) => question.kind == RecordType::Txt,
        };
        assert!(same);
    }
}

/// A query marked as a response is an answer without records.
fn check_echo(question: &DnsQuestion) {
    const ID: u16 = 0xabcd;
    let mut message = Vec::new();
    question.write(ID, &mut message);
    assert!(message.len() <= dns::QUERY_BYTES_MAX && message.len() - 16 <= NAME_BYTES_MAX);
    message[2] |= 0x80;
    let response = dns::parse(&message, question, ID);
    assert!(matches!(response, Ok(Response::Answer(answer)) if answer.records.is_empty()));
}

/// The head of a CGI reply parses alike in pieces and whole, and has a status.
pub fn cgi(input: &[u8]) {
    for parser in [cgi::CgiHeadParser::default(), cgi::CgiHeadParser::with_status_line()] {
        let mut head = ReplyHead::default();
        let whole = { parser }.parse(&mut head, input);
        for ends in splits(input) {
            let (mut parser, mut pieces, mut parsed) = (parser, ReplyHead::default(), Ok(None));
            for end in ends {
                parsed = parser.parse(&mut pieces, &input[..end]);
                if parsed != Ok(None) {
                    break;
                }
            }
            assert_eq!(parsed, whole);
            assert!(
                whole.is_err() || (pieces.status, &pieces.fields) == (head.status, &head.fields)
            );
        }
        assert!(!matches!(whole, Ok(Some(_))) || (100..=999).contains(&head.status));
        assert!(!head.status_line.of(input).contains(&b'\n'));
    }
}

/// Records decode alike in pieces and whole.
pub fn fastcgi(input: &[u8]) {
    let whole = records_in_pieces(input, &[input.len()]);
    for ends in splits(input) {
        assert_eq!(records_in_pieces(input, &ends), whole, "in pieces {ends:?}");
    }
    assert!(fastcgi::trim_stderr(input).len() <= input.len());
}

/// Output, text for the error log, and the progress of the request.
type RecordsOutput = (Vec<u8>, Vec<u8>, Vec<usize>);

fn records_in_pieces(input: &[u8], ends: &[usize]) -> (RecordsOutput, Result<(), RecordError>) {
    use fastcgi::RecordDecoded;
    let mut decoder = RecordDecoder::default();
    let (mut output, mut at) = (RecordsOutput::default(), 0);
    for &end in ends {
        loop {
            let base = at;
            let used = match decoder.decode(&input[base..end]) {
                Err(error) => return (output, Err(error)),
                Ok(RecordDecoded::Stdout(range)) => {
                    assert!(!range.is_empty());
                    output.0.extend_from_slice(&input[base..][range.clone()]);
                    range.end
                }
                Ok(RecordDecoded::Stderr(range)) => {
                    assert!(!range.is_empty());
                    output.1.extend_from_slice(&input[base..][range.clone()]);
                    range.end
                }
                Ok(RecordDecoded::StdoutEnd(used) | RecordDecoded::EndRequest(used)) => {
                    output.2.push(base + used);
                    used
                }
                Ok(RecordDecoded::Done(used)) => {
                    assert!(decoder.is_done());
                    output.2.push(base + used);
                    return (output, Ok(()));
                }
                Ok(RecordDecoded::More) => break at = end,
            };
            at = base + used;
        }
    }
    (output, Ok(()))
}

/// An answer lies within its input, and its value has the same end in pieces and whole.
pub fn memcached(input: &[u8]) {
    let Ok(Some(answer)) = memcached::answer(b"/k", input) else { return };
    let (MemcachedAnswer::Value { head_bytes, .. } | MemcachedAnswer::NotFound { head_bytes }) =
        answer;
    assert!(input[..head_bytes].ends_with(b"\r\n"));
    let MemcachedAnswer::Value { flags, length, .. } = answer else { return };
    assert!(flags.of(input).len() < head_bytes);
    let (rest, mut whole) = (&input[head_bytes..], ValueDecoder::new(length));
    let in_one = whole.decode(rest);
    for ends in splits(rest) {
        let (mut decoder, mut at, mut data) = (ValueDecoder::new(length), 0, 0);
        let mut decoded = Ok(());
        for end in ends {
            match decoder.decode(&rest[at..end]) {
                Ok(count) => data += count,
                Err((count, error)) => {
                    (data, decoded) = (data + count, Err(error));
                    break;
                }
            }
            at = end;
        }
        let pieces = decoded.map(|()| data).map_err(|error| (data, error));
        assert_eq!(pieces, in_one);
        assert!(pieces.is_err() || decoder.is_done() == whole.is_done());
    }
}

/// Replies of a store are the same in pieces and whole, and keep to the limits.
pub fn resp(input: &[u8]) {
    const COMMANDS: usize = 3;
    let limits = RespLimits { text_bytes_max: 64, items_max: 16, bytes_max: 4096 };
    let mut whole = RespReader::new(COMMANDS, limits);
    let in_one = whole.receive(input);
    let is_done = whole.is_done();
    let replies = whole.into_replies();
    assert!(replies.len() <= COMMANDS && is_done == (replies.len() == COMMANDS));
    assert!(replies.iter().all(|reply| reply.len() <= limits.items_max));
    for ends in splits(input) {
        let (mut reader, mut at) = (RespReader::new(COMMANDS, limits), 0);
        let pieces = ends.into_iter().try_for_each(|end| {
            let received = reader.receive(&input[at..end]);
            at = end;
            received
        });
        // Whole, a limit of bytes is exceeded before anything is read.
        assert!(pieces == in_one || input.len() > limits.bytes_max);
        assert!(pieces.is_err() || reader.into_replies() == replies);
    }
}

/// A reply to a health check says the same with an unknown field behind it.
pub fn grpc_health(input: &[u8]) {
    let Ok(status) = health_status(input) else { return };
    let mut longer = input.to_vec();
    longer.extend_from_slice(&[2 << 3, 1]);
    let length = (longer.len() - 5) as u32;
    longer[1..5].copy_from_slice(&length.to_be_bytes());
    assert_eq!(health_status(&longer), Ok(status));
}

/// Blocks, each after a byte with its length, decode alike under all limits that do not end the
/// connection, and the fields survive another encoding.
pub fn hpack(input: &[u8]) {
    const TABLE_BYTES_MAX: usize = 256;
    let small = FieldLimits { fields_max: 2, bytes_max: 40, ..FieldLimits::NONE };
    let large = FieldLimits::NONE;
    let (mut limited, mut decoder) =
        (hpack::Decoder::new(TABLE_BYTES_MAX), hpack::Decoder::new(TABLE_BYTES_MAX));
    let (mut encoder, mut again) =
        (hpack::Encoder::new(TABLE_BYTES_MAX), hpack::Decoder::new(TABLE_BYTES_MAX));
    let mut rest = input;
    while let Some((&len, after)) = rest.split_first() {
        let (block, next) = after.split_at(after.len().min(len.into()));
        rest = next;
        let (few, within) = decode_block(&mut limited, block, small);
        let (fields, result) = decode_block(&mut decoder, block, large);
        assert!(fields.starts_with(&few) && few.len() <= small.fields_max);
        check_fields(&fields, &mut encoder, &mut again);
        match (within, result) {
            (Err(HpackError::Excessive), _) => return,
            (Ok(()), Ok(())) => assert_eq!(few, fields),
            (Err(error), Ok(())) => assert!(!error.ends_connection()),
            (within, Err(error)) => {
                assert!(error.ends_connection());
                return assert_eq!(within, Err(error));
            }
        }
    }
}

/// Names, values, and whether they must never be indexed.
type DecodedFields = Vec<(Vec<u8>, Vec<u8>, bool)>;

fn decode_block(
    decoder: &mut hpack::Decoder,
    block: &[u8],
    limits: FieldLimits,
) -> (DecodedFields, Result<(), HpackError>) {
    let mut fields = Vec::new();
    let result = decoder.decode(block, limits, |name, value, never| {
        fields.push((name.into(), value.into(), never));
    });
    (fields, result)
}

fn check_fields(
    fields: &DecodedFields,
    encoder: &mut hpack::Encoder,
    decoder: &mut hpack::Decoder,
) {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    for (name, value, never) in fields {
        match never {
            true => encoder.field_never_indexed(name, value, &mut block),
            false => encoder.field(name, value, &mut block),
        }
    }
    let (decoded, result) = decode_block(decoder, &block, FieldLimits::NONE);
    assert_eq!(result, Ok(()));
    assert_eq!(decoded.len(), fields.len());
    for (decoded, field) in decoded.iter().zip(fields) {
        assert_eq!(decoded.0, field.0.to_ascii_lowercase());
        assert_eq!((&decoded.1, decoded.2), (&field.1, field.2));
    }
}

/// A document keeps its limits, and says the same after it was written and read again.
pub fn json(input: &[u8]) {
    let limits = JsonLimits { bytes_max: 1 << 16, depth_max: 16, values_max: 1000 };
    let value = match json::parse(input, limits) {
        Ok(value) => value,
        Err(error) => return assert!(error.at <= input.len() && error.position(input).line > 0),
    };
    let mut values = 0;
    let mut written = Vec::new();
    write_json(&value, 0, &mut values, &mut written);
    assert!(values <= limits.values_max);
    let limits = JsonLimits { bytes_max: written.len(), ..limits };
    let again = json::parse(&written, limits);
    let mut written_again = Vec::new();
    write_json(&again.expect("what was written"), 0, &mut 0, &mut written_again);
    assert_eq!(written_again, written);
}

fn write_json(value: &JsonValue<'_>, depth: u8, values: &mut usize, out: &mut Vec<u8>) {
    assert!(depth <= 16);
    *values += 1;
    match value {
        JsonValue::Null => out.extend_from_slice(b"null"),
        JsonValue::Bool(true) => out.extend_from_slice(b"true"),
        JsonValue::Bool(false) => out.extend_from_slice(b"false"),
        JsonValue::Number(number) => out.extend_from_slice(number.as_str().as_bytes()),
        JsonValue::Text(text) => json::write_text(text.as_bytes(), out),
        JsonValue::List(list) => {
            out.push(b'[');
            for (index, value) in list.iter().enumerate() {
                out.extend_from_slice(if index == 0 { b"" } else { b"," });
                write_json(value, depth + 1, values, out);
            }
            out.push(b']');
        }
        JsonValue::Object(object) => {
            out.push(b'{');
            for (index, member) in object.iter().enumerate() {
                assert_eq!(object.get(&member.name), Some(&member.value));
                out.extend_from_slice(if index == 0 { b"" } else { b"," });
                json::write_text(member.name.as_bytes(), out);
                out.push(b':');
                write_json(&member.value, depth + 1, values, out);
            }
            out.push(b'}');
        }
    }
}

/// Ways to cut `input`: byte by byte if it is short, and some at random.
pub fn splits(input: &[u8]) -> impl Iterator<Item = Vec<usize>> {
    const BYTEWISE_MAX: usize = 512;
    let every = (input.len() <= BYTEWISE_MAX).then(|| (0..=input.len()).collect());
    let mut state = input.iter().fold(0x9e37_79b9_7f4a_7c15, |state: u64, &byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let random = (0..SPLITS).map(move |_| {
        let mut ends: Vec<usize> = (0..SPLITS)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state % (input.len() as u64 + 1)) as usize
            })
            .collect();
        ends.push(input.len());
        ends.sort_unstable();
        ends
    });
    every.into_iter().chain(random)
}
