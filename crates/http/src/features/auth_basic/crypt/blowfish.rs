//! `$2a$`, `$2b$` and `$2y$`: three names for bcrypt.

use bcrypt::{HashParts, Version};

/// `$2b$cost$salt-and-digest`
pub fn crypt(password: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let version = match kept {
        [b'$', b'2', b'a', ..] => Version::TwoA,
        [b'$', b'2', b'b', ..] => Version::TwoB,
        _ => Version::TwoY,
    };
    let parts: HashParts = std::str::from_utf8(kept).ok()?.parse().ok()?;
    let computed = bcrypt::hash_with_salt(password, parts.get_cost(), parts.get_salt_raw()).ok()?;
    Some(computed.format_for_version(version).into_bytes())
}
