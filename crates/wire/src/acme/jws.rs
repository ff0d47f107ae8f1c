//! Signed requests: JSON Web Signatures (RFC 7515, RFC 7518) and thumbprints of keys (RFC 7638).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::base64;
use crate::der::{DerReader, tag};
use crate::json;
use crate::signer::{KeyKind, Signer, SigningFailed};

/// Digests, which come from outside like keys.
pub trait AcmeCrypto: fmt::Debug {
    fn sha256(&self, message: &[u8]) -> [u8; 32];
    fn hmac_sha256(&self, secret: &[u8], message: &[u8]) -> [u8; 32];
}

/// A customer's account, to which the new account is bound (RFC 8555, section 7.3.4).
#[derive(Clone)]
pub struct ExternalAccount {
    pub key_id: String,
    /// The key for HMAC-SHA256.
    pub key: Vec<u8>,
}

/// The content type of signed requests.
pub(super) const JOSE: &str = "application/jose+json";

/// Who signs: a known account, or a key that the server does not know yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum JwsAuthor<'a> {
    Account(&'a str),
    Key,
}

/// A request's body: a payload signed by a key, for one URL and one use.
pub(super) fn signed(
    signer: &dyn Signer,
    author: JwsAuthor<'_>,
    nonce: &str,
    url: &str,
    payload: &[u8],
) -> Result<Vec<u8>, SigningFailed> {
    let algorithm = match signer.kind() {
        KeyKind::EcdsaP256 => "ES256",
        KeyKind::EcdsaP384 => "ES384",
        KeyKind::EcdsaP521 => "ES512",
        KeyKind::Rsa => "RS256",
    };
    let key = match author {
        JwsAuthor::Account(url) => format!("\"kid\":{}", quoted(url)),
        JwsAuthor::Key => format!("\"jwk\":{}", json_web_key(signer)?),
    };
    let (nonce, url) = (quoted(nonce), quoted(url));
    let protected = format!("{{\"alg\":\"{algorithm}\",{key},\"nonce\":{nonce},\"url\":{url}}}");
    let input = signing_input(&protected, payload);
    Ok(flattened(&input, &signer.sign(input.as_bytes())?).into_bytes())
}

/// The binding of an account's key to an external account, for the URL of new accounts.
pub(super) fn external_binding(
    external: &ExternalAccount,
    account_key: &dyn Signer,
    url: &str,
    crypto: &dyn AcmeCrypto,
) -> Result<String, SigningFailed> {
    let (key_id, url) = (quoted(&external.key_id), quoted(url));
    let protected = format!("{{\"alg\":\"HS256\",\"kid\":{key_id},\"url\":{url}}}");
    let input = signing_input(&protected, json_web_key(account_key)?.as_bytes());
    Ok(flattened(&input, &crypto.hmac_sha256(&external.key, input.as_bytes())))
}

/// The thumbprint of a key, which is the second half of a key authorization.
pub fn key_thumbprint(key: &dyn Signer, crypto: &dyn AcmeCrypto) -> Result<String, SigningFailed> {
    Ok(base64url(&crypto.sha256(json_web_key(key)?.as_bytes())))
}

/// The public key as JSON, in the one form of RFC 7638, section 3.3: members sorted, no spaces.
fn json_web_key(key: &dyn Signer) -> Result<String, SigningFailed> {
    let bits = key.public_bits();
    let (curve, length) = match (key.kind(), key.kind().coordinate_bytes()) {
        (KeyKind::EcdsaP256, Some(length)) => ("P-256", length),
        (KeyKind::EcdsaP384, Some(length)) => ("P-384", length),
        (KeyKind::EcdsaP521, Some(length)) => ("P-521", length),
        _ => return rsa_web_key(bits),
    };
    let (x, y) = match bits {
        [4, point @ ..] if point.len() == 2 * length => point.split_at(length),
        _ => return Err(SigningFailed),
    };
    let (x, y) = (base64url(x), base64url(y));
    Ok(format!("{{\"crv\":\"{curve}\",\"kty\":\"EC\",\"x\":\"{x}\",\"y\":\"{y}\"}}"))
}

fn rsa_web_key(bits: &[u8]) -> Result<String, SigningFailed> {
    let mut numbers = DerReader::sequence(bits).map_err(|_| SigningFailed)?;
    let mut number = || {
        let bytes = numbers.contents(tag::INTEGER).map_err(|_| SigningFailed)?;
        Ok(base64url(bytes.strip_prefix(&[0]).unwrap_or(bytes)))
    };
    let (modulus, exponent) = (number()?, number()?);
    Ok(format!("{{\"e\":\"{exponent}\",\"kty\":\"RSA\",\"n\":\"{modulus}\"}}"))
}

fn signing_input(protected: &str, payload: &[u8]) -> String {
    format!("{}.{}", base64url(protected.as_bytes()), base64url(payload))
}

/// The flattened form (RFC 7515, section 7.2.2).
fn flattened(input: &str, signature: &[u8]) -> String {
    let (protected, payload) = input.split_once('.').unwrap_or((input, ""));
    let signature = base64url(signature);
    format!(
        "{{\"protected\":\"{protected}\",\"payload\":\"{payload}\",\"signature\":\"{signature}\"}}"
    )
}

pub(super) fn base64url(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    base64::encode_url(bytes, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    json::write_text(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Without the key.
impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalAccount").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}
