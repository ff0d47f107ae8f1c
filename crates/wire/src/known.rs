//! Request header names that nginx knows, as numbers.
//!
//! A name is recognised once, when its line is parsed; after that no text is compared. Names not
//! listed are [`Known::Other`] and are found by their text.

/// The id of a well-known request header name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the name is the header's")]
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
    TransferEncoding,
    Upgrade,
    UserAgent,
    Via,
    XForwardedFor,
    XRealIp,
    Other,
}

impl Known {
    /// The id of `name`, whatever its case.
    #[inline]
    pub fn of(name: &[u8]) -> Known {
        use Known::*;
        match name.len() {
            2 => pick(name, [(b"te", Te)]),
            3 => pick(name, [(b"via", Via)]),
            4 => pick(name, [(b"host", Host), (b"date", Date)]),
            5 => pick(name, [(b"range", Range), (b"depth", Depth)]),
            6 => pick(name, [(b"accept", Accept), (b"cookie", Cookie), (b"expect", Expect)]),
            7 => pick(name, [(b"referer", Referer), (b"upgrade", Upgrade)]),
            8 => pick(name, [(b"if-match", IfMatch), (b"if-range", IfRange)]),
            9 => pick(name, [(b"x-real-ip", XRealIp), (b"overwrite", Overwrite)]),
            10 => pick(
                name,
                [
                    (b"connection", Connection),
                    (b"user-agent", UserAgent),
                    (b"keep-alive", KeepAlive),
                ],
            ),
            11 => pick(name, [(b"destination", Destination)]),
            12 => pick(name, [(b"content-type", ContentType)]),
            13 => pick(
                name,
                [
                    (b"if-none-match", IfNoneMatch),
                    (b"authorization", Authorization),
                    (b"content-range", ContentRange),
                ],
            ),
            14 => pick(name, [(b"content-length", ContentLength)]),
            15 => pick(
                name,
                [
                    (b"accept-encoding", AcceptEncoding),
                    (b"accept-language", AcceptLanguage),
                    (b"x-forwarded-for", XForwardedFor),
                ],
            ),
            16 => pick(name, [(b"proxy-connection", ProxyConnection)]),
            17 => pick(
                name,
                [(b"if-modified-since", IfModifiedSince), (b"transfer-encoding", TransferEncoding)],
            ),
            19 => pick(
                name,
                [
                    (b"if-unmodified-since", IfUnmodifiedSince),
                    (b"proxy-authorization", ProxyAuthorization),
                ],
            ),
            _ => Other,
        }
    }

    /// Whether nginx answers 400 to a second line of this name.
    pub fn is_unique(self) -> bool {
        self.bit() & UNIQUE != 0
    }

    /// This id in a set of ids.
    pub const fn bit(self) -> u64 {
        1 << self as u8
    }
}

const UNIQUE: u64 = Known::Host.bit()
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

#[inline(always)]
fn pick<const N: usize, const COUNT: usize>(
    name: &[u8],
    candidates: [(&[u8; N], Known); COUNT],
) -> Known {
    find(name, candidates).unwrap_or(Known::Other)
}

/// The candidate that is `name`, whatever its case.
#[inline(always)]
pub(crate) fn find<const N: usize, const COUNT: usize, T: Copy>(
    name: &[u8],
    candidates: [(&[u8; N], T); COUNT],
) -> Option<T> {
    let name = name.first_chunk::<N>()?;
    for (lower, id) in candidates {
        if matches_lower(name, lower) {
            return Some(id);
        }
    }
    None
}

/// Exact for any bytes: only where `lower` has a letter may the case differ. With `lower` constant
/// this becomes a few wide compares instead of a loop with a branch per byte.
#[inline(always)]
fn matches_lower<const N: usize>(name: &[u8; N], lower: &[u8; N]) -> bool {
    let mut difference = 0;
    for (&byte, &lower) in name.iter().zip(lower) {
        let fold = if lower.is_ascii_lowercase() { 0x20 } else { 0 };
        difference |= (byte | fold) ^ lower;
    }
    difference == 0
}

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
