//! Framing: the length of the body after a complete head, and whether another request can follow on
//! the connection.
//!
//! Where two parsers could disagree about the length, the request is refused (RFC 9112, section
//! 6.3). HTTP/2 and HTTP/3 have frames and need none of this.

use crate::http1::request::HeadError;
use crate::request::RequestHead;
use crate::{Known, Method, Version};

/// How the end of a request body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// No body is announced.
    None,
    /// `Content-Length`, at most [`CONTENT_LENGTH_MAX`].
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// A content length is an `off_t` in nginx.
pub const CONTENT_LENGTH_MAX: u64 = i64::MAX as u64;

/// The data after a request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFraming {
    pub body: BodyLength,
    /// The client is willing to send another request.
    pub keep_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

impl RequestFraming {
    /// Reads the framing of a complete `head`, whose bytes are `input`. Without the server's
    /// `allow_connect`, CONNECT is refused.
    pub fn of(
        head: &RequestHead,
        input: &[u8],
        allow_connect: bool,
    ) -> Result<RequestFraming, HeadError> {
        if head.version > Version::HTTP_10 && !head.has_any(Known::Host.bit()) {
            return Err(HeadError::NoHost);
        }
        if !head.has_any(FRAMING) && matches!(head.method, Method::Get | Method::Head) {
            let keep_alive = head.version > Version::HTTP_10;
            return Ok(RequestFraming {
                body: BodyLength::None,
                keep_alive,
                expects_continue: false,
            });
        }
        let body = body(head, input)?;
        check_method(head, body, allow_connect)?;
        Ok(RequestFraming {
            body,
            keep_alive: keep_alive(head, input),
            expects_continue: expects_continue(head, input),
        })
    }
}

/// The fields that determine the framing.
const FRAMING: u64 = Known::ContentLength.bit()
    | Known::TransferEncoding.bit()
    | Known::Connection.bit()
    | Known::Expect.bit();

fn body(head: &RequestHead, input: &[u8]) -> Result<BodyLength, HeadError> {
    let length = match head.field(Known::ContentLength) {
        None => None,
        Some(field) => {
            let length = content_length(field.value.of(input));
            Some(length.ok_or(HeadError::InvalidContentLength)?)
        }
    };
    let Some(coding) = head.field(Known::TransferEncoding) else {
        return Ok(length.map_or(BodyLength::None, BodyLength::Length));
    };
    if head.version < Version::HTTP_11 {
        return Err(HeadError::TransferEncodingInHttp10);
    }
    if !coding.value.of(input).eq_ignore_ascii_case(b"chunked") {
        return Err(HeadError::UnknownTransferEncoding(coding.value));
    }
    match length {
        Some(_) => Err(HeadError::ContentLengthAndTransferEncoding),
        None => Ok(BodyLength::Chunked),
    }
}

/// Digits only, at least one: no sign, list or space.
pub(super) fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let length = value.iter().try_fold(0u64, |length, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })?;
    (length <= CONTENT_LENGTH_MAX).then_some(length)
}

fn check_method(
    head: &RequestHead,
    body: BodyLength,
    allow_connect: bool,
) -> Result<(), HeadError> {
    match head.method {
        Method::Connect if !allow_connect || head.version != Version::HTTP_11 => {
            Err(HeadError::ConnectMethod)
        }
        Method::Connect if !matches!(body, BodyLength::None | BodyLength::Length(0)) => {
            Err(HeadError::ConnectWithBody)
        }
        Method::Trace => Err(HeadError::TraceMethod),
        _ => Ok(()),
    }
}

