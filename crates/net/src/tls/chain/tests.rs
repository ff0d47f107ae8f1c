use super::*;

/// Certificates: a root, an authority below it, and what that one signed. Written by
/// `openssl x509 -req`, valid for a hundred years.
const FILE: &[u8] = include_bytes!("../testdata/chain.pem");
const NAMES: [&str; 7] = ["root", "int", "leaf", "below", "client", "odd", "direct"];

/// 2030
const NOW: i64 = 1_893_456_000;

fn certificate(name: &str) -> CertificateDer<'static> {
    let at = NAMES.iter().position(|other| *other == name).expect("a name");
    read_certificates(FILE).expect("certificates")[at].clone()
}

fn rules(trusted: &[&str], depth_max: usize) -> ChainRules {
    let trusted = trusted.iter().map(|name| certificate(name)).collect();
    ChainRules { trusted: TrustedCertificates(Arc::new(trusted)), revoked: None, depth_max }
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
    assert_eq!(verify(&root, &["root"]), Ok(()), "trusted itself");
    assert_eq!(verify(&root, &["int"]), Ok(()), "an authority as a server");
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
fn a_certificate_that_nobody_trusts_has_its_time_too() {
    let other = rules(&["direct"], 9);
    assert_eq!(verify_at(&other, &["leaf"], NOW * 4), Err(ChainFault::Expired));
    assert_eq!(verify_at(&other, &["root"], 0), Err(ChainFault::NotYetValid));
}

#[test]
fn issuers_have_to_be_authorities() {
    let chain = ["below", "leaf", "int"];
    assert_eq!(verify(&rules(&["root"], 9), &chain), Err(ChainFault::InvalidAuthority));
}

#[test]
fn depth_purpose_time_and_critical_extensions_count() {
    let root = rules(&["root"], 1);
    assert_eq!(verify(&rules(&["root"], 0), &["leaf", "int"]), Err(ChainFault::TooLong));
    assert_eq!(verify(&rules(&["root"], 0), &["direct"]), Ok(()));
    assert_eq!(verify(&root, &["client", "int"]), Err(ChainFault::WrongPurpose));
    assert_eq!(verify(&root, &["odd", "int"]), Err(ChainFault::UnknownCritical));
    assert_eq!(verify_at(&root, &["leaf", "int"], 0), Err(ChainFault::NotYetValid));
    assert_eq!(verify_at(&root, &["leaf", "int"], NOW * 4), Err(ChainFault::Expired));
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
