//! Turns the fields of a header block into a request.

use std::rc::Rc;

use net::buffers;
use observe::{Level, Text};
use wire::http2::FieldBlock;
use wire::http2::request::{self, InvalidRequest, RequestFields};
use wire::request::{FieldError, RequestParts};
use wire::{Known, Method, Version};

use super::stream_link::StreamLink;
use crate::drive::choose_server;
use crate::exchange::{Announced, Exchange, Request};
use crate::site::Protocols;

/// nginx's own status for a head with too many fields, which the client sees as 400.
const TOO_LARGE: u16 = 494;

/// Fills the exchange's request from the received fields. `Err` is the status to answer with.
pub(super) fn begin(x: &mut Exchange, link: &Rc<StreamLink>, end_stream: bool) -> Result<(), u16> {
    x.action = "reading client request headers";
    let shared = link.shared.clone();
    let length = shared.endpoint.borrow().fields_length();
    x.request.length = length.into();
    link.note_head(length.into());
    let read = {
        let endpoint = shared.endpoint.borrow();
        let fields = endpoint.fields();
        read_head(x, fields, end_stream)
    };
    if read == Err(400) {
        shared.endpoint.borrow_mut().mark_malformed(link.key.get());
    }
    let announced = read?;
    if let (Announced::Length(length), false) = (announced, end_stream) {
        shared.endpoint.borrow_mut().announce(link.key.get(), length);
    }
    x.request.body.announce(announced);
    x.action = "";
    x.keep_connection();
    x.downstream = Some(link.clone());
    Ok(())
}

fn read_head(x: &mut Exchange, fields: &FieldBlock, end_stream: bool) -> Result<Announced, u16> {
    let parts = request::parse(fields).map_err(|InvalidRequest(what)| refuse(x, what))?;
    build(x, fields, &parts)?;
    settle(x, &parts, end_stream)
}

/// Logs what the client did wrong; the status is 400.
fn refuse(x: &mut Exchange, what: &str) -> u16 {
    x.log(Level::Info, format_args!("client {what}"));
    400
}

/// Writes the head's text: the request line for logs, then the fields.
fn build(x: &mut Exchange, fields: &FieldBlock, parts: &RequestFields<'_>) -> Result<(), u16> {
    let authority = parts.authority.unwrap_or_default();
    let line = RequestParts {
        method: parts.method,
        authority: b"",
        target: parts.path,
        version: Version::HTTP_2,
    };
    let Request { head, received, .. } = &mut x.request;
    received.clear();
    if received.capacity() == 0 {
        *received = buffers::lend();
    }
    if head.build(received, &line).is_err() {
        let is_method = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-');
        return Err(match parts.method.iter().all(is_method) {
            true => refuse(x, "sent invalid :path header"),
            false => refuse(x, "sent invalid method"),
        });
    }
    if !authority.is_empty() {
        push(x, b"host", authority, 1)?;
    }
    // The limits are those of the server that the client names.
    let host = fields.get(b"host");
    if authority.is_empty()
        && let Some(host) = host
    {
        push(x, b"host", host, 0)?;
    }
    if parts.authority.is_none() && host.is_none() || x.request.head.host.is_empty() {
        return Err(refuse(x, "sent neither \":authority\" nor \"Host\" header"));
    }
    choose_server(x);
    if !authority.is_empty() && host.is_some_and(|host| host != authority) {
        let what = "sent \":authority\" and \"Host\" headers with different values";
        return Err(refuse(x, what));
    }
    push_fields(x, fields, parts)?;
    x.request.head_bytes = x.request.received.len();
    Ok(())
}

