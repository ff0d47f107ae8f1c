//! `Content-Range` of a slice.

/// `bytes START-LAST/COMPLETE`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentRange {
    pub(super) start: u64,
    /// After the last byte.
    pub(super) end: u64,
    /// The length of the whole.
    pub(super) complete: u64,
}

impl ContentRange {
    /// Without the length of the whole, it is of no use here.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let mut parts = rest.splitn(2, |byte| *byte == b'/');
        let (range, complete) = (parts.next()?, number(parts.next()?)?);
        let mut ends = range.splitn(2, |byte| *byte == b'-');
        let (start, last) = (number(ends.next()?)?, number(ends.next()?)?);
        let range = Self { start, end: last.checked_add(1)?, complete };
        (start < range.end && range.end <= complete).then_some(range)
    }
}

fn number(text: &[u8]) -> Option<u64> {
    conf::units::number(text.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_without_sense_are_refused() {
        let parse = |text: &str| ContentRange::parse(text.as_bytes());
        let range = ContentRange { start: 2, end: 6, complete: 10 };
        assert_eq!(parse("bytes 2-5/10"), Some(range));
        assert_eq!(parse("Bytes 2 - 5 / 10"), Some(range));
        for text in [
            "",
            "bytes",
            "bytes 2-5",
            "bytes 2-5/*",
            "bytes */10",
            "bytes 5-2/10",
            "bytes 2-10/10",
            "items 2-5/10",
            "bytes 2-5/10/11",
            "bytes -5/10",
            "bytes 2-99999999999999999999/10",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
