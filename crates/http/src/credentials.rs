//! The name and password that a client gives by `Authorization: Basic` (RFC 7617).

use wire::base64;
use wire::{Known, Method};

use crate::exchange::Exchange;

const SCHEME: &[u8] = b"Basic ";

/// What a client says of who it is.
pub struct BasicCredentials {
    /// `name:password`
    text: Vec<u8>,
    /// The name's length, which is never 0.
    name_length: usize,
}

impl BasicCredentials {
    /// `None` where the client sent none, or something else.
    pub fn of(x: &Exchange) -> Option<Self> {
        let mut text = Vec::new();
        let name_length = append(x, &mut text)?;
        Some(Self { text, name_length })
    }

    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.text[..self.name_length]
    }

    /// The password, which may be empty.
    pub fn password(&self) -> &[u8] {
        &self.text[self.name_length + 1..]
    }
}

/// Whether the client means a proxy, which has names of its own for what is about passwords (RFC
/// 9110, section 11.7).
pub fn are_for_proxy(x: &Exchange) -> bool {
    x.request.head.method == Method::Connect
}

/// Appends `name:password`, decoded; the length of the name, which is never empty. `None` where the
/// client sent neither or something else; what is appended then means nothing.
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
