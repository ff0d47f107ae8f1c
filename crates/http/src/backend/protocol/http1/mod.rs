//! The client's side of HTTP/1.

mod coding;

use observe::Text;
use wire::http1::chunked::{ChunkHead, LAST_CHUNK};
use wire::http1::response::{ReplyBody, ReplyError, ResponseHeadParser};
use wire::reply::{ReplyField, ReplyHead};

use super::{
    DecodedBody, Frame, HeadEvent, Protocol, ProtocolError, ReplyLength, ReplyReader, Start,
};
use coding::ReplyCoding;

/// A request in HTTP/1 and its reply.
pub(crate) struct Http1 {
    request: Http1Start,
    /// Bytes of the request's body that were framed.
    framed: u64,
    parser: ResponseHeadParser,
    coding: ReplyCoding,
    /// Whether the server keeps the connection, as far as the reply was read.
    keeps_connection: bool,
    is_switched: bool,
}

/// Properties of a request that its head announces.
#[derive(Clone, Copy, Default)]
pub(crate) struct Http1Start {
    /// Whether it is a HEAD request: the reply has no body.
    pub(crate) to_head: bool,
    /// Whether the body is sent in chunks.
    pub(crate) chunked: bool,
    /// The length of the body, if the head announces it.
    pub(crate) announced: Option<u64>,
    /// How many bytes of fields after the reply's body are read; `None`: they are skipped.
    pub(crate) trailers_max: Option<u32>,
}

const CHUNK_END: &[u8] = b"\r\n";
/// The end of the last chunk and of the body.
const CHUNK_AND_BODY_END: &[u8] = b"\r\n0\r\n\r\n";

impl Start for Http1Start {
    type Protocol = Http1;
    const SCHEMA: &'static str = "http://";
    const SECURE_SCHEMA: &'static str = "https://";

    fn start(&self) -> Http1 {
        Http1 {
            request: *self,
            framed: 0,
            parser: ResponseHeadParser::default(),
            coding: ReplyCoding::Ended,
            keeps_connection: false,
            is_switched: false,
        }
    }
}

impl Http1 {
    /// Whether the whole announced body was framed. If a length is announced but no body sent, the
    /// server would take the next request for the body.
    fn is_all_framed(&self) -> bool {
        self.request.announced.is_none_or(|length| self.framed == length)
    }

    fn complete(
        &mut self,
        input: &[u8],
        head: &ReplyHead,
        bytes: usize,
    ) -> Result<HeadEvent, ReplyError> {
        let body = ReplyBody::of(head, input, self.request.to_head)?;
        self.coding = ReplyCoding::of(body, self.request.trailers_max.is_some());
        let is_whole = self.is_all_framed();
        self.is_switched = head.status == 101 && is_whole;
        self.keeps_connection = head.status != 101 && is_whole && !self.parser.closes(head, input);
        let body = match body {
            ReplyBody::None => ReplyLength::None,
            ReplyBody::Length(length) => ReplyLength::Known(length),
            ReplyBody::Chunked | ReplyBody::Close => ReplyLength::Unknown,
        };
        Ok(HeadEvent::Complete { bytes, body })
    }
}

impl Protocol for Http1 {
    fn frame(&mut self, available: u64, is_last: bool) -> Frame {
        self.framed += available;
        if !self.request.chunked {
            return Frame::bare(available);
        }
        match (available, is_last) {
            (0, false) => Frame::bare(0),
            (0, true) => Frame::new(LAST_CHUNK, 0, b""),
            (_, last) => {
                let after = if last { CHUNK_AND_BODY_END } else { CHUNK_END };
                Frame::new(ChunkHead::new(available).as_ref(), available, after)
            }
        }
    }
}

impl ReplyReader for Http1 {
    fn head(
        &mut self,
        input: &mut Vec<u8>,
        head: &mut ReplyHead,
    ) -> Result<HeadEvent, ProtocolError> {
        let refused = |error| describe(error, input);
        let Some(bytes) = self.parser.parse(head, input).map_err(refused)? else {
            return Ok(HeadEvent::Partial);
        };
        if matches!(head.status, 100 | 102..=199) {
            self.parser = ResponseHeadParser::default();
            return Ok(HeadEvent::Interim(bytes));
        }
        self.complete(input, head, bytes).map_err(refused)
    }

    fn body(&mut self, buffer: &mut [u8], start: usize) -> DecodedBody {
        let had_ended = self.is_ended();
        let trailers_max = self.request.trailers_max.unwrap_or_default();
        let decoded = match self.coding.take(buffer, start, trailers_max) {
            Ok(decoded) => decoded,
            Err(error) => return DecodedBody::invalid(start, error),
        };
        let is_surplus = had_ended && start < buffer.len();
        self.keeps_connection &= decoded.messages.is_empty() && !is_surplus;
        decoded
    }

