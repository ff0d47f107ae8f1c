//! Verification of a peer's chain of certificates, with OpenSSL's rules and messages.
//!
//! Not webpki's, which refuses certificates that OpenSSL accepts and that configurations for nginx
//! rely on: certificates of version 1, self-signed ones that are themselves trusted, authorities as
//! servers. A chain must end at a self-signed certificate of the trusted file, or at one with trust
//! settings for the purpose; other certificates in the file only help to build chains. Chains that
//! OpenSSL refuses are refused here too (`cargo xtask chains` compares them); the reverse does not
//! hold. Of several possible issuers, each is tried, while OpenSSL tries only the first: a chain
//! found here is valid for both.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use wire::pem::PemSections;
use wire::x509::{
    ListScope, NAME_COMPARISONS_MAX, NameFault, PublicKeyInfo, PurposeTrust, RevocationListParts,
    Signature, TrustSettings, X509,
};

use super::private_key::{CertificateSection, KeyError, read_certificate_sections};

/// Certificates that a peer's chain may end at or lead through.
#[derive(Clone, Debug)]
pub struct TrustedCertificates(Arc<Vec<CertificateSection>>);

/// Certificate revocation lists, as DER.
#[derive(Clone, Debug)]
pub struct RevocationLists(Arc<Vec<Vec<u8>>>);

/// The requirements for a chain.
#[derive(Clone, Debug)]
pub struct ChainRules {
    pub trusted: TrustedCertificates,
    /// Certificate revocation lists; `None`: revocation is not checked.
    pub revoked: Option<RevocationLists>,
    /// Maximum number of certificates between the peer's and the trusted one.
    pub depth_max: usize,
}

/// The purpose of a peer's certificate: the last number of `id-kp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainPurpose {
    /// A server's certificate.
    Server = 1,
    /// A client's certificate.
    Client = 2,
}

/// Why a chain is refused: OpenSSL's `X509_V_ERR_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChainFault {
    Unspecified = 1,
    UnknownIssuerOfTrusted = 2,
    NoRevocationList = 3,
    BadSignature = 7,
    BadRevocationListSignature = 8,
    NotYetValid = 9,
    Expired = 10,
    RevocationListNotYetValid = 11,
    RevocationListExpired = 12,
    SelfSigned = 18,
    SelfSignedInChain = 19,
    UnknownIssuer = 20,
    TooLong = 22,
    Revoked = 23,
    WrongPurpose = 26,
    Rejected = 28,
    UnknownCritical = 34,
    UnknownCriticalOfList = 36,
    InvalidExtension = 41,
    DifferentListScope = 44,
    NotPermitted = 47,
    Excluded = 48,
    BoundedConstraint = 49,
    UnknownConstraint = 51,
    InvalidConstraint = 52,
    InvalidName = 53,
    InvalidAuthority = 79,
}

/// Maximum number of certificates in a chain, regardless of the rules.
const CHAIN_MAX: usize = 12;

/// Maximum number of signatures that are verified for one chain.
const SIGNATURES_MAX: usize = 50;

impl TrustedCertificates {
    /// Reads a PEM file.
    pub fn read(text: &[u8]) -> Result<Self, KeyError> {
        let certificates = read_certificate_sections(text)?;
        if certificates.iter().any(|one| X509::parse(one.certificate()).is_err()) {
            return Err(KeyError::InvalidCertificate);
        }
        Ok(Self(Arc::new(certificates)))
    }

    pub fn none() -> Self {
        Self(Arc::default())
    }

    /// Both sets together.
    pub fn with(self, others: &Self) -> Self {
        Self(Arc::new([&self.0[..], &others.0].concat()))
    }

    /// The certificates, as DER.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(CertificateSection::certificate)
    }

    /// The certificates with their trust settings.
    pub(super) fn sections(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(CertificateSection::contents)
    }

    /// The certificates, with their trust settings for a purpose.
    fn for_purpose(&self, purpose: ChainPurpose) -> Vec<(X509<'_>, PurposeTrust)> {
        let parsed = self.sections().filter_map(|section| {
            let (certificate, settings) = TrustSettings::split(section).ok()?;
            Some((X509::parse(certificate).ok()?, settings.of(purpose as u8)))
        });
        parsed.collect()
    }
}

impl RevocationLists {
    /// Reads a PEM file.
    pub fn read(text: &[u8]) -> Result<Self, KeyError> {
        let mut lists = Vec::new();
        for section in PemSections::new(text) {
            let section = section.map_err(KeyError::Pem)?;
            if section.label == b"X509 CRL" {
                let parsed = RevocationListParts::parse(&section.contents);
                parsed.map_err(|_| KeyError::InvalidCertificate)?;
                lists.push(section.contents);
            }
        }
        if lists.is_empty() { Err(KeyError::Missing) } else { Ok(Self(Arc::new(lists))) }
    }

