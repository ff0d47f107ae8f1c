//! The user name and password in `Authorization: Basic` (RFC 7617).

use wire::base64;
use wire::{Known, Method};

use crate::exchange::Exchange;

const SCHEME: &[u8] = b"Basic ";

/// The user name and password of a client.
pub struct BasicCredentials {
    /// `name:password`
    text: Vec<u8>,
    /// The name's length, which is never 0.
    name_length: usize,
}

impl BasicCredentials {
    /// `None` if the client sent none, or credentials of another scheme.
    pub fn of(x: &Exchange) -> Option<Self> {
        let mut text = Vec::new();
        let name_length = append(x, &mut text)?;
        Some(Self { text, name_length })
    }

    pub fn name(&self) -> &[u8] {
        &self.text[..self.name_length]
    }

    /// The password, which may be empty.
    pub fn password(&self) -> &[u8] {
        &self.text[self.name_length + 1..]
    }
}

/// Whether the request is for a proxy, whose fields for credentials have names of their own (RFC
/// 9110, section 11.7).
pub fn are_for_proxy(x: &Exchange) -> bool {
    x.request.head.method == Method::Connect
}

/// Appends `name:password`, decoded. Returns the length of the name, which is never empty. `None`
/// without valid credentials; the appended bytes mean nothing then.
pub(crate) fn append(x: &Exchange, out: &mut Vec<u8>) -> Option<usize> {
    let known = if are_for_proxy(x) { Known::ProxyAuthorization } else { Known::Authorization };
    let field = x.request.field(known)?;
    let (scheme, encoded) = field.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let start = out.len();
    base64::decode(encoded.trim_ascii_start(), out)?;
    memchr::memchr(b':', &out[start..]).filter(|length| *length > 0)
}