fn push_fields(
    x: &mut Exchange,
    fields: &FieldBlock,
    parts: &RequestFields<'_>,
) -> Result<(), u16> {
    let limits = x.server().reading.head;
    if fields.is_cut {
        x.log(Level::Info, format_args!("client sent too many header lines"));
        return Err(TOO_LARGE);
    }
    let mut hosts = 0;
    let uncounted = usize::from(fields.get(b"host").is_none());
    for (name, value) in fields.iter().skip(parts.pseudo_count) {
        match name {
            b"host" => {
                hosts += 1;
                if hosts > 1 {
                    return Err(refuse(x, "sent duplicate \"Host\" header"));
                }
            }
            b"cookie" if parts.cookies > 1 => {}
            _ if limits.ignore_invalid_headers
                && !is_usual(name, limits.underscores_in_headers) =>
            {
                let name = Text(name);
                x.log(Level::Info, format_args!("client sent invalid header: \"{name}\""));
            }
            _ => push(x, name, value, uncounted)?,
        }
    }
    if parts.cookies > 1 {
        push_cookies(x, fields, uncounted + 1)?;
    }
    Ok(())
}

/// Several cookie fields become one (RFC 9113, section 8.2.3).
fn push_cookies(x: &mut Exchange, fields: &FieldBlock, uncounted: usize) -> Result<(), u16> {
    let mut joined = buffers::lend();
    let cookies = fields.iter().filter(|field| field.0 == b"cookie");
    for (index, (_, value)) in cookies.enumerate() {
        if index > 0 {
            joined.extend_from_slice(b"; ");
        }
        joined.extend_from_slice(value);
    }
    let pushed = push(x, b"cookie", &joined, uncounted);
    buffers::give_back(joined);
    pushed
}

fn is_usual(name: &[u8], with_underscores: bool) -> bool {
    name.iter().all(|byte| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' => true,
        b'_' => with_underscores,
        _ => false,
    })
}

/// Adds a field. `uncounted` is the number of fields before it that the client did not send.
fn push(x: &mut Exchange, name: &[u8], value: &[u8], uncounted: usize) -> Result<(), u16> {
    let mut limits = x.server().reading.head;
    limits.max_headers = limits.max_headers.saturating_add(uncounted);
    let Request { head, received, .. } = &mut x.request;
    let Err(error) = head.push(received, name, value, &limits) else { return Ok(()) };
    let name = Text(name);
    match error {
        FieldError::TooMany => {
            x.log(Level::Info, format_args!("client sent too many header lines"));
            Err(TOO_LARGE)
        }
        FieldError::TooLarge => {
            x.log(Level::Info, format_args!("client sent too large request"));
            Err(TOO_LARGE)
        }
        FieldError::Duplicate { .. } => {
            let value = Text(value);
            x.log(
                Level::Info,
                format_args!("client sent duplicate header line: \"{name}: {value}\""),
            );
            Err(400)
        }
        FieldError::InvalidHost => Err(refuse(x, "sent invalid \":authority\" or \"Host\" header")),
        FieldError::Invalid => {
            x.log(Level::Info, format_args!("client sent invalid header name: \"{name}\""));
            Err(400)
        }
    }
}

/// Checks a complete head against its server. Returns what it announces of the body.
fn settle(x: &mut Exchange, parts: &RequestFields<'_>, end_stream: bool) -> Result<Announced, u16> {
    x.request.header_only = x.request.head.method == Method::Head;
    let merge_slashes = x.server().reading.merge_slashes;
    if x.request.decode_target(merge_slashes).is_err() {
        x.log(Level::Info, format_args!("client sent invalid request"));
        return Err(400);
    }
    let generation = x.generation.clone();
    let listen = generation.listen(x.client.listen);
    let is_enabled = x.server().http2.enabled
        || listen.is_some_and(|listen| listen.protocols.has(Protocols::HTTP2));
    if !is_enabled {
        let what = "attempted to request the server name for which the negotiated protocol is \
                    disabled";
        refuse(x, what);
        return Err(421);
    }
    debug_assert!(x.request.field(Known::Host).is_some());
    match x.request.head.method {
        Method::Connect => {
            refuse(x, "sent CONNECT method");
            return Err(405);
        }
        Method::Trace => {
            refuse(x, "sent TRACE method");
            return Err(405);
        }
        _ => {}
    }
    match parts.content_length {
        Some(1..) if end_stream => Err(refuse(x, "prematurely closed stream")),
        Some(length) => Ok(Announced::Length(length)),
        None if end_stream => Ok(Announced::None),
        None => Ok(Announced::Unknown),
    }
}
