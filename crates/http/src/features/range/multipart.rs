//! Several ranges of a body as `multipart/byteranges`.
//!
//! ```text
//! CRLF --00000000000000000001 CRLF
//! Content-Type: text/html CRLF
//! Content-Range: bytes 0-8/1000 CRLF CRLF
//! ... and so on for every range, then
//! CRLF --00000000000000000001-- CRLF
//! ```

use std::cell::Cell;
use std::io::Write;
use std::ops::Range;
use std::task::{Context, Poll};
use std::vec::IntoIter;

use crate::exchange::{Body, BodyError, BodyLog, BodyStream, Bytes, Chunk, FieldName, Reply};

/// `CRLF --`, the digits of a boundary, `-- CRLF`
const END_SIZE: u64 = 4 + 20 + 4;

thread_local! {
    static BOUNDARY: Cell<u64> = const { Cell::new(0) };
}

/// Makes the reply a multipart one.
pub(super) fn answer(reply: &mut Reply, ranges: Vec<Range<u64>>, length: u64) {
    let boundary = next_boundary();
    let parts = Parts {
        body: reply.body.take(),
        head: part_head(reply, boundary),
        length,
        ranges: ranges.into_iter(),
        next: PartState::Head,
    };
    reply.content_length = Some(parts.size());
    reply.body = Body::Stream(Box::new(parts));
    reply.charset.clear();
    reply.parameters.clear();
    reply.content_type.clear();
    write(&mut reply.content_type, format_args!("multipart/byteranges; boundary={boundary:020}"));
    reply.fields.remove_known(FieldName::ContentRange);
}

/// A boundary that no other reply of the worker has. Workers start at different numbers.
fn next_boundary() -> u64 {
    let last = match BOUNDARY.get() {
        0 => net::clock::unix_ms() << 16,
        last => last,
    };
    BOUNDARY.set(last + 1);
    last + 1
}

/// The beginning of every part, up to its range.
fn part_head(reply: &Reply, boundary: u64) -> Vec<u8> {
    let mut head = Vec::new();
    write(&mut head, format_args!("\r\n--{boundary:020}\r\n"));
    reply.write_content_type(&mut head);
    head.extend_from_slice(b"Content-Range: bytes ");
    head
}

fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory takes all");
}

/// A body of the parts in order.
struct Parts {
    body: Body,
    head: Vec<u8>,
    length: u64,
    ranges: IntoIter<Range<u64>>,
    next: PartState,
}

enum PartState {
    Head,
    Content(Range<u64>),
    Nothing,
}

impl Parts {
    /// The length of all parts and the end.
    fn size(&self) -> u64 {
        let ranges = self.ranges.as_slice().iter();
        let part = |range: &Range<u64>| {
            let text = range_text(range, self.length).len();
            (self.head.len() + text) as u64 + range.end - range.start
        };
        ranges.map(part).sum::<u64>() + END_SIZE
    }

    fn content(&self, range: Range<u64>) -> Chunk {
        match &self.body {
            Body::Bytes(bytes) => {
                Chunk::Bytes(bytes.part(range.start as usize..range.end as usize))
            }
            Body::File(slice) => Chunk::File(slice.part(range)),
            Body::Empty | Body::Stream(_) => unreachable!("these have one range at most"),
        }
    }

    /// `CRLF --00000000000000000001-- CRLF`
    fn end(&mut self) -> Chunk {
        let mut end = std::mem::take(&mut self.head);
        end.truncate(END_SIZE as usize - 4);
        end.extend_from_slice(b"--\r\n");
        Chunk::Bytes(Bytes::Owned(end))
    }
}

/// `0-8/1000 CRLF CRLF`
fn range_text(range: &Range<u64>, length: u64) -> String {
    format!("{}-{}/{length}\r\n\r\n", range.start, range.end - 1)
}

impl BodyStream for Parts {
    fn poll_chunk(
        &mut self,
        _: &mut Context<'_>,
        _: &mut dyn BodyLog,
    ) -> Poll<Result<Option<Chunk>, BodyError>> {
        let chunk = match std::mem::replace(&mut self.next, PartState::Head) {
            PartState::Head => match self.ranges.next() {
                Some(range) => {
                    let mut head = self.head.clone();
                    head.extend_from_slice(range_text(&range, self.length).as_bytes());
                    self.next = PartState::Content(range);
                    Some(Chunk::Bytes(Bytes::Owned(head)))
                }
                None => {
                    self.next = PartState::Nothing;
                    Some(self.end())
                }
            },
            PartState::Content(range) => Some(self.content(range)),
            PartState::Nothing => {
                self.next = PartState::Nothing;
                None
            }
        };
        Poll::Ready(Ok(chunk))
    }
}