/// RFC 9112, section 9.3: `close` wins, then the version decides, then `keep-alive`.
fn keep_alive(head: &RequestHead, input: &[u8]) -> bool {
    let mut keep_alive = head.version > Version::HTTP_10;
    for field in head.fields_of(Known::Connection) {
        for option in field.value.of(input).split(|&byte| byte == b',') {
            let option = option.trim_ascii();
            if option.eq_ignore_ascii_case(b"close") {
                return false;
            }
            keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
    keep_alive && head.method != Method::Connect
}

/// RFC 9110, section 10.1.1: not from HTTP/1.0. Other expectations are ignored, as in nginx.
fn expects_continue(head: &RequestHead, input: &[u8]) -> bool {
    head.version >= Version::HTTP_11
        && head
            .field(Known::Expect)
            .is_some_and(|field| field.value.of(input).eq_ignore_ascii_case(b"100-continue"))
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;
    use crate::http1::request::{HeadProgress, RequestHeadParser};
    use crate::request::HeadLimits;

    fn framing_of(line: &str, fields: &str) -> Result<RequestFraming, u16> {
        let input = format!("{line}\r\n{fields}\r\n").into_bytes();
        let mut head = RequestHead::default();
        match RequestHeadParser::default().parse(&mut head, &input, &HeadLimits::default()) {
            Ok(HeadProgress::Complete { .. }) => {}
            Ok(progress) => panic!("{progress:?}"),
            Err(error) => return Err(error.status()),
        }
        RequestFraming::of(&head, &input, false).map_err(|error| error.status())
    }

    fn body_of(fields: &str) -> Result<BodyLength, u16> {
        framing_of("POST / HTTP/1.1", &format!("Host: h\r\n{fields}")).map(|framing| framing.body)
    }

    #[test]
    fn bodies() {
        let table: &[(&str, Result<BodyLength, u16>)] = &[
            ("", Ok(BodyLength::None)),
            ("Content-Length: 0\r\n", Ok(BodyLength::Length(0))),
            ("Content-Length:   017  \r\n", Ok(BodyLength::Length(17))),
            ("Content-Length: 9223372036854775807\r\n", Ok(BodyLength::Length(CONTENT_LENGTH_MAX))),
            ("Content-Length: 9223372036854775808\r\n", Err(400)),
            ("Content-Length: 99999999999999999999\r\n", Err(400)),
            ("Content-Length: \r\n", Err(400)),
            ("Content-Length: +1\r\n", Err(400)),
            ("Content-Length: -1\r\n", Err(400)),
            ("Content-Length: 1, 1\r\n", Err(400)),
            ("Content-Length: 1 1\r\n", Err(400)),
            ("Content-Length: 0x1\r\n", Err(400)),
            ("Content-Length:\t1\r\n", Err(400)),
            ("Content-Length: 1\r\nContent-Length: 1\r\n", Err(400)),
            ("Transfer-Encoding: chunked\r\n", Ok(BodyLength::Chunked)),
            ("transfer-encoding: CHUNKED\r\n", Ok(BodyLength::Chunked)),
            ("Transfer-Encoding: identity\r\n", Err(501)),
            ("Transfer-Encoding: chunked, identity\r\n", Err(501)),
            ("Transfer-Encoding: gzip, chunked\r\n", Err(501)),
            ("Transfer-Encoding:\tchunked\r\n", Err(501)),
            ("Transfer-Encoding: xchunked\r\n", Err(501)),
            ("Transfer-Encoding: \r\n", Err(501)),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Err(400)),
            ("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", Err(400)),
            ("Content-Length: 5\r\nTransfer-Encoding: identity\r\n", Err(501)),
        ];
        for &(fields, ref expected) in table {
            assert_eq!(&body_of(fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn invalid_framing_is_refused() {
        let table: &[(&str, &str, u16)] = &[
            ("GET / HTTP/1.1", "", 400),
            ("GET / HTTP/1.5", "", 400),
            ("GET http://h/ HTTP/1.1", "", 400),
            ("GET / HTTP/1.0", "Transfer-Encoding: chunked\r\n", 400),
            ("CONNECT h:1 HTTP/1.1", "Host: h\r\n", 405),
            ("TRACE / HTTP/1.1", "Host: h\r\n", 405),
        ];
        for &(line, fields, status) in table {
            assert_eq!(framing_of(line, fields), Err(status), "{line}");
        }
    }

    #[test]
    fn connect_where_allowed() {
        let framing = |fields: &str| {
            let input = format!("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n{fields}\r\n").into_bytes();
            let mut head = RequestHead::default();
            let progress =
                RequestHeadParser::default().parse(&mut head, &input, &HeadLimits::default());
            assert_eq!(progress, Ok(HeadProgress::Complete { len: input.len() }));
            RequestFraming::of(&head, &input, true)
        };
        assert!(!framing("").expect("allowed").keep_alive);
        assert!(framing("Content-Length: 0\r\n").is_ok());
        assert_eq!(framing("Content-Length: 1\r\n"), Err(HeadError::ConnectWithBody));
    }

    #[test]
    fn connection_options() {
        let table: &[(&str, &str, bool)] = &[
            ("HTTP/1.1", "", true),
            ("HTTP/1.0", "", false),
            ("HTTP/1.1", "Connection: close\r\n", false),
            ("HTTP/1.1", "Connection: Upgrade , CLOSE\r\n", false),
            ("HTTP/1.0", "Connection: Keep-Alive\r\n", true),
            ("HTTP/1.0", "Connection: keep-alive\r\nConnection: close\r\n", false),
            ("HTTP/1.0", "Connection: close\r\nConnection: keep-alive\r\n", false),
            ("HTTP/1.1", "Connection: closed\r\n", true),
        ];
        for &(version, fields, expected) in table {
            let line = format!("GET / {version}");
            let framing = framing_of(&line, &format!("Host: h\r\n{fields}"));
            assert_eq!(framing.map(|f| f.keep_alive), Ok(expected), "{version} {fields}");
        }
    }

    #[test]
    fn expectations() {
        let table = [
            ("HTTP/1.1", "100-Continue", true),
            ("HTTP/1.0", "100-continue", false),
            ("HTTP/1.1", "100-continue, x", false),
        ];
        for (version, value, expected) in table {
            let fields = String::from("Host: h\r\nExpect: ") + value + "\r\n";
            let framing = framing_of(&format!("GET / {version}"), &fields);
            assert_eq!(framing.map(|f| f.expects_continue), Ok(expected), "{value}");
        }
    }
}
