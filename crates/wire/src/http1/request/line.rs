//! The request line: method, target in one of its forms, version.

use super::HeadError;
use crate::request::RequestHead;
use crate::uri::UriTarget;
use crate::{Method, Slice, Version, host};

/// Parses `line`, without its end.
pub(super) fn parse(head: &mut RequestHead, input: &[u8], line: Slice) -> Result<(), HeadError> {
    let base = line.start as usize;
    let mut reader = RequestLineReader { line: line.of(input), at: 0, base };
    reader.method(head)?;
    reader.spaces();
    match (head.method, reader.peek()) {
        (Method::Connect, _) => reader.connect(head)?,
        (_, Some(b'/')) => reader.target(head)?,
        (_, Some(byte)) if byte.is_ascii_alphabetic() => reader.absolute(head)?,
        // nginx does not support the asterisk form.
        _ => return Err(HeadError::InvalidRequest),
    }
    reader.version(head)?;
    if !head.authority.is_empty() || !head.schema.is_empty() {
        head.note_host(input, head.authority).ok_or(HeadError::InvalidHostInLine)?;
    }
    head.line = line;
    Ok(())
}

/// A request line in the usual form: `GET /path HTTP/1.1`, and CR LF.
pub(super) struct UsualLine {
    method: Method,
    /// The target; offsets count from `target_start`.
    target: UriTarget,
    target_start: usize,
    /// The offset of the CR.
    pub(super) end: usize,
}

/// The line that begins at `start`, if it is complete and has the usual form.
#[inline(always)]
pub(super) fn usual(input: &[u8], start: usize) -> Option<UsualLine> {
    const VERSION: &[u8] = b" HTTP/1.1";
    let text = input.get(start..)?;
    let (method, length) = match text {
        [b'G', b'E', b'T', b' ', b'/', ..] => (Method::Get, 4),
        [b'P', b'O', b'S', b'T', b' ', b'/', ..] => (Method::Post, 5),
        _ => return None,
    };
    let target_start = start + length;
    let target = UriTarget::parse(&input[target_start..])?;
    let version = target_start + target.whole.len();
    let end = version + VERSION.len();
    let rest = input.get(version..)?.strip_prefix(VERSION)?;
    let line = UsualLine { method, target, target_start, end };
    rest.starts_with(b"\r\n").then_some(line)
}

impl UsualLine {
    /// Fills the head of a request whose line begins at `start`.
    #[inline(always)]
    pub(super) fn fill(&self, head: &mut RequestHead, start: usize) {
        let (target, base) = (&self.target, self.target_start);
        head.method = self.method;
        head.method_text = Slice::new(start, base - 1);
        head.line = Slice::new(start, self.end);
        head.note_target(target, base);
        head.protocol = Slice::new(self.end - "HTTP/1.1".len(), self.end);
        head.version = Version::HTTP_11;
    }
}

/// nginx's set, smaller than RFC 9110's token.
pub(super) fn is_method_byte(byte: u8) -> bool {
    byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-')
}

struct RequestLineReader<'a> {
    line: &'a [u8],
    at: usize,
    base: usize,
}

