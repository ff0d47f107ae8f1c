//! The extra values of version 2, by type; those about TLS are nested in one of them.

use alloc::vec::Vec;

use super::header::{Header, write};

/// The type of the value that holds those about TLS.
const SSL: u8 = 0x20;
/// The length of the flags (one byte) and of the verification's result (four) before the nested
/// values.
const SSL_HEAD: usize = 5;

const NAMES: [(&[u8], u8); 5] =
    [(b"alpn", 0x01), (b"authority", 0x02), (b"unique_id", 0x05), (b"ssl", SSL), (b"netns", 0x30)];
const SSL_NAMES: [(&[u8], u8); 5] =
    [(b"version", 0x21), (b"cn", 0x22), (b"cipher", 0x23), (b"sig_alg", 0x24), (b"key_alg", 0x25)];

/// The name of a value, as in the names of variables: `alpn`, `0x01`, `ssl_cn`, `ssl_0x22`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlvName {
    within_ssl: bool,
    wanted: Wanted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Type(u8),
    /// `ssl_verify`
    Verify,
    /// A number that is not a type.
    Nothing,
    Unknown,
    Invalid,
}

/// Why a value is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlvError {
    /// A value extends past the end.
    Broken,
    /// No type has that name.
    UnknownName,
    /// No number follows `0x`.
    InvalidName,
}

impl TlvName {
    pub fn parse(name: &[u8]) -> Self {
        match name.strip_prefix(b"ssl_") {
            Some(b"verify") => Self { within_ssl: true, wanted: Wanted::Verify },
            Some(name) => Self { within_ssl: true, wanted: Wanted::parse(name, &SSL_NAMES) },
            None => Self { within_ssl: false, wanted: Wanted::parse(name, &NAMES) },
        }
    }
}

impl Wanted {
    fn parse(name: &[u8], names: &[(&[u8], u8)]) -> Self {
        if let Some(digits) = name.strip_prefix(b"0x") {
            return Self::number(digits);
        }
        let named = names.iter().find(|(own, _)| *own == name);
        named.map_or(Self::Unknown, |(_, kind)| Self::Type(*kind))
    }

    fn number(digits: &[u8]) -> Self {
        let digit = |value: u64, byte: &u8| {
            let digit = char::from(*byte).to_digit(16)?;
            value.checked_mul(16)?.checked_add(digit.into())
        };
        let value = if digits.is_empty() { None } else { digits.iter().try_fold(0, digit) };
        match value.map(u8::try_from) {
            Some(Ok(kind)) => Self::Type(kind),
            Some(Err(_)) => Self::Nothing,
            None => Self::Invalid,
        }
    }
}

impl Header {
    /// Appends the first value of that name. Returns whether there is one.
    pub fn tlv(&self, name: TlvName, out: &mut Vec<u8>) -> Result<bool, TlvError> {
        let mut within = &self.tlvs[..];
        let mut verify = [0; 4];
        if name.within_ssl {
            let Some(ssl) = find(within, SSL)? else { return Ok(false) };
            let Some((head, rest)) = ssl.split_first_chunk::<SSL_HEAD>() else { return Ok(false) };
            verify.copy_from_slice(&head[1..]);
            within = rest;
        }
        match name.wanted {
            Wanted::Verify => write(out, format_args!("{}", u32::from_be_bytes(verify))),
            Wanted::Unknown => return Err(TlvError::UnknownName),
            Wanted::Invalid => return Err(TlvError::InvalidName),
            Wanted::Nothing => return find_none(within),
            Wanted::Type(kind) => match find(within, kind)? {
                Some(value) => out.extend_from_slice(value),
                None => return Ok(false),
            },
        }
        Ok(true)
    }
}

/// Checks the values although none can match.
fn find_none(tlvs: &[u8]) -> Result<bool, TlvError> {
    values(tlvs).try_fold(false, |_, value| value.map(|_| false))
}

fn find(tlvs: &[u8], kind: u8) -> Result<Option<&[u8]>, TlvError> {
    for value in values(tlvs) {
        match value? {
            (own, value) if own == kind => return Ok(Some(value)),
            _ => {}
        }
    }
    Ok(None)
}

/// Types and values, up to the first that is broken.
fn values(mut tlvs: &[u8]) -> impl Iterator<Item = Result<(u8, &[u8]), TlvError>> {
    core::iter::from_fn(move || {
        if tlvs.is_empty() {
            return None;
        }
        let split = tlvs.split_first_chunk::<3>().and_then(|([kind, high, low], rest)| {
            let length = u16::from_be_bytes([*high, *low]);
            Some((*kind, rest.split_at_checked(length.into())?))
        });
        match split {
            Some((kind, (value, rest))) => {
                tlvs = rest;
                Some(Ok((kind, value)))
            }
            None => {
                tlvs = &[];
                Some(Err(TlvError::Broken))
            }
        }
    })
}
