//! Private keys and chains of certificates from PEM files.
//!
//! Keys may be encrypted as `wire::encrypted_key` describes.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::thread;

use aws_lc_rs::cipher::{self, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::pbkdf2;
use md5::{Digest, Md5};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use wire::der::{DerReader, InvalidDer, tag};
use wire::encrypted_key::{EncryptedKey, EncryptedKeyError, KeyCipher, KeyDerivation, KeyHash};
use wire::pem::{PemError, PemSection, PemSections};
use wire::x509::{TrustSettings, X509};

/// Maximum number of bytes in a line of a password file, as in nginx.
pub const PASSWORD_LENGTH_MAX: usize = 512;

/// Why a file has no usable key or certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// It is not a PEM file, or it is broken.
    Pem(PemError),
    /// It contains no key or certificate.
    Missing,
    /// The key is encrypted, and there is no password.
    NoPassword,
    /// No password decrypts the key.
    WrongPassword,
    /// The key is encrypted in an unsupported way.
    UnsupportedEncryption,
    /// The key is broken, or of an unsupported kind.
    UnsupportedKey,
    /// The RSA key is too short, with this number of bits.
    ShortRsaKey(usize),
    /// The certificate is broken.
    InvalidCertificate,
    /// The key belongs to another certificate.
    Mismatch,
}

/// A chain of certificates with the key of its first one, ready to sign.
#[derive(Clone, Debug)]
pub struct Credential {
    pub(crate) key: Arc<CertifiedKey>,
    pub(super) staple: Option<Arc<dyn StapleSource>>,
}

/// Supplies the OCSP response that accompanies a certificate.
pub trait StapleSource: fmt::Debug + Send + Sync {
    /// The response as DER, if there is one. Called for each handshake.
    fn staple(&self) -> Option<Arc<[u8]>>;
}

/// The texts of a credential.
#[derive(Clone, Copy, Debug)]
pub struct CredentialTexts<'t> {
    /// The certificate chain, in PEM.
    pub certificates: &'t [u8],
    /// The private key, in PEM.
    pub key: &'t [u8],
    /// Passwords to try for the key.
    pub passwords: &'t [Vec<u8>],
}

/// Minimum number of credentials for which another thread is started.
const SHARE_MIN: usize = 16;

