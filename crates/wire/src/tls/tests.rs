use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{CipherList, CipherListError, GroupList, GroupListError, TlsGroup, TlsSuite};

/// The lists that Mozilla's configuration generator publishes: `intermediate` and `old` of version
/// 5.7, and `modern` of version 4, the last one that names suites of TLS 1.2.
const MOZILLA: [(&str, &str); 3] = [
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:\
         ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:\
         DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-CHACHA20-POLY1305",
        "E1 R1 E2 R2 EC RC",
    ),
    (
        "@SECLEVEL=0:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
         ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:\
         ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:\
         DHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256:\
         ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA384:\
         ECDHE-RSA-AES256-SHA384:ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA:\
         DHE-RSA-AES128-SHA256:DHE-RSA-AES256-SHA256:AES128-GCM-SHA256:AES256-GCM-SHA384:\
         AES128-SHA256:AES256-SHA256:AES128-SHA:AES256-SHA:DES-CBC3-SHA",
        "E1 R1 E2 R2 EC RC",
    ),
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:\
         ECDHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
         ECDHE-ECDSA-AES256-SHA384:ECDHE-RSA-AES256-SHA384:ECDHE-ECDSA-AES128-SHA256:\
         ECDHE-RSA-AES128-SHA256",
        "E2 R2 EC RC E1 R1",
    ),
];

/// Cipher strings, and the existing suites that `openssl ciphers` (3.0) selects, in short names:
/// `E2` is ECDHE-ECDSA-AES256-GCM-SHA384, `RC` is ECDHE-RSA-CHACHA20-POLY1305.
const STRINGS: [(&str, &str); 51] = [
    ("DEFAULT", "E2 R2 EC RC E1 R1"),
    ("HIGH:!aNULL:!MD5", "E2 R2 EC RC E1 R1"),
    ("ALL", "E2 R2 EC RC E1 R1"),
    ("FIPS", "E2 R2 E1 R1"),
    ("SHA256", "none"),
    ("AESGCM", "E2 R2 E1 R1"),
    ("CHACHA20", "EC RC"),
    ("kEECDH", "E2 R2 EC RC E1 R1"),
    ("EECDH+AESGCM:EDH+AESGCM", "E2 R2 E1 R1"),
    ("AES", "E2 R2 E1 R1"),
    ("AES128", "E1 R1"),
    ("TLSv1.2", "E2 R2 EC RC E1 R1"),
    ("ECDSA", "E2 EC E1"),
    ("aRSA", "R2 RC R1"),
    ("RSA", "none"),
    ("SUITEB128", "E1 E2"),
    ("SUITEB192:ALL", "E2"),
    ("SUITEB128ONLY", "E1"),
    ("SUITEB128C2", "E2"),
    ("ALL:@STRENGTH", "E2 R2 EC RC E1 R1"),
    ("AES128:ALL:@STRENGTH", "E2 R2 EC RC E1 R1"),
    ("AESGCM+AES128", "E1 R1"),
    ("AESCCM", "none"),
    ("ECDHE;AES", "E2 R2 EC RC E1 R1"),
    ("ALL:+AES256", "EC RC E1 R1 E2 R2"),
    ("HIGH@SECLEVEL=2", "E2 R2 EC RC E1 R1"),
    ("@SECLEVEL=2:HIGH", "E2 R2 EC RC E1 R1"),
    ("!HIGH:HIGH", "none"),
    ("ALL:!AES128+aECDSA", "E2 R2 EC RC R1"),
    ("ALL:-AES256:CHACHA20:ALL", "EC RC E1 R1 E2 R2"),
    ("AES128:-AES128:ALL", "E1 R1 E2 R2 EC RC"),
    ("AES128:AES256:-AES256:-AES128:ALL", "E1 R1 E2 R2 EC RC"),
    ("AES256+HIGH+foo:AES128", "E1 R1"),
    ("LOW:HIGH", "E2 R2 EC RC E1 R1"),
    ("DEFAULT:!ECDSA", "R2 RC R1"),
    ("DEFAULT,!ECDSA AES", "R2 RC R1"),
    ("DEFAULTX:HIGH", "E2 R2 EC RC E1 R1"),
    ("HIGH:DEFAULT", "E2 R2 EC RC E1 R1"),
    (
        "EECDH+ECDSA+AESGCM:EECDH+aRSA+AESGCM:EECDH+ECDSA+SHA384:EECDH+ECDSA+SHA256:\
         EECDH+aRSA+SHA384:EECDH+aRSA+SHA256:EECDH+aRSA+RC4:EECDH:EDH+aRSA:!aNULL:!eNULL:\
         !LOW:!3DES:!MD5:!EXP:!PSK:!SRP:!DSS:!RC4",
        "E2 E1 R2 R1 EC RC",
    ),
    (
        "EECDH+CHACHA20:EECDH+AES128:RSA+AES128:EECDH+AES256:RSA+AES256:EECDH+3DES:\
         RSA+3DES:!MD5",
        "EC RC E1 R1 E2 R2",
    ),
    ("ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM", "E2 R2 E1 R1 EC RC"),
    ("ALL:!ADH:!EXPORT56:RC4+RSA:+HIGH:+MEDIUM:+LOW:+SSLv2:+EXP", "E2 R2 EC RC E1 R1"),
    (
        "ECDHE-RSA-AES128-GCM-SHA256:ECDHE:ECDH:AES:HIGH:!NULL:!aNULL:!MD5:!ADH:!RC4",
        "R1 E2 R2 EC RC E1",
    ),
    ("ALL:+RSA:+aRSA", "E2 EC E1 R2 RC R1"),
    ("AES256-SHA", "none"),
    ("HIGH:?", "invalid"),
    ("ECDHE+", "invalid"),
    ("HIGH:@SECLEVEL=9", "invalid"),
    ("HIGH:@FOO", "invalid"),
    ("ECDH+AESGCM:DH+AESGCM:ECDH+AES256", "E2 R2 E1 R1"),
    ("TLS13-AES-256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:CAMELLIA", "R2"),
];

