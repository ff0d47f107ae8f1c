//! Constraints on the names that an authority may issue certificates for (RFC 5280, section
//! 4.2.1.10).
//!
//! As in OpenSSL, they apply whether they are critical or not. A name of an unknown kind is refused
//! if a constraint concerns that kind.

use alloc::vec::Vec;

use super::{NAME_CONSTRAINTS, SUBJECT_ALT_NAME, X509};
use crate::der::{DerReader, Element, InvalidDer, tag};

/// The kinds of `GeneralName` that can be compared.
const EMAIL: u8 = tag::primitive(1);
const DNS: u8 = tag::primitive(2);
const DIRECTORY: u8 = tag::constructed(4);
const URI: u8 = tag::primitive(6);
const IP: u8 = tag::primitive(7);
/// The kind of email addresses in UTF-8 (RFC 8398), which constraints on email concern.
const OTHER: u8 = tag::constructed(0);
const UTF8_MAILBOX: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 8, 9];

/// The most comparisons for one chain.
pub const NAME_COMPARISONS_MAX: usize = 1 << 18;

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFault {
    /// There are constraints on its kind, and none permits it.
    NotPermitted,
    /// A constraint excludes it.
    Excluded,
    /// A constraint has a minimum or maximum.
    BoundedConstraint,
    /// Names of this kind cannot be compared.
    UnknownKind,
    /// The constraint is broken.
    InvalidConstraint,
    /// The name is broken.
    InvalidName,
    /// There are too many names and constraints.
    TooMany,
}

/// The name constraints of an authority's certificate.
#[derive(Clone, Debug, Default)]
pub(super) struct NameConstraints<'a> {
    permitted: Vec<Subtree<'a>>,
    excluded: Vec<Subtree<'a>>,
}

#[derive(Clone, Debug)]
struct Subtree<'a> {
    base: Element<'a>,
    is_bounded: bool,
}

/// The purpose of a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SubtreeUse {
    Permits,
    Excludes,
}

impl X509<'_> {
    /// Whether its names obey the constraints of an issuer. `is_first`: it is the peer's own
    /// certificate, whose common names count as hosts if it has no DNS name. `comparisons` is the
    /// number of comparisons left.
    pub fn keeps_to(
        &self,
        issuer: &X509<'_>,
        is_first: bool,
        comparisons: &mut usize,
    ) -> Result<(), NameFault> {
        let Some(der) = issuer.extension(NAME_CONSTRAINTS) else { return Ok(()) };
        let invalid = |_| NameFault::InvalidConstraint;
        let constraints = NameConstraints::read(der).map_err(invalid)?;
        let mut check = |name: Element<'_>| {
            let count = constraints.permitted.len() + constraints.excluded.len();
            *comparisons = comparisons.checked_sub(count).ok_or(NameFault::TooMany)?;
            constraints.check(name)
        };
        if !self.subject.is_empty() {
            check(Element { tag: DIRECTORY, contents: self.subject.der, whole: &[] })?;
        }
        for address in self.subject.mail_addresses().map_err(|_| NameFault::InvalidName)? {
            check(Element { tag: EMAIL, contents: address, whole: &[] })?;
        }
        let mut has_host = false;
        if let Some(der) = self.extension(SUBJECT_ALT_NAME) {
            let mut names = DerReader::sequence(der).map_err(|_| NameFault::InvalidName)?;
            while !names.is_empty() {
                let name = names.any().map_err(|_| NameFault::InvalidName)?;
                has_host |= name.tag == DNS;
                check(name)?;
            }
        }
        if is_first && !has_host {
            for name in self.subject.common_name_texts().map_err(|_| NameFault::InvalidName)? {
                if is_like_host(&name) {
                    check(Element { tag: DNS, contents: &name, whole: &[] })?;
                }
            }
        }
        Ok(())
    }
}

impl<'a> NameConstraints<'a> {
    pub(super) fn read(der: &'a [u8]) -> Result<Self, InvalidDer> {
        let mut fields = DerReader::sequence(der)?;
        let mut subtrees = |number| match fields.optional(tag::constructed(number))? {
            Some(list) => Subtree::read_all(list.contents),
            None => Ok(Vec::new()),
        };
        let (permitted, excluded) = (subtrees(0)?, subtrees(1)?);
        fields.end()?;
        Ok(Self { permitted, excluded })
    }

    fn check(&self, name: Element<'_>) -> Result<(), NameFault> {
        let (mut is_constrained, mut is_permitted) = (false, false);
        for subtree in &self.permitted {
            if let Some(holds) = subtree.holds(name, SubtreeUse::Permits)? {
                is_constrained = true;
                is_permitted |= holds;
            }
        }
        if is_constrained && !is_permitted {
            return Err(NameFault::NotPermitted);
        }
        for subtree in &self.excluded {
            if subtree.holds(name, SubtreeUse::Excludes)? == Some(true) {
                return Err(NameFault::Excluded);
            }
        }
        Ok(())
    }
}

