//! nginx's notation for numbers, sizes and times.

/// A whole number.
pub fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `8k`, `1m`.
pub fn size(text: &[u8]) -> Option<u64> {
    scaled(text, &[(b'k', 10), (b'm', 20)])
}

/// `8k`, `1m`, `2g`.
pub fn offset(text: &[u8]) -> Option<u64> {
    scaled(text, &[(b'k', 10), (b'm', 20), (b'g', 30)])
}

fn scaled(text: &[u8], units: &[(u8, u32)]) -> Option<u64> {
    let last = text.last()?.to_ascii_lowercase();
    match units.iter().find(|(unit, _)| *unit == last) {
        Some((_, shift)) => number(&text[..text.len() - 1])?.checked_mul(1 << shift),
        None => number(text),
    }
}

/// A time in milliseconds; a bare number is seconds.
pub fn milliseconds(text: &[u8]) -> Option<u64> {
    match text.strip_suffix(b"ms") {
        Some(ms) => number(ms),
        None => number(text.strip_suffix(b"s").unwrap_or(text))?.checked_mul(1000),
    }
}

/// A time in seconds.
pub fn seconds(text: &[u8]) -> Option<u64> {
    milliseconds(text).map(|ms| ms / 1000)
}
