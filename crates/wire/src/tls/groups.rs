//! Lists of key exchange groups (`ssl_ecdh_curve`), in the grammar of `SSL_CTX_set1_groups_list`.

use alloc::vec::Vec;
use core::fmt;

/// A group for key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum TlsGroup {
    Secp256r1 = 23,
    Secp384r1 = 24,
    X25519 = 29,
    Secp256r1MlKem768 = 0x11eb,
    X25519MlKem768 = 0x11ec,
    MlKem768 = 0x0201,
}

/// The contents of a list of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupList {
    /// `auto`: the default.
    Auto,
    /// Groups in order of preference, never empty.
    Groups {
        /// The groups that exist here.
        groups: Vec<TlsGroup>,
        /// Offsets of the names that OpenSSL knows but that do not exist here.
        lacking: Vec<(usize, usize)>,
    },
}

/// Why a list selects no group. The offsets are those of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupListError {
    /// The group is unknown.
    Unknown(usize, usize),
    /// None of the list's groups exists here.
    NoneLeft,
}

impl TlsGroup {
    /// IANA's number.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The group with IANA's number.
    pub fn from_code(code: u16) -> Option<Self> {
        KNOWN.into_iter().flat_map(|(_, groups)| groups).find(|group| group.code() == code).copied()
    }

    /// The name that nginx logs (`$ssl_curve`), which is OpenSSL's short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secp256r1 => "prime256v1",
            Self::Secp384r1 => "secp384r1",
            Self::X25519 => "X25519",
            Self::Secp256r1MlKem768 => "SecP256r1MLKEM768",
            Self::X25519MlKem768 => "X25519MLKEM768",
            Self::MlKem768 => "MLKEM768",
        }
    }
}

impl GroupList {
    /// Reads names separated by `:` or `/`. The marks `?` (skip if unknown), `*` (send a key share)
    /// and `-` (remove) of OpenSSL 3.5 are read; `*` has no effect.
    pub fn parse(text: &[u8]) -> Result<Self, GroupListError> {
        if text == b"auto" {
            return Ok(Self::Auto);
        }
        let (mut groups, mut lacking) = (Vec::new(), Vec::new());
        let mut at = 0;
        for word in text.split(|byte| matches!(byte, b':' | b'/')) {
            let marks = word.iter().take_while(|byte| b"?*-".contains(byte)).count();
            let (marks, name) = word.split_at(marks);
            let place = (at + marks.len(), at + word.len());
            at += word.len() + 1;
            match find(name) {
                Some(Found::Groups(found)) if marks.contains(&b'-') => {
                    groups.retain(|group| !found.contains(group));
                }
                Some(Found::Groups(found)) => {
                    let new: Vec<_> =
                        found.iter().copied().filter(|group| !groups.contains(group)).collect();
                    groups.extend(new);
                }
                Some(Found::Lacking) => lacking.push(place),
                None if marks.contains(&b'?') => {}
                None => return Err(GroupListError::Unknown(place.0, place.1)),
            }
        }
        if groups.is_empty() {
            return Err(GroupListError::NoneLeft);
        }
        Ok(Self::Groups { groups, lacking })
    }

    /// The names of all groups.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.into_iter().flat_map(|(names, _)| names).copied()
    }
}

impl fmt::Display for GroupListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(..) => f.write_str("unknown group"),
            Self::NoneLeft => f.write_str(
                "no group is available: there are X25519MLKEM768, SecP256r1MLKEM768, MLKEM768, \
                 X25519, prime256v1 and secp384r1 only",
            ),
        }
    }
}

enum Found {
    Groups(&'static [TlsGroup]),
    /// OpenSSL has the group, but it does not exist here.
    Lacking,
}

fn find(name: &[u8]) -> Option<Found> {
    let is = |other: &&str| name.eq_ignore_ascii_case(other.as_bytes());
    let known = KNOWN.iter().find(|(names, _)| names.iter().any(is));
    if let Some((_, groups)) = known {
        return Some(Found::Groups(groups));
    }
    let is_lacking = LACKING.iter().any(is)
        || LACKING_FAMILIES.iter().any(|family| {
            name.get(..family.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(family.as_bytes()))
        });
    is_lacking.then_some(Found::Lacking)
}

const KNOWN: [(&[&str], &[TlsGroup]); 7] = [
    (&["X25519"], &[TlsGroup::X25519]),
    (&["prime256v1", "secp256r1", "P-256"], &[TlsGroup::Secp256r1]),
    (&["secp384r1", "P-384"], &[TlsGroup::Secp384r1]),
    (&["X25519MLKEM768"], &[TlsGroup::X25519MlKem768]),
    (&["SecP256r1MLKEM768"], &[TlsGroup::Secp256r1MlKem768]),
    (&["MLKEM768"], &[TlsGroup::MlKem768]),
    (
        &["DEFAULT"],
        &[TlsGroup::X25519MlKem768, TlsGroup::X25519, TlsGroup::Secp256r1, TlsGroup::Secp384r1],
    ),
];

/// Groups of OpenSSL that do not exist here.
const LACKING: [&str; 8] = [
    "X448",
    "P-224",
    "P-521",
    "SecP384r1MLKEM1024",
    "MLKEM512",
    "MLKEM1024",
    "curveSM2",
    "X25519Kyber768Draft00",
];

/// Prefixes of the names of further ones.
const LACKING_FAMILIES: [&str; 10] =
    ["ffdhe", "brainpool", "sect", "secp1", "secp2", "secp5", "K-", "B-", "prime19", "prime23"];
