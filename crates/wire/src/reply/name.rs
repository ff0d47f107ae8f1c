//! Reply header names that a proxy must know, as numbers.

use crate::name_table::NameTable;

/// The id of a well-known reply header name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReplyName {
    AcceptRanges,
    CacheControl,
    Connection,
    ContentEncoding,
    ContentLength,
    ContentRange,
    ContentType,
    Date,
    ETag,
    Expires,
    KeepAlive,
    LastModified,
    Link,
    Location,
    Refresh,
    Server,
    SetCookie,
    Status,
    TransferEncoding,
    Upgrade,
    Vary,
    WwwAuthenticate,
    XAccelBuffering,
    XAccelCharset,
    XAccelExpires,
    XAccelLimitRate,
    XAccelRedirect,
    XPad,
    Other,
}

impl ReplyName {
    /// The id of `name`, ignoring case.
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        NAMES.find(name).unwrap_or(ReplyName::Other)
    }

    /// This id in a set of ids.
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }
}

static NAMES: NameTable<ReplyName> = {
    use ReplyName::*;
    const NAMES: &[(&[u8], ReplyName)] = &[
        (b"accept-ranges", AcceptRanges),
        (b"cache-control", CacheControl),
        (b"connection", Connection),
        (b"content-encoding", ContentEncoding),
        (b"content-length", ContentLength),
        (b"content-range", ContentRange),
        (b"content-type", ContentType),
        (b"date", Date),
        (b"etag", ETag),
        (b"expires", Expires),
        (b"keep-alive", KeepAlive),
        (b"last-modified", LastModified),
        (b"link", Link),
        (b"location", Location),
        (b"refresh", Refresh),
        (b"server", Server),
        (b"set-cookie", SetCookie),
        (b"status", Status),
        (b"transfer-encoding", TransferEncoding),
        (b"upgrade", Upgrade),
        (b"vary", Vary),
        (b"www-authenticate", WwwAuthenticate),
        (b"x-accel-buffering", XAccelBuffering),
        (b"x-accel-charset", XAccelCharset),
        (b"x-accel-expires", XAccelExpires),
        (b"x-accel-limit-rate", XAccelLimitRate),
        (b"x-accel-redirect", XAccelRedirect),
        (b"x-pad", XPad),
    ];
    NameTable::new(NAMES, Other)
};

#[cfg(test)]
mod tests {
    use super::ReplyName::{self, *};

    #[test]
    fn every_name_is_found_in_any_case_and_nothing_else() {
        let names = [
            ("Accept-Ranges", AcceptRanges),
            ("Cache-Control", CacheControl),
            ("Connection", Connection),
            ("Content-Encoding", ContentEncoding),
            ("Content-Length", ContentLength),
            ("Content-Range", ContentRange),
            ("Content-Type", ContentType),
            ("Date", Date),
            ("ETag", ETag),
            ("Expires", Expires),
            ("Keep-Alive", KeepAlive),
            ("Last-Modified", LastModified),
            ("Link", Link),
            ("Location", Location),
            ("Refresh", Refresh),
            ("Server", Server),
            ("Set-Cookie", SetCookie),
            ("Status", Status),
            ("Transfer-Encoding", TransferEncoding),
            ("Upgrade", Upgrade),
            ("Vary", Vary),
            ("WWW-Authenticate", WwwAuthenticate),
            ("X-Accel-Buffering", XAccelBuffering),
            ("X-Accel-Charset", XAccelCharset),
            ("X-Accel-Expires", XAccelExpires),
            ("X-Accel-Limit-Rate", XAccelLimitRate),
            ("X-Accel-Redirect", XAccelRedirect),
            ("X-Pad", XPad),
        ];
        for (index, (name, id)) in names.iter().enumerate() {
            assert_eq!(*id as usize, index, "{name}");
            assert_eq!(ReplyName::of(name.as_bytes()), *id);
            assert_eq!(ReplyName::of(name.to_uppercase().as_bytes()), *id);
            assert_eq!(ReplyName::of(&name.as_bytes()[1..]), Other, "{name}");
        }
        assert_eq!(ReplyName::of(b""), Other);
        assert_eq!(ReplyName::of(b"X-Other"), Other);
    }
}
