//! What was asked: the request line, the path as it stands, arguments, host, body.

use std::os::unix::ffi::OsStrExt;

use wire::trace_context::hex;
use wire::{Known, Method};

use crate::decimal;
use crate::exchange::{Exchange, StoredContent};
use crate::random_ids;
use crate::variables::{BuiltIn, maybe, number, some};

pub(super) const TABLE: &[BuiltIn] = &[
    BuiltIn::fresh("request", "The request line, as the client sent it.", |x, out| {
        some(out, x.request.line())
    }),
    BuiltIn::fresh("request_method", "The method of the request, such as `GET`.", |x, out| {
        let head = &x.request.head;
        match x.main_method() {
            Method::Other => known(out, x.request.text(head.method_text)),
            // An error page is asked for by GET, whatever was sent.
            method => some(out, method.name()),
        }
    }),
    BuiltIn::fresh("request_uri", "The path and arguments, as the client sent them.", |x, out| {
        known(out, x.request.text(x.request.head.target))
    }),
    BuiltIn::fresh(
        "server_protocol",
        "The protocol of the request: `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.",
        |x, out| {
            let protocol = x.request.head.protocol;
            // Found but empty if the protocol was refused at its first byte.
            protocol.start > 0 && some(out, x.request.text(protocol))
        },
    ),
    BuiltIn::fresh(
        "uri",
        "The path of the request, decoded and normalized; internal redirects and `rewrite` change \
         it.",
        uri,
    ),
    BuiltIn::fresh("document_uri", "The same as `$uri`.", uri),
    BuiltIn::fresh("args", "The arguments of the request: what follows `?`.", args)
        .set_by(set_args),
    BuiltIn::fresh("query_string", "The same as `$args`.", args),
    BuiltIn::fresh("is_args", "`?` where the request has arguments, otherwise empty.", |x, out| {
        some(out, if x.request.args.is_empty() { b"" } else { b"?" })
    }),
    BuiltIn::fresh(
        "host",
        "The host that the request is for, in lower case and without port: that of the request \
         line, else of `Host`, else the name of the server block.",
        |x, out| {
            let host = &x.request.host;
            some(out, if host.is_empty() { &x.server().name } else { host })
        },
    ),
    BuiltIn::fresh(
        "request_port",
        "The port in the request line or in `Host`; empty without one.",
        |x, out| x.request.head.port == 0 || number(out, x.request.head.port.into()),
    ),
    BuiltIn::fresh(
        "is_request_port",
        "`:` where `$request_port` has a value, otherwise empty.",
        |x, out| some(out, if x.request.head.port == 0 { b"" } else { b":" }),
    ),
    BuiltIn::fresh("pipe", "`p` where the request was pipelined, otherwise `.`.", |x, out| {
        some(out, if x.request.pipelined { b"p" } else { b"." })
    }),
    BuiltIn::fresh(
        "content_length",
        "The length of the request body: the field `Content-Length`, or what was counted of a \
         chunked body.",
        |x, out| match x.request.field(Known::ContentLength) {
            Some(sent) => some(out, sent),
            // A chunked body has a length once it has been read.
            None => x.request.body.length().is_some_and(|length| number(out, length)),
        },
    ),
    BuiltIn::cached(
        "request_body",
        "The request body, where it was read and is in memory.",
        |x, out| match x.request.body.kept().map(|kept| &kept.content) {
            Some(StoredContent::Memory(body)) => some(out, body),
            Some(StoredContent::File(_)) | None => false,
        },
    ),
    BuiltIn::cached(
        "request_body_file",
        "The path of the temporary file with the request body, where it is in a file.",
        |x, out| match x.request.body.kept().map(|kept| &kept.content) {
            Some(StoredContent::File(file)) => some(out, file.path().as_os_str().as_bytes()),
            Some(StoredContent::Memory(_)) | None => false,
        },
    ),
    BuiltIn::fresh(
        "request_length",
        "The number of bytes of the request: request line, fields and body.",
        |x, out| number(out, x.request_length()),
    ),
    BuiltIn::fresh(
        "request_time",
        "The time since the first bytes of the request, in seconds with milliseconds.",
        |x, out| {
            decimal::write_seconds(x.age_ms(), out);
            true
        },
    ),
    BuiltIn::cached(
        "request_id",
        "A random number for each request, in 32 hexadecimal digits.",
        |_, out| {
            append_id(out);
            true
        },
    ),
];

/// Empty is what was never read: nothing valid is empty.
fn known(out: &mut Vec<u8>, value: &[u8]) -> bool {
    maybe(out, Some(value).filter(|value| !value.is_empty()))
}

/// Empty, but there, for a request line whose path leads out of the root.
fn uri(x: &mut Exchange, out: &mut Vec<u8>) -> bool {
    some(out, &x.request.uri) && !(x.request.uri.is_empty() && x.request.head.path.is_empty())
}

fn args(x: &mut Exchange, out: &mut Vec<u8>) -> bool {
    some(out, &x.request.args) && x.request.has_args
}

fn set_args(x: &mut Exchange, value: &[u8]) {
    x.request.args.clear();
    x.request.args.extend_from_slice(value);
    x.request.has_args = true;
    x.request.uri_unchanged = false;
}

/// 128 bits in hexadecimal digits.
fn append_id(out: &mut Vec<u8>) {
    for _ in 0..2 {
        out.extend_from_slice(&hex::<8, 16>(&random_ids::next().to_be_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::append_id;

    #[test]
    fn ids_are_32_hex_digits_and_differ() {
        let mut ids: Vec<Vec<u8>> = (0..100)
            .map(|_| {
                let mut id = Vec::new();
                append_id(&mut id);
                id
            })
            .collect();
        assert!(ids.iter().all(|id| id.len() == 32 && id.iter().all(u8::is_ascii_hexdigit)));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 100);
    }
}
