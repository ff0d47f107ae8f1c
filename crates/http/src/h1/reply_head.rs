//! Writes the head of a reply, with its fields in nginx's order.

use std::cell::RefCell;

use wire::{Method, Version, status_text};

use crate::decimal;
use crate::drive::{BodyBound, Framing, redirect, with_date};
use crate::exchange::{CloseReason, Exchange, FieldName, Reply};
use crate::site::policy::Policy;

/// Chooses the framing of the body and writes the head. HTTP/0.9 has none.
pub(super) fn write(x: &mut Exchange, has_body: bool, out: &mut Vec<u8>) -> Framing {
    let body = if has_body { settle_body(x) } else { BodyBound::None };
    if x.request.head.version >= Version::HTTP_10 {
        let start = out.len();
        let completed = redirect::complete(x);
        let generation = x.generation.clone();
        write_lines(x, &generation.location(x.location).core, completed, out);
        x.reply.head_bytes = (out.len() - start) as u64;
    }
    Framing { body, has_trailers: x.reply.chunked }
}

/// How the client finds the end of the body: by its length, by chunks, or by the end of the
/// connection.
fn settle_body(x: &mut Exchange) -> BodyBound {
    match x.reply.content_length {
        Some(length) if !x.reply.expect_trailers => BodyBound::Length(length),
        _ if may_chunk(x) => {
            x.reply.content_length = None;
            x.reply.chunked = true;
            BodyBound::Open
        }
        Some(length) => BodyBound::Length(length),
        None => {
            x.close_after(CloseReason::ReplyBody);
            BodyBound::Open
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
    } else if x.keeps_connection() {
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
fn write_opening(reply: &Reply, server: &'static str, out: &mut Vec<u8>) {
    let is_usual = reply.status == 200 && matches!(&reply.reason[..], b"" | b"200 OK");
    if is_usual && !reply.has_server && !reply.has_date {
        return write_usual_opening(server, out);
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    match status_text(reply.status) {
        _ if !reply.reason.is_empty() => out.extend_from_slice(&reply.reason),
        Some(text) => out.extend_from_slice(text.as_bytes()),
        None => {
            // nginx writes a status without a phrase with at least three digits, and a space.
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

/// Writes the opening of most replies. It is cached, because it changes only with the date.
fn write_usual_opening(server: &'static str, out: &mut Vec<u8>) {
    OPENING.with_borrow_mut(|opening| {
        let second = net::clock::unix_ms() / 1000;
        if opening.second != second || !std::ptr::eq(opening.server, server) {
            (opening.second, opening.server) = (second, server);
            opening.text.clear();
            opening.text.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
            line(&mut opening.text, b"Server: ", server.as_bytes());
            write_date(&mut opening.text);
        }
        out.extend_from_slice(&opening.text);
    });
}

struct UsualOpening {
    second: u64,
    server: &'static str,
    text: Vec<u8>,
}

thread_local! {
    static OPENING: RefCell<UsualOpening> =
        const { RefCell::new(UsualOpening { second: 0, server: "", text: Vec::new() }) };
}

fn write_date(out: &mut Vec<u8>) {
    with_date(|date| line(out, b"Date: ", date));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cached_opening_equals_any_other() {
        let text = |reply: &Reply, server: &'static str| {
            let mut out = Vec::new();
            write_opening(reply, server, &mut out);
            String::from_utf8(out).unwrap()
        };
        let mut reply = Reply::default();
        for (status, reason, line) in [(200, "", "200 OK"), (404, "", "404 Not Found")] {
            (reply.status, reply.reason) = (status, reason.into());
            for server in ["x", "y", "x"] {
                let opening = text(&reply, server);
                let expected = format!("HTTP/1.1 {line}\r\nServer: {server}\r\nDate: ");
                assert!(opening.starts_with(&expected), "{opening}");
                assert_eq!(opening.len(), expected.len() + 29 + 2);
            }
        }
        reply.status = 200;
        reply.reason = b"200 Fine".to_vec();
        assert!(text(&reply, "x").starts_with("HTTP/1.1 200 Fine\r\nServer: x\r\nDate: "));
        (reply.reason, reply.has_server) = (Vec::new(), true);
        assert!(text(&reply, "x").starts_with("HTTP/1.1 200 OK\r\nDate: "));
        reply.has_date = true;
        assert_eq!(text(&reply, "x"), "HTTP/1.1 200 OK\r\n");
    }

    #[test]
    fn a_status_without_a_phrase_ends_in_a_space() {
        let mut out = Vec::new();
        let mut reply = Reply::default();
        reply.status = 299;
        write_opening(&reply, "x", &mut out);
        assert!(out.starts_with(b"HTTP/1.1 299 \r\nServer: x\r\nDate: "));
    }
}
