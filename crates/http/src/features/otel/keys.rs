//! Names of attributes, and whole attributes, as they are sent.

use wire::Version;

// Keys in the form of `encode::key`.
pub(super) const METHOD: &[u8] = b"\x0a\x0bhttp.method\x12";
pub(super) const TARGET: &[u8] = b"\x0a\x0bhttp.target\x12";
pub(super) const ROUTE: &[u8] = b"\x0a\x0ahttp.route\x12";
pub(super) const USER_AGENT: &[u8] = b"\x0a\x0fhttp.user_agent\x12";
pub(super) const REQUEST_LENGTH: &[u8] = b"\x0a\x1bhttp.request_content_length\x12";
pub(super) const RESPONSE_LENGTH: &[u8] = b"\x0a\x1chttp.response_content_length\x12";
pub(super) const STATUS_CODE: &[u8] = b"\x0a\x10http.status_code\x12";
pub(super) const HOST_NAME: &[u8] = b"\x0a\x0dnet.host.name\x12";
pub(super) const HOST_PORT: &[u8] = b"\x0a\x0dnet.host.port\x12";
pub(super) const PEER_ADDRESS: &[u8] = b"\x0a\x12net.sock.peer.addr\x12";
pub(super) const PEER_PORT: &[u8] = b"\x0a\x12net.sock.peer.port\x12";

// Whole attributes, as they are sent.
pub(super) const METHOD_GET: &[u8] = b"\x4a\x14\x0a\x0bhttp.method\x12\x05\x0a\x03GET";
pub(super) const SCHEME_HTTP: &[u8] = b"\x4a\x15\x0a\x0bhttp.scheme\x12\x06\x0a\x04http";
pub(super) const SCHEME_HTTPS: &[u8] = b"\x4a\x16\x0a\x0bhttp.scheme\x12\x07\x0a\x05https";
pub(super) const FLAVOR_10: &[u8] = b"\x4a\x14\x0a\x0bhttp.flavor\x12\x05\x0a\x031.0";
pub(super) const FLAVOR_11: &[u8] = b"\x4a\x14\x0a\x0bhttp.flavor\x12\x05\x0a\x031.1";
pub(super) const FLAVOR_20: &[u8] = b"\x4a\x14\x0a\x0bhttp.flavor\x12\x05\x0a\x032.0";
pub(super) const FLAVOR_30: &[u8] = b"\x4a\x14\x0a\x0bhttp.flavor\x12\x05\x0a\x033.0";

/// The attribute of the protocol's version; empty if the request line has none.
pub(super) fn flavor(version: Version) -> &'static [u8] {
    match version {
        Version::HTTP_09 => b"",
        Version::HTTP_10 => FLAVOR_10,
        Version::HTTP_2 => FLAVOR_20,
        Version::HTTP_3 => FLAVOR_30,
        _ => FLAVOR_11,
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode;
    use super::*;

    #[test]
    fn what_is_written_out_is_what_would_be_encoded() {
        let keys: [(&[u8], &str); 11] = [
            (METHOD, "http.method"),
            (TARGET, "http.target"),
            (ROUTE, "http.route"),
            (USER_AGENT, "http.user_agent"),
            (REQUEST_LENGTH, "http.request_content_length"),
            (RESPONSE_LENGTH, "http.response_content_length"),
            (STATUS_CODE, "http.status_code"),
            (HOST_NAME, "net.host.name"),
            (HOST_PORT, "net.host.port"),
            (PEER_ADDRESS, "net.sock.peer.addr"),
            (PEER_PORT, "net.sock.peer.port"),
        ];
        for (encoded, name) in keys {
            assert_eq!(encoded, &*encode::key(name.as_bytes()), "{name}");
        }
        let attributes: [(&[u8], &str, &str); 7] = [
            (METHOD_GET, "http.method", "GET"),
            (SCHEME_HTTP, "http.scheme", "http"),
            (SCHEME_HTTPS, "http.scheme", "https"),
            (FLAVOR_10, "http.flavor", "1.0"),
            (FLAVOR_11, "http.flavor", "1.1"),
            (FLAVOR_20, "http.flavor", "2.0"),
            (FLAVOR_30, "http.flavor", "3.0"),
        ];
        for (encoded, name, text) in attributes {
            let mut out = Vec::new();
            encode::put_text(&encode::key(name.as_bytes()), text.as_bytes(), &mut out);
            assert_eq!(encoded, out, "{name}");
        }
    }
}