impl RequestLineReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn slice(&self, start: usize, end: usize) -> Slice {
        Slice::new(start, end).shifted(self.base)
    }

    fn skip_while(&mut self, is: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is) {
            self.at += 1;
        }
    }

    fn spaces(&mut self) {
        self.skip_while(|byte| byte == b' ');
    }

    fn method(&mut self, head: &mut RequestHead) -> Result<(), HeadError> {
        self.skip_while(is_method_byte);
        if self.at == 0 || self.peek() != Some(b' ') {
            return Err(HeadError::InvalidMethod);
        }
        head.method = Method::of(&self.line[..self.at]);
        head.method_text = self.slice(0, self.at);
        Ok(())
    }

    /// `/path?args#fragment` up to a space or the end; the path may be missing after an authority.
    fn target(&mut self, head: &mut RequestHead) -> Result<(), HeadError> {
        let base = self.base + self.at;
        let target = UriTarget::parse(&self.line[self.at..]).ok_or(HeadError::InvalidRequest)?;
        head.note_target(&target, base);
        self.at += target.whole.len();
        Ok(())
    }

    /// `scheme://host:port`, then path and arguments (RFC 9112, section 3.2.2).
    fn absolute(&mut self, head: &mut RequestHead) -> Result<(), HeadError> {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        let slash = self.at + 1;
        if !self.line[self.at..].starts_with(b"://") {
            return Err(HeadError::InvalidRequest);
        }
        head.schema = self.slice(start, self.at);
        self.at += 3;
        self.authority(head)?;
        match self.peek() {
            Some(b'/') => self.target(head),
            // The first slash of "://" is used as an absent path, so that it needs no byte of its
            // own.
            Some(b'?') => {
                self.target(head)?;
                head.path = self.slice(slash, slash + 1);
                head.empty_path = true;
                Ok(())
            }
            Some(b' ') => {
                head.path = self.slice(slash, slash + 1);
                head.target = head.path;
                Ok(())
            }
            _ => Err(HeadError::InvalidRequest),
        }
    }

    /// `host:port`, both required (RFC 9112, section 3.2.3). The path is the "/" of the version.
    fn connect(&mut self, head: &mut RequestHead) -> Result<(), HeadError> {
        let colon = self.authority(head)?;
        if self.at <= colon + 1 || self.peek() != Some(b' ') {
            return Err(HeadError::InvalidRequest);
        }
        Ok(())
    }

    /// Reads an authority and returns the offset of its colon, or of its end. nginx allows fewer
    /// characters in a name here than in `Host`.
    fn authority(&mut self, head: &mut RequestHead) -> Result<usize, HeadError> {
        let start = self.at;
        if self.peek() == Some(b'[') {
            self.at += 1;
            self.skip_while(host::is_literal_byte);
            if self.peek() != Some(b']') {
                return Err(HeadError::InvalidRequest);
            }
            self.at += 1;
        } else {
            self.skip_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
        }
        let colon = self.at;
        if self.peek() == Some(b':') {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        head.authority = self.slice(start, self.at);
        Ok(colon)
    }

    fn version(&mut self, head: &mut RequestHead) -> Result<(), HeadError> {
        self.spaces();
        let start = self.at;
        if self.peek() == Some(b'H') {
            // The version may still be invalid, but nginx's $server_protocol begins here.
            head.protocol = self.slice(start, start);
        }
        head.version = match &self.line[start..] {
            b"HTTP/1.1" => Version::HTTP_11,
            b"HTTP/1.0" => Version::HTTP_10,
            b"" if head.method == Method::Get => return Ok(()),
            b"" => return Err(HeadError::InvalidMethod09),
            text => unusual_version(text)?,
        };
        head.protocol = self.slice(start, self.line.len());
        if head.method == Method::Connect {
            let slash = start + "HTTP".len();
            head.path = self.slice(slash, slash + 1);
            head.target = head.path;
        }
        Ok(())
    }
}

/// `HTTP/1.n` with up to three digits and spaces after them. The major version decides between the
/// errors: an unsupported version, or no version at all.
fn unusual_version(text: &[u8]) -> Result<Version, HeadError> {
    let number = text.strip_prefix(b"HTTP/").ok_or(HeadError::InvalidRequest)?;
    match number {
        [b'2'..=b'9', ..] | [b'1', b'0'..=b'9', ..] => return Err(HeadError::InvalidVersion),
        [b'1', b'.', b'0'..=b'9', ..] => {}
        _ => return Err(HeadError::InvalidRequest),
    }
    let minor = number[2..].trim_ascii_end();
    if minor.len() > MINOR_DIGITS_MAX || !number[2 + minor.len()..].iter().all(|&byte| byte == b' ')
    {
        return Err(HeadError::InvalidRequest);
    }
    let minor = minor.iter().try_fold(0, |minor: u16, byte| {
        byte.is_ascii_digit().then(|| minor * 10 + u16::from(byte - b'0'))
    });
    minor.map(|minor| Version(1000 + minor)).ok_or(HeadError::InvalidRequest)
}

const MINOR_DIGITS_MAX: usize = 3;
