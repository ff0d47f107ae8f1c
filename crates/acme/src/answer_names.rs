//! Texts of challenges that become parts of file names.

/// The longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 128;
/// The longest server name.
const NAME_BYTES_MAX: usize = 255;

/// Whether it may be a token: the digits of base64url.
pub fn is_token(text: &[u8]) -> bool {
    (1..=TOKEN_BYTES_MAX).contains(&text.len())
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Whether it may be the server name of a challenge, in lower case.
pub(crate) fn is_server_name(text: &str) -> bool {
    let is_part = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
    };
    text.len() <= NAME_BYTES_MAX && text.bytes().all(is_part)
}