    /// The lists, as DER.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(AsRef::as_ref)
    }
}

impl ChainFault {
    /// Whether the only fault is an unknown authority.
    pub fn is_of_unknown_authority(self) -> bool {
        matches!(self, Self::SelfSigned | Self::SelfSignedInChain | Self::UnknownIssuer)
    }

    /// OpenSSL's number.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "unspecified certificate verification error",
            Self::UnknownIssuerOfTrusted => "unable to get issuer certificate",
            Self::NoRevocationList => "unable to get certificate CRL",
            Self::BadSignature => "certificate signature failure",
            Self::BadRevocationListSignature => "CRL signature failure",
            Self::NotYetValid => "certificate is not yet valid",
            Self::RevocationListNotYetValid => "CRL is not yet valid",
            Self::Expired => "certificate has expired",
            Self::RevocationListExpired => "CRL has expired",
            Self::SelfSigned => "self-signed certificate",
            Self::SelfSignedInChain => "self-signed certificate in certificate chain",
            Self::UnknownIssuer => "unable to get local issuer certificate",
            Self::TooLong => "certificate chain too long",
            Self::Revoked => "certificate revoked",
            Self::WrongPurpose => "unsuitable certificate purpose",
            Self::Rejected => "certificate rejected",
            Self::UnknownCritical => "unhandled critical extension",
            Self::UnknownCriticalOfList => "unhandled critical CRL extension",
            Self::InvalidExtension => "invalid or inconsistent certificate extension",
            Self::DifferentListScope => "Different CRL scope",
            Self::NotPermitted => "permitted subtree violation",
            Self::Excluded => "excluded subtree violation",
            Self::BoundedConstraint => "name constraints minimum and maximum not supported",
            Self::UnknownConstraint => "unsupported name constraint type",
            Self::InvalidConstraint => "unsupported or invalid name constraint syntax",
            Self::InvalidName => "unsupported or invalid name syntax",
            Self::InvalidAuthority => "invalid CA certificate",
        })
    }
}

impl From<NameFault> for ChainFault {
    fn from(fault: NameFault) -> Self {
        match fault {
            NameFault::NotPermitted => Self::NotPermitted,
            NameFault::Excluded => Self::Excluded,
            NameFault::BoundedConstraint => Self::BoundedConstraint,
            NameFault::UnknownKind => Self::UnknownConstraint,
            NameFault::InvalidConstraint => Self::InvalidConstraint,
            NameFault::InvalidName => Self::InvalidName,
            NameFault::TooMany => Self::Unspecified,
        }
    }
}

impl ChainRules {
    /// Verifies the chain of a certificate; `others` are the certificates that the peer sent with
    /// it.
    pub fn verify(
        &self,
        leaf: &[u8],
        others: &[&[u8]],
        purpose: ChainPurpose,
        now_seconds: i64,
    ) -> Result<(), ChainFault> {
        self.verified_chain(leaf, others, purpose, now_seconds).map(drop)
    }

    /// The same; returns the certificates of the chain as DER, from the peer's to the trusted one.
    pub(super) fn verified_chain(
        &self,
        leaf: &[u8],
        others: &[&[u8]],
        purpose: ChainPurpose,
        now_seconds: i64,
    ) -> Result<Vec<Vec<u8>>, ChainFault> {
        let leaf_x509 = X509::parse(leaf).map_err(|_| ChainFault::Unspecified)?;
        let trusted = self.trusted.for_purpose(purpose);
        let others: Vec<_> =
            others.iter().take(CHAIN_MAX).filter_map(|der| X509::parse(der).ok()).collect();
        let mut search = ChainSearch {
            rules: self,
            trusted: &trusted,
            others: &others,
            purpose,
            now_seconds,
            signatures: 0,
            worst: None,
        };
        let mut chain = vec![&leaf_x509];
        match search.extend(&mut chain) {
            true => Ok(chain.iter().map(|certificate| certificate.der.to_vec()).collect()),
            false => Err(search.fault(&leaf_x509)),
        }
    }
}

/// The search for a chain that ends at a trusted certificate.
struct ChainSearch<'s, 'a> {
    rules: &'s ChainRules,
    trusted: &'s [(X509<'a>, PurposeTrust)],
    others: &'s [X509<'a>],
    purpose: ChainPurpose,
    now_seconds: i64,
    signatures: usize,
    /// Why the first complete chain was refused.
    worst: Option<ChainFault>,
}

