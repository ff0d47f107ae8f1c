//! Writes the head of a reply as fields, in nginx's order.

use wire::http2::FieldWriter;

use super::stream_link::StreamLink;
use crate::decimal;
use crate::drive::{redirect, with_date};
use crate::exchange::{Exchange, FieldName, Reply};

/// Writes the head, and ends the stream if `ends`. Returns the length of the frames.
pub(super) fn write(x: &mut Exchange, link: &StreamLink, ends: bool) -> usize {
    redirect::complete(x);
    let here = &x.location().core;
    let (server, varies) = (here.server_token(), x.varies && here.gzip_vary);
    let mut endpoint = link.shared.endpoint.borrow_mut();
    let Some(mut head) = endpoint.begin_fields(link.key.get()) else { return 0 };
    let reply = &x.reply;
    head.status(reply.status);
    if !reply.has_server {
        head.field(b"server", server.as_bytes());
    }
    if !reply.has_date {
        with_date(|date| head.field(b"date", date));
    }
    write_content(reply, &mut head);
    if !reply.location.is_empty() {
        head.field(b"location", &reply.location);
    }
    if varies {
        head.field(b"vary", b"Accept-Encoding");
    }
    for (name, value) in reply.fields.iter().filter(|(name, _)| !is_of_connection(name)) {
        head.field(name, value);
    }
    let bytes = head.finish(ends);
    x.reply.head_bytes = bytes as u64;
    bytes
}

fn write_content(reply: &Reply, head: &mut FieldWriter<'_>) {
    if !reply.content_type.is_empty() {
        if reply.parameters.is_empty() && reply.charset.is_empty() {
            head.field(b"content-type", &reply.content_type);
        } else {
            let mut media_type = Vec::new();
            reply.write_media_type(&mut media_type);
            head.field(b"content-type", &media_type);
        }
    }
    if let Some(length) = reply.content_length {
        decimal::with_text(length, |text| head.field(b"content-length", text));
    }
    if let Some(modified) = reply.last_modified
        && reply.fields.known(FieldName::LastModified).is_none()
    {
        head.field(b"last-modified", &wire::date::http(modified));
    }
}

/// Whether a field describes an HTTP/1 connection, which makes an HTTP/2 reply malformed
/// (RFC 9113, section 8.2.2).
fn is_of_connection(name: &[u8]) -> bool {
    let names: &[&[u8]] = match name.len() {
        7 => &[b"upgrade"],
        10 => &[b"connection", b"keep-alive"],
        16 => &[b"proxy-connection"],
        17 => &[b"transfer-encoding"],
        _ => &[],
    };
    names.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden))
}
