//! `$y$`: yescrypt, the default of Debian and other distributions.

use yescrypt::{Params, yescrypt};

use super::{before_dollar, read_bytes, write_bytes};

/// The most memory of a check. The default parameters take 16 MB.
const MEMORY_MAX: u64 = 1 << 30;
/// Bytes of the digest.
const DIGEST_LENGTH: usize = 32;

/// `$y$params$salt$digest`
pub fn crypt(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let text = kept.strip_prefix(b"$y$")?;
    let params = before_dollar(text);
    let salt = before_dollar(text.get(params.len() + 1..)?);
    let mut text = [b"$y$", params, b"$", salt, b"$"].concat();
    let params: Params = std::str::from_utf8(params).ok()?.parse().ok()?;
    let block = 128 * u64::from(params.r()) * u64::from(params.p());
    if params.n().checked_mul(block)? > MEMORY_MAX {
        return None;
    }
    let mut digest = [0; DIGEST_LENGTH];
    yescrypt(password, &read_bytes(salt)?, &params, &mut digest).ok()?;
    write_bytes(&digest, &mut text);
    Some(text)
}
