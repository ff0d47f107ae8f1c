//! Key pairs that the program makes itself: for accounts and certificates.
//!
//! A pair is written as PKCS#8, and is what protocols sign with ([`Signer`]). Keys of TLS come from
//! files and are [`PrivateKey`]s, which only rustls signs with.
//!
//! [`PrivateKey`]: crate::tls::PrivateKey

use std::fmt;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair as _,
    RSA_PKCS1_SHA256,
};
use wire::pem::{self, PemSections};
use wire::signer::{KeyKind, Signer, SigningFailed};

use crate::tls::KeyError;

/// The kind and size of a key to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NewKey {
    EcdsaP256,
    EcdsaP384,
    EcdsaP521,
    Rsa2048,
    Rsa3072,
    Rsa4096,
}

/// A private key with its public key.
pub struct KeyPair {
    key: PairedKey,
    pkcs8: Vec<u8>,
}

/// No key was made: the library gives no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFailure;

enum PairedKey {
    Ecdsa(KeyKind, EcdsaKeyPair),
    Rsa(Box<rsa::KeyPair>),
}

type Curve = (KeyKind, &'static EcdsaSigningAlgorithm);

const P256: Curve = (KeyKind::EcdsaP256, &ECDSA_P256_SHA256_FIXED_SIGNING);
const P384: Curve = (KeyKind::EcdsaP384, &ECDSA_P384_SHA384_FIXED_SIGNING);
const P521: Curve = (KeyKind::EcdsaP521, &ECDSA_P521_SHA512_FIXED_SIGNING);
const CURVES: [Curve; 3] = [P256, P384, P521];

impl KeyPair {
    /// A new key. One of RSA takes up to seconds.
    pub fn generate(new: NewKey) -> Result<Self, KeyFailure> {
        let ecdsa = |(kind, algorithm): Curve| {
            let pair = EcdsaKeyPair::generate(algorithm)?;
            let pkcs8 = pair.to_pkcs8v1()?.as_ref().to_vec();
            Ok(Self { key: PairedKey::Ecdsa(kind, pair), pkcs8 })
        };
        let rsa = |size| Ok(Self::of_rsa(rsa::KeyPair::generate(size)?)?);
        match new {
            NewKey::EcdsaP256 => ecdsa(P256),
            NewKey::EcdsaP384 => ecdsa(P384),
            NewKey::EcdsaP521 => ecdsa(P521),
            NewKey::Rsa2048 => rsa(KeySize::Rsa2048),
            NewKey::Rsa3072 => rsa(KeySize::Rsa3072),
            NewKey::Rsa4096 => rsa(KeySize::Rsa4096),
        }
    }

    /// Reads the first private key of a PEM file, which is not encrypted.
    pub fn read(text: &[u8]) -> Result<Self, KeyError> {
        for section in PemSections::new(text) {
            let section = section.map_err(KeyError::Pem)?;
            let key = &section.contents;
            let read = match section.label {
                b"PRIVATE KEY" => Self::of_pkcs8(key),
                b"RSA PRIVATE KEY" => rsa::KeyPair::from_der(key).ok().map(Self::of_rsa),
                b"EC PRIVATE KEY" => Self::of_sec1(key),
                label if label.ends_with(b"PRIVATE KEY") => None,
                _ => continue,
            };
            return read.and_then(Result::ok).ok_or(KeyError::UnsupportedKey);
        }
        Err(KeyError::Missing)
    }

    fn of_pkcs8(key: &[u8]) -> Option<Result<Self, Unspecified>> {
        let ecdsa = CURVES.into_iter().find_map(|(kind, algorithm)| {
            let pair = EcdsaKeyPair::from_pkcs8(algorithm, key).ok()?;
            Some(Ok(Self { key: PairedKey::Ecdsa(kind, pair), pkcs8: key.to_vec() }))
        });
        ecdsa.or_else(|| rsa::KeyPair::from_pkcs8(key).ok().map(Self::of_rsa))
    }

    fn of_sec1(key: &[u8]) -> Option<Result<Self, Unspecified>> {
        CURVES.into_iter().find_map(|(kind, algorithm)| {
            let pair = EcdsaKeyPair::from_private_key_der(algorithm, key).ok()?;
            let pkcs8 = pair.to_pkcs8v1().ok()?.as_ref().to_vec();
            Some(Ok(Self { key: PairedKey::Ecdsa(kind, pair), pkcs8 }))
        })
    }

    fn of_rsa(pair: rsa::KeyPair) -> Result<Self, Unspecified> {
        let pkcs8: Pkcs8V1Der<'_> = pair.as_der()?;
        let pkcs8 = pkcs8.as_ref().to_vec();
        Ok(Self { key: PairedKey::Rsa(Box::new(pair)), pkcs8 })
    }

    /// The private key as a PEM file.
    pub fn pem(&self) -> Vec<u8> {
        let mut text = Vec::new();
        pem::encode("PRIVATE KEY", &self.pkcs8, &mut text);
        text
    }
}

impl Signer for KeyPair {
    fn kind(&self) -> KeyKind {
        match &self.key {
            PairedKey::Ecdsa(kind, _) => *kind,
            PairedKey::Rsa(_) => KeyKind::Rsa,
        }
    }

    fn public_bits(&self) -> &[u8] {
        match &self.key {
            PairedKey::Ecdsa(_, pair) => pair.public_key().as_ref(),
            PairedKey::Rsa(pair) => pair.public_key().as_ref(),
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SigningFailed> {
        let random = SystemRandom::new();
        let failed = |Unspecified| SigningFailed;
        match &self.key {
            PairedKey::Ecdsa(_, pair) => {
                Ok(pair.sign(&random, message).map_err(failed)?.as_ref().to_vec())
            }
            PairedKey::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(failed)?;
                Ok(signature)
            }
        }
    }
}

impl From<Unspecified> for KeyFailure {
    fn from(_: Unspecified) -> Self {
        Self
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("kind", &self.kind()).finish_non_exhaustive()
    }
}

impl fmt::Display for KeyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the cryptographic library has failed")
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED,
        RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
    };

    use super::*;
    use crate::testing::tls::{ECDSA_KEY, RSA_KEY};

    fn is_signed_by(pair: &KeyPair, algorithm: &'static dyn VerificationAlgorithm) -> bool {
        let signature = pair.sign(b"text").unwrap();
        let key = UnparsedPublicKey::new(algorithm, pair.public_bits());
        assert!(key.verify(b"another text", &signature).is_err());
        key.verify(b"text", &signature).is_ok()
    }

    #[test]
    fn a_key_is_the_same_after_it_was_written_and_read() {
        for new in [NewKey::EcdsaP256, NewKey::EcdsaP384, NewKey::EcdsaP521, NewKey::Rsa2048] {
            let pair = KeyPair::generate(new).unwrap();
            let read = KeyPair::read(&pair.pem()).unwrap();
            assert_eq!((read.kind(), read.public_bits()), (pair.kind(), pair.public_bits()));
        }
    }

    #[test]
    fn the_public_key_verifies_signatures() {
        let pair = KeyPair::generate(NewKey::EcdsaP256).unwrap();
        assert!(is_signed_by(&pair, &ECDSA_P256_SHA256_FIXED));
        let pair = KeyPair::generate(NewKey::EcdsaP384).unwrap();
        assert!(is_signed_by(&pair, &ECDSA_P384_SHA384_FIXED));
        let pair = KeyPair::generate(NewKey::EcdsaP521).unwrap();
        assert!(is_signed_by(&pair, &ECDSA_P521_SHA512_FIXED));
        let pair = KeyPair::read(RSA_KEY.as_bytes()).unwrap();
        assert!(is_signed_by(&pair, &RSA_PKCS1_2048_8192_SHA256));
    }

    #[test]
    fn keys_of_files_are_read() {
        let kind = |text: &str| KeyPair::read(text.as_bytes()).map(|pair| pair.kind());
        assert_eq!(kind(ECDSA_KEY), Ok(KeyKind::EcdsaP256));
        assert_eq!(kind(RSA_KEY), Ok(KeyKind::Rsa));
        assert_eq!(kind(""), Err(KeyError::Missing));
        let broken = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert_eq!(kind(broken), Err(KeyError::UnsupportedKey));
    }
}