#[test]
fn cipher_strings_select_the_same_suites_as_in_openssl() {
    for (text, expected) in MOZILLA.into_iter().chain(STRINGS) {
        let selected = match CipherList::parse(text.as_bytes()) {
            Ok(list) => short_names(&list.suites),
            Err(CipherListError::NoMatch) => "none".to_string(),
            Err(CipherListError::Command(_)) => "invalid".to_string(),
        };
        assert_eq!(selected, expected, "{text}");
    }
}

fn short_names(suites: &[TlsSuite]) -> String {
    let short = |suite: &TlsSuite| match suite {
        TlsSuite::EcdheEcdsaAes256GcmSha384 => "E2",
        TlsSuite::EcdheRsaAes256GcmSha384 => "R2",
        TlsSuite::EcdheEcdsaChacha20Poly1305 => "EC",
        TlsSuite::EcdheRsaChacha20Poly1305 => "RC",
        TlsSuite::EcdheEcdsaAes128GcmSha256 => "E1",
        TlsSuite::EcdheRsaAes128GcmSha256 => "R1",
        _ => "?",
    };
    suites.iter().map(short).collect::<Vec<_>>().join(" ")
}

/// The lists that Mozilla's configuration generator writes.
#[test]
fn mozillas_lists_load() {
    const INTERMEDIATE: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
        ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:\
        ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:\
        DHE-RSA-CHACHA20-POLY1305";
    const OLD: &str = ":ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA:\
        ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA384:ECDHE-RSA-AES256-SHA384:\
        ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA:DHE-RSA-AES128-SHA256:DHE-RSA-AES256-SHA256:\
        AES128-GCM-SHA256:AES256-GCM-SHA384:AES128-SHA256:AES256-SHA256:AES128-SHA:AES256-SHA:\
        DES-CBC3-SHA";
    const MODERN_OF_2019: &str = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
        ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256:\
        ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-SHA384:ECDHE-RSA-AES256-SHA384:\
        ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256";
    for (text, expected) in [
        (INTERMEDIATE.to_string(), "E1 R1 E2 R2 EC RC"),
        (INTERMEDIATE.to_string() + OLD, "E1 R1 E2 R2 EC RC"),
        (MODERN_OF_2019.to_string(), "E2 R2 EC RC E1 R1"),
    ] {
        let list = CipherList::parse(text.as_bytes()).expect("it loads");
        assert_eq!(short_names(&list.suites), expected, "{text}");
    }
}

