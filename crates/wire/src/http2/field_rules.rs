//! Rules for the fields of requests, replies and trailers (RFC 9113, section 8.2).

/// Requires a name in lower case and a value on one line. The error says what the peer did.
pub(super) fn check_field(name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    let plain = name.strip_prefix(b":").unwrap_or(name);
    let is_invalid = |byte: &u8| matches!(byte, 0..=b' ' | b':' | b'A'..=b'Z' | 0x7f);
    if plain.is_empty() || plain.iter().any(is_invalid) {
        return Err("sent invalid header name");
    }
    if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        return Err("sent header with invalid value");
    }
    Ok(())
}

/// Refuses fields about the connection, which belong to HTTP/1 (section 8.2.2).
pub(super) fn check_scope(name: &[u8]) -> Result<(), &'static str> {
    Err(match name {
        b"connection" => "sent \"Connection\" header",
        b"keep-alive" => "sent \"Keep-Alive\" header",
        b"proxy-connection" => "sent \"Proxy-Connection\" header",
        b"transfer-encoding" => "sent \"Transfer-Encoding\" header",
        b"upgrade" => "sent \"Upgrade\" header",
        _ => return Ok(()),
    })
}

/// Reads `content-length`, which may occur once.
pub(super) fn take_length(length: &mut Option<u64>, digits: &[u8]) -> Result<(), &'static str> {
    if length.is_some() {
        return Err("sent duplicate \"Content-Length\" header");
    }
    *length = number(digits);
    length.map(drop).ok_or("sent invalid \"Content-Length\" header")
}

/// Digits only, up to the largest length.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit.into()).filter(|sum| *sum <= i64::MAX as u64)
    })
}
