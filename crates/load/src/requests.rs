//! The requests of a run, composed once before it starts.
//!
//! A mix is a cycle that contains each request as often as its weight, spread evenly.

use wire::base64;

use crate::target::{LoadTarget, TargetScheme};

/// A request, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedRequest {
    /// The bytes to send; over HTTP/2, only the body.
    pub bytes: Vec<u8>,
    /// The header fields, over HTTP/2.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether its reply has only a head.
    pub to_head: bool,
}

#[derive(Clone, Debug, Default)]
pub struct RequestDefaults {
    /// The method; if empty, GET, or POST with a body.
    pub method: String,
    /// Header lines: names and values.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether to ask the server to close after the reply.
    pub close: bool,
    /// Whether requests are sent over HTTP/2.
    pub is_http2: bool,
}

impl RequestDefaults {
    pub fn method(&self) -> &str {
        match self.method.as_str() {
            "" if self.body.is_empty() => "GET",
            "" => "POST",
            method => method,
        }
    }

    /// Whether nothing is set, except perhaps a body.
    pub fn is_plain(&self) -> bool {
        self.method.is_empty() && self.headers.is_empty()
    }

    /// The header lines of a request to that server, including its user and password.
    pub fn headers_for(&self, target: &LoadTarget) -> Vec<(String, String)> {
        let mut headers = self.headers.clone();
        if !target.credentials.is_empty() && !self.says("Authorization") {
            let mut value = b"Basic ".to_vec();
            base64::encode(&target.credentials, &mut value);
            headers.push(("Authorization".into(), String::from_utf8_lossy(&value).into_owned()));
        }
        headers
    }

    fn says(&self, name: &str) -> bool {
        self.headers.iter().any(|(said, _)| said.eq_ignore_ascii_case(name))
    }

    pub fn request(&self, target: &LoadTarget, method: &str, path: &str) -> PreparedRequest {
        if target.scheme.is_echo() {
            return PreparedRequest {
                bytes: self.body.clone(),
                fields: Vec::new(),
                to_head: false,
            };
        }
        if self.is_http2 {
            return self.http2_request(target, method, path);
        }
        let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
        let mut line = |name: &str, value: &str| {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        };
        if !self.says("Host") {
            line("Host", &target.authority());
        }
        for (name, value) in self.headers_for(target) {
            line(&name, &value);
        }
        if self.close && !self.says("Connection") {
            line("Connection", "close");
        }
        let has_length = self.says("Content-Length") || self.says("Transfer-Encoding");
        if !has_length && (!self.body.is_empty() || matches!(method, "POST" | "PUT")) {
            line("Content-Length", &self.body.len().to_string());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        PreparedRequest { bytes, fields: Vec::new(), to_head: method == "HEAD" }
    }

    /// The pseudo-header fields come first; fields of a connection do not exist (RFC 9113,
    /// section 8.2.2).
    fn http2_request(&self, target: &LoadTarget, method: &str, path: &str) -> PreparedRequest {
        const OF_CONNECTIONS: [&str; 5] =
            ["Host", "Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade"];
        let scheme = if target.scheme == TargetScheme::Https { "https" } else { "http" };
        let host = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("Host"));
        let authority = host.map_or_else(|| target.authority(), |(_, value)| value.clone());
        let mut fields = vec![
            (":method", method.to_owned()),
            (":scheme", scheme.to_owned()),
            (":authority", authority),
            (":path", path.to_owned()),
        ];
        let headers = self.headers_for(target);
        let is_sent = |name: &str| !OF_CONNECTIONS.iter().any(|no| no.eq_ignore_ascii_case(name));
        let own = headers.iter().filter(|(name, _)| is_sent(name));
        fields.extend(own.map(|(name, value)| (name.as_str(), value.clone())));
        if !self.says("Content-Length") && !self.body.is_empty() {
            fields.push(("content-length", self.body.len().to_string()));
        }
        let bytes = |(name, value): (&str, String)| {
            (name.to_ascii_lowercase().into_bytes(), value.into_bytes())
        };
        PreparedRequest {
            bytes: self.body.clone(),
            fields: fields.into_iter().map(bytes).collect(),
            to_head: method == "HEAD",
        }
    }
}

/// Requests in the order they are sent, over and over.
#[derive(Clone, Debug)]
pub struct Mix {
    requests: Vec<PreparedRequest>,
    cycle: Vec<u32>,
}

/// The largest sum of all weights.
pub const WEIGHTS_MAX: u64 = 100_000;

impl Mix {
    /// A mix of requests with weights.
    pub fn new(weighted: Vec<(PreparedRequest, u64)>) -> Result<Self, String> {
        let total = weighted.iter().fold(0u64, |sum, (_, weight)| sum.saturating_add(*weight));
        if total == 0 || total > WEIGHTS_MAX {
            return Err(format!("the sum of the weights must be between 1 and {WEIGHTS_MAX}"));
        }
        let weights: Vec<u64> = weighted.iter().map(|(_, weight)| *weight).collect();
        let requests = weighted.into_iter().map(|(request, _)| request).collect();
        Ok(Self { requests, cycle: cycle(&weights, total) })
    }

