//! The web server's side of FastCGI: request body and reply in records.

use std::sync::Arc;

use observe::{Level, Text};
use wire::cgi::CgiHeadParser;
use wire::fastcgi::request::{STDIN_BYTES_MAX, STDIN_END, padding, stdin_head};
use wire::fastcgi::{
    END_REQUEST_TYPE, RECORD_HEAD_BYTES, RecordDecoded, RecordDecoder, RecordError, trim_stderr,
};
use wire::reply::ReplyHead;

use super::cgi::{CgiRest, describe, more_than_length};
use super::{
    BackendMessage, DecodedBody, Frame, HeadEvent, Protocol, ProtocolError, ReplyReader, Start,
};

/// The limit on a request's stderr in the error log, in bytes of text and of the lines around it.
/// The rest is dropped.
const STDERR_LOGGED_MAX: usize = 256 * 1024;
/// The approximate size of a log line without its text.
const STDERR_LINE_BYTES: usize = 256;
/// The limit on stderr before the head of the reply, in bytes of records, so that an application
/// cannot delay its reply with stderr forever.
const STDERR_BEFORE_HEAD_MAX: usize = 1 << 20;

const CLOSED_STDOUT: &str = "upstream prematurely closed FastCGI stdout";
const TOO_MUCH_STDERR: &str = "upstream sent too much FastCGI stderr before header";
const STDERR_DROPPED: &str = "FastCGI sent too much in stderr, the rest is not logged";
const CLOSED_REQUEST: &str = "upstream prematurely closed FastCGI request";

/// A request of FastCGI and its reply.
///
/// Records are unwrapped in place. While the head is read, the input holds the unwrapped output,
/// then perhaps a gap, then records not decoded yet.
pub(crate) struct FastCgi {
    request: FastcgiStart,
    records: RecordDecoder,
    parser: CgiHeadParser,
    /// Unwrapped bytes at the front of the input.
    unwrapped: usize,
    /// The length of the gap after them: framing that was decoded.
    gap: usize,
    rest: CgiRest,
    progress: Progress,
    /// Bytes of stderr before the head.
    stderr_before_head: usize,
    /// Bytes of stderr in the log.
    stderr_logged: usize,
}

#[derive(Clone)]
pub(crate) struct FastcgiStart {
    /// Whether it is a HEAD request: the reply has no body.
    pub(crate) to_head: bool,
    pub(crate) keep_conn: bool,
    pub(crate) catch_stderr: Arc<[Box<[u8]>]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Reading,
    /// The reply is complete, but not the records after it.
    Ended,
    /// The application waits for another request.
    Idle,
}

impl Start for FastcgiStart {
    type Protocol = FastCgi;
    const SCHEMA: &'static str = "fastcgi://";

    fn start(&self) -> FastCgi {
        FastCgi {
            request: self.clone(),
            records: RecordDecoder::default(),
            parser: CgiHeadParser::default(),
            unwrapped: 0,
            gap: 0,
            rest: CgiRest::Unknown,
            progress: Progress::Reading,
            stderr_before_head: 0,
            stderr_logged: 0,
        }
    }
}

/// The type of records with the application's output.
const STDOUT_TYPE: u8 = 6;

/// Appends a head as a cache stores it: in a record of its own, or in several if it is long.
pub(super) fn stored_head(text: &[u8], out: &mut Vec<u8>) {
    for piece in text.chunks(STDIN_BYTES_MAX) {
        let [length_high, length_low] = (piece.len() as u16).to_be_bytes();
        out.extend_from_slice(&[1, STDOUT_TYPE, 0, 1, length_high, length_low, 0, 0]);
        out.extend_from_slice(piece);
    }
}