impl<'s, 'a> ChainSearch<'s, 'a> {
    /// Extends the chain until it is valid; false: there is no valid chain.
    fn extend(&mut self, chain: &mut Vec<&'s X509<'a>>) -> bool {
        let Some(last) = chain.last().copied() else { return false };
        if last.is_own_issuer() {
            let is_last = |trusted: &X509<'_>| {
                trusted.signed == last.signed && trusted.signature == last.signature
            };
            let known = self.trusted.iter().find(|(trusted, _)| is_last(trusted));
            return known.is_some_and(|(_, trust)| self.ends(chain, *trust));
        }
        if chain.len() >= CHAIN_MAX {
            self.worst.get_or_insert(ChainFault::TooLong);
            return false;
        }
        let (trusted, others) = (self.trusted, self.others);
        let trusted = trusted.iter().map(|(issuer, trust)| (issuer, *trust));
        let others = others.iter().map(|issuer| (issuer, PurposeTrust::Unspecified));
        for (issuer, trust) in trusted.chain(others) {
            if !last.names_issuer(issuer) || chain.iter().any(|one| one.signed == issuer.signed) {
                continue;
            }
            self.signatures += 1;
            if self.signatures > SIGNATURES_MAX {
                return false;
            }
            if !last.is_signed_as_said()
                || !is_signed(last.signed, &last.signature, &issuer.public_key)
            {
                self.worst.get_or_insert(ChainFault::BadSignature);
                continue;
            }
            chain.push(issuer);
            let is_complete = match trust {
                PurposeTrust::Unspecified => self.extend(chain),
                trust => self.ends(chain, trust),
            };
            if is_complete {
                return true;
            }
            chain.pop();
        }
        false
    }

    /// Whether a chain whose last certificate has these trust settings is valid.
    fn ends(&mut self, chain: &[&X509<'_>], trust: PurposeTrust) -> bool {
        let checked = match trust {
            PurposeTrust::Rejected => Err(ChainFault::Rejected),
            _ => self.check(chain),
        };
        if let Err(fault) = checked {
            self.worst.get_or_insert(fault);
        }
        checked.is_ok()
    }

    /// Why a chain longer than the limit is refused: OpenSSL searches issuers only up to the
    /// certificate at the limit, and then reports that this one has no issuer.
    fn too_long(&self, chain: &[&X509<'_>]) -> ChainFault {
        let at_limit = chain.get(self.rules.depth_max.saturating_add(1));
        let is_trusted = at_limit.is_some_and(|certificate| {
            self.trusted.iter().any(|(trusted, _)| trusted.der == certificate.der)
        });
        match is_trusted {
            true => ChainFault::UnknownIssuerOfTrusted,
            false => ChainFault::UnknownIssuer,
        }
    }

    /// Checks a chain with verified signatures and a trusted end.
    fn check(&self, chain: &[&X509<'_>]) -> Result<(), ChainFault> {
        let between = chain.len().saturating_sub(2);
        if between > self.rules.depth_max {
            return Err(self.too_long(chain));
        }
        for (at, certificate) in chain.iter().enumerate() {
            let below = chain.get(1..at).unwrap_or_default();
            // Self-issued authorities do not count (RFC 5280, 4.2.1.9).
            let counted = below.iter().filter(|one| !one.is_self_issued()).count();
            self.check_use(certificate, (at > 0).then_some(counted), at + 1 == chain.len())?;
        }
        check_names(chain)?;
        for certificate in chain {
            if self.now_seconds < certificate.not_before.seconds() {
                return Err(ChainFault::NotYetValid);
            }
            if self.now_seconds >= certificate.not_after.seconds() {
                return Err(ChainFault::Expired);
            }
        }
        match &self.rules.revoked {
            Some(lists) => self.check_revoked(chain, lists),
            None => Ok(()),
        }
    }

    /// Checks key usages and path length. `authorities_below` is the number of authorities between
    /// an authority and the peer's certificate; `None` for the peer's own.
    fn check_use(
        &self,
        certificate: &X509<'_>,
        authorities_below: Option<usize>,
        is_end: bool,
    ) -> Result<(), ChainFault> {
        if certificate.has_unknown_critical() {
            return Err(ChainFault::UnknownCritical);
        }
        if certificate.has_invalid_extension() {
            return Err(ChainFault::InvalidExtension);
        }
        // A root of version 1 has no extensions, and is trusted by name.
        let is_old_root = is_end && certificate.version == 1;
        let purpose = self.purpose as u8;
        let is_allowed = match authorities_below {
            Some(count) if !is_old_root && !certificate.may_issue(count) => {
                return Err(ChainFault::InvalidAuthority);
            }
            Some(_) => certificate.has_purpose(purpose),
            None => certificate.has_purpose(purpose) && certificate.may_shake_hands(purpose),
        };
        if is_allowed { Ok(()) } else { Err(ChainFault::WrongPurpose) }
    }

    /// Checks that each certificate's issuer has a revocation list, and that no list contains the
    /// certificate. OpenSSL reports the fault nearest to the root.
    fn check_revoked(
        &self,
        chain: &[&X509<'_>],
        lists: &RevocationLists,
    ) -> Result<(), ChainFault> {
        let certificates = chain.iter().enumerate().rev();
        for (at, certificate) in certificates {
            let issuer = chain.get(at + 1).unwrap_or(certificate);
            let mut fault = ChainFault::NoRevocationList;
            let mut is_listed = false;
            for list in lists.0.iter().filter_map(|der| RevocationListParts::parse(der).ok()) {
                if list.issuer.der != certificate.issuer.der || !issuer.may_sign_revocations() {
                    continue;
                }
                match self.check_list(&list, issuer, certificate) {
                    Ok(()) => is_listed = true,
                    Err(ChainFault::Revoked) => return Err(ChainFault::Revoked),
                    Err(invalid) => fault = invalid,
                }
            }
            if !is_listed {
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Whether a list shows that a certificate is not revoked: the issuer has signed the list, it
    /// is valid now, its scope covers the certificate, and it does not contain it.
    fn check_list(
        &self,
        list: &RevocationListParts<'_>,
        issuer: &X509<'_>,
        certificate: &X509<'_>,
    ) -> Result<(), ChainFault> {
        let scope = list.scope_of(certificate);
        match scope {
            ListScope::Partial => return Err(ChainFault::NoRevocationList),
            ListScope::Others => return Err(ChainFault::DifferentListScope),
            ListScope::All | ListScope::Unknown => {}
        }
        if !is_signed(list.signed, &list.signature, &issuer.public_key) {
            return Err(ChainFault::BadRevocationListSignature);
        }
        if self.now_seconds < list.this_update.seconds() {
            return Err(ChainFault::RevocationListNotYetValid);
        }
        if list.next_update.is_some_and(|time| time.seconds() <= self.now_seconds) {
            return Err(ChainFault::RevocationListExpired);
        }
        if list.revokes(certificate.serial) {
            return Err(ChainFault::Revoked);
        }
        match scope {
            ListScope::Unknown => Err(ChainFault::UnknownCriticalOfList),
            _ => Ok(()),
        }
    }

    /// Why there is no valid chain.
    fn fault(&self, leaf: &X509<'_>) -> ChainFault {
        if let Some(worst) = self.worst {
            return worst;
        }
        // OpenSSL checks the time even if the issuer is unknown, and reports the last fault.
        if self.now_seconds < leaf.not_before.seconds() {
            return ChainFault::NotYetValid;
        }
        if self.now_seconds >= leaf.not_after.seconds() {
            return ChainFault::Expired;
        }
        if leaf.is_self_issued() {
            return ChainFault::SelfSigned;
        }
        match self.others.iter().any(X509::is_self_issued) {
            true => ChainFault::SelfSignedInChain,
            false => ChainFault::UnknownIssuer,
        }
    }
}

/// Checks the names of each certificate against the constraints of all certificates above it.
fn check_names(chain: &[&X509<'_>]) -> Result<(), ChainFault> {
    let mut comparisons = NAME_COMPARISONS_MAX;
    for (at, certificate) in chain.iter().enumerate() {
        // Constraints do not apply to self-issued authorities (RFC 5280, 4.2.1.10).
        if at > 0 && certificate.is_self_issued() {
            continue;
        }
        for issuer in &chain[at + 1..] {
            certificate.keeps_to(issuer, at == 0, &mut comparisons)?;
        }
    }
    Ok(())
}

/// Whether a key has made a signature, with one of TLS's algorithms for certificates.
pub(super) fn is_signed(signed: &[u8], signature: &Signature<'_>, key: &PublicKeyInfo<'_>) -> bool {
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms.all;
    algorithms.iter().any(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == key.algorithm
            && algorithm.signature_alg_id().as_ref() == signature.algorithm
            && algorithm.verify_signature(key.key, signed, signature.bits).is_ok()
    })
}

#[cfg(test)]
mod differential;
#[cfg(test)]
mod tests;
