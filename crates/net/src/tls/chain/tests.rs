use rustls::pki_types::CertificateDer;

use super::*;
use crate::tls::private_key::read_certificates;

/// A root, an authority below it, and certificates signed by that one. Made with `openssl x509
/// -req`, valid for a hundred years.
const FILE: &[u8] = include_bytes!("../testdata/chain.pem");
const NAMES: [&str; 7] = ["root", "int", "leaf", "below", "client", "odd", "direct"];

/// 1 January 2030.
const NOW: i64 = 1_893_456_000;

fn certificate(name: &str) -> CertificateDer<'static> {
    let at = NAMES.iter().position(|other| *other == name).expect("a name");
    read_certificates(FILE).expect("certificates")[at].clone()
}

fn rules(trusted: &[&str], depth_max: usize) -> ChainRules {
    with_settings(&trusted.iter().map(|name| (*name, &[][..])).collect::<Vec<_>>(), depth_max)
}

/// Names of trusted certificates, and their trust settings.
fn with_settings(trusted: &[(&str, &[u8])], depth_max: usize) -> ChainRules {
    let mut text = Vec::new();
    for (name, settings) in trusted {
        let section = [&certificate(name)[..], settings].concat();
        wire::pem::encode("TRUSTED CERTIFICATE", &section, &mut text);
    }
    let trusted = TrustedCertificates::read(&text).expect("certificates");
    ChainRules { trusted, revoked: None, depth_max }
}

fn verify_at(rules: &ChainRules, chain: &[&str], now_seconds: i64) -> Result<(), ChainFault> {
    let chain: Vec<_> = chain.iter().map(|name| certificate(name)).collect();
    let others: Vec<&[u8]> = chain[1..].iter().map(AsRef::as_ref).collect();
    rules.verify(&chain[0], &others, ChainPurpose::Server, now_seconds)
}

fn verify(rules: &ChainRules, chain: &[&str]) -> Result<(), ChainFault> {
    verify_at(rules, chain, NOW)
}

#[test]
fn a_chain_ends_at_a_trusted_certificate() {
    let root = rules(&["root"], 1);
    assert_eq!(verify(&root, &["leaf", "int"]), Ok(()));
    assert_eq!(verify(&root, &["leaf", "direct", "int", "root"]), Ok(()));
    assert_eq!(verify(&root, &["direct"]), Ok(()));
    assert_eq!(verify(&rules(&["root", "int"], 1), &["leaf"]), Ok(()));
    assert_eq!(verify_limited(&["root"], None), Ok(()), "trusted itself");
    assert_eq!(verify_limited(&["permits"], None), Ok(()), "an authority as a server");
}

#[test]
fn a_chain_that_ends_elsewhere_is_refused() {
    let root = rules(&["root"], 9);
    assert_eq!(verify(&root, &["leaf"]), Err(ChainFault::UnknownIssuer));
    assert_eq!(verify(&rules(&["int"], 9), &["leaf"]), Err(ChainFault::UnknownIssuer));
    let other = rules(&["direct"], 9);
    assert_eq!(verify(&other, &["root"]), Err(ChainFault::SelfSigned));
    assert_eq!(verify(&other, &["leaf", "int", "root"]), Err(ChainFault::SelfSignedInChain));
    assert_eq!(verify(&other, &["direct"]), Err(ChainFault::UnknownIssuer));
}

#[test]
fn the_validity_of_an_untrusted_certificate_is_checked() {
    let other = rules(&["direct"], 9);
    assert_eq!(verify_at(&other, &["leaf"], NOW * 4), Err(ChainFault::Expired));
    assert_eq!(verify_at(&other, &["root"], 0), Err(ChainFault::NotYetValid));
}

#[test]
fn issuers_must_be_authorities() {
    let chain = ["below", "leaf", "int"];
    assert_eq!(verify(&rules(&["root"], 9), &chain), Err(ChainFault::InvalidAuthority));
}

#[test]
fn depth_purpose_time_and_critical_extensions_are_checked() {
    let root = rules(&["root"], 1);
    // OpenSSL's results, in `ssl_verify_client optional_no_ca` of nginx 1.31.5.
    let too_long = Err(ChainFault::UnknownIssuer);
    assert_eq!(verify(&rules(&["root"], 0), &["leaf", "int"]), too_long);
    let too_long = Err(ChainFault::UnknownIssuerOfTrusted);
    assert_eq!(verify(&rules(&["root", "int"], 0), &["leaf", "int"]), too_long);
    assert_eq!(verify(&rules(&["root"], 0), &["direct"]), Ok(()));
    assert_eq!(verify(&root, &["client", "int"]), Err(ChainFault::WrongPurpose));
    assert_eq!(verify(&root, &["odd", "int"]), Err(ChainFault::UnknownCritical));
    assert_eq!(verify_at(&root, &["leaf", "int"], 0), Err(ChainFault::NotYetValid));
    assert_eq!(verify_at(&root, &["leaf", "int"], NOW * 4), Err(ChainFault::Expired));
}

