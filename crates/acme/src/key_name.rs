//! Names of kinds of keys, in nginx-acme's notation: `ecdsa:256`, `rsa:4096`.

use net::NewKey;

/// The kind of key that the text names; `None`: no kind, so perhaps a file. The error is
/// nginx-acme's.
pub(crate) fn parse(text: &[u8]) -> Option<Result<NewKey, &'static str>> {
    let (name, size) = match text.iter().position(|byte| *byte == b':') {
        Some(colon) => (&text[..colon], Some(&text[colon + 1..])),
        None => (text, None),
    };
    match (name, size) {
        (b"ecdsa", None | Some(b"256")) => Some(Ok(NewKey::EcdsaP256)),
        (b"ecdsa", Some(b"384")) => Some(Ok(NewKey::EcdsaP384)),
        (b"ecdsa", Some(b"521")) => Some(Ok(NewKey::EcdsaP521)),
        (b"ecdsa", Some(_)) => Some(Err("unsupported curve")),
        (b"rsa", None | Some(b"2048")) => Some(Ok(NewKey::Rsa2048)),
        (b"rsa", Some(b"3072")) => Some(Ok(NewKey::Rsa3072)),
        (b"rsa", Some(b"4096")) => Some(Ok(NewKey::Rsa4096)),
        (b"rsa", Some(_)) => Some(Err("unsupported key size")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_optional_and_checked() {
        assert_eq!(parse(b"ecdsa"), Some(Ok(NewKey::EcdsaP256)));
        assert_eq!(parse(b"ecdsa:521"), Some(Ok(NewKey::EcdsaP521)));
        assert_eq!(parse(b"rsa:4096"), Some(Ok(NewKey::Rsa4096)));
        assert_eq!(parse(b"rsa:1024"), Some(Err("unsupported key size")));
        assert_eq!(parse(b"ecdsa:234"), Some(Err("unsupported curve")));
        assert_eq!(parse(b"account.key"), None);
    }
}
