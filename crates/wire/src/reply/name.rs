//! Reply header names that a proxy must know, as numbers.

use crate::known::find;

/// The id of a well-known reply header name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the name is the header's")]
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
    /// The id of `name`, whatever its case.
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        use ReplyName::*;
        let found = match name.len() {
            4 => find(name, [(b"date", Date), (b"etag", ETag), (b"vary", Vary), (b"link", Link)]),
            5 => find(name, [(b"x-pad", XPad)]),
            6 => find(name, [(b"server", Server), (b"status", Status)]),
            7 => find(name, [(b"expires", Expires), (b"refresh", Refresh), (b"upgrade", Upgrade)]),
            8 => find(name, [(b"location", Location)]),
            10 => find(
                name,
                [
                    (b"connection", Connection),
                    (b"set-cookie", SetCookie),
                    (b"keep-alive", KeepAlive),
                ],
            ),
            12 => find(name, [(b"content-type", ContentType)]),
            13 => find(
                name,
                [
                    (b"last-modified", LastModified),
                    (b"cache-control", CacheControl),
                    (b"accept-ranges", AcceptRanges),
                    (b"content-range", ContentRange),
                ],
            ),
            14 => find(name, [(b"content-length", ContentLength)]),
            15 => find(
                name,
                [(b"x-accel-charset", XAccelCharset), (b"x-accel-expires", XAccelExpires)],
            ),
            16 => find(
                name,
                [
                    (b"content-encoding", ContentEncoding),
                    (b"www-authenticate", WwwAuthenticate),
                    (b"x-accel-redirect", XAccelRedirect),
                ],
            ),
            17 => find(
                name,
                [(b"transfer-encoding", TransferEncoding), (b"x-accel-buffering", XAccelBuffering)],
            ),
            18 => find(name, [(b"x-accel-limit-rate", XAccelLimitRate)]),
            _ => None,
        };
        found.unwrap_or(Other)
    }

    /// This id in a set of ids.
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }
}

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
