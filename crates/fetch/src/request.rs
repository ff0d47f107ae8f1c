//! A request in memory, and its encoding.

use std::sync::Arc;

use net::accept::Transport;
use upstream::address::Endpoint;
use wire::Method;

#[derive(Clone, Debug)]
pub struct FetchRequest {
    pub origin: FetchOrigin,
    pub method: Method,
    /// The request target: path and query.
    pub target: Vec<u8>,
    /// Fields besides `Host`, `Connection` and those that frame the body.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body. If it is empty, `Content-Length` is sent only with POST, PUT and PATCH.
    pub body: Vec<u8>,
}

/// The server that requests go to.
#[derive(Clone, Debug)]
pub struct FetchOrigin {
    /// The endpoint. The addresses of a name are tried in turn.
    pub place: Endpoint,
    /// The value of the field `Host`.
    pub host: Vec<u8>,
    /// Secures its connections; `None` for plaintext. See [`tls_transport`].
    ///
    /// [`tls_transport`]: crate::tls_transport
    pub transport: Option<Arc<dyn Transport>>,
}

/// Only this module writes these fields; a caller's field could contradict it.
const OWN_FIELDS: [&[u8]; 5] =
    [b"Host", b"Connection", b"Content-Length", b"Transfer-Encoding", b"Expect"];

impl FetchRequest {
    pub fn get(origin: FetchOrigin, target: impl Into<Vec<u8>>) -> Self {
        let (fields, body) = (Vec::new(), Vec::new());
        Self { origin, method: Method::Get, target: target.into(), fields, body }
    }

    /// The text of the head. The error says what would turn it into a different request than
    /// intended: a target or a value may come from elsewhere. `closes`: the connection serves no
    /// other request.
    pub(crate) fn head(&self, closes: bool) -> Result<Vec<u8>, &'static str> {
        self.check()?;
        let mut text = [self.method.name(), b" ", &self.target].concat();
        text.extend_from_slice(b" HTTP/1.1\r\n");
        put(&mut text, b"Host", &self.origin.host);
        if closes {
            put(&mut text, b"Connection", b"close");
        }
        for (name, value) in &self.fields {
            put(&mut text, name, value);
        }
        if !self.body.is_empty() || self.may_have_body() {
            put(&mut text, b"Content-Length", self.body.len().to_string().as_bytes());
        }
        text.extend_from_slice(b"\r\n");
        Ok(text)
    }

    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if matches!(self.method, Method::Other | Method::Connect) {
            return Err("the method is not supported");
        }
        if self.target.is_empty() || !self.target.iter().all(is_visible) {
            return Err("the request target is invalid");
        }
        if self.origin.host.is_empty() || !self.origin.host.iter().all(is_visible) {
            return Err("the host is invalid");
        }
        let is_own = |name: &[u8]| OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name));
        let is_value = |value: &[u8]| value.iter().all(|byte| is_visible(byte) || is_space(byte));
        for (name, value) in &self.fields {
            if name.is_empty() || !name.iter().all(is_in_token) || !is_value(value) {
                return Err("a field of the request is invalid");
            }
            if is_own(name) {
                return Err("the request sets a field that is not its own");
            }
        }
        Ok(())
    }

    /// Whether the method is idempotent (RFC 9110, section 9.2.2).
    pub(crate) fn may_be_repeated(&self) -> bool {
        matches!(self.method, Method::Get | Method::Head | Method::Put | Method::Delete)
    }

    /// Whether a server expects `Content-Length: 0` if there is no body (RFC 9110, section 8.6).
    fn may_have_body(&self) -> bool {
        matches!(self.method, Method::Post | Method::Put | Method::Patch)
    }
}

fn put(text: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    [name, b": ", value, b"\r\n"].iter().for_each(|part| text.extend_from_slice(part));
}

/// Whether the byte is neither a control character nor a space.
fn is_visible(byte: &u8) -> bool {
    !matches!(byte, 0..=b' ' | 0x7f)
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// RFC 9110, section 5.6.2.
fn is_in_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}
