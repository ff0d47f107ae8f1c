//! Secrets of dynamic updates: in the format of BIND's key files,
//! `key "name" { algorithm hmac-sha256; secret "base64"; };`, and in that of nsupdate's option
//! `-y`, `hmac-sha256:name:base64`.

use alloc::vec::Vec;
use core::fmt;

use super::{DomainName, TsigAlgorithm, TsigKey};
use crate::base64;

/// Why a text is not a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFileError {
    /// It does not have the form of a key file.
    Form,
    /// The name is not a domain name.
    Name,
    /// The algorithm is none of [`TsigAlgorithm`].
    Algorithm,
    /// The secret is not base64, or is empty.
    Secret,
}

/// The most bytes of a secret.
const SECRET_BYTES_MAX: usize = 512;

impl TsigKey {
    /// Reads the first key of a file.
    pub fn parse(text: &[u8]) -> Result<Self, KeyFileError> {
        let mut tokens = KeyTokens { rest: text };
        tokens.exactly(b"key")?;
        let name = tokens.word()?;
        let name = DomainName::from_text(name).map_err(|_| KeyFileError::Name)?;
        tokens.exactly(b"{")?;
        let (mut algorithm, mut secret) = (None, None);
        loop {
            match tokens.word()? {
                b"algorithm" => algorithm = TsigAlgorithm::of(tokens.word()?),
                b"secret" => secret = Some(decode(tokens.word()?)?),
                b"}" => break,
                _ => return Err(KeyFileError::Form),
            }
            tokens.exactly(b";")?;
        }
        let algorithm = algorithm.ok_or(KeyFileError::Algorithm)?;
        Ok(Self { name, algorithm, secret: secret.ok_or(KeyFileError::Secret)? })
    }

    /// Reads `[ALGORITHM:]NAME:SECRET`; the algorithm is `hmac-sha256` if there is none.
    pub fn parse_line(text: &[u8]) -> Result<Self, KeyFileError> {
        let parts: Vec<_> = text.split(|byte| *byte == b':').collect();
        let (algorithm, name, secret) = match parts[..] {
            [name, secret] => (Some(TsigAlgorithm::HmacSha256), name, secret),
            [algorithm, name, secret] => (TsigAlgorithm::of(algorithm), name, secret),
            _ => return Err(KeyFileError::Form),
        };
        let algorithm = algorithm.ok_or(KeyFileError::Algorithm)?;
        let name = DomainName::from_text(name).map_err(|_| KeyFileError::Name)?;
        Ok(Self { name, algorithm, secret: decode(secret)? })
    }
}

fn decode(text: &[u8]) -> Result<Vec<u8>, KeyFileError> {
    let mut secret = Vec::new();
    let decoded = base64::decode(text, &mut secret);
    let is_valid = decoded.is_some() && (1..=SECRET_BYTES_MAX).contains(&secret.len());
    is_valid.then_some(secret).ok_or(KeyFileError::Secret)
}

/// Words, texts in quotes (without them), braces and semicolons; comments are skipped.
struct KeyTokens<'a> {
    rest: &'a [u8],
}

impl<'a> KeyTokens<'a> {
    fn exactly(&mut self, expected: &[u8]) -> Result<(), KeyFileError> {
        (self.word()? == expected).then_some(()).ok_or(KeyFileError::Form)
    }

    fn word(&mut self) -> Result<&'a [u8], KeyFileError> {
        self.skip()?;
        let text = self.rest;
        let (start, length, end) = match text.first() {
            None => return Err(KeyFileError::Form),
            Some(b'"') => {
                let length = memchr::memchr(b'"', &text[1..]).ok_or(KeyFileError::Form)?;
                (1, length, length + 2)
            }
            Some(b'{' | b'}' | b';') => (0, 1, 1),
            Some(_) => {
                let ends = |byte: &u8| byte.is_ascii_whitespace() || b"{};\"".contains(byte);
                let length = text.iter().position(ends).unwrap_or(text.len());
                (0, length, length)
            }
        };
        self.rest = &text[end..];
        Ok(&text[start..start + length])
    }

    /// Skips spaces and comments.
    fn skip(&mut self) -> Result<(), KeyFileError> {
        loop {
            self.rest = self.rest.trim_ascii_start();
            let end = match self.rest {
                [b'#', ..] | [b'/', b'/', ..] => {
                    memchr::memchr(b'\n', self.rest).unwrap_or(self.rest.len())
                }
                [b'/', b'*', inside @ ..] => {
                    let end = inside.windows(2).position(|pair| pair == b"*/");
                    end.ok_or(KeyFileError::Form)? + 4
                }
                _ => return Ok(()),
            };
            self.rest = &self.rest[end..];
        }
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => {
                "not of the form key \"name\" { algorithm hmac-sha256; secret \"...\"; };"
            }
            Self::Name => "the name of the key is not a domain name",
            Self::Algorithm => {
                "the algorithm of the key is not hmac-sha256, hmac-sha384 or hmac-sha512"
            }
            Self::Secret => "the secret of the key is not base64",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_bind_is_a_key() {
        let text = b"# tsig-keygen\nkey \"acme.Test\" {\n\talgorithm hmac-sha256;\n\
                     \tsecret \"c2VjcmV0\"; /* base64 */ // a comment\n};\n";
        let key = TsigKey::parse(text).expect("a key");
        assert_eq!(key.name, DomainName::from_text(b"acme.test").expect("a name"));
        assert_eq!(key.secret, b"secret");
        assert_eq!(TsigKey::parse(b"key a{secret c2VjcmV0;algorithm HMAC-SHA256;}"), {
            let name = DomainName::from_text(b"a").expect("a name");
            let algorithm = TsigAlgorithm::HmacSha256;
            Ok(TsigKey { name, algorithm, secret: b"secret".to_vec() })
        });
    }

    #[test]
    fn a_line_of_nsupdate_is_a_key() {
        let key = TsigKey::parse_line(b"hmac-SHA512:acme.test:c2VjcmV0").expect("a key");
        assert_eq!((key.algorithm, &key.secret[..]), (TsigAlgorithm::HmacSha512, &b"secret"[..]));
        let key = TsigKey::parse_line(b"acme.test:c2VjcmV0").expect("a key");
        assert_eq!(key.algorithm, TsigAlgorithm::HmacSha256);
        for (text, error) in [
            (&b""[..], KeyFileError::Form),
            (b"a", KeyFileError::Form),
            (b"hmac-sha256:a:AA==:", KeyFileError::Form),
            (b"hmac-md5:a:AA==", KeyFileError::Algorithm),
            (b"a..b:AA==", KeyFileError::Name),
            (b"a:", KeyFileError::Secret),
        ] {
            assert_eq!(TsigKey::parse_line(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        for (text, error) in [
            (&b""[..], KeyFileError::Form),
            (b"key a { secret \"x", KeyFileError::Form),
            (b"key a /* ", KeyFileError::Form),
            (b"key a..b {};", KeyFileError::Name),
            (b"key a { algorithm hmac-md5; secret \"AA==\"; };", KeyFileError::Algorithm),
            (b"key a { secret \"AA==\"; };", KeyFileError::Algorithm),
            (b"key a { algorithm hmac-sha256; };", KeyFileError::Secret),
            (b"key a { algorithm hmac-sha256; secret \"\"; };", KeyFileError::Secret),
            (b"key a { algorithm hmac-sha256; secret \"?\"; };", KeyFileError::Secret),
        ] {
            assert_eq!(TsigKey::parse(text), Err(error), "{text:?}");
        }
    }
}