#[test]
fn a_certificate_expires_in_its_last_second() {
    let root = rules(&["root"], 1);
    let leaf = certificate("leaf");
    let end = X509::parse(&leaf).expect("a certificate").not_after.seconds();
    let others = ["root", "int"].map(certificate);
    let others = others.iter().map(|der| X509::parse(der).expect("one").not_after.seconds());
    let end = others.fold(end, i64::min);
    assert_eq!(verify_at(&root, &["leaf", "int"], end - 1), Ok(()));
    assert_eq!(verify_at(&root, &["leaf", "int"], end), Err(ChainFault::Expired));
}

#[test]
fn a_changed_certificate_is_refused() {
    let mut leaf = certificate("leaf").to_vec();
    let last = leaf.len() - 1;
    leaf[last] ^= 1;
    let verified =
        rules(&["root"], 1).verify(&leaf, &[&certificate("int")], ChainPurpose::Server, NOW);
    assert_eq!(verified, Err(ChainFault::BadSignature));
}

#[test]
fn a_certificate_with_any_bit_changed_is_refused() {
    let (root, int) = (rules(&["root"], 1), certificate("int"));
    let is_accepted =
        |leaf: &[u8], int: &[u8]| root.verify(leaf, &[int], ChainPurpose::Server, NOW).is_ok();
    let leaf = certificate("leaf");
    assert!(is_accepted(&leaf, &int));
    for (at, bit) in (0..leaf.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut changed = leaf.to_vec();
        changed[at] ^= 1 << bit;
        assert!(!is_accepted(&changed, &int), "bit {bit} of byte {at} of the first");
    }
    for (at, bit) in (0..int.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut changed = int.to_vec();
        changed[at] ^= 1 << bit;
        assert!(!is_accepted(&leaf, &changed), "bit {bit} of byte {at} of the second");
    }
}

#[test]
fn a_trusted_certificate_with_any_bit_changed_is_not_trusted() {
    let root = rules(&["root"], 1);
    let certificate = certificate("root");
    for (at, bit) in (0..certificate.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut changed = certificate.to_vec();
        changed[at] ^= 1 << bit;
        let verified = root.verify(&changed, &[], ChainPurpose::Server, NOW);
        assert!(verified.is_err(), "bit {bit} of byte {at}");
    }
}

#[test]
fn a_certificate_followed_by_bytes_is_refused() {
    let (root, int) = (rules(&["root"], 1), certificate("int"));
    let longer = [&certificate("leaf")[..], &[0]].concat();
    let verified = root.verify(&longer, &[&int], ChainPurpose::Server, NOW);
    assert_eq!(verified, Err(ChainFault::Unspecified));
}

#[test]
fn trust_settings_are_applied() {
    /// `serverAuth` and `clientAuth`.
    const SERVER: &[u8] = &[6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 1];
    const CLIENT: &[u8] = &[6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 2];
    const ANY: &[u8] = &[6, 4, 0x55, 0x1d, 0x25, 0];
    let settings = |tag: u8, purpose: &[u8]| {
        let inner = [&[tag, purpose.len() as u8], purpose].concat();
        [&[0x30, inner.len() as u8], &inner[..]].concat()
    };
    let (trust, reject) = (0x30, 0xa0);
    let refused = Err(ChainFault::Rejected);
    for (tag, purpose, expected) in [
        (trust, SERVER, Ok(())),
        (trust, ANY, Ok(())),
        (trust, CLIENT, refused),
        (reject, SERVER, refused),
        (reject, CLIENT, Ok(())),
    ] {
        let rules = with_settings(&[("root", &settings(tag, purpose))], 1);
        assert_eq!(verify(&rules, &["leaf", "int"]), expected, "{tag:x} {purpose:?}");
        let of_root = expected.and(Err(ChainFault::WrongPurpose));
        assert_eq!(verify(&rules, &["root"]), of_root, "{tag:x} {purpose:?}: its key only signs");
    }
    // A certificate that is trusted for the purpose needs no issuer.
    let end = with_settings(&[("int", &settings(trust, SERVER))], 1);
    assert_eq!(verify(&end, &["leaf"]), Ok(()));
    let itself = with_settings(&[("leaf", &settings(trust, SERVER))], 1);
    assert_eq!(verify(&itself, &["leaf", "int"]), Err(ChainFault::UnknownIssuer));
    let broken = [&certificate("root")[..], &[0x30, 9]].concat();
    let mut text = Vec::new();
    wire::pem::encode("TRUSTED CERTIFICATE", &broken, &mut text);
    let read = TrustedCertificates::read(&text);
    assert!(matches!(read, Err(KeyError::InvalidCertificate)));
}