    fn is_ended(&self) -> bool {
        self.coding.is_ended()
    }

    fn ends_at_close(&self) -> bool {
        matches!(self.coding, ReplyCoding::Close | ReplyCoding::Ended)
    }

    fn body_left(&self) -> u64 {
        self.coding.left()
    }

    fn is_between_pieces(&self) -> bool {
        self.coding.is_between_chunks()
    }

    fn may_reuse(&self) -> bool {
        self.keeps_connection && self.coding.is_ended()
    }

    fn switches(&self) -> bool {
        self.is_switched
    }
}

/// nginx's message for an invalid head.
pub(in super::super) fn describe(error: ReplyError, input: &[u8]) -> ProtocolError {
    let line = |field: ReplyField| {
        format!("{}: {}", Text(field.name.of(input)), Text(field.value.of(input)))
    };
    match error {
        ReplyError::NotHttp => "upstream sent no valid HTTP/1.0 header".into(),
        ReplyError::InvalidField(slice, byte) => {
            let text = Text(slice.of(input));
            format!("upstream sent invalid header: \"{text}\\x{byte:02x}...\"").into()
        }
        ReplyError::DuplicateField { field, previous } => {
            let (field, previous) = (line(field), line(previous));
            let what = "upstream sent duplicate header line";
            format!("{what}: \"{field}\", previous value: \"{previous}\"").into()
        }
        ReplyError::InvalidContentLength(field) => {
            let field = line(field);
            format!("upstream sent invalid \"Content-Length\" header: \"{field}\"").into()
        }
        ReplyError::LengthAndCoding => {
            "upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time"
                .into()
        }
        ReplyError::UnknownCoding(value) => {
            let value = Text(value.of(input));
            format!("upstream sent unknown \"Transfer-Encoding\": \"{value}\"").into()
        }
        ReplyError::TooManyFields => "upstream sent too many header lines".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_framed_as_the_head_says() {
        let text = |frame: Frame| {
            let around = [frame.before.as_ref(), b"-", frame.after.as_ref()].concat();
            (frame.length, String::from_utf8(around).unwrap())
        };
        let mut bare = Http1Start::default().start();
        assert_eq!(text(bare.frame(7, true)), (7, "-".to_owned()));
        let mut chunked = Http1Start { chunked: true, ..Http1Start::default() }.start();
        assert_eq!(text(chunked.frame(10, false)), (10, "a\r\n-\r\n".to_owned()));
        assert_eq!(text(chunked.frame(0, false)), (0, "-".to_owned()));
        assert_eq!(text(chunked.frame(1, true)), (1, "1\r\n-\r\n0\r\n\r\n".to_owned()));
        assert_eq!(text(chunked.frame(0, true)), (0, "0\r\n\r\n-".to_owned()));
    }

    /// Whether the connection may be reused after the reply, and whether it switches protocols.
    fn reuse(request: Http1Start, sent: u64, reply: &str) -> (bool, bool) {
        let mut http1 = request.start();
        http1.frame(sent, true);
        let (mut input, mut head) = (reply.as_bytes().to_vec(), ReplyHead::default());
        let Ok(HeadEvent::Complete { bytes, .. }) = http1.head(&mut input, &mut head) else {
            panic!("{reply}")
        };
        assert_eq!(http1.body(&mut input, bytes).error, None);
        (http1.may_reuse(), http1.switches())
    }

    #[test]
    fn a_connection_is_reused_after_a_complete_request_and_reply() {
        let usual = Http1Start { announced: Some(0), ..Http1Start::default() };
        let table = [
            (usual, 0, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", (true, false)),
            (usual, 0, "HTTP/1.1 204 OK\r\n\r\n", (true, false)),
            (usual, 0, "HTTP/1.1 204 OK\r\n\r\na", (false, false)),
            (usual, 0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\na", (false, false)),
            (usual, 0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", (false, false)),
            (usual, 0, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", (false, false)),
            (usual, 0, "HTTP/1.1 200 OK\r\n\r\na", (false, false)),
            (usual, 0, "HTTP/1.0 204 OK\r\n\r\n", (false, false)),
            (usual, 0, "HTTP/1.1 204 OK\r\nConnection: close\r\n\r\n", (false, false)),
            (usual, 0, "HTTP/1.1 101 Go\r\n\r\n", (false, true)),
            (usual, 1, "HTTP/1.1 101 Go\r\n\r\n", (false, false)),
            (usual, 1, "HTTP/1.1 204 OK\r\n\r\n", (false, false)),
            (Http1Start::default(), 1, "HTTP/1.1 204 OK\r\n\r\n", (true, false)),
        ];
        for (request, sent, reply, expected) in table {
            assert_eq!(reuse(request, sent, reply), expected, "{reply:?} after {sent}");
        }
    }
}
