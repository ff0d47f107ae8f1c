//! Key pairs that the program makes itself: for accounts and certificates.
//!
//! A pair is written as PKCS#8 and signs in both notations of ECDSA: DER for certificates, fixed
//! length for JSON (RFC 7518, section 3.4). Keys of TLS come from files and are [`PrivateKey`]s,
//! which only rustls signs with.
//!
//! [`PrivateKey`]: crate::tls::PrivateKey

use std::fmt;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING,
    ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
    ECDSA_P521_SHA512_ASN1_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, KeyPair as _, RSA_PKCS1_SHA256,
};
use wire::der::{DerReader, InvalidDer, tag};
use wire::pem::{self, PemSections};

use crate::tls::KeyError;

/// The kind of a key and the hash that it signs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// P-256 with SHA-256.
    Ecdsa256,
    /// P-384 with SHA-384.
    Ecdsa384,
    /// P-521 with SHA-512.
    Ecdsa521,
    /// RSA with PKCS#1 and SHA-256, as the next ones.
    Rsa2048,
    Rsa3072,
    Rsa4096,
}

/// A private key with its public key.
pub struct KeyPair {
    kind: KeyKind,
    signer: Signer,
    pkcs8: Vec<u8>,
}

/// The numbers of a public key, big-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicNumbers {
    /// The coordinates, each as long as the curve's field.
    Ecdsa { x: Vec<u8>, y: Vec<u8> },
    /// Without leading zeros.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

/// No key was made, or nothing was signed: the library gives no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFailure;

enum Signer {
    Ecdsa { der: EcdsaKeyPair, fixed: EcdsaKeyPair },
    Rsa(Box<rsa::KeyPair>),
}

const CURVES: [KeyKind; 3] = [KeyKind::Ecdsa256, KeyKind::Ecdsa384, KeyKind::Ecdsa521];

/// The first byte of a point that is not compressed (SEC 1, section 2.3.3).
const UNCOMPRESSED: u8 = 4;

impl KeyKind {
    /// The algorithms with signatures in DER, and of fixed length.
    fn curve(self) -> Option<[&'static EcdsaSigningAlgorithm; 2]> {
        match self {
            Self::Ecdsa256 => {
                Some([&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P256_SHA256_FIXED_SIGNING])
            }
            Self::Ecdsa384 => {
                Some([&ECDSA_P384_SHA384_ASN1_SIGNING, &ECDSA_P384_SHA384_FIXED_SIGNING])
            }
            Self::Ecdsa521 => {
                Some([&ECDSA_P521_SHA512_ASN1_SIGNING, &ECDSA_P521_SHA512_FIXED_SIGNING])
            }
            Self::Rsa2048 | Self::Rsa3072 | Self::Rsa4096 => None,
        }
    }

    fn rsa_size(self) -> KeySize {
        match self {
            Self::Rsa3072 => KeySize::Rsa3072,
            Self::Rsa4096 => KeySize::Rsa4096,
            _ => KeySize::Rsa2048,
        }
    }
}

impl KeyPair {
    /// A new key. One of RSA takes up to seconds.
    pub fn generate(kind: KeyKind) -> Result<Self, KeyFailure> {
        let pkcs8 = match kind.curve() {
            Some([der, _]) => EcdsaKeyPair::generate(der)?.to_pkcs8v1()?.as_ref().to_vec(),
            None => {
                let pair = rsa::KeyPair::generate(kind.rsa_size())?;
                let pkcs8: Pkcs8V1Der<'_> = pair.as_der()?;
                pkcs8.as_ref().to_vec()
            }
        };
        Ok(Self { kind, signer: Signer::read(kind, &pkcs8)?, pkcs8 })
    }

    /// Reads the first private key of a PEM file.
    pub fn read(text: &[u8]) -> Result<Self, KeyError> {
        for section in PemSections::new(text) {
            let section = section.map_err(KeyError::Pem)?;
            match section.label {
                b"PRIVATE KEY" => return Self::of_pkcs8(section.contents),
                b"RSA PRIVATE KEY" => {
                    return Self::of_rsa(rsa::KeyPair::from_der(&section.contents));
                }
                b"EC PRIVATE KEY" => return Self::of_sec1(&section.contents),
                label if label.ends_with(b"PRIVATE KEY") => return Err(KeyError::UnsupportedKey),
                _ => {}
            }
        }
        Err(KeyError::Missing)
    }

