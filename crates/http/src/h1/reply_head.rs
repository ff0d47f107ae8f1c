//! The head of a reply, its fields in nginx's order.

use std::cell::RefCell;

use observe::{Level, Text};
use wire::http1::reply::status_text;
use wire::{Method, Version};

use crate::answer;
use crate::decimal;
use crate::drive::redirect;
use crate::exchange::{Exchange, FieldName, Reply};
use crate::header_text::FORBIDDEN;
use crate::site::policy::Policy;

/// How the end of a reply's body is found by its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// By the length that the head gives: so many bytes are still to come.
    Length(u64),
    /// By chunks.
    Chunked,
    /// By the end of the connection.
    Close,
    /// There is no body, whatever the head says.
    Bodiless,
}

/// Before anything of a reply is sent: one whose head would not be one is an error instead.
pub(super) fn check(x: &mut Exchange) {
    if let Err(name) = x.reply.unfold() {
        let name = Text(&name);
        x.log(Level::Error, format_args!("header \"{name}\" of the reply {FORBIDDEN}"));
        answer::instead_of_reply(x, 500);
    }
}

/// Settles what depends on the protocol, and writes the head.
pub(super) fn write(x: &mut Exchange, out: &mut Vec<u8>) -> Framing {
    let framing = settle(x);
    x.reply.chunked = framing == Framing::Chunked;
    x.reply.head_sent = true;
    if x.request.head.version >= Version::HTTP_10 {
        let start = out.len();
        let completed = redirect::complete(x);
        let generation = x.generation.clone();
        write_lines(x, &generation.location(x.location).core, completed, out);
        x.reply.head_bytes = (out.len() - start) as u64;
    }
    framing
}

fn settle(x: &mut Exchange) -> Framing {
    let reply = &mut x.reply;
    // What a backend says of a reply without a body is passed on, as in nginx.
    if reply.status == 204 && reply.reason.is_empty() {
        reply.content_type.clear();
        reply.content_length = None;
    }
    if !matches!(reply.status, 200 | 206 | 304) {
        reply.last_modified = None;
    }
    x.request.header_only |= matches!(reply.status, 204 | 304);
    if x.request.header_only || matches!(reply.status, 100..200) {
        return Framing::Bodiless;
    }
    let (length, expect_trailers) = (reply.content_length, reply.expect_trailers);
    match length {
        Some(length) if !expect_trailers => Framing::Length(length),
        _ if may_chunk(x) => {
            x.reply.content_length = None;
            Framing::Chunked
        }
        Some(length) => Framing::Length(length),
        None => {
            x.keepalive = false;
            Framing::Close
        }
    }
}

fn may_chunk(x: &Exchange) -> bool {
    let head = &x.request.head;
    let is_tunnel = head.method == Method::Connect && x.reply.status < 300;
    head.version >= Version::HTTP_11
        && !is_tunnel
        && x.location().core.output.chunked_transfer_encoding
}

fn write_lines(x: &Exchange, here: &Policy, completed: bool, out: &mut Vec<u8>) {
    let reply = &x.reply;
    write_opening(reply, here.server_token(), out);
    write_content(reply, out);
    if completed {
        line(out, b"Location: ", &reply.location);
    }
    if reply.chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    write_connection(x, here, out);
    if !completed && !reply.location.is_empty() {
        line(out, b"Location: ", &reply.location);
    }
    if x.varies && here.gzip_vary {
        out.extend_from_slice(b"Vary: Accept-Encoding\r\n");
    }
    reply.fields.write(out);
    out.extend_from_slice(b"\r\n");
}

fn write_content(reply: &Reply, out: &mut Vec<u8>) {
    reply.write_content_type(out);
    if let Some(length) = reply.content_length {
        out.extend_from_slice(b"Content-Length: ");
        decimal::write(length, out);
        out.extend_from_slice(b"\r\n");
    }
    if let Some(modified) = reply.last_modified
        && reply.fields.known(FieldName::LastModified).is_none()
    {
        line(out, b"Last-Modified: ", &wire::date::http(modified));
    }
}

fn write_connection(x: &Exchange, here: &Policy, out: &mut Vec<u8>) {
    if x.reply.status == 101 {
        out.extend_from_slice(b"Connection: upgrade\r\n");
    } else if x.keepalive {
        out.extend_from_slice(b"Connection: keep-alive\r\n");
        if here.keepalive.header_s > 0 {
            out.extend_from_slice(b"Keep-Alive: timeout=");
            decimal::write(here.keepalive.header_s, out);
            out.extend_from_slice(b"\r\n");
        }
    } else {
        out.extend_from_slice(b"Connection: close\r\n");
    }
}

fn line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The status line, `Server` and `Date`.
fn write_opening(reply: &Reply, server: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    match status_text(reply.status) {
        _ if !reply.reason.is_empty() => out.extend_from_slice(&reply.reason),
        Some(text) => out.extend_from_slice(text.as_bytes()),
        None => {
            // nginx writes codes without a phrase with three digits at least, and a space.
            decimal::write_three(reply.status.into(), out);
            out.push(b' ');
        }
    }
    out.extend_from_slice(b"\r\n");
    if !reply.has_server {
        line(out, b"Server: ", server.as_bytes());
    }
    if !reply.has_date {
        write_date(out);
    }
}

fn write_date(out: &mut Vec<u8>) {
    out.extend_from_slice(b"Date: ");
    DATE.with_borrow_mut(|date| {
        let second = net::clock::unix_ms() / 1000;
        if date.second != second {
            *date = Date { second, text: wire::date::http(second as i64) };
        }
        out.extend_from_slice(&date.text);
    });
    out.extend_from_slice(b"\r\n");
}

thread_local! {
    static DATE: RefCell<Date> = const { RefCell::new(Date { second: 0, text: [0; 29] }) };
}

/// The date as it stands in replies: it changes once a second.
struct Date {
    second: u64,
    text: [u8; 29],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_without_a_phrase_has_its_space() {
        let mut out = Vec::new();
        let mut reply = Reply::default();
        reply.status = 299;
        write_opening(&reply, "x", &mut out);
        assert!(out.starts_with(b"HTTP/1.1 299 \r\nServer: x\r\nDate: "));
    }
}