/// Whether the element's tag is that of a kind of `GeneralName`, in the right form.
pub(super) fn is_general_name(item: Element<'_>) -> bool {
    let is_constructed = item.tag & tag::constructed(0) == tag::constructed(0);
    match item.tag & 0x1f {
        // otherName, x400Address, directoryName, ediPartyName
        0 | 3 | 4 | 5 => is_constructed,
        // Texts, an address, an identifier.
        1 | 2 | 6 | 7 | 8 => item.tag & tag::constructed(0) == tag::primitive(0),
        _ => false,
    }
}

impl<'a> Subtree<'a> {
    fn read_all(list: &'a [u8]) -> Result<Vec<Self>, InvalidDer> {
        let mut reader = DerReader::new(list);
        let mut subtrees = Vec::new();
        while !reader.is_empty() {
            let mut fields = reader.inside(tag::SEQUENCE)?;
            let base = fields.any()?;
            if !is_general_name(base) {
                return Err(InvalidDer);
            }
            let minimum = fields.optional(tag::primitive(0))?;
            let maximum = fields.optional(tag::primitive(1))?;
            fields.end()?;
            let is_bounded = minimum.is_some_and(|value| value.contents != [0]);
            subtrees.push(Self { base, is_bounded: is_bounded || maximum.is_some() });
        }
        Ok(subtrees)
    }

    /// Whether a name is in the subtree; `None` if the subtree concerns other kinds of names.
    fn holds(&self, name: Element<'_>, used: SubtreeUse) -> Result<Option<bool>, NameFault> {
        let is_mailbox = name.tag == OTHER && other_kind(name) == Ok(UTF8_MAILBOX);
        if is_mailbox && self.base.tag == EMAIL {
            return Err(NameFault::UnknownKind);
        }
        let is_other_kind = name.tag == OTHER && other_kind(name) != other_kind(self.base);
        if name.tag != self.base.tag || is_other_kind {
            return Ok(None);
        }
        if self.is_bounded {
            return Err(NameFault::BoundedConstraint);
        }
        let (name, base) = (name.contents, self.base.contents);
        let holds = match self.base.tag {
            DNS => is_host_below(name, base, used),
            EMAIL => is_mail_below(name, base)?,
            URI => is_uri_below(name, base)?,
            IP => is_address_below(name, base)?,
            DIRECTORY => super::name::is_below(name, base).map_err(|_| NameFault::InvalidName)?,
            _ => return Err(NameFault::UnknownKind),
        };
        Ok(Some(holds))
    }
}

/// The type of an `OtherName`.
fn other_kind(name: Element<'_>) -> Result<&[u8], InvalidDer> {
    DerReader::new(name.contents).contents(tag::OBJECT_IDENTIFIER)
}

/// Whether a host is the base or below it; a base with a leading dot contains only the hosts below
/// it. A wildcard is excluded with each name that it matches, which OpenSSL does not do.
fn is_host_below(host: &[u8], base: &[u8], used: SubtreeUse) -> bool {
    if used == SubtreeUse::Excludes
        && let Some(parent) = host.strip_prefix(b"*")
        && let label = base.strip_suffix_ignoring_case(parent)
        && label.is_some_and(|label| !label.is_empty() && !label.contains(&b'.'))
    {
        return true;
    }
    let Some(above) = host.strip_suffix_ignoring_case(base) else { return false };
    base.is_empty() || base[0] == b'.' || above.last().is_none_or(|byte| *byte == b'.')
}

/// Whether an email address is the base, or at the host of the base, or, if the base begins with a
/// dot, at a host below it.
fn is_mail_below(address: &[u8], base: &[u8]) -> Result<bool, NameFault> {
    let split = |text: &[u8]| text.iter().rposition(|byte| *byte == b'@');
    let at = split(address).ok_or(NameFault::InvalidName)?;
    let (mailbox, host) = (&address[..at], &address[at + 1..]);
    Ok(match split(base) {
        _ if base.is_empty() => true,
        None if base[0] == b'.' => host.strip_suffix_ignoring_case(base).is_some(),
        None => host.eq_ignore_ascii_case(base),
        Some(at) => {
            (at == 0 || base[..at] == *mailbox) && host.eq_ignore_ascii_case(&base[at + 1..])
        }
    })
}

