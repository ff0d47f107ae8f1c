//! `secure_link`: links that cannot be forged, and that may expire.
//!
//! Either a request contains an MD5 of words that the configuration chooses, and perhaps the time
//! of expiry; or, in the older way, the second part of its path is an MD5 of the rest and a secret.
//! The result is a variable, which the configuration evaluates.

mod said;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::{Error, Result, Template};
use md5::{Digest, Md5};
use subtle::ConstantTimeEq;

use crate::exchange::{Exchange, FeatureState};
use crate::site::LocationBuilder;
use crate::variables::{BuiltIn, VariableTable};
use said::SecureLinkLines;
use wire::base64;

conf::directives! {
    also {
        /// The MD5 checksum of a link in URL-safe base64 and, after a comma, the time at which the
        /// link expires. `$secure_link` is then empty for a wrong checksum, `0` for an expired link
        /// and `1` for a good one.
        ///
        /// Syntax: STRING
        ///
        /// ```nginx
        /// location /download/ {
        ///     secure_link $arg_md5,$arg_expires;
        ///     secure_link_md5 "$secure_link_expires$uri$remote_addr secret";
        ///     if ($secure_link = "") {
        ///         return 403;
        ///     }
        ///     if ($secure_link = "0") {
        ///         return 410;
        ///     }
        /// }
        /// ```
        secure_link(1..=1) in MAIN | SERVER | LOCATION => said;
        /// The text whose MD5 checksum `secure_link` must have.
        ///
        /// Syntax: STRING
        secure_link_md5(1..=1) in MAIN | SERVER | LOCATION => said;
        /// The secret word of links of the form `/PREFIX/MD5/LINK`. `$secure_link` is then LINK, or
        /// empty.
        ///
        /// Syntax: TEXT
        secure_link_secret(1..=1) in MAIN | SERVER | LOCATION => said;
    }
    slots {
        /// All three, since either kind of link excludes the other.
        said: SecureLinkLines,
    }

    in MAIN;
}

/// How a location verifies links.
enum SecureLink {
    /// By `secure_link` and `secure_link_md5`.
    Words {
        /// The MD5 and the expiry.
        link: Template,
        /// The text of which the MD5 is computed.
        words: Template,
    },
    /// By `secure_link_secret`.
    Secret(Box<[u8]>),
}

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_secure_link_module",
    &[
        BuiltIn::cached(
            "secure_link",
            "`1` for a good link, `0` for one that has expired, empty for a wrong checksum; with \
             `secure_link_secret`, what the link leads to.",
            secure_link,
        ),
        BuiltIn::cached(
            "secure_link_expires",
            "The time at which the link of `secure_link` expires, in seconds since 1970.",
            |x, out| {
                let ends = x.states.find::<Ends>().and_then(|ends| ends.0.as_deref());
                out.extend_from_slice(ends.unwrap_or_default());
                ends.is_some()
            },
        ),
    ],
);

/// The expiry in the link, known after `$secure_link` was evaluated.
#[derive(Default)]
struct Ends(Option<Box<[u8]>>);

impl FeatureState for Ends {
    fn clear(&mut self) {
        self.0 = None;
    }

    fn redirected(&mut self) {
        self.0 = None;
    }
}

/// Passes the rule to the core, where the variables find it.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let link = match conf.said.clone() {
        SecureLinkLines { secret: Some(_), link, words } if link.is_some() || words.is_some() => {
            let mixed = "\"secure_link_secret\" cannot be mixed with \"secure_link\" and \
                         \"secure_link_md5\"";
            return Err(Error::bare(mixed));
        }
        SecureLinkLines { secret: Some(secret), .. } => SecureLink::Secret(secret),
        SecureLinkLines { link: Some(link), words: Some(words), .. } => {
            SecureLink::Words { link, words }
        }
        _ => return Ok(()),
    };
    location.core.own.add(link);
    Ok(())
}

/// Not found for an invalid link; `0` for an expired one; otherwise `1`, or the rest of the path
/// with a secret.
fn secure_link(x: &mut Exchange, out: &mut Vec<u8>) -> bool {
    let generation = x.generation.clone();
    let Some(link) = generation.location(x.location).core.own.find() else { return false };
    match link {
        SecureLink::Words { link, words } => match by_words(link, words, x) {
            None => false,
            Some(is_over) => {
                out.push(if is_over { b'0' } else { b'1' });
                true
            }
        },
        SecureLink::Secret(secret) => {
            let target = x.request.text(x.request.head.target);
            let rest = by_secret(target, secret);
            out.extend_from_slice(rest.unwrap_or_default());
            rest.is_some()
        }
    }
}

/// Whether a valid link has expired.
fn by_words(link: &Template, words: &Template, x: &mut Exchange) -> Option<bool> {
    let link = x.render(link);
    let (digest, ends) = match memchr::memchr(b',', &link) {
        Some(comma) => (&link[..comma], Some(&link[comma + 1..])),
        None => (&link[..], None),
    };
    let mut ends_s = None;
    if let Some(text) = ends {
        ends_s = Some(conf::units::number(text).filter(|time| *time > 0)?);
        x.states.of::<Ends>().0 = Some(text.into());
    }
    /// 16 bytes in base64, padding included.
    const DIGEST_LENGTH_MAX: usize = 24;
    if digest.len() > DIGEST_LENGTH_MAX {
        return None;
    }
    let mut given = Vec::new();
    base64::decode_url(digest, &mut given)?;
    let expected = Md5::digest(x.render(words));
    let is_good: bool = expected.ct_eq(&given).into();
    is_good.then(|| ends_s.is_some_and(|ends_s| ends_s < net::clock::unix_ms() / 1000))
}

/// The rest of `/any/MD5/rest`, arguments included, if the MD5 is that of the rest and the secret.
fn by_secret<'t>(target: &'t [u8], secret: &[u8]) -> Option<&'t [u8]> {
    let mut parts = target.get(1..)?.splitn(3, |byte| *byte == b'/').skip(1);
    let (given, rest) = (parts.next()?, parts.next().filter(|rest| !rest.is_empty())?);
    let given = from_hexadecimal(given)?;
    let expected = Md5::new().chain_update(rest).chain_update(secret).finalize();
    let is_good: bool = expected.ct_eq(&given).into();
    is_good.then_some(rest)
}

fn from_hexadecimal(text: &[u8]) -> Option<[u8; 16]> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = [0; 16];
    if pairs.len() != bytes.len() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}
