//! Lists of revoked certificates (RFC 5280, section 5).

use super::extensions::{has_critical, read_extension};
use super::{CertificateTime, DISTRIBUTION_POINTS, DistinguishedName, Signature, X509};
use crate::der::{DerReader, Element, InvalidDer, tag};

const ISSUING_DISTRIBUTION_POINT: &[u8] = &[0x55, 0x1d, 0x1c];
const DELTA_INDICATOR: &[u8] = &[0x55, 0x1d, 0x1b];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 0x23];
/// Critical extensions that are processed.
const HEEDED: [&[u8]; 3] = [ISSUING_DISTRIBUTION_POINT, DELTA_INDICATOR, AUTHORITY_KEY_ID];

/// The parts of a list.
#[derive(Clone, Debug)]
pub struct RevocationListParts<'a> {
    /// The issuer of the certificates and of the list.
    pub issuer: DistinguishedName<'a>,
    /// When it was issued.
    pub this_update: CertificateTime,
    /// When a newer list is due.
    pub next_update: Option<CertificateTime>,
    /// The signed bytes.
    pub signed: &'a [u8],
    pub signature: Signature<'a>,
    revoked: &'a [u8],
    extensions: &'a [u8],
}

/// How far a revocation list applies to a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListScope {
    /// The list applies: it determines whether the certificate is revoked.
    All,
    /// The list is about other certificates.
    Others,
    /// The list is incomplete, or of several authorities, so it cannot be relied on.
    Partial,
    /// The list has an unknown critical extension.
    Unknown,
}

/// `IssuingDistributionPoint`.
#[derive(Default)]
struct IssuingDistributionPoint<'a> {
    /// Where the list is published.
    point: Option<&'a [u8]>,
    only_users: bool,
    only_authorities: bool,
    only_attributes: bool,
    /// Whether the list covers only some reasons, or several authorities.
    is_partial: bool,
}

impl<'a> RevocationListParts<'a> {
    /// Reads a list.
    pub fn parse(der: &'a [u8]) -> Result<Self, InvalidDer> {
        let mut outer = DerReader::sequence(der)?;
        let signed = outer.element(tag::SEQUENCE)?;
        let signature = Signature::read(&mut outer)?;
        outer.end()?;
        let mut tbs = DerReader::new(signed.contents);
        tbs.optional(tag::INTEGER)?;
        tbs.element(tag::SEQUENCE)?;
        let issuer = DistinguishedName::new(tbs.element(tag::SEQUENCE)?);
        let this_update = CertificateTime::read(tbs.any()?)?;
        let next_update = match tbs.next_tag() {
            Some(tag::UTC_TIME | tag::GENERALIZED_TIME) => Some(CertificateTime::read(tbs.any()?)?),
            _ => None,
        };
        let revoked = tbs.optional(tag::SEQUENCE)?.map_or(&[][..], |revoked| revoked.contents);
        let extensions = match tbs.optional(tag::constructed(0))? {
            Some(extensions) => DerReader::new(extensions.contents).contents(tag::SEQUENCE)?,
            None => &[],
        };
        tbs.end()?;
        let signed = signed.whole;
        Ok(Self { issuer, this_update, next_update, signed, signature, revoked, extensions })
    }

    /// Whether the certificate with this serial number is revoked. A broken list revokes
    /// everything.
    pub fn revokes(&self, serial: &[u8]) -> bool {
        let mut entries = DerReader::new(self.revoked);
        while !entries.is_empty() {
            let entry = entries.inside(tag::SEQUENCE);
            match entry.and_then(|mut entry| entry.contents(tag::INTEGER)) {
                Ok(number) if number != serial => {}
                _ => return true,
            }
        }
        false
    }

    /// How far it applies to a certificate of its issuer (RFC 5280, sections 5.2 and 6.3.3).
    pub fn scope_of(&self, certificate: &X509<'_>) -> ListScope {
        let Ok(point) = self.issuing_point() else { return ListScope::Partial };
        let is_ca = certificate.basic_constraints().is_some_and(|constraints| constraints.is_ca);
        let is_for_others = point.only_attributes
            || if is_ca { point.only_users } else { point.only_authorities }
            || point.point.is_some_and(|point| !certificate.is_listed_at(point));
        if point.is_partial || self.extension(DELTA_INDICATOR).is_some() {
            ListScope::Partial
        } else if is_for_others {
            ListScope::Others
        } else if has_critical(self.extensions, &HEEDED) || self.has_critical_entry() {
            ListScope::Unknown
        } else {
            ListScope::All
        }
    }

    fn issuing_point(&self) -> Result<IssuingDistributionPoint<'a>, InvalidDer> {
        match self.extension(ISSUING_DISTRIBUTION_POINT) {
            Some(der) => IssuingDistributionPoint::read(der),
            None => Ok(IssuingDistributionPoint::default()),
        }
    }

    fn extension(&self, oid: &[u8]) -> Option<&'a [u8]> {
        let mut reader = DerReader::new(self.extensions);
        core::iter::from_fn(|| read_extension(&mut reader).ok())
            .find(|(other, _)| *other == oid)
            .map(|(_, contents)| contents)
    }

    /// Whether an entry is broken or has a critical extension.
    fn has_critical_entry(&self) -> bool {
        let mut entries = DerReader::new(self.revoked);
        while let Ok(mut entry) = entries.inside(tag::SEQUENCE) {
            let is_skipped = entry.any().is_ok() && entry.any().is_ok();
            let extensions = entry.optional(tag::SEQUENCE).ok().flatten();
            if !is_skipped || extensions.is_some_and(|list| has_critical(list.contents, &[])) {
                return true;
            }
        }
        false
    }
}

impl<'a> IssuingDistributionPoint<'a> {
    fn read(der: &'a [u8]) -> Result<Self, InvalidDer> {
        let mut fields = DerReader::sequence(der)?;
        let point = fields.optional(tag::constructed(0))?.map(|point| point.contents);
        let mut flag = |number| {
            let is_true = |value: Element<'_>| value.contents != [0];
            Ok(fields.optional(tag::primitive(number))?.is_some_and(is_true))
        };
        let (only_users, only_authorities) = (flag(1)?, flag(2)?);
        let (has_only_some_reasons, is_indirect) = (flag(3)?, flag(4)?);
        let only_attributes = flag(5)?;
        fields.end()?;
        let is_partial = has_only_some_reasons || is_indirect;
        Ok(Self { point, only_users, only_authorities, only_attributes, is_partial })
    }
}

impl X509<'_> {
    /// Whether one of its distribution points is among the names of a list's
    /// `DistributionPointName`.
    fn is_listed_at(&self, point: &[u8]) -> bool {
        let Some(points) = self.extension(DISTRIBUTION_POINTS) else { return false };
        let Ok(mut points) = DerReader::sequence(points) else { return false };
        while let Ok(mut own) = points.inside(tag::SEQUENCE) {
            let place = own.optional(tag::constructed(0)).ok().flatten();
            // A point with only some reasons, or for a list of another issuer, does not count.
            let place = place.filter(|_| own.is_empty());
            if place.is_some_and(|place| {
                full_names(place.contents).any(|name| full_names(point).any(|other| other == name))
            }) {
                return true;
            }
        }
        false
    }
}

/// The full names of a `DistributionPointName`. A name relative to an issuer has none.
fn full_names(point: &[u8]) -> impl Iterator<Item = &[u8]> {
    let names = DerReader::new(point).contents(tag::constructed(0)).unwrap_or_default();
    let mut reader = DerReader::new(names);
    core::iter::from_fn(move || reader.any().ok().map(|name| name.whole))
}