/// Whether a URI's host is the base, or below a base with a leading dot.
fn is_uri_below(uri: &[u8], base: &[u8]) -> Result<bool, NameFault> {
    let colon = uri.iter().position(|byte| *byte == b':').ok_or(NameFault::InvalidName)?;
    let rest = uri[colon + 1..].strip_prefix(b"//").ok_or(NameFault::InvalidName)?;
    let end = rest.iter().position(|byte| matches!(byte, b':' | b'/')).unwrap_or(rest.len());
    let host = &rest[..end];
    // A user's name would make the host ambiguous.
    if host.is_empty() || host.contains(&b'@') {
        return Err(NameFault::InvalidName);
    }
    Ok(match base {
        [] => true,
        [b'.', ..] => host.len() > base.len() && host.strip_suffix_ignoring_case(base).is_some(),
        _ => host.eq_ignore_ascii_case(base),
    })
}

/// Whether an address is in a network, which is an address and a mask.
fn is_address_below(address: &[u8], base: &[u8]) -> Result<bool, NameFault> {
    if !matches!(address.len(), 4 | 16) {
        return Err(NameFault::InvalidName);
    }
    if !matches!(base.len(), 8 | 32) {
        return Err(NameFault::InvalidConstraint);
    }
    let (network, mask) = base.split_at(base.len() / 2);
    let pairs = address.iter().zip(network.iter().zip(mask));
    Ok(address.len() == network.len()
        && pairs.into_iter().all(|(byte, (network, mask))| (byte ^ network) & mask == 0))
}

/// Whether a common name looks like the name of a host.
fn is_like_host(name: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.*".contains(byte);
    name.contains(&b'.') && name.iter().all(is_part)
}

trait IgnoringCase {
    fn strip_suffix_ignoring_case(&self, suffix: &[u8]) -> Option<&[u8]>;
}

impl IgnoringCase for [u8] {
    fn strip_suffix_ignoring_case(&self, suffix: &[u8]) -> Option<&[u8]> {
        let (rest, end) = self.split_at(self.len().checked_sub(suffix.len())?);
        end.eq_ignore_ascii_case(suffix).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_below_their_domains() {
        for (host, base, is_permitted, is_excluded) in [
            ("allowed.test", "allowed.test", true, true),
            ("a.ALLOWED.test", "allowed.test", true, true),
            ("notallowed.test", "allowed.test", false, false),
            ("allowed.test", ".allowed.test", false, false),
            ("a.allowed.test", ".allowed.test", true, true),
            ("test", "allowed.test", false, false),
            ("anything", "", true, true),
            ("*.allowed.test", "allowed.test", true, true),
            ("*.allowed.test", "bad.allowed.test", false, true),
            ("*.allowed.test", "a.bad.allowed.test", false, false),
        ] {
            let (host, base) = (host.as_bytes(), base.as_bytes());
            assert_eq!(is_host_below(host, base, SubtreeUse::Permits), is_permitted);
            assert_eq!(is_host_below(host, base, SubtreeUse::Excludes), is_excluded);
        }
    }

    #[test]
    fn mail_uris_and_addresses_are_below_hosts_and_networks() {
        for (address, base, expected) in [
            ("a@b.test", "b.test", Ok(true)),
            ("a@c.b.test", "b.test", Ok(false)),
            ("a@c.b.test", ".b.test", Ok(true)),
            ("a@b.test", ".b.test", Ok(false)),
            ("a@B.test", "a@b.test", Ok(true)),
            ("A@b.test", "a@b.test", Ok(false)),
            ("b.test", "b.test", Err(NameFault::InvalidName)),
        ] {
            let below = is_mail_below(address.as_bytes(), base.as_bytes());
            assert_eq!(below, expected, "{address} {base}");
        }
        for (uri, base, expected) in [
            ("https://a.test/x", "a.test", Ok(true)),
            ("https://a.test:443/x", "a.test", Ok(true)),
            ("https://b.a.test", "a.test", Ok(false)),
            ("https://b.a.test", ".a.test", Ok(true)),
            ("https://a.test@evil.test", "evil.test", Err(NameFault::InvalidName)),
            ("urn:a.test", "a.test", Err(NameFault::InvalidName)),
        ] {
            assert_eq!(is_uri_below(uri.as_bytes(), base.as_bytes()), expected, "{uri} {base}");
        }
        let network = &[10, 1, 0, 0, 255, 255, 0, 0];
        assert_eq!(is_address_below(&[10, 1, 2, 3], network), Ok(true));
        assert_eq!(is_address_below(&[10, 2, 2, 3], network), Ok(false));
        assert_eq!(is_address_below(&[10; 16], network), Ok(false));
        assert_eq!(is_address_below(&[10, 1], network), Err(NameFault::InvalidName));
        assert_eq!(is_address_below(&[10; 4], &[1; 6]), Err(NameFault::InvalidConstraint));
    }
}
