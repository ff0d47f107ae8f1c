//! How long a connection is kept for further requests, and for whom it is not.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Error, Load, Milliseconds, Number, Result, Value, Word, units};
use wire::{Known, Method};

use crate::exchange::Exchange;
use crate::site::Place;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// How long an idle connection of a client is kept open; 0 closes it after each response.
    /// HEADER_TIME is what the field `Keep-Alive` tells the client; without it there is no such
    /// field.
    ///
    /// Syntax: TIME [HEADER_TIME]
    ///
    /// ```nginx
    /// keepalive_timeout 65s;
    /// ```
    keepalive_timeout: Timeout = "75s",
    /// How long an idle connection of a client is kept open at least when the server shuts down or
    /// reloads.
    keepalive_min_timeout: Milliseconds = "0",
    /// The largest number of requests on one connection of a client.
    ///
    /// ```nginx
    /// keepalive_requests 10000;
    /// ```
    keepalive_requests: Number = "1000",
    /// How long requests are served on one connection of a client.
    ///
    /// ```nginx
    /// keepalive_time 1h;
    /// ```
    keepalive_time: Milliseconds = "1h",
    /// Browsers whose connections are closed after a response: old versions of Internet Explorer
    /// after a POST (`msie6`), or Safari.
    ///
    /// Syntax: none | msie6 | safari ...
    ///
    /// ```nginx
    /// keepalive_disable none;
    /// ```
    keepalive_disable: Browsers = "msie6",
}

/// What the driver asks about keeping connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keepalive {
    /// Idle time; 0: connections are not kept.
    pub timeout_ms: u64,
    /// The idle time that the `Keep-Alive` header promises; 0: no header.
    pub header_s: u64,
    /// Idle time that holds during a shutdown, too.
    pub min_timeout_ms: u64,
    requests: u64,
    time_ms: u64,
    disable: Browsers,
}

/// Hands the settings to the core.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.keepalive = Keepalive {
        timeout_ms: conf.keepalive_timeout.idle_ms,
        header_s: conf.keepalive_timeout.header_s.unwrap_or(0),
        min_timeout_ms: conf.keepalive_min_timeout.0,
        requests: conf.keepalive_requests.0,
        time_ms: conf.keepalive_time.0,
        disable: conf.keepalive_disable,
    };
    Ok(())
}

impl Keepalive {
    /// Whether a connection that its client wants to keep may be kept after this exchange.
    pub(crate) fn admits(&self, x: &Exchange) -> bool {
        self.timeout_ms > 0
            && x.client.requests.get() < self.requests
            && net::clock::now_ms() - x.client.accepted_ms <= self.time_ms
            && !self.disable.has(x)
    }
}

/// `75s 60s`: how long, and what the `Keep-Alive` header says of it.
#[derive(Clone, Copy, Debug)]
struct Timeout {
    idle_ms: u64,
    header_s: Option<u64>,
}

impl Value for Timeout {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let invalid = |word: &Word| from.refuse("invalid value").marked(word.span);
        let idle = from.arg(0);
        let idle_ms = units::milliseconds(&idle.text).ok_or_else(|| invalid(idle))?;
        let header_s = match from.args.get(1) {
            Some(word) => Some(units::seconds(&word.text).ok_or_else(|| invalid(word))?),
            None => None,
        };
        Ok(Self { idle_ms, header_s })
    }
    fn complete(&mut self, outer: &Self) {
        self.header_s = self.header_s.or(outer.header_s);
    }
}

/// A set of browsers.
#[derive(Clone, Copy, Debug, Default)]
struct Browsers(u8);

const MSIE6: u8 = 1;
const SAFARI: u8 = 2;
const NAMES: [(&[u8], u8); 3] = [(b"none", 0), (b"msie6", MSIE6), (b"safari", SAFARI)];

impl Value for Browsers {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut browsers = Self(0);
        browsers.repeat(from, load)?;
        Ok(browsers)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        for word in &from.args {
            let known = NAMES.iter().find(|(name, _)| word.text.eq_ignore_ascii_case(name));
            let (_, bit) = known.ok_or_else(|| invalid(from, word))?;
            if self.0 & bit != 0 {
                load.warn(from.error_at(word, format!("duplicate value \"{word}\"")));
            }
            self.0 |= bit;
        }
        Ok(())
    }
}

fn invalid(from: &Directive, word: &Word) -> Error {
    from.error_at(word, format!("invalid value \"{word}\""))
}

impl Browsers {
    /// MSIE may wait after a POST whose connection is kept; Safari may send a POST through a
    /// connection that it knows to be closed (https://bugs.webkit.org/show_bug.cgi?id=5760).
    fn has(self, x: &Exchange) -> bool {
        let suspect = self.0 & SAFARI != 0 || x.request.head.method == Method::Post;
        if self.0 == 0 || !suspect {
            return false;
        }
        let agent = x.request.field(Known::UserAgent).unwrap_or_default();
        (self.0 & MSIE6 != 0 && x.request.head.method == Method::Post && is_msie6(agent))
            || (self.0 & SAFARI != 0 && is_safari(agent))
    }
}

fn has(agent: &[u8], mark: &[u8]) -> bool {
    memchr::memmem::find(agent, mark).is_some()
}

/// MSIE 4, 5, and 6 before its service pack 2, and not Opera in disguise.
fn is_msie6(agent: &[u8]) -> bool {
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
    fn browsers_by_their_user_agent() {
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