    fn of_pkcs8(pkcs8: Vec<u8>) -> Result<Self, KeyError> {
        for kind in CURVES {
            if let Ok(signer) = Signer::read(kind, &pkcs8) {
                return Ok(Self { kind, signer, pkcs8 });
            }
        }
        Self::of_rsa(rsa::KeyPair::from_pkcs8(&pkcs8))
    }

    fn of_sec1(key: &[u8]) -> Result<Self, KeyError> {
        let read = |kind: KeyKind| {
            let [der, _] = kind.curve()?;
            let pair = EcdsaKeyPair::from_private_key_der(der, key).ok()?;
            Some(pair.to_pkcs8v1().ok()?.as_ref().to_vec())
        };
        CURVES.into_iter().find_map(read).map_or(Err(KeyError::UnsupportedKey), Self::of_pkcs8)
    }

    fn of_rsa<E>(pair: Result<rsa::KeyPair, E>) -> Result<Self, KeyError> {
        let pair = pair.map_err(|_| KeyError::UnsupportedKey)?;
        let kind = match pair.public_modulus_len() {
            256 => KeyKind::Rsa2048,
            384 => KeyKind::Rsa3072,
            512 => KeyKind::Rsa4096,
            _ => return Err(KeyError::UnsupportedKey),
        };
        let pkcs8: Pkcs8V1Der<'_> =
            pair.as_der().map_err(|Unspecified| KeyError::UnsupportedKey)?;
        let pkcs8 = pkcs8.as_ref().to_vec();
        Ok(Self { kind, signer: Signer::Rsa(Box::new(pair)), pkcs8 })
    }

    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The private key as a PEM file.
    pub fn pem(&self) -> Vec<u8> {
        let mut text = Vec::new();
        pem::encode("PRIVATE KEY", &self.pkcs8, &mut text);
        text
    }

    pub fn public_numbers(&self) -> PublicNumbers {
        match &self.signer {
            Signer::Ecdsa { der, .. } => {
                let point = der.public_key().as_ref();
                let (form, coordinates) = point.split_at(1);
                assert_eq!(form, [UNCOMPRESSED], "points are not compressed");
                let (x, y) = coordinates.split_at(coordinates.len() / 2);
                PublicNumbers::Ecdsa { x: x.to_vec(), y: y.to_vec() }
            }
            Signer::Rsa(pair) => rsa_numbers(pair.public_key().as_ref())
                .expect("the library writes keys as RFC 8017 has them"),
        }
    }

    /// The public key as a SubjectPublicKeyInfo in DER (RFC 5280, section 4.1).
    pub fn public_key_info(&self) -> Result<Vec<u8>, KeyFailure> {
        let info: PublicKeyX509Der<'_> = match &self.signer {
            Signer::Ecdsa { der, .. } => der.public_key().as_der()?,
            Signer::Rsa(pair) => pair.public_key().as_der()?,
        };
        Ok(info.as_ref().to_vec())
    }

    /// A signature as certificates have it.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        match &self.signer {
            Signer::Ecdsa { der, .. } => sign_ecdsa(der, message),
            Signer::Rsa(pair) => sign_rsa(pair, message),
        }
    }

    /// A signature as JSON Web Signatures have it.
    pub fn sign_fixed(&self, message: &[u8]) -> Result<Vec<u8>, KeyFailure> {
        match &self.signer {
            Signer::Ecdsa { fixed, .. } => sign_ecdsa(fixed, message),
            Signer::Rsa(pair) => sign_rsa(pair, message),
        }
    }
}

impl Signer {
    fn read(kind: KeyKind, pkcs8: &[u8]) -> Result<Self, KeyFailure> {
        let Some([der, fixed]) = kind.curve() else {
            return Ok(Self::Rsa(Box::new(
                rsa::KeyPair::from_pkcs8(pkcs8).map_err(|_| KeyFailure)?,
            )));
        };
        let read = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, pkcs8).map_err(|_| KeyFailure);
        Ok(Self::Ecdsa { der: read(der)?, fixed: read(fixed)? })
    }
}