#[derive(Clone, Debug)]
pub struct CertificateChain(Arc<[CertificateDer<'static>]>);

/// A private key, ready to sign.
#[derive(Clone, Debug)]
pub struct PrivateKey {
    key: Arc<dyn SigningKey>,
    /// Whether it was read with a password.
    pub was_encrypted: bool,
}

impl CertificateChain {
    /// Reads a PEM file.
    pub fn read(text: &[u8]) -> Result<Self, KeyError> {
        read_certificates(text).map(|chain| Self(chain.into()))
    }
}

/// The file without a usable credential, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialError {
    /// The file of the certificate chain.
    Certificate(KeyError),
    /// The file of the key.
    Key(KeyError),
}

impl Credential {
    /// Reads two PEM files, which may be the same. Each password is tried.
    pub fn read(
        certificates: &[u8],
        key: &[u8],
        passwords: &[Vec<u8>],
    ) -> Result<Self, CredentialError> {
        let chain = CertificateChain::read(certificates).map_err(CredentialError::Certificate)?;
        let key = PrivateKey::read(key, passwords).map_err(CredentialError::Key)?;
        Self::new(&chain, &key)
    }

    /// A chain with its key.
    pub fn new(chain: &CertificateChain, key: &PrivateKey) -> Result<Self, CredentialError> {
        // rustls's own check refuses certificates of version 1.
        let first = chain.0.first().map(|first| X509::parse(first));
        let Some(Ok(first)) = first else {
            return Err(CredentialError::Certificate(KeyError::InvalidCertificate));
        };
        if key.key.public_key().is_some_and(|public| public.as_ref() != first.public_key.der) {
            return Err(CredentialError::Key(KeyError::Mismatch));
        }
        let key = Arc::new(CertifiedKey::new(chain.0.to_vec(), key.key.clone()));
        Ok(Self { key, staple: None })
    }

    /// Reads many credentials on all processors: a key takes as long to read as a request to serve.
    /// The results are in the order of the texts.
    pub fn read_all(texts: &[CredentialTexts<'_>]) -> Vec<Result<Self, CredentialError>> {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let share = texts.len().div_ceil(threads).max(SHARE_MIN);
        let read = |texts: &[CredentialTexts<'_>]| -> Vec<_> {
            let one = |texts: &CredentialTexts<'_>| {
                Self::read(texts.certificates, texts.key, texts.passwords)
            };
            texts.iter().map(one).collect()
        };
        let mut shares = texts.chunks(share);
        let first = shares.next().unwrap_or_default();
        thread::scope(|scope| {
            let others: Vec<_> = shares.map(|texts| scope.spawn(move || read(texts))).collect();
            let mut all = read(first);
            for other in others {
                // A panic of a thread is an error of ours, so it is passed on.
                all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            all
        })
    }

    /// The certificates as DER, the key's own first.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.key.cert.iter().map(AsRef::as_ref)
    }

    /// Adds OCSP responses for clients that request them.
    pub fn with_staple(self, source: Arc<dyn StapleSource>) -> Self {
        Self { staple: Some(source), ..self }
    }
}

/// The certificates of a PEM file, in order; at least one.
pub(crate) fn read_certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, KeyError> {
    let sections = read_certificate_sections(text)?.into_iter();
    Ok(sections.map(|section| section.certificate().to_vec().into()).collect())
}

/// A certificate, perhaps with OpenSSL's trust settings.
#[derive(Clone, Debug)]
pub(super) struct CertificateSection {
    contents: Vec<u8>,
    /// The length of the certificate.
    length: usize,
}

impl CertificateSection {
    /// The certificate, as DER.
    pub(super) fn certificate(&self) -> &[u8] {
        &self.contents[..self.length]
    }

    /// The certificate and its trust settings.
    pub(super) fn contents(&self) -> &[u8] {
        &self.contents
    }
}

/// Like [`read_certificates`], with trust settings.
pub(super) fn read_certificate_sections(text: &[u8]) -> Result<Vec<CertificateSection>, KeyError> {
    let mut sections = Vec::new();
    for section in PemSections::new(text) {
        let PemSection { label, contents, .. } = section.map_err(KeyError::Pem)?;
        let length = match label {
            b"CERTIFICATE" | b"X509 CERTIFICATE" => contents.len(),
            b"TRUSTED CERTIFICATE" => {
                let split = TrustSettings::split(&contents);
                split.map_err(|_| KeyError::InvalidCertificate)?.0.len()
            }
            _ => continue,
        };
        sections.push(CertificateSection { contents, length });
    }
    if sections.is_empty() { Err(KeyError::Missing) } else { Ok(sections) }
}

impl PrivateKey {
    /// Reads the first private key of a PEM file. Each password is tried.
    pub fn read(text: &[u8], passwords: &[Vec<u8>]) -> Result<Self, KeyError> {
        let (key, was_encrypted) = read_private_key(text, passwords)?;
        Ok(Self { key, was_encrypted })
    }
}

#[cfg(any(test, feature = "testing"))]
impl PrivateKey {
    pub(crate) fn signing_key(&self) -> Arc<dyn SigningKey> {
        self.key.clone()
    }
}

/// The key, and whether it was encrypted.
fn read_private_key(
    text: &[u8],
    passwords: &[Vec<u8>],
) -> Result<(Arc<dyn SigningKey>, bool), KeyError> {
    for section in PemSections::new(text) {
        let section = section.map_err(KeyError::Pem)?;
        if !section.label.ends_with(b"PRIVATE KEY") {
            continue;
        }
        let Some(encrypted) = EncryptedKey::of(&section) else {
            return key(section).map(|key| (key, false));
        };
        let encrypted = encrypted.map_err(|error| match error {
            EncryptedKeyError::Invalid => KeyError::UnsupportedKey,
            EncryptedKeyError::Unsupported => KeyError::UnsupportedEncryption,
        })?;
        if passwords.is_empty() {
            return Err(KeyError::NoPassword);
        }
        let decrypted = passwords.iter().find_map(|password| {
            let contents = decrypt(&encrypted, password).ok()?;
            let label = section.label.strip_prefix(b"ENCRYPTED ").unwrap_or(section.label);
            match key(PemSection { label, headers: Vec::new(), contents }) {
                Err(KeyError::UnsupportedKey) => None,
                right => Some(right),
            }
        });
        return decrypted.unwrap_or(Err(KeyError::WrongPassword)).map(|key| (key, true));
    }
    Err(KeyError::Missing)
}

/// The passwords of a password file, one per line; `None`: a line is too long. A file without
/// passwords means the empty password.
pub fn read_passwords(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut passwords = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if line.len() >= PASSWORD_LENGTH_MAX {
            return None;
        }
        let password = line.strip_suffix(b"\r").unwrap_or(line);
        if !password.is_empty() {
            passwords.push(password.to_vec());
        }
    }
    if passwords.is_empty() {
        passwords.push(Vec::new());
    }
    Some(passwords)
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Pem(PemError::NoEnd) => "a PEM section has no end line",
            Self::Pem(PemError::Base64) => "bad base64 decode",
            Self::Missing => "no start line",
            Self::NoPassword => "the key is encrypted, and there is no password file",
            Self::WrongPassword => "bad decrypt: none of the passwords is the key's",
            Self::UnsupportedEncryption => {
                "the key's encryption is not supported: use AES or 3DES in CBC mode with PBKDF2"
            }
            Self::UnsupportedKey => "the key is broken, or neither RSA, ECDSA nor Ed25519",
            Self::ShortRsaKey(bits) => {
                return write!(f, "RSA key of {bits} bits; at least {RSA_BITS_MIN} are needed");
            }
            Self::InvalidCertificate => "the certificate is broken",
            Self::Mismatch => "key values mismatch: the key belongs to another certificate",
        };
        f.write_str(text)
    }
}

