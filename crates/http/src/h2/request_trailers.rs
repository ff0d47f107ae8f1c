//! The fields after a request's body that may be passed on to a backend.
//!
//! Programs that merge them into the head must not be misled by them: what is about routing, the
//! connection, the body, access, or the client is dropped (RFC 9110, section 6.5.1), whoever sends
//! it. So are names that `ignore_invalid_headers` drops from heads.

use wire::http2::FieldBlock;

use crate::exchange::Fields;

/// Names that are dropped; those that end with `-` are prefixes.
const DROPPED: [&[u8]; 29] = [
    b"accept-",
    b"age",
    b"authorization",
    b"cache-control",
    b"connection",
    b"content-",
    b"cookie",
    b"date",
    b"expect",
    b"forwarded",
    b"from",
    b"host",
    b"if-",
    b"keep-alive",
    b"max-forwards",
    b"origin",
    b"pragma",
    b"priority",
    b"proxy-",
    b"range",
    b"referer",
    b"sec-",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
    b"via",
    b"x-forwarded-",
    b"x-real-ip",
];

/// The fields that may be passed on, if there are any; none of a block that is incomplete.
pub(super) fn passed_on(block: &FieldBlock) -> Option<Fields> {
    if block.is_cut {
        return None;
    }
    let mut fields = Fields::default();
    for (name, value) in block.iter().filter(|(name, _)| is_passed_on(name)) {
        fields.append(name, value);
    }
    (!fields.is_empty()).then_some(fields)
}

fn is_passed_on(name: &[u8]) -> bool {
    let is_usual = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let is_dropped = |known: &&[u8]| match known.last() {
        Some(b'-') => name.starts_with(known),
        _ => name == *known,
    };
    name.iter().all(is_usual) && !DROPPED.iter().any(is_dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_could_mislead_a_backend_are_dropped() {
        let dropped = [
            "host",
            "te",
            "content-length",
            "content-md5",
            "x-forwarded-for",
            "x-real-ip",
            "cookie",
            "authorization",
            "proxy-authorization",
            "a_b",
            "a.b",
            "if-match",
            "transfer-encoding",
        ];
        for name in dropped {
            assert!(!is_passed_on(name.as_bytes()), "{name}");
        }
        for name in ["grpc-status", "checksum", "x-sum-2", "expected", "cookies", "contents"] {
            assert!(is_passed_on(name.as_bytes()), "{name}");
        }
    }
}
