//! How long connections are kept for further requests, and for which browsers they are not.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Milliseconds, Number, Result, Value, Word, add_words, advice, units};

use crate::site::LocationBuilder;
use crate::site::policy::{Browsers, Keepalive, MSIE6, SAFARI};

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// How long an idle client connection is kept open; 0 closes it after each response.
    /// HEADER_TIME is sent to the client in the field `Keep-Alive`; without it there is no such
    /// field.
    ///
    /// Syntax: TIME [HEADER_TIME]
    ///
    /// ```nginx
    /// keepalive_timeout 65s;
    /// ```
    keepalive_timeout: Timeout = "75s",
    /// How long an idle client connection is kept open at least when the server shuts down or
    /// reloads.
    keepalive_min_timeout: Milliseconds = "0",
    /// The largest number of requests on one client connection.
    ///
    /// ```nginx
    /// keepalive_requests 10000;
    /// ```
    keepalive_requests: Number = "1000",
    /// How long requests are served on one client connection.
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

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.keepalive = Keepalive {
        timeout_ms: conf.keepalive_timeout.idle_ms,
        header_s: conf.keepalive_timeout.header_s.unwrap_or(0),
        min_timeout_ms: conf.keepalive_min_timeout.0,
        requests: conf.keepalive_requests.0,
        time_ms: conf.keepalive_time.0,
        disable: conf.keepalive_disable,
    };
    Ok(())
}

/// `75s 60s`: the idle time, and the time in the `Keep-Alive` header.
#[derive(Clone, Copy, Debug)]
struct Timeout {
    idle_ms: u64,
    header_s: Option<u64>,
}

impl Value for Timeout {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let invalid = |word: &Word| {
            let error = from.refuse("invalid value").marked(word.span);
            error.guess(advice::time(&word.text))
        };
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

/// `none` has a bit as well, so that repeating it causes a warning.
const NAMES: [(&str, u16); 3] = [("none", 4), ("msie6", MSIE6), ("safari", SAFARI)];

impl Value for Browsers {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut browsers = Self(0);
        browsers.repeat(from, load)?;
        Ok(browsers)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        add_words(&mut self.0, from, &NAMES, load)
    }
}
