//! `gzip_proxied`: which replies are compressed for requests through a proxy. The proxy may send
//! its stored replies to clients that do not accept gzip.

use std::ops::RangeInclusive;

use conf::{Directive, Load, Result, Value, add_words};
use wire::{Known, date};

use crate::exchange::{Exchange, FieldName, Reply};

/// A set of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proxied(u16);

const OFF: u16 = 1;
const ANY: u16 = 2;
const AUTH: u16 = 4;
const EXPIRED: u16 = 8;
const NO_LAST_MODIFIED: u16 = 16;
const NO_ETAG: u16 = 32;
const NO_CACHE: u16 = 64;
const NO_STORE: u16 = 128;
const PRIVATE: u16 = 256;

const WORDS: [(&str, u16); 9] = [
    ("off", OFF),
    ("expired", EXPIRED),
    ("no-cache", NO_CACHE),
    ("no-store", NO_STORE),
    ("private", PRIVATE),
    ("no_last_modified", NO_LAST_MODIFIED),
    ("no_etag", NO_ETAG),
    ("auth", AUTH),
    ("any", ANY),
];

impl Value for Proxied {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut replies = Self(0);
        replies.repeat(from, load)?;
        Ok(replies)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        add_words(&mut self.0, from, &WORDS, load)
    }
}

impl Proxied {
    fn has(self, reply: u16) -> bool {
        self.0 & reply != 0
    }

    /// Whether the reply that stands in the exchange is one of them.
    pub(super) fn allows(self, x: &Exchange) -> bool {
        if self.has(OFF) {
            return false;
        }
        if self.has(ANY) || self.has(AUTH) && x.request.field(Known::Authorization).is_some() {
            return true;
        }
        let fields = &x.reply.fields;
        if let Some(expires) = fields.known(FieldName::Expires) {
            return self.has(EXPIRED) && is_expired(expires, &x.reply);
        }
        if fields.known(FieldName::CacheControl).is_some() {
            return [(NO_CACHE, &b"no-cache"[..]), (NO_STORE, b"no-store"), (PRIVATE, b"private")]
                .iter()
                .any(|(bit, word)| self.has(*bit) && controls_cache(word, &x.reply));
        }
        // A file's time is not a field of the reply, so nginx ignores it here.
        !(self.has(NO_LAST_MODIFIED) && fields.known(FieldName::LastModified).is_some()
            || self.has(NO_ETAG) && fields.known(FieldName::ETag).is_some())
    }
}

/// Whether `Expires` is earlier than the reply's date. An invalid date counts as missing.
fn is_expired(expires: &[u8], reply: &Reply) -> bool {
    let now = match reply.fields.values(b"Date").next() {
        Some(date) => date::parse(date),
        None => Some((net::clock::unix_ms() / 1000) as i64),
    };
    date::parse(expires).zip(now).is_some_and(|(expires, now)| expires < now)
}

/// Whether `Cache-Control` has this word, without an argument.
fn controls_cache(word: &[u8], reply: &Reply) -> bool {
    let mut lines = reply.fields.values(b"Cache-Control");
    lines.any(|line| {
        line.split(|byte| *byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(word))
    })
}
