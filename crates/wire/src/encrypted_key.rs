//! The encryption of private keys: PKCS#8 with PBES2 (RFC 8018), and OpenSSL's older form with
//! `Proc-Type` and `DEK-Info`.
//!
//! Only the parameters are read here; `net::tls` decrypts.

use alloc::vec::Vec;

use crate::der::{DerReader, InvalidDer, tag};
use crate::pem::PemSection;

/// A private key encrypted with a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedKey<'a> {
    /// The derivation of the cipher's key from the password.
    pub derivation: KeyDerivation<'a>,
    /// The cipher, in CBC mode with PKCS#7 padding.
    pub cipher: KeyCipher,
    /// The cipher's initialisation vector.
    pub iv: Vec<u8>,
    /// The encrypted key.
    pub ciphertext: &'a [u8],
}

/// The derivation of a key from a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyDerivation<'a> {
    /// RFC 8018, section 5.2.
    Pbkdf2 {
        salt: &'a [u8],
        iterations: u32,
        /// The hash of HMAC.
        hash: KeyHash,
    },
    /// OpenSSL's `EVP_BytesToKey` with MD5, applied once; the salt is the beginning of the vector.
    Md5,
}

/// The hashes of HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyCipher {
    Aes128,
    Aes192,
    Aes256,
    DesEde3,
}

/// Why an encrypted key cannot be read with any password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptedKeyError {
    /// It is malformed.
    Invalid,
    /// The kind of encryption is not supported: PBES1, scrypt, other ciphers.
    Unsupported,
}

/// The most iterations of PBKDF2. OpenSSL writes 2048.
const ITERATIONS_MAX: u32 = 10_000_000;

impl<'a> EncryptedKey<'a> {
    /// The encryption of a section; `None` if it is not encrypted.
    pub fn of(section: &'a PemSection<'a>) -> Option<Result<Self, EncryptedKeyError>> {
        if section.label == b"ENCRYPTED PRIVATE KEY" {
            return Some(Self::from_pkcs8(&section.contents));
        }
        let header = |name: &[u8]| {
            section.headers.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
        };
        if header(b"Proc-Type") != Some(b"4,ENCRYPTED") {
            return None;
        }
        let info = header(b"DEK-Info").ok_or(EncryptedKeyError::Invalid);
        Some(info.and_then(|info| Self::from_dek_info(info, &section.contents)))
    }

    /// Reads an `EncryptedPrivateKeyInfo`.
    fn from_pkcs8(der: &'a [u8]) -> Result<Self, EncryptedKeyError> {
        let mut outer = DerReader::new(der).inside(tag::SEQUENCE)?;
        let mut algorithm = outer.inside(tag::SEQUENCE)?;
        let ciphertext = outer.contents(tag::OCTET_STRING)?;
        if algorithm.contents(tag::OBJECT_IDENTIFIER)? != PBES2 {
            return Err(EncryptedKeyError::Unsupported);
        }
        let mut parameters = algorithm.inside(tag::SEQUENCE)?;
        let derivation = pbkdf2(parameters.inside(tag::SEQUENCE)?)?;
        let mut scheme = parameters.inside(tag::SEQUENCE)?;
        let cipher = scheme.contents(tag::OBJECT_IDENTIFIER)?;
        let cipher = CIPHERS.iter().find(|(oid, ..)| *oid == cipher).map(|(.., cipher)| *cipher);
        let iv = scheme.contents(tag::OCTET_STRING)?.to_vec();
        Self { derivation, cipher: cipher.ok_or(EncryptedKeyError::Unsupported)?, iv, ciphertext }
            .checked()
    }

    /// Reads the value of `DEK-Info`.
    fn from_dek_info(info: &[u8], ciphertext: &'a [u8]) -> Result<Self, EncryptedKeyError> {
        let comma = memchr::memchr(b',', info).ok_or(EncryptedKeyError::Invalid)?;
        let (name, iv) = (info[..comma].trim_ascii(), info[comma + 1..].trim_ascii());
        let cipher = CIPHERS.iter().find(|(_, other, _)| other.as_bytes() == name);
        let cipher = cipher.ok_or(EncryptedKeyError::Unsupported)?.2;
        let iv = hex(iv).ok_or(EncryptedKeyError::Invalid)?;
        Self { derivation: KeyDerivation::Md5, cipher, iv, ciphertext }.checked()
    }

    fn checked(self) -> Result<Self, EncryptedKeyError> {
        let block = self.cipher.block_len();
        let is_whole = !self.ciphertext.is_empty() && self.ciphertext.len().is_multiple_of(block);
        if self.iv.len() == block && is_whole { Ok(self) } else { Err(EncryptedKeyError::Invalid) }
    }
}

impl KeyCipher {
    /// The length of a key, in bytes.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 | Self::DesEde3 => 24,
            Self::Aes256 => 32,
        }
    }

    /// The length of a block and of the vector, in bytes.
    pub const fn block_len(self) -> usize {
        match self {
            Self::DesEde3 => 8,
            _ => 16,
        }
    }
}

impl From<InvalidDer> for EncryptedKeyError {
    fn from(InvalidDer: InvalidDer) -> Self {
        Self::Invalid
    }
}

/// Object identifiers, without tag and length.
const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 12];
/// HMAC with a hash: these bytes, and one for the hash.
const HMAC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2];

/// Ciphers by identifier and by the name in `DEK-Info`.
const CIPHERS: [(&[u8], &str, KeyCipher); 4] = [
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 2], "AES-128-CBC", KeyCipher::Aes128),
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 22], "AES-192-CBC", KeyCipher::Aes192),
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 42], "AES-256-CBC", KeyCipher::Aes256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 3, 7], "DES-EDE3-CBC", KeyCipher::DesEde3),
];

fn pbkdf2(mut algorithm: DerReader<'_>) -> Result<KeyDerivation<'_>, EncryptedKeyError> {
    if algorithm.contents(tag::OBJECT_IDENTIFIER)? != PBKDF2 {
        return Err(EncryptedKeyError::Unsupported);
    }
    let mut parameters = algorithm.inside(tag::SEQUENCE)?;
    let salt = parameters.contents(tag::OCTET_STRING)?;
    let iterations = parameters.number()?;
    // The key's length follows from the cipher.
    parameters.optional(tag::INTEGER)?;
    let hash = match parameters.optional(tag::SEQUENCE)? {
        None => KeyHash::Sha1,
        Some(prf) => hmac(DerReader::new(prf.contents).contents(tag::OBJECT_IDENTIFIER)?)?,
    };
    if !(1..=ITERATIONS_MAX).contains(&iterations) {
        return Err(EncryptedKeyError::Unsupported);
    }
    Ok(KeyDerivation::Pbkdf2 { salt, iterations, hash })
}

fn hmac(oid: &[u8]) -> Result<KeyHash, EncryptedKeyError> {
    match oid.strip_prefix(HMAC) {
        Some([7]) => Ok(KeyHash::Sha1),
        Some([9]) => Ok(KeyHash::Sha256),
        Some([10]) => Ok(KeyHash::Sha384),
        Some([11]) => Ok(KeyHash::Sha512),
        _ => Err(EncryptedKeyError::Unsupported),
    }
}

fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, []) = text.as_chunks() else { return None };
    pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect()
}