/// AWS-LC's minimum for signing.
const RSA_BITS_MIN: usize = 2048;

/// A key of the kind given by its section's label. After a wrong password, the padding is right
/// once in 256 times, but the contents are almost never a key.
fn key(section: PemSection<'_>) -> Result<Arc<dyn SigningKey>, KeyError> {
    let contents = section.contents;
    let key = match section.label {
        b"PRIVATE KEY" => PrivateKeyDer::Pkcs8(contents.into()),
        b"RSA PRIVATE KEY" => PrivateKeyDer::Pkcs1(contents.into()),
        b"EC PRIVATE KEY" => PrivateKeyDer::Sec1(contents.into()),
        _ => return Err(KeyError::UnsupportedKey),
    };
    let signing = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key);
    signing.map_err(|_| match rsa_bits(&key) {
        Ok(bits) if bits < RSA_BITS_MIN => KeyError::ShortRsaKey(bits),
        _ => KeyError::UnsupportedKey,
    })
}

/// The length of an RSA key's modulus in bits.
fn rsa_bits(key: &PrivateKeyDer<'_>) -> Result<usize, InvalidDer> {
    let mut outer = DerReader::sequence(key.secret_der())?;
    outer.number()?;
    let mut numbers = match key {
        PrivateKeyDer::Pkcs1(_) => outer,
        PrivateKeyDer::Pkcs8(_) => {
            let mut algorithm = outer.inside(tag::SEQUENCE)?;
            if algorithm.contents(tag::OBJECT_IDENTIFIER)? != RSA_ENCRYPTION {
                return Err(InvalidDer);
            }
            let mut numbers = DerReader::sequence(outer.contents(tag::OCTET_STRING)?)?;
            numbers.number()?;
            numbers
        }
        _ => return Err(InvalidDer),
    };
    let modulus = numbers.contents(tag::INTEGER)?;
    let modulus = &modulus[modulus.iter().take_while(|byte| **byte == 0).count()..];
    let unused = modulus.first().map_or(0, |first| first.leading_zeros() as usize);
    Ok(modulus.len() * 8 - unused)
}

/// rsaEncryption, 1.2.840.113549.1.1.1 (RFC 8017).
const RSA_ENCRYPTION: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";

/// Decrypts a key with a password.
#[allow(deprecated)] // 3DES: old keys are encrypted with it.
fn decrypt(encrypted: &EncryptedKey<'_>, password: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let mut key = vec![0; encrypted.cipher.key_len()];
    match &encrypted.derivation {
        KeyDerivation::Md5 => derive_with_md5(password, &encrypted.iv, &mut key),
        KeyDerivation::Pbkdf2 { salt, iterations, hash } => {
            let iterations = NonZeroU32::new(*iterations).ok_or(Unspecified)?;
            pbkdf2::derive(hmac(*hash), iterations, salt, password, &mut key);
        }
    }
    let (algorithm, context) = match encrypted.cipher {
        KeyCipher::DesEde3 => (&cipher::DES_EDE3_FOR_LEGACY_USE_ONLY, iv64(&encrypted.iv)?),
        KeyCipher::Aes128 => (&cipher::AES_128, iv128(&encrypted.iv)?),
        KeyCipher::Aes192 => (&cipher::AES_192, iv128(&encrypted.iv)?),
        KeyCipher::Aes256 => (&cipher::AES_256, iv128(&encrypted.iv)?),
    };
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(UnboundCipherKey::new(algorithm, &key)?)?;
    let mut text = encrypted.ciphertext.to_vec();
    let length = key.decrypt(&mut text, context)?.len();
    text.truncate(length);
    Ok(text)
}

fn iv128(iv: &[u8]) -> Result<DecryptionContext, Unspecified> {
    Ok(DecryptionContext::Iv128(iv.try_into()?))
}

fn iv64(iv: &[u8]) -> Result<DecryptionContext, Unspecified> {
    Ok(DecryptionContext::Iv64(iv.try_into()?))
}

fn hmac(hash: KeyHash) -> pbkdf2::Algorithm {
    match hash {
        KeyHash::Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
        KeyHash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        KeyHash::Sha384 => pbkdf2::PBKDF2_HMAC_SHA384,
        KeyHash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
    }
}

/// OpenSSL's `EVP_BytesToKey`: each digest covers the previous one, the password and the salt.
fn derive_with_md5(password: &[u8], iv: &[u8], key: &mut [u8]) {
    const SALT: usize = 8;
    let salt = &iv[..iv.len().min(SALT)];
    let mut last = Vec::new();
    for part in key.chunks_mut(16) {
        let digest = Md5::new().chain_update(&last).chain_update(password).chain_update(salt);
        last = digest.finalize().to_vec();
        part.copy_from_slice(&last[..part.len()]);
    }
}

#[cfg(test)]
mod tests;
