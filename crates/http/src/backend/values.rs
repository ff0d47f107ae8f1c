//! Values of directives that only backends have.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Template, Value, add_words};
use wire::reply::ReplyName;

/// When another server is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextUpstream(u16);

/// Reasons of `next_upstream` to try another server.
const REASONS: [Reason; 13] = [
    Reason::new("error", NextUpstream::ERROR),
    Reason::new("timeout", NextUpstream::TIMEOUT),
    Reason::new("invalid_header", NextUpstream::INVALID_HEADER),
    Reason::new("non_idempotent", NextUpstream::NON_IDEMPOTENT),
    Reason::new("http_500", 1 << 4),
    Reason::new("http_502", 1 << 5).only_of(&["proxy_", "grpc_"]),
    Reason::new("http_503", 1 << 6),
    Reason::new("http_504", 1 << 7).only_of(&["proxy_", "grpc_"]),
    Reason::new("http_403", 1 << 8),
    Reason::new("http_404", NextUpstream::NOT_FOUND),
    Reason::new("http_429", 1 << 10),
    Reason::new("updating", NextUpstream::UPDATING).only_of(CACHING),
    Reason::new("off", NextUpstream::OFF),
];

/// The prefixes of the families with a cache.
const CACHING: &[&str] = &["proxy_", "fastcgi_", "uwsgi_", "scgi_"];

struct Reason {
    word: &'static str,
    bit: u16,
    /// The prefixes of the families that have it; empty: all families.
    families: &'static [&'static str],
}

impl Reason {
    const fn new(word: &'static str, bit: u16) -> Self {
        Self { word, bit, families: &[] }
    }

    const fn only_of(self, families: &'static [&'static str]) -> Self {
        Self { families, ..self }
    }

    /// Whether a directive of that name accepts it.
    fn is_allowed(&self, directive: &[u8]) -> bool {
        let is_of = |family: &&str| directive.starts_with(family.as_bytes());
        self.families.is_empty() || self.families.iter().any(is_of)
    }
}

impl NextUpstream {
    /// The connection failed.
    pub const ERROR: u16 = 1;
    pub const TIMEOUT: u16 = 2;
    pub const INVALID_HEADER: u16 = 4;
    /// Also requests that may have had an effect already.
    pub const NON_IDEMPOTENT: u16 = 8;
    pub const NOT_FOUND: u16 = 1 << 9;
    /// The statuses 500, 502, 503 and 504.
    pub const SERVER_ERRORS: u16 = 0xf << 4;
    /// A cached reply is being updated.
    pub const UPDATING: u16 = 1 << 11;
    /// No reasons.
    pub const OFF: u16 = 1 << 15;

    pub fn of(reasons: u16) -> Self {
        Self(reasons)
    }

    /// The reason for a status; 0: none.
    pub fn of_status(status: u16) -> u16 {
        match status {
            500 => 1 << 4,
            502 => 1 << 5,
            503 => 1 << 6,
            504 => 1 << 7,
            403 => 1 << 8,
            404 => Self::NOT_FOUND,
            429 => 1 << 10,
            _ => 0,
        }
    }

    /// Whether one of these reasons is set.
    pub fn has(self, reasons: u16) -> bool {
        self.0 & Self::OFF == 0 && self.0 & reasons != 0
    }

    /// Whether all these reasons are set.
    pub fn allows(self, reasons: u16) -> bool {
        self.0 & Self::OFF == 0 && self.0 & reasons == reasons
    }
}

impl Value for NextUpstream {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut reasons = Self(0);
        reasons.repeat(from, load)?;
        Ok(reasons)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let allowed = REASONS.iter().filter(|reason| reason.is_allowed(&from.name.text));
        let words: Vec<_> = allowed.map(|reason| (reason.word, reason.bit)).collect();
        add_words(&mut self.0, from, &words, load)
    }
}

/// Fields of replies that are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredFields(u16);

const IGNORED: [(&str, u16); 9] = [
    ("X-Accel-Redirect", IgnoredFields::REDIRECT),
    ("X-Accel-Expires", IgnoredFields::ACCEL_EXPIRES),
    ("X-Accel-Limit-Rate", IgnoredFields::LIMIT_RATE),
    ("X-Accel-Buffering", IgnoredFields::BUFFERING),
    ("X-Accel-Charset", IgnoredFields::CHARSET),
    ("Expires", IgnoredFields::EXPIRES),
    ("Cache-Control", IgnoredFields::CACHE_CONTROL),
    ("Set-Cookie", IgnoredFields::SET_COOKIE),
    ("Vary", IgnoredFields::VARY),
];

impl IgnoredFields {
    pub const REDIRECT: u16 = 1;
    pub const ACCEL_EXPIRES: u16 = 2;
    pub const LIMIT_RATE: u16 = 4;
    pub const BUFFERING: u16 = 8;
    pub const CHARSET: u16 = 16;
    pub const EXPIRES: u16 = 32;
    pub const CACHE_CONTROL: u16 = 64;
    pub const SET_COOKIE: u16 = 128;
    pub const VARY: u16 = 256;

    /// The field of those that a cache obeys; 0: none.
    pub fn of_caching(name: ReplyName) -> u16 {
        match name {
            ReplyName::XAccelExpires => Self::ACCEL_EXPIRES,
            ReplyName::CacheControl => Self::CACHE_CONTROL,
            ReplyName::Expires => Self::EXPIRES,
            ReplyName::SetCookie => Self::SET_COOKIE,
            ReplyName::Vary => Self::VARY,
            _ => 0,
        }
    }

    pub fn has(self, field: u16) -> bool {
        self.0 & field != 0
    }
}

impl Value for IgnoredFields {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut fields = Self(0);
        fields.repeat(from, load)?;
        Ok(fields)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        add_words(&mut self.0, from, &IGNORED, load)
    }
}

/// Where replies are saved as files.
#[derive(Clone, Debug)]
pub enum Store {
    Off,
    /// At the path that the request maps to.
    On,
    At(Template),
}

impl Value for Store {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        match &*from.arg(0).text {
            b"off" => Ok(Self::Off),
            b"on" => Ok(Self::On),
            _ => Ok(Self::At(Template::compile(from.arg(0), from, load)?)),
        }
    }
}

/// Permissions of a file: `user:rw group:r all:r`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreAccess(pub u32);

impl Value for StoreAccess {
    const ARGS: RangeInclusive<usize> = 1..=3;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let mut mode = 0o600;
        for word in &from.args {
            let invalid = || from.error_at(word, format!("invalid value \"{word}\""));
            let (who, rights) = split(&word.text).ok_or_else(invalid)?;
            let shift = match who {
                b"user" => 6,
                b"group" => 3,
                b"all" => 0,
                _ => return Err(invalid()),
            };
            mode |= match rights {
                b"r" => 4 << shift,
                b"rw" => 6 << shift,
                _ => return Err(invalid()),
            };
        }
        Ok(Self(mode))
    }
}

fn split(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = word.iter().position(|&byte| byte == b':')?;
    Some((&word[..colon], &word[colon + 1..]))
}