impl FastCgi {
    /// Handles stderr before the head: the log line, or an error if it makes the reply invalid.
    fn take_stderr(&mut self, text: &[u8]) -> Result<Option<BackendMessage>, ProtocolError> {
        let mut patterns = self.request.catch_stderr.iter();
        if patterns.any(|pattern| memchr::memmem::find(text, pattern).is_some()) {
            return Err(stderr_line(text).text);
        }
        self.stderr_before_head += RECORD_HEAD_BYTES + text.len();
        match self.stderr_before_head > STDERR_BEFORE_HEAD_MAX {
            true => Err(TOO_MUCH_STDERR.into()),
            false => Ok(self.log_line(text)),
        }
    }

    /// The log line for a piece of stderr; `None` past the limit on logged stderr.
    fn log_line(&mut self, text: &[u8]) -> Option<BackendMessage> {
        if self.stderr_logged > STDERR_LOGGED_MAX {
            return None;
        }
        self.stderr_logged += STDERR_LINE_BYTES + text.len();
        Some(match self.stderr_logged > STDERR_LOGGED_MAX {
            true => BackendMessage { level: Level::Error, text: STDERR_DROPPED.into() },
            false => stderr_line(text),
        })
    }

    /// Parses the head; `None` if the unwrapped bytes do not contain all of it.
    fn parse(
        &mut self,
        input: &[u8],
        head: &mut ReplyHead,
    ) -> Result<Option<HeadEvent>, ProtocolError> {
        let text = &input[..self.unwrapped];
        let parsed = self.parser.parse(head, text).map_err(|error| describe(error, text))?;
        let Some(bytes) = parsed else { return Ok(None) };
        let body;
        (self.rest, body) = CgiRest::of(head, text, self.request.to_head)?;
        self.unwrapped -= bytes;
        Ok(Some(HeadEvent::Complete { bytes, body }))
    }

    /// How many of the unwrapped bytes belong to the body.
    fn take(&mut self, received: usize, decoded: &mut DecodedBody) -> usize {
        let (count, is_surplus) = self.rest.take(received);
        if is_surplus {
            decoded.messages.push(more_than_length());
            self.progress = Progress::Ended;
        }
        count
    }

    /// The application has ended its output. Reports that as an error if the announced length is
    /// not reached. The rest of its records is read all the same: an application may fail if it
    /// cannot write them.
    fn check_length(&self, words: &'static str, decoded: &mut DecodedBody) {
        if self.rest.left() > 0 {
            decoded.error = Some(words.into());
            decoded.is_cut_short = true;
        }
    }
}

impl Protocol for FastCgi {
    fn frame(&mut self, available: u64, is_last: bool) -> Frame {
        let length = available.min(STDIN_BYTES_MAX as u64);
        let ends = is_last && length == available;
        if length == 0 {
            return if ends { Frame::new(&STDIN_END, 0, b"") } else { Frame::bare(0) };
        }
        let padding = padding(length as usize);
        let mut after = [0; 7 + RECORD_HEAD_BYTES];
        after[padding.len()..padding.len() + RECORD_HEAD_BYTES].copy_from_slice(&STDIN_END);
        let end = padding.len() + if ends { RECORD_HEAD_BYTES } else { 0 };
        Frame::new(&stdin_head(length as usize), length, &after[..end])
    }
}

impl ReplyReader for FastCgi {
    fn head(
        &mut self,
        input: &mut Vec<u8>,
        head: &mut ReplyHead,
    ) -> Result<HeadEvent, ProtocolError> {
        loop {
            let at = self.unwrapped + self.gap;
            match self.records.decode(&input[at..]).map_err(refused)? {
                RecordDecoded::Stdout(range) => {
                    let (start, count) = (at + range.start, range.len());
                    input.copy_within(start..start + count, self.unwrapped);
                    self.unwrapped += count;
                    self.gap = at + range.end - self.unwrapped;
                    if let Some(event) = self.parse(input, head)? {
                        return Ok(event);
                    }
                }
                RecordDecoded::Stderr(range) => {
                    self.gap += range.end;
                    if let Some(line) = self.take_stderr(&input[at..][range])? {
                        return Ok(HeadEvent::Log(line));
                    }
                }
                RecordDecoded::StdoutEnd(_) => return Err(CLOSED_STDOUT.into()),
                RecordDecoded::EndRequest(_) | RecordDecoded::Done(_) => {
                    let kind = END_REQUEST_TYPE;
                    return Err(format!("upstream sent unexpected FastCGI record: {kind}").into());
                }
                RecordDecoded::More => {
                    input.truncate(self.unwrapped);
                    self.gap = 0;
                    return Ok(HeadEvent::Partial);
                }
            }
        }
    }