#[test]
fn steps_that_openssls_command_line_cannot_express() {
    let list = CipherList::parse(b"-HIGH:AES128").expect("it loads");
    assert_eq!(short_names(&list.suites), "E1 R1");
    assert_eq!(CipherList::parse(b"+HIGH"), Err(CipherListError::NoMatch));
    let standard = CipherList::parse(b"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256").expect("it loads");
    assert_eq!(short_names(&standard.suites), "R1");
}

#[test]
fn a_security_level_removes_short_keys() {
    let list = CipherList::parse(b"HIGH:@SECLEVEL=4").expect("it loads");
    assert_eq!((short_names(&list.suites).as_str(), list.security_level), ("E2 R2 EC RC", Some(4)));
    assert_eq!(CipherList::parse(b"AES128@SECLEVEL=5"), Err(CipherListError::NoMatch));
}

#[test]
fn an_error_names_the_place() {
    let error = CipherList::parse(b"DEFAULT:HIGH:%").unwrap_err();
    assert_eq!(error.to_string(), "invalid command at character 14");
    let error = CipherList::parse(b"AES128-SHA:RC4").unwrap_err();
    assert!(error.to_string().starts_with("no cipher match: "), "{error}");
}

#[test]
fn suites_of_tls13_have_a_list_of_their_own() {
    let text = b"TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256:TLS_AES_128_GCM_SHA256";
    let suites = super::parse_tls13_suites(text);
    assert_eq!(suites, [TlsSuite::Tls13Chacha20Poly1305Sha256, TlsSuite::Tls13Aes128GcmSha256]);
    assert_eq!(super::parse_tls13_suites(b""), []);
    assert_eq!(CipherList::parse(b"TLS_AES_128_GCM_SHA256"), Err(CipherListError::NoMatch));
}

#[test]
fn every_suite_is_found_by_its_number() {
    for suite in TlsSuite::TLS13.into_iter().chain(TlsSuite::TLS12) {
        assert_eq!(TlsSuite::from_code(suite.code()), Some(suite));
    }
    assert_eq!(TlsSuite::from_code(0x002f), None);
}

fn groups(text: &[u8]) -> Vec<TlsGroup> {
    match GroupList::parse(text) {
        Ok(GroupList::Groups { groups, .. }) => groups,
        other => panic!("{other:?}"),
    }
}

#[test]
fn groups_have_openssls_names() {
    assert_eq!(GroupList::parse(b"auto"), Ok(GroupList::Auto));
    assert_eq!(
        groups(b"X25519MLKEM768:X25519:prime256v1:secp384r1"),
        [TlsGroup::X25519MlKem768, TlsGroup::X25519, TlsGroup::Secp256r1, TlsGroup::Secp384r1]
    );
    assert_eq!(groups(b"x25519:P-384:P-256:X25519").len(), 3);
    assert_eq!(groups(b"?nothing:*X25519/P-256:DEFAULT:-P-384").len(), 3);
}

#[test]
fn groups_that_do_not_exist_here_are_skipped_by_name() {
    let text = b"X448:secp521r1:secp384r1";
    let lacking = [(0, 4), (5, 14)].to_vec();
    let groups = [TlsGroup::Secp384r1].to_vec();
    assert_eq!(GroupList::parse(text), Ok(GroupList::Groups { groups, lacking }));
    assert_eq!(GroupList::parse(b"secp521r1"), Err(GroupListError::NoneLeft));
    assert_eq!(GroupList::parse(b"X25519:prime256"), Err(GroupListError::Unknown(7, 15)));
    assert_eq!(GroupList::parse(b""), Err(GroupListError::Unknown(0, 0)));
}
