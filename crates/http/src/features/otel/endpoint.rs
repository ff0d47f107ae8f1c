//! The address of a collector: `[http://|https://]host:port[/path]`.
//!
//! As in nginx-otel, an address is one of gRPC, with or without a scheme. One with a path is of
//! HTTP (nginx-otel has no such), and so is one with port 4318, which OpenTelemetry gives to HTTP.

use std::sync::Arc;

use net::accept::Transport;
use upstream::address::{self, Endpoint};

/// The port of OpenTelemetry over HTTP.
const HTTP_PORT: u16 = 4318;
/// The path of OpenTelemetry over HTTP.
const HTTP_PATH: &[u8] = b"/v1/traces";

pub(super) struct OtelEndpoint {
    pub(super) is_secure: bool,
    pub(super) place: Endpoint,
    /// Host and port as they were written.
    pub(super) host: Vec<u8>,
    /// The path of HTTP; `None`: gRPC.
    pub(super) path: Option<Vec<u8>>,
    /// Secures connections; set after all lines were read.
    pub(super) transport: Option<Arc<dyn Transport>>,
}

impl OtelEndpoint {
    /// The error is a reason.
    pub(super) fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let (is_secure, rest) = match (strip(text, b"https://"), strip(text, b"http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => (false, text),
        };
        if rest.starts_with(b"unix:") {
            let (place, host) = (address::parse(rest, 0)?.place, b"localhost".to_vec());
            return Ok(Self { is_secure, place, host, path: None, transport: None });
        }
        let slash = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        let (host, path) = rest.split_at(slash);
        let parsed = address::parse(host, if is_secure { 443 } else { 80 })?;
        let has_path = path.len() > 1;
        if !parsed.port_said && !has_path {
            return Err("no port");
        }
        let path = match (has_path, port(&parsed.place)) {
            (true, _) => Some(path.to_vec()),
            (false, HTTP_PORT) => Some(HTTP_PATH.to_vec()),
            (false, _) => None,
        };
        Ok(Self { is_secure, place: parsed.place, host: host.to_vec(), path, transport: None })
    }

    /// The name in the collector's certificate.
    pub(super) fn server_name(&self) -> String {
        match &self.place {
            Endpoint::Named { host, .. } => String::from_utf8_lossy(host).into_owned(),
            Endpoint::At(net::Address::Ip(address)) => address.ip().to_string(),
            Endpoint::At(_) => "localhost".to_owned(),
        }
    }
}

fn strip<'t>(text: &'t [u8], prefix: &[u8]) -> Option<&'t [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn port(place: &Endpoint) -> u16 {
    match place {
        Endpoint::Named { port, .. } => *port,
        Endpoint::At(net::Address::Ip(address)) => address.port(),
        Endpoint::At(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (bool, String, String, String) {
        let endpoint = OtelEndpoint::parse(text.as_bytes()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let path = endpoint.path.as_deref().map_or("gRPC".to_owned(), text);
        (endpoint.is_secure, endpoint.place.to_string(), text(&endpoint.host), path)
    }

    #[test]
    fn a_path_or_the_port_of_http_means_http() {
        let table = [
            ("localhost:4317", false, "localhost:4317", "localhost:4317", "gRPC"),
            ("http://127.0.0.1:14317", false, "127.0.0.1:14317", "127.0.0.1:14317", "gRPC"),
            ("https://[::1]:4317/", true, "[::1]:4317", "[::1]:4317", "gRPC"),
            ("127.0.0.1:4318", false, "127.0.0.1:4318", "127.0.0.1:4318", "/v1/traces"),
            ("HTTP://c:4318/", false, "c:4318", "c:4318", "/v1/traces"),
            ("http://c:1/x/y", false, "c:1", "c:1", "/x/y"),
            ("https://c.test/v1/traces", true, "c.test:443", "c.test", "/v1/traces"),
            ("unix:/run/c", false, "unix:/run/c", "localhost", "gRPC"),
        ];
        for (text, is_secure, place, host, path) in table {
            let expected = (is_secure, place.into(), host.into(), path.into());
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_endpoints_are_refused() {
        let table = [
            ("c", "no port"),
            ("http://c", "no port"),
            ("c:0", "invalid port"),
            (":4317", "no host"),
            ("http:///v1/traces", "no host"),
            ("[::x]:1", "invalid IPv6 address"),
        ];
        for (text, reason) in table {
            assert_eq!(OtelEndpoint::parse(text.as_bytes()).err(), Some(reason), "{text}");
        }
    }
}