    fn envelope_bytes(&self) -> usize {
        self.gap
    }

    fn body(&mut self, buffer: &mut [u8], start: usize) -> DecodedBody {
        let mut decoded = DecodedBody::default();
        let unwrapped = std::mem::take(&mut self.unwrapped);
        let mut at = start + unwrapped + std::mem::take(&mut self.gap);
        let mut end = start + self.take(unwrapped, &mut decoded);
        while self.progress == Progress::Reading && decoded.error.is_none() {
            let record = match self.records.decode(&buffer[at..]) {
                Ok(record) => record,
                Err(error) => {
                    return DecodedBody {
                        messages: decoded.messages,
                        ..DecodedBody::invalid(start, refused(error))
                    };
                }
            };
            at += match record {
                RecordDecoded::Stdout(range) => {
                    let count = self.take(range.len(), &mut decoded);
                    let from = at + range.start;
                    buffer.copy_within(from..from + count, end);
                    end += count;
                    range.end
                }
                RecordDecoded::Stderr(range) => {
                    decoded.messages.extend(self.log_line(&buffer[at..][range.clone()]));
                    range.end
                }
                RecordDecoded::StdoutEnd(used) => {
                    self.check_length(CLOSED_STDOUT, &mut decoded);
                    used
                }
                RecordDecoded::EndRequest(used) => {
                    self.check_length(CLOSED_REQUEST, &mut decoded);
                    used
                }
                RecordDecoded::Done(used) => {
                    let is_quiet = at + used == buffer.len();
                    self.progress = if is_quiet { Progress::Idle } else { Progress::Ended };
                    break;
                }
                RecordDecoded::More => break,
            };
        }
        DecodedBody { end, ..decoded }
    }

    fn is_ended(&self) -> bool {
        self.progress != Progress::Reading
    }

    /// An application that closes its connections may do so without an end record.
    fn ends_at_close(&self) -> bool {
        self.is_ended() || !self.request.keep_conn && self.rest.left() == 0
    }

    fn body_left(&self) -> u64 {
        self.rest.left()
    }

    fn may_reuse(&self) -> bool {
        self.progress == Progress::Idle && self.request.keep_conn
    }
}

/// nginx's log line for stderr.
fn stderr_line(text: &[u8]) -> BackendMessage {
    let text = Text(trim_stderr(text));
    BackendMessage {
        level: Level::Error,
        text: format!("FastCGI sent in stderr: \"{text}\"").into(),
    }
}

