//! Settings for keeping connections open for further requests.

use wire::{Known, Method};

use crate::client::Client;
use crate::exchange::Request;

/// A location's settings for idle connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keepalive {
    /// `keepalive_timeout`; 0: connections are not kept.
    pub timeout_ms: u64,
    /// The timeout in the `Keep-Alive` header; 0: no header.
    pub header_s: u64,
    /// `keepalive_min_timeout`, which also holds during a shutdown.
    pub min_timeout_ms: u64,
    /// The most requests of a connection.
    pub(crate) requests: u64,
    /// The age up to which a connection serves requests.
    pub(crate) time_ms: u64,
    /// Browsers whose connections are not kept.
    pub(crate) disable: Browsers,
}

impl Keepalive {
    /// Whether the settings allow keeping the connection after this request.
    pub(crate) fn admits(&self, client: &Client, request: &Request) -> bool {
        self.admits_connection(client) && !self.disable.has(request)
    }

    /// Whether the limits of the connection allow keeping it, whatever the request.
    pub(crate) fn admits_connection(&self, client: &Client) -> bool {
        self.timeout_ms > 0
            && client.requests.get() < self.requests
            && net::clock::now_ms() - client.accepted_ms <= self.time_ms
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Browsers(pub(crate) u16);

pub(crate) const MSIE6: u16 = 1;
pub(crate) const SAFARI: u16 = 2;
impl Browsers {
    /// MSIE may wait after a POST whose connection is kept; Safari may send a POST through a
    /// connection that it knows to be closed (https://bugs.webkit.org/show_bug.cgi?id=5760).
    fn has(self, request: &Request) -> bool {
        let suspect = self.0 & SAFARI != 0 || request.head.method == Method::Post;
        if self.0 == 0 || !suspect {
            return false;
        }
        let agent = request.field(Known::UserAgent).unwrap_or_default();
        (self.0 & MSIE6 != 0 && request.head.method == Method::Post && is_msie6(agent))
            || (self.0 & SAFARI != 0 && is_safari(agent))
    }
}

fn has(agent: &[u8], mark: &[u8]) -> bool {
    memchr::memmem::find(agent, mark).is_some()
}

/// MSIE 4, 5, and 6 before its service pack 2, but not Opera that claims to be MSIE.
pub(crate) fn is_msie6(agent: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(agent, b"MSIE ") else { return false };
    let old = match &agent[at + 5..] {
        [b'4' | b'5', b'.', _, ..] => true,
        [b'6', b'.', _, rest @ ..] => !has(rest, b"SV1"),
        _ => false,
    };
    old && !has(agent, b"Opera")
}

fn is_safari(agent: &[u8]) -> bool {
    let other: [&[u8]; 3] = [b"Opera", b"Gecko/", b"Chrome/"];
    has(agent, b"Safari/")
        && has(agent, b"Mac OS X")
        && !is_msie(agent)
        && !other.iter().any(|mark| has(agent, mark))
}

fn is_msie(agent: &[u8]) -> bool {
    memchr::memmem::find(agent, b"MSIE ").is_some_and(|at| at + 7 < agent.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_recognised_by_user_agent() {
        let safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_6) Safari/534.48.3";
        let table = [
            ("MSIE 5.0", true, false),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", true, false),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)", false, false),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows) Opera 7.11", false, false),
            ("MSIE 7.0", false, false),
            ("MSIE 5", false, false),
            ("MSIE 5.", false, false),
            (safari, false, true),
            ("Mac OS X Chrome/1 Safari/1", false, false),
            ("Mac OS X Gecko/1 Safari/1", false, false),
            ("Mac OS X MSIE 7.0 Safari/1", false, false),
            ("Windows Safari/1", false, false),
            ("", false, false),
        ];
        for (agent, msie6, safari) in table {
            assert_eq!(is_msie6(agent.as_bytes()), msie6, "{agent}");
            assert_eq!(is_safari(agent.as_bytes()), safari, "{agent}");
        }
    }
}
