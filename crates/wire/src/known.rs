//! Request header names that nginx or Weir looks for, as numbers.
//!
//! A name is recognised once, when its line is parsed; after that no text is compared. Names not
//! listed are [`Known::Other`] and are found by their text.

use crate::name_table::NameTable;

/// The id of a well-known request header name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Known {
    Accept,
    AcceptEncoding,
    AcceptLanguage,
    Authorization,
    Connection,
    ContentLength,
    ContentRange,
    ContentType,
    Cookie,
    Date,
    Depth,
    Destination,
    Expect,
    Host,
    IfMatch,
    IfModifiedSince,
    IfNoneMatch,
    IfRange,
    IfUnmodifiedSince,
    KeepAlive,
    Overwrite,
    ProxyAuthorization,
    ProxyConnection,
    Range,
    Referer,
    Te,
    TraceParent,
    TraceState,
    TransferEncoding,
    Upgrade,
    UserAgent,
    Via,
    XForwardedFor,
    XRealIp,
    Other,
}

impl Known {
    /// The id of `name`, ignoring case.
    #[inline]
    pub fn of(name: &[u8]) -> Known {
        NAMES.find(name).unwrap_or(Known::Other)
    }

    /// The names for which nginx answers a second line with 400, as bits.
    pub(crate) const UNIQUE: u64 = Known::Host.bit()
        | Known::IfModifiedSince.bit()
        | Known::IfUnmodifiedSince.bit()
        | Known::IfMatch.bit()
        | Known::IfNoneMatch.bit()
        | Known::ContentLength.bit()
        | Known::ContentRange.bit()
        | Known::IfRange.bit()
        | Known::TransferEncoding.bit()
        | Known::Expect.bit()
        | Known::Authorization.bit()
        | Known::ProxyAuthorization.bit();

    /// This id in a set of ids.
    pub const fn bit(self) -> u64 {
        1 << self as u8
    }
}

static NAMES: NameTable<Known> = {
    use Known::*;
    const NAMES: &[(&[u8], Known)] = &[
        (b"accept", Accept),
        (b"accept-encoding", AcceptEncoding),
        (b"accept-language", AcceptLanguage),
        (b"authorization", Authorization),
        (b"connection", Connection),
        (b"content-length", ContentLength),
        (b"content-range", ContentRange),
        (b"content-type", ContentType),
        (b"cookie", Cookie),
        (b"date", Date),
        (b"depth", Depth),
        (b"destination", Destination),
        (b"expect", Expect),
        (b"host", Host),
        (b"if-match", IfMatch),
        (b"if-modified-since", IfModifiedSince),
        (b"if-none-match", IfNoneMatch),
        (b"if-range", IfRange),
        (b"if-unmodified-since", IfUnmodifiedSince),
        (b"keep-alive", KeepAlive),
        (b"overwrite", Overwrite),
        (b"proxy-authorization", ProxyAuthorization),
        (b"proxy-connection", ProxyConnection),
        (b"range", Range),
        (b"referer", Referer),
        (b"te", Te),
        (b"traceparent", TraceParent),
        (b"tracestate", TraceState),
        (b"transfer-encoding", TransferEncoding),
        (b"upgrade", Upgrade),
        (b"user-agent", UserAgent),
        (b"via", Via),
        (b"x-forwarded-for", XForwardedFor),
        (b"x-real-ip", XRealIp),
    ];
    NameTable::new(NAMES, Other)
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_names_in_any_case() {
        let names: [(&[u8], Known); 6] = [
            (b"Host", Known::Host),
            (b"hOST", Known::Host),
            (b"TRANSFER-ENCODING", Known::TransferEncoding),
            (b"content-length", Known::ContentLength),
            (b"If-Unmodified-Since", Known::IfUnmodifiedSince),
            (b"TE", Known::Te),
        ];
        for (name, id) in names {
            assert_eq!(Known::of(name), id, "{}", name.escape_ascii());
        }
    }

    #[test]
    fn refuses_bytes_that_only_look_alike() {
        // 0x0d | 0x20 is "-", 0x40 | 0x20 is "`": folding must touch letters only.
        for name in [&b"if\rmatch"[..], b"@ost", b"hos\x14", b"", b"host ", b"x-real_ip"] {
            assert_eq!(Known::of(name), Known::Other, "{}", name.escape_ascii());
        }
    }
}