fn refused(error: RecordError) -> ProtocolError {
    format!("upstream sent {error}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, data: &[u8], padding: u8) -> Vec<u8> {
        let [high, low] = (data.len() as u16).to_be_bytes();
        let head = [1, kind, 0, 1, high, low, padding, 0];
        [&head[..], data, &vec![b'!'; padding.into()]].concat()
    }

    fn out(text: &str, padding: u8) -> Vec<u8> {
        record(6, text.as_bytes(), padding)
    }

    fn end() -> Vec<u8> {
        record(3, &[0; 8], 0)
    }

    fn request() -> FastcgiStart {
        FastcgiStart { to_head: false, keep_conn: true, catch_stderr: [].into() }
    }

    /// The result of a reply that arrives in two pieces: status, body, log lines, and whether the
    /// connection can be reused.
    fn read(request: &FastcgiStart, input: &[u8], cut: usize) -> Result<String, ProtocolError> {
        let (mut fastcgi, mut head) = (request.start(), ReplyHead::default());
        let (mut text, mut log, mut body) = (Vec::new(), String::new(), None);
        let mut pieces = [&input[..cut], &input[cut..]].into_iter();
        while body.is_none() {
            text.extend_from_slice(pieces.next().expect("a head"));
            loop {
                match fastcgi.head(&mut text, &mut head)? {
                    HeadEvent::Partial => break,
                    HeadEvent::Interim(_) => unreachable!("there are none"),
                    HeadEvent::Log(line) => log += &format!("<{}>", line.text),
                    HeadEvent::Complete { bytes, .. } => break body = Some(bytes),
                }
            }
        }
        let start = body.expect("a head");
        let mut content = Vec::new();
        let mut buffer = text;
        let mut start = start;
        loop {
            let decoded = fastcgi.body(&mut buffer, start);
            content.extend_from_slice(&buffer[start..decoded.end]);
            log.extend(decoded.messages.iter().map(|line| format!("<{}>", line.text)));
            if let Some(words) = decoded.error {
                log += &format!("[{words}]");
                break;
            }
            let Some(next) = pieces.next() else { break };
            (buffer, start) = (next.to_vec(), 0);
        }
        let (body, ended) = (String::from_utf8_lossy(&content), fastcgi.is_ended());
        Ok(format!("{} {body} {ended} {} {log}", head.status, fastcgi.may_reuse()))
    }

    #[test]
    fn a_reply_is_the_same_in_any_split() {
        let input = [
            out("Status: 404 No\r\nContent", 3),
            out("-Length: 6\r\n\r\nab", 0),
            out("cd", 7),
            out("ef", 0),
            out("", 1),
            end(),
        ]
        .concat();
        for cut in 0..input.len() {
            let expected = Ok("404 abcdef true true ".to_owned());
            assert_eq!(read(&request(), &input, cut), expected, "{cut}");
        }
    }

    #[test]
    fn replies() {
        let close = FastcgiStart { keep_conn: false, ..request() };
        let error = record(7, b"oh.\n", 0);
        let catches = FastcgiStart { catch_stderr: [(*b"oh").into()].into(), ..request() };
        let said = "<FastCGI sent in stderr: \"oh\">";
        let early = "upstream prematurely closed FastCGI stdout";
        let more = "<upstream sent more data than specified in \"Content-Length\" header>";
        let short = out("Content-Length: 2\n\na", 0);
        let table = [
            (&request(), vec![out("\na", 0), out("", 0), end()], Ok("200 a true true ".to_owned())),
            (&close, vec![out("\na", 0), out("", 0), end()], Ok("200 a true false ".into())),
            (&close, vec![out("\na", 0), out("", 0)], Ok("200 a false false ".into())),
            (&request(), vec![out("\n", 0), end(), vec![1]], Ok("200  true false ".into())),
            (
                &request(),
                vec![error.clone(), error.clone(), out("\na", 0), error.clone(), end()],
                Ok(format!("200 a true true {said}{said}{said}")),
            ),
            (&catches, vec![error.clone()], Err("FastCGI sent in stderr: \"oh\"")),
            (&request(), vec![out("A: b\n", 0), out("", 0)], Err(early)),
            // Body and stderr before the early end are kept.
            (
                &request(),
                vec![short.clone(), error.clone(), out("", 0), end()],
                Ok(format!("200 a false false {said}[{early}]")),
            ),
            (
                &request(),
                vec![short.clone(), error.clone(), end()],
                Ok(format!(
                    "200 a false false {said}[upstream prematurely closed FastCGI request]"
                )),
            ),
            // Stderr before an invalid record is kept too.
            (
                &request(),
                vec![out("\na", 0), error.clone(), vec![2]],
                Ok(format!(
                    "200  false false {said}[upstream sent unsupported FastCGI protocol version: 2]"
                )),
            ),
            (&request(), vec![short, out("bcd", 0)], Ok(format!("200 ab true false {more}"))),
            (&request(), vec![end()], Err("upstream sent unexpected FastCGI record: 3")),
            (
                &request(),
                vec![record(6, b"a", 0), vec![2]],
                Err("upstream sent unsupported FastCGI protocol version: 2"),
            ),
            (&request(), vec![out("Status: x\n\n", 0)], Err("upstream sent invalid status \"x\"")),
            (
                &request(),
                vec![out("a b\n\n", 0)],
                Err("upstream sent invalid header: \"a\\x20...\""),
            ),
        ];
        for (request, records, expected) in table {
            let input = records.concat();
            let expected = expected.map_err(ProtocolError::from);
            assert_eq!(read(request, &input, input.len()), expected, "{}", input.escape_ascii());
        }
    }

    #[test]
    fn endless_stderr_is_logged_in_part_and_refused_before_the_head() {
        let said = record(7, &[b'e'; 1000], 0);
        let (after, before) = (out("Content-Length: 2\n\nhi", 0), said.repeat(1000));
        let log = read(&request(), &[&after[..], &before].concat(), after.len()).unwrap();
        assert!(log.starts_with("200 hi false "), "{log}");
        assert!(log.ends_with(&format!("<{STDERR_DROPPED}>")), "{log}");
        assert!(log.len() < STDERR_LOGGED_MAX, "{}", log.len());
        let log = read(&request(), &[&before[..], &after].concat(), before.len()).unwrap();
        assert!(log.starts_with("200 hi ") && log.ends_with(&format!("<{STDERR_DROPPED}>")));
        let endless = said.repeat(STDERR_BEFORE_HEAD_MAX / 1000 + 1);
        assert_eq!(read(&request(), &endless, endless.len()), Err(TOO_MUCH_STDERR.into()));
        let short = record(7, b"e", 0).repeat(STDERR_BEFORE_HEAD_MAX / RECORD_HEAD_BYTES);
        assert_eq!(read(&request(), &short, short.len()), Err(TOO_MUCH_STDERR.into()));
    }

    #[test]
    fn a_reply_without_a_body_keeps_the_connection() {
        let to_head = FastcgiStart { to_head: true, ..request() };
        let empty = "Status: 204\n\n";
        let table = [
            (&to_head, out("Content-Length: 2\n\nhi", 0), "200  true true "),
            (&to_head, out("\n", 0), "200  true true "),
            (&request(), out(empty, 5), "204  true true "),
            (&request(), [out(empty, 0), out("hi", 0)].concat(), "204  true true "),
            (&request(), out("Status: 304\nContent-Length: 2\n\n", 0), "304  true true "),
            (
                &FastcgiStart { keep_conn: false, ..to_head.clone() },
                out("\n", 0),
                "200  true false ",
            ),
        ];
        for (request, output, expected) in table {
            let whole = [output.clone(), out("", 0), end()].concat();
            assert_eq!(read(request, &whole, whole.len()), Ok(expected.to_owned()));
            let more = [&whole[..], &[1]].concat();
            assert!(read(request, &more, more.len()).unwrap().ends_with("true false "));
            let partial = read(request, &whole, whole.len() - 16).unwrap();
            assert_eq!(partial, expected, "the end comes later");
            assert!(read(request, &output, output.len()).unwrap().ends_with("false false "));
        }
    }

    #[test]
    fn bodies_are_framed() {
        let text = |frame: Frame| {
            (frame.before.as_ref().to_vec(), frame.length, frame.after.as_ref().to_vec())
        };
        let mut fastcgi = request().start();
        assert_eq!(text(fastcgi.frame(0, true)), (STDIN_END.to_vec(), 0, vec![]));
        assert_eq!(text(fastcgi.frame(0, false)), (vec![], 0, vec![]));
        let after = [&[0; 3], &STDIN_END[..]].concat();
        assert_eq!(text(fastcgi.frame(5, true)), (stdin_head(5).to_vec(), 5, after));
        assert_eq!(text(fastcgi.frame(8, false)), (stdin_head(8).to_vec(), 8, vec![]));
        let large = STDIN_BYTES_MAX as u64;
        let first = (stdin_head(STDIN_BYTES_MAX).to_vec(), large, vec![]);
        assert_eq!(text(fastcgi.frame(large + 1, true)), first);
    }
}