/// The numbers of an RSAPublicKey (RFC 8017, appendix A.1.1).
fn rsa_numbers(key: &[u8]) -> Result<PublicNumbers, InvalidDer> {
    let mut reader = DerReader::sequence(key)?;
    let mut number = || {
        let bytes = reader.contents(tag::INTEGER)?;
        Ok(bytes[bytes.iter().take_while(|byte| **byte == 0).count()..].to_vec())
    };
    Ok(PublicNumbers::Rsa { modulus: number()?, exponent: number()? })
}

fn sign_ecdsa(pair: &EcdsaKeyPair, message: &[u8]) -> Result<Vec<u8>, KeyFailure> {
    Ok(pair.sign(&SystemRandom::new(), message)?.as_ref().to_vec())
}

fn sign_rsa(pair: &rsa::KeyPair, message: &[u8]) -> Result<Vec<u8>, KeyFailure> {
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)?;
    Ok(signature)
}

impl From<Unspecified> for KeyFailure {
    fn from(_: Unspecified) -> Self {
        Self
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").field("kind", &self.kind).finish_non_exhaustive()
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
        ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
        VerificationAlgorithm,
    };

    use super::*;
    use crate::testing::tls::{ECDSA_KEY, RSA_KEY};

    fn is_signed_by(
        pair: &KeyPair,
        algorithm: &'static dyn VerificationAlgorithm,
        signature: &[u8],
    ) -> bool {
        let key = match &pair.signer {
            Signer::Ecdsa { der, .. } => der.public_key().as_ref().to_vec(),
            Signer::Rsa(pair) => pair.public_key().as_ref().to_vec(),
        };
        UnparsedPublicKey::new(algorithm, key).verify(b"text", signature).is_ok()
    }

    #[test]
    fn a_key_is_the_same_after_it_was_written_and_read() {
        for kind in CURVES.into_iter().chain([KeyKind::Rsa2048]) {
            let pair = KeyPair::generate(kind).unwrap();
            let read = KeyPair::read(&pair.pem()).unwrap();
            assert_eq!(read.kind(), kind);
            assert_eq!(read.public_numbers(), pair.public_numbers());
            assert_eq!(read.public_key_info(), pair.public_key_info());
        }
    }

    #[test]
    fn signatures_of_fixed_length_are_two_numbers() {
        for (kind, length) in CURVES.into_iter().zip([64, 96, 132]) {
            let pair = KeyPair::generate(kind).unwrap();
            assert_eq!(pair.sign_fixed(b"text").unwrap().len(), length);
            let PublicNumbers::Ecdsa { x, y } = pair.public_numbers() else { panic!() };
            assert_eq!((x.len(), y.len()), (length / 2, length / 2));
        }
    }

    #[test]
    fn the_public_key_verifies_signatures() {
        let pair = KeyPair::generate(KeyKind::Ecdsa256).unwrap();
        let signature = pair.sign_fixed(b"text").unwrap();
        assert!(is_signed_by(&pair, &ECDSA_P256_SHA256_FIXED, &signature));
        assert!(!is_signed_by(&pair, &ECDSA_P256_SHA256_FIXED, &pair.sign(b"text").unwrap()));
        let pair = KeyPair::read(RSA_KEY.as_bytes()).unwrap();
        let signature = pair.sign(b"text").unwrap();
        assert!(is_signed_by(&pair, &RSA_PKCS1_2048_8192_SHA256, &signature));
    }

    #[test]
    fn keys_of_files_are_read() {
        assert_eq!(KeyPair::read(ECDSA_KEY.as_bytes()).unwrap().kind(), KeyKind::Ecdsa256);
        assert_eq!(KeyPair::read(RSA_KEY.as_bytes()).unwrap().kind(), KeyKind::Rsa2048);
        assert_eq!(KeyPair::read(b"").err(), Some(KeyError::Missing));
        let broken = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert_eq!(KeyPair::read(broken).err(), Some(KeyError::UnsupportedKey));
    }
}