    /// A mix of requests in their order.
    pub fn in_order(requests: Vec<PreparedRequest>) -> Self {
        let cycle = (0..requests.len() as u32).collect();
        Self { requests, cycle }
    }

    pub fn at(&self, n: u64) -> &PreparedRequest {
        let place = if self.cycle.len() == 1 { 0 } else { n as usize % self.cycle.len() };
        &self.requests[self.cycle[place] as usize]
    }
}

/// One cycle of nginx's smooth weighted round robin.
fn cycle(weights: &[u64], total: u64) -> Vec<u32> {
    let divisor = weights.iter().fold(0, |divisor, weight| greatest_common(divisor, *weight));
    let mut current = vec![0i64; weights.len()];
    (0..total / divisor)
        .map(|_| {
            for (current, weight) in current.iter_mut().zip(weights) {
                *current += (weight / divisor) as i64;
            }
            // The first of those that are equal.
            let best = (0..current.len()).rev().max_by_key(|place| current[*place]).unwrap_or(0);
            current[best] -= (total / divisor) as i64;
            best as u32
        })
        .collect()
}

fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

/// Parses a list of requests, one per line: `/path`, `GET /path`; `#` begins a comment.
pub fn listed(
    text: &str,
    common: &RequestDefaults,
    target: &LoadTarget,
) -> Result<Vec<PreparedRequest>, String> {
    let mut requests = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (method, path) = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [path] => (common.method(), path),
            [method, path] => (method, path),
            _ => return Err(format!("line {number}: expected \"/path\" or \"METHOD /path\"")),
        };
        if !path.starts_with('/') {
            return Err(format!("line {number}: \"{path}\" does not start with \"/\""));
        }
        requests.push(common.request(target, method, path));
    }
    if requests.is_empty() { Err("the list is empty".into()) } else { Ok(requests) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> LoadTarget {
        LoadTarget::parse("http://h:81/x").expect("a URL")
    }

    fn text(common: &RequestDefaults, method: &str) -> String {
        let request = common.request(&target(), method, "/x");
        String::from_utf8(request.bytes).expect("text")
    }

    #[test]
    fn a_plain_request_is_that_of_wrk() {
        let common = RequestDefaults::default();
        assert_eq!(text(&common, common.method()), "GET /x HTTP/1.1\r\nHost: h:81\r\n\r\n");
    }

    #[test]
    fn given_headers_replace_defaults() {
        let headers = vec![("host".into(), "other".into()), ("A".into(), "b".into())];
        let common = RequestDefaults {
            headers,
            body: b"body".to_vec(),
            close: true,
            ..RequestDefaults::default()
        };
        let expected = "POST /x HTTP/1.1\r\nhost: other\r\nA: b\r\nConnection: close\r\n\
                        Content-Length: 4\r\n\r\nbody";
        assert_eq!(text(&common, common.method()), expected);
    }

    #[test]
    fn credentials_are_sent_as_a_header() {
        let target = LoadTarget::parse("http://Aladdin:open%20sesame@h/").expect("a URL");
        let request = |common: &RequestDefaults| {
            String::from_utf8(common.request(&target, "GET", "/").bytes).expect("text")
        };
        // The example of RFC 7617, section 2.
        let expected = "GET / HTTP/1.1\r\nHost: h\r\n\
                        Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n";
        assert_eq!(request(&RequestDefaults::default()), expected);
        let headers = vec![("authorization".into(), "Bearer x".into())];
        let own = request(&RequestDefaults { headers, ..RequestDefaults::default() });
        assert!(own.contains("\r\nauthorization: Bearer x\r\n") && !own.contains("Basic"), "{own}");
    }

    #[test]
    fn weights_are_spread_evenly() {
        let request =
            |name: &str| PreparedRequest { bytes: name.into(), fields: Vec::new(), to_head: false };
        let mix = Mix::new(vec![(request("a"), 4), (request("b"), 2), (request("c"), 0)]);
        let mix = mix.expect("a mix");
        let order: Vec<&[u8]> = (0..6).map(|n| &mix.at(n).bytes[..]).collect();
        assert_eq!(order, [b"a", b"b", b"a", b"a", b"b", b"a"]);
        assert!(Mix::new(vec![(request("a"), 0)]).is_err());
    }

    #[test]
    fn a_list() {
        let listed = |text| listed(text, &RequestDefaults::default(), &target());
        let requests = listed("# all\n/a\n\nHEAD /b\n").expect("a list");
        assert_eq!(requests.len(), 2);
        assert!(requests[0].bytes.starts_with(b"GET /a ") && requests[1].to_head);
        assert_eq!(listed("GET /a HTTP/1.1").expect_err("three words").get(..6), Some("line 1"));
        assert!(listed("\n").is_err() && listed("a").is_err());
    }
}
