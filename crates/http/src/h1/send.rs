//! Sending a reply: one write for a head and a body that are there.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::IoSlice;
use std::task::{Poll, ready};

use super::{Connection, Over};
use crate::exchange::{Body, Exchange, FieldName};

/// Bodies up to this are copied behind the head: cheaper than a second slice.
const COPIED_MAX: usize = 2048;

impl Connection {
    pub(super) async fn send(&mut self, x: &mut Exchange) -> Result<(), Over> {
        let mut out = OUT.take();
        out.clear();
        write_head(x, &mut out);
        x.reply.head_bytes = out.len() as u64;
        let result = self.send_out(x, &mut out).await;
        OUT.set(out);
        result
    }

    async fn send_out(&mut self, x: &mut Exchange, out: &mut Vec<u8>) -> Result<(), Over> {
        let body: &[u8] = match &x.reply.body {
            Body::Bytes(bytes) if !x.request.header_only => bytes.as_ref(),
            _ => b"",
        };
        let body = if body.len() <= COPIED_MAX {
            out.extend_from_slice(body);
            &[][..]
        } else {
            body
        };
        let (mut sent, total) = (0, out.len() + body.len());
        poll_fn(|cx| {
            while sent < total {
                let head_rest = &out[sent.min(out.len())..];
                let body_rest = &body[sent.saturating_sub(out.len())..];
                let slices = [IoSlice::new(head_rest), IoSlice::new(body_rest)];
                let slices = match (head_rest.is_empty(), body_rest.is_empty()) {
                    (true, _) => &slices[1..],
                    (_, true) => &slices[..1],
                    _ => &slices[..],
                };
                match ready!(self.stream.poll_write(cx, slices)) {
                    Ok(written) => sent += written,
                    Err(_) => return Poll::Ready(Err(Over)),
                }
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        x.reply.bytes_sent += total as u64;
        x.reply.complete = true;
        Ok(())
    }
}

thread_local! {
    static OUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OPENING: RefCell<Opening> = const { RefCell::new(Opening { second: 0, text: String::new() }) };
}

/// The beginning of every `200`: it changes once a second.
struct Opening {
    second: u64,
    text: String,
}

fn write_head(x: &Exchange, out: &mut Vec<u8>) {
    write_opening(x.reply.status, out);
    let reply = &x.reply;
    if !reply.content_type.is_empty() {
        line(out, b"Content-Type: ", &reply.content_type);
    }
    if let Some(length) = reply.content_length {
        out.extend_from_slice(b"Content-Length: ");
        write_number(length, out);
        out.extend_from_slice(b"\r\n");
    }
    if let Some(modified) = reply.last_modified
        && reply.fields.known(FieldName::LastModified).is_none()
    {
        line(out, b"Last-Modified: ", crate::stand_in::http_date(modified).as_ref());
    }
    let keepalive: &[u8] = if x.keepalive { b"keep-alive" } else { b"close" };
    line(out, b"Connection: ", keepalive);
    reply.fields.write(out);
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn write_number(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn write_opening(status: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(crate::stand_in::status_line(status));
    OPENING.with_borrow_mut(|opening| {
        let second = net::clock::unix_ms() / 1000;
        if opening.second != second {
            let date = crate::stand_in::http_date(second as i64);
            opening.second = second;
            opening.text = format!(
                "\r\nServer: {}\r\nDate: {}\r\n",
                crate::identity::token(),
                String::from_utf8_lossy(date.as_ref())
            );
        }
        out.extend_from_slice(opening.text.as_bytes());
    });
}