#[test]
fn revoked_certificates_are_refused() {
    let with = |lists: &[u8]| ChainRules {
        revoked: Some(RevocationLists::read(lists).expect("lists")),
        ..rules(&["root"], 1)
    };
    let empty = with(include_bytes!("../testdata/empty.crl"));
    let revoked = with(include_bytes!("../testdata/revoked.crl"));
    let root_only = with(include_bytes!("../testdata/root_only.crl"));
    assert_eq!(verify(&empty, &["leaf", "int"]), Ok(()));
    assert_eq!(verify(&revoked, &["leaf", "int"]), Err(ChainFault::Revoked));
    assert_eq!(verify(&root_only, &["leaf", "int"]), Err(ChainFault::NoRevocationList));
    assert_eq!(verify(&root_only, &["direct"]), Ok(()));
    assert!(matches!(RevocationLists::read(FILE), Err(KeyError::Missing)));
}

/// A root, two authorities with name constraints, and certificates signed by them; then
/// certificates signed by the root.
const LIMITED: &[u8] = include_bytes!("../testdata/names.pem");
const LIMITED_NAMES: [&str; 15] = [
    "root",
    "permits",
    "permitted",
    "other",
    "other by its common name",
    "excludes",
    "not excluded",
    "excluded host",
    "excluded address",
    "excluded mail",
    "excluded name",
    "unknown kind",
    "signs only",
    "any purpose",
    "listed",
];

fn verify_limited(chain: &[&str], lists: Option<&[u8]>) -> Result<(), ChainFault> {
    let certificates = read_certificates(LIMITED).expect("certificates");
    let at = |name: &&str| LIMITED_NAMES.iter().position(|other| other == name).expect("a name");
    let mut root = Vec::new();
    wire::pem::encode("CERTIFICATE", &certificates[0], &mut root);
    let trusted = TrustedCertificates::read(&root).expect("a root");
    let revoked = lists.map(|lists| RevocationLists::read(lists).expect("lists"));
    let rules = ChainRules { trusted, revoked, depth_max: 9 };
    let chain: Vec<&[u8]> = chain.iter().map(|name| &*certificates[at(name)]).collect();
    let verify = |purpose| rules.verify(chain[0], &chain[1..], purpose, NOW);
    let result = verify(ChainPurpose::Server);
    assert_eq!(verify(ChainPurpose::Client), result, "the same for clients");
    result
}

#[test]
fn name_constraints_are_enforced() {
    for (name, issuer, expected) in [
        ("permitted", "permits", Ok(())),
        ("other", "permits", Err(ChainFault::NotPermitted)),
        ("other by its common name", "permits", Err(ChainFault::NotPermitted)),
        ("not excluded", "excludes", Ok(())),
        ("excluded host", "excludes", Err(ChainFault::Excluded)),
        ("excluded address", "excludes", Err(ChainFault::Excluded)),
        ("excluded mail", "excludes", Err(ChainFault::Excluded)),
        ("excluded name", "excludes", Err(ChainFault::Excluded)),
        ("unknown kind", "excludes", Err(ChainFault::UnknownConstraint)),
    ] {
        assert_eq!(verify_limited(&[name, issuer], None), expected, "{name}");
    }
}

#[test]
fn key_usage_is_enforced() {
    assert_eq!(verify_limited(&["signs only"], None), Err(ChainFault::WrongPurpose));
    assert_eq!(verify_limited(&["any purpose"], None), Err(ChainFault::WrongPurpose));
    assert_eq!(verify_limited(&["listed"], None), Ok(()));
}

#[test]
fn revocation_lists_apply_only_to_their_scope() {
    let text = include_bytes!("../testdata/lists.pem");
    let sections = PemSections::new(text).map(|section| section.expect("a section").contents);
    let no_list = Err(ChainFault::NoRevocationList);
    let other_scope = Err(ChainFault::DifferentListScope);
    let unknown = Err(ChainFault::UnknownCriticalOfList);
    // The root at the end of the chain needs a list as well.
    let expected = [
        ("all", Ok(())),
        ("authorities alone", other_scope),
        ("users alone", other_scope),
        ("attributes", other_scope),
        ("some reasons", no_list),
        ("several authorities", no_list),
        ("the certificate's own point", other_scope),
        ("another point", other_scope),
        ("delta", no_list),
        ("unknown critical extension", unknown),
        ("unknown critical extension of an entry", unknown),
    ];
    let lists: Vec<_> = sections.collect();
    for ((what, expected), list) in expected.iter().zip(&lists) {
        let mut pem = Vec::new();
        wire::pem::encode("X509 CRL", list, &mut pem);
        assert_eq!(verify_limited(&["listed"], Some(&pem)), *expected, "{what}");
    }
    let both = |first: usize, second: usize| {
        let mut pem = Vec::new();
        for at in [first, second] {
            wire::pem::encode("X509 CRL", &lists[at], &mut pem);
        }
        verify_limited(&["listed"], Some(&pem))
    };
    assert_eq!(both(1, 2), Ok(()), "one of users and one of authorities");
    assert_eq!(both(1, 6), Ok(()), "one of authorities and one of the point");
    assert_eq!(both(1, 7), other_scope, "one of authorities and one of another point");
}
