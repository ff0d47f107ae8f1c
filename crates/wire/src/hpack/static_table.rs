//! The fields that every table begins with (RFC 7541, appendix A).

/// The index of the newest entry of the dynamic table.
pub(super) const DYNAMIC_FIRST: usize = FIELDS.len() + 1;

/// Names and values; the index of the first one is 1.
pub(super) static FIELDS: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// The index of the first field with this name, ignoring case.
pub(super) fn name_index(name: &[u8]) -> Option<u8> {
    match name.len() {
        3 => find(name, [(b"age", 21), (b"via", 60)]),
        4 => find(
            name,
            [
                (b"date", 33),
                (b"etag", 34),
                (b"from", 37),
                (b"host", 38),
                (b"link", 45),
                (b"vary", 59),
            ],
        ),
        5 => find(name, [(b":path", 4), (b"allow", 22), (b"range", 50)]),
        6 => find(name, [(b"accept", 19), (b"cookie", 32), (b"expect", 35), (b"server", 54)]),
        7 => find(
            name,
            [
                (b":method", 2),
                (b":scheme", 6),
                (b":status", 8),
                (b"expires", 36),
                (b"referer", 51),
                (b"refresh", 52),
            ],
        ),
        8 => find(name, [(b"if-match", 39), (b"if-range", 42), (b"location", 46)]),
        10 => find(name, [(b":authority", 1), (b"set-cookie", 55), (b"user-agent", 58)]),
        11 => find(name, [(b"retry-after", 53)]),
        12 => find(name, [(b"content-type", 31), (b"max-forwards", 47)]),
        13 => find(
            name,
            [
                (b"accept-ranges", 18),
                (b"authorization", 23),
                (b"cache-control", 24),
                (b"content-range", 30),
                (b"if-none-match", 41),
                (b"last-modified", 44),
            ],
        ),
        14 => find(name, [(b"accept-charset", 15), (b"content-length", 28)]),
        15 => find(name, [(b"accept-encoding", 16), (b"accept-language", 17)]),
        16 => find(
            name,
            [
                (b"content-encoding", 26),
                (b"content-language", 27),
                (b"content-location", 29),
                (b"www-authenticate", 61),
            ],
        ),
        17 => find(name, [(b"if-modified-since", 40), (b"transfer-encoding", 57)]),
        18 => find(name, [(b"proxy-authenticate", 48)]),
        19 => find(
            name,
            [
                (b"content-disposition", 25),
                (b"if-unmodified-since", 43),
                (b"proxy-authorization", 49),
            ],
        ),
        25 => find(name, [(b"strict-transport-security", 56)]),
        27 => find(name, [(b"access-control-allow-origin", 20)]),
        _ => None,
    }
}

/// The index of the field with the name of field `first` and this value.
#[inline]
pub(super) fn field_index(first: u8, value: &[u8]) -> Option<u8> {
    let count = match first {
        index::METHOD | index::PATH | index::SCHEME => 2,
        index::STATUS => 7,
        index::ACCEPT_ENCODING => 1,
        _ => return None,
    };
    (first..first + count).find(|index| FIELDS[usize::from(*index) - 1].1 == value)
}

/// Indexes that the code refers to by name.
pub(super) mod index {
    pub(in crate::hpack) const METHOD: u8 = 2;
    pub(in crate::hpack) const PATH: u8 = 4;
    pub(in crate::hpack) const SCHEME: u8 = 6;
    pub(in crate::hpack) const STATUS: u8 = 8;
    pub(in crate::hpack) const ACCEPT_ENCODING: u8 = 16;
    pub(in crate::hpack) const AGE: u8 = 21;
    pub(in crate::hpack) const AUTHORIZATION: u8 = 23;
    pub(in crate::hpack) const CONTENT_LENGTH: u8 = 28;
    pub(in crate::hpack) const CONTENT_RANGE: u8 = 30;
    pub(in crate::hpack) const ETAG: u8 = 34;
    pub(in crate::hpack) const IF_MODIFIED_SINCE: u8 = 40;
    pub(in crate::hpack) const IF_NONE_MATCH: u8 = 41;
    pub(in crate::hpack) const LOCATION: u8 = 46;
    pub(in crate::hpack) const PROXY_AUTHORIZATION: u8 = 49;
    pub(in crate::hpack) const SET_COOKIE: u8 = 55;
}

/// The candidate that is `name`, ignoring case.
#[inline(always)]
fn find<const N: usize, const COUNT: usize>(
    name: &[u8],
    candidates: [(&[u8; N], u8); COUNT],
) -> Option<u8> {
    let name = name.first_chunk::<N>()?;
    candidates.into_iter().find(|(lower, _)| matches_lower(name, lower)).map(|(_, index)| index)
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
