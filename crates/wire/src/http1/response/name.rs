//! Reply header names that a proxy must know, as numbers.

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

use ReplyName::*;

/// The names by length, so that a name is compared with few others.
const NAMES: [(&[u8], ReplyName); 28] = [
    (b"Accept-Ranges", AcceptRanges),
    (b"Cache-Control", CacheControl),
    (b"Connection", Connection),
    (b"Content-Encoding", ContentEncoding),
    (b"Content-Length", ContentLength),
    (b"Content-Range", ContentRange),
    (b"Content-Type", ContentType),
    (b"Date", Date),
    (b"ETag", ETag),
    (b"Expires", Expires),
    (b"Keep-Alive", KeepAlive),
    (b"Last-Modified", LastModified),
    (b"Link", Link),
    (b"Location", Location),
    (b"Refresh", Refresh),
    (b"Server", Server),
    (b"Set-Cookie", SetCookie),
    (b"Status", Status),
    (b"Transfer-Encoding", TransferEncoding),
    (b"Upgrade", Upgrade),
    (b"Vary", Vary),
    (b"WWW-Authenticate", WwwAuthenticate),
    (b"X-Accel-Buffering", XAccelBuffering),
    (b"X-Accel-Charset", XAccelCharset),
    (b"X-Accel-Expires", XAccelExpires),
    (b"X-Accel-Limit-Rate", XAccelLimitRate),
    (b"X-Accel-Redirect", XAccelRedirect),
    (b"X-Pad", XPad),
];

/// Names of one length and first letter are few: a table of where to look.
const fn slot(length: usize, first: u8) -> usize {
    (length * 7 + (first | 0x20) as usize * 3) & (SLOTS - 1)
}

const SLOTS: usize = 128;

/// For each slot, the names that share it, as bits.
const TABLE: [u32; SLOTS] = {
    let mut table = [0u32; SLOTS];
    let mut index = 0;
    while index < NAMES.len() {
        let name = NAMES[index].0;
        table[slot(name.len(), name[0])] |= 1 << index;
        index += 1;
    }
    table
};

impl ReplyName {
    /// The id of `name`, whatever its case.
    pub fn of(name: &[u8]) -> Self {
        let Some(&first) = name.first() else { return Other };
        let mut candidates = TABLE[slot(name.len(), first)];
        while candidates != 0 {
            let (text, id) = NAMES[candidates.trailing_zeros() as usize];
            if text.eq_ignore_ascii_case(name) {
                return id;
            }
            candidates &= candidates - 1;
        }
        Other
    }

    /// This id in a set of ids.
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_name_is_found_in_any_case_and_nothing_else() {
        for (index, (name, id)) in NAMES.iter().enumerate() {
            assert_eq!(*id as usize, index);
            assert_eq!(ReplyName::of(name), *id);
            let upper: Vec<u8> = name.iter().map(u8::to_ascii_uppercase).collect();
            assert_eq!(ReplyName::of(&upper), *id);
            assert_eq!(ReplyName::of(&name[1..]), Other);
        }
        assert_eq!(ReplyName::of(b""), Other);
        assert_eq!(ReplyName::of(b"X-Other"), Other);
    }
}
