//! A reply, as far as the protocol looks at it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::date;

/// The most bytes of a reply's body.
pub const REPLY_BYTES_MAX: usize = 256 * 1024;

/// The most alternate chains of a certificate.
pub(super) const ALTERNATES_MAX: usize = 8;

/// The most bytes of a URL or a nonce.
pub(super) const URL_BYTES_MAX: usize = 2048;

/// The status, some fields and the body of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcmeReply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) nonce: Option<String>,
    pub(super) location: Option<String>,
    pub(super) retry_after_s: Option<u64>,
    /// The URLs of the fields `Link` with `rel="alternate"`.
    pub(super) alternates: Vec<String>,
}

impl AcmeReply {
    /// A reply with all its fields by name and value.
    pub fn new<'f>(
        status: u16,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        body: Vec<u8>,
    ) -> Self {
        let mut reply = Self { status, body, ..Self::default() };
        let (mut retry_after, mut now_s) = (None, None);
        for (name, value) in fields {
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            if is("Replay-Nonce") {
                reply.nonce = text(value).filter(|nonce| is_base64url(nonce));
            } else if is("Location") {
                reply.location = text(value);
            } else if is("Retry-After") {
                retry_after = Some(value);
            } else if is("Date") {
                now_s = date::parse(value);
            } else if is("Link") {
                reply.read_links(value);
            }
        }
        reply.retry_after_s = retry_after.and_then(|value| seconds(value, now_s));
        reply
    }

    pub(super) fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// `<URL>;rel="alternate", <URL>;rel="up"` (RFC 8288).
    fn read_links(&mut self, value: &[u8]) {
        let mut rest = value;
        while let Some((url, parameters, after)) = next_link(rest) {
            if has_relation(parameters, b"alternate")
                && self.alternates.len() < ALTERNATES_MAX
                && let Some(url) = text(url)
            {
                self.alternates.push(url);
            }
            rest = after;
        }
    }
}

/// The URL and the parameters of the first link, and what follows it.
fn next_link(value: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let start = memchr::memchr(b'<', value)? + 1;
    let url_end = start + memchr::memchr(b'>', &value[start..])?;
    let parameters = &value[url_end + 1..];
    let mut is_quoted = false;
    let end = parameters.iter().position(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b',' && !is_quoted
    });
    let (parameters, after) = parameters.split_at(end.unwrap_or(parameters.len()));
    Some((&value[start..url_end], parameters, after))
}

fn has_relation(parameters: &[u8], relation: &[u8]) -> bool {
    parameters.split(|byte| *byte == b';').any(|parameter| {
        let mut parts = parameter.splitn(2, |byte| *byte == b'=');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let value = parts.next().unwrap_or_default().trim_ascii();
        let value = value.strip_prefix(b"\"").unwrap_or(value);
        let value = value.strip_suffix(b"\"").unwrap_or(value);
        name.eq_ignore_ascii_case(b"rel")
            && value.split(|byte| *byte == b' ').any(|one| one.eq_ignore_ascii_case(relation))
    })
}

/// The seconds of `Retry-After`. A date counts from the server's own time, so that our clock does
/// not matter.
fn seconds(value: &[u8], now_s: Option<i64>) -> Option<u64> {
    if value.first()?.is_ascii_digit() {
        return core::str::from_utf8(value).ok()?.trim().parse().ok();
    }
    let wait_s = date::parse(value)?.saturating_sub(now_s?);
    Some(u64::try_from(wait_s).unwrap_or(0))
}

/// A URL or nonce without anything that could end a line.
fn text(value: &[u8]) -> Option<String> {
    let is_visible = value.iter().all(u8::is_ascii_graphic);
    let is_short = (1..=URL_BYTES_MAX).contains(&value.len());
    let text = core::str::from_utf8(value).ok()?;
    (is_visible && is_short).then(|| text.to_string())
}

/// Whether a nonce or token has only the digits of base64url (RFC 8555, sections 6.5.1 and 8).
pub(super) fn is_base64url(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
