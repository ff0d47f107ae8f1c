//! Private keys as far as protocols need them: their public halves, and what they sign.
//!
//! Deliberately absent: the arithmetic and the random numbers, which `net` has.

use alloc::vec::Vec;
use core::fmt;

/// A private key that signs.
pub trait Signer: fmt::Debug {
    fn kind(&self) -> KeyKind;

    /// The bits of its public key, as in a certificate: an uncompressed point of the curve, or an
    /// `RSAPublicKey` (RFC 8017, appendix A.1.1) as DER.
    fn public_bits(&self) -> &[u8];

    /// Signs a message: RSA by PKCS #1 1.5 with SHA-256. ECDSA with SHA-256, SHA-384 for P-384, or
    /// SHA-512 for P-521; the signature is its two numbers, each as long as the curve's (RFC 7518,
    /// section 3.4).
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SigningFailed>;
}

/// The key cannot sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigningFailed;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    EcdsaP256,
    EcdsaP384,
    EcdsaP521,
    Rsa,
}

impl KeyKind {
    /// The length of a coordinate of its curve in bytes; `None` for RSA.
    pub const fn coordinate_bytes(self) -> Option<usize> {
        match self {
            Self::EcdsaP256 => Some(32),
            Self::EcdsaP384 => Some(48),
            Self::EcdsaP521 => Some(66),
            Self::Rsa => None,
        }
    }
}
