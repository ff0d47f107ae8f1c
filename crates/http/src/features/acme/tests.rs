use testing::Folder;

use crate::testing::{refusal, site};

const ISSUER: &str = "acme_issuer a {
        uri https://acme.test/dir; ssl_verify off; state_path off;
    }";

/// The message without the number of its line.
fn message(configuration: &str) -> String {
    let text = refusal(configuration);
    text.rsplit_once(':').map_or(text.clone(), |(message, _)| message.to_owned())
}

fn refused(lines: &str) -> String {
    message(&format!("{ISSUER} {lines}"))
}

#[test]
fn a_certificate_needs_an_issuer_and_names() {
    let server = |lines: &str| format!("server {{ listen 443 ssl; {lines} }}");
    let refused = |lines: &str| refused(&server(lines));
    assert_eq!(
        refused("acme_certificate b a.test;"),
        "\"acme_certificate\": issuer \"b\" is missing"
    );
    assert_eq!(refused("acme_certificate a;"), "\"acme_certificate\": no identifiers");
    assert!(refused("acme_certificate a www.a.*;").starts_with("invalid server name \"www.a.*\""));
    assert!(refused("server_name .a..b; acme_certificate a;").starts_with("invalid server name"));
    assert_eq!(refused("acme_certificate a,a a.test;"), "issuer \"a\" is named twice");
    assert_eq!(refused("acme_certificate a a.test key=rsa:1;"), "unsupported key size");
    assert_eq!(
        refused("acme_certificate a *.a.test;"),
        "issuer \"a\" cannot obtain a certificate for wildcard \"*.a.test\""
    );
}

#[test]
fn an_issuer_is_checked() {
    let refused = |lines: &str| {
        message(&format!("acme_issuer a {{ ssl_verify off; {lines} }} server {{ listen 80; }}"))
    };
    assert_eq!(refused(""), "\"uri\" is missing in issuer \"a\"");
    assert_eq!(refused("uri ftp://a/;"), "invalid URL prefix in \"ftp://a/\"");
    assert_eq!(refused("uri https://a/; uri https://b/;"), "\"uri\" directive is duplicate");
    assert_eq!(refused("challenge dns-02;"), "unsupported challenge: dns-02");
    assert_eq!(refused("account_key ecdsa:234;"), "unsupported curve");
    assert!(refused("account_key no-such-file;").starts_with("cannot load \"no-such-file\""));
    assert_eq!(refused("directory x;"), "unknown directive \"directory\"");
    assert_eq!(
        refused("external_account_key id data:*;"),
        "invalid external account key: it is not base64url"
    );
}

#[test]
fn names_that_clients_tell_need_somebody_who_allows_them() {
    let refused = |line: &str, certificate: &str| {
        message(&format!(
            "acme_issuer a {{ uri https://a.test/; ssl_verify off; state_path off; {line} }}
             server {{ listen 443 ssl; acme_certificate a {certificate}; }}"
        ))
    };
    assert_eq!(refused("", "on_demand"), "issuer \"a\" has no \"on_demand\"");
    assert_eq!(refused("on_demand names=5;", ""), "\"on_demand\" requires \"ask=URI\"");
    let asks = "on_demand ask=http://127.0.0.1/";
    assert_eq!(
        refused(&format!("{asks};"), "on_demand a.test"),
        "\"on_demand\" cannot be combined with names"
    );
    assert_eq!(refused("on_demand ask=/x;", ""), "invalid URL prefix in \"ask=/x\"");
    for word in ["names=0", "new_per_hour=4000", "wait=2m", "unused=1h"] {
        let expected = format!("invalid value in \"{word}\"");
        assert_eq!(refused(&format!("{asks} {word};"), ""), expected);
    }
    assert_eq!(refused(&format!("{asks} max=5;"), ""), "invalid parameter \"max=5\"");
}

#[test]
fn the_challenge_of_dns_needs_somebody_who_changes_records() {
    let issuer = |lines: &str| {
        format!("acme_issuer a {{ uri https://a/; ssl_verify off; state_path off; {lines} }}")
    };
    let refused = |lines: &str| message(&format!("{} server {{ listen 80; }}", issuer(lines)));
    let key = "key=data:k:c2VjcmV0";
    for (lines, why) in [
        ("challenge dns-01;", "\"challenge dns-01\" needs \"dns_update\" or \"dns_hook\""),
        ("dns_hook /bin/true;", "\"dns_hook\" has no effect without \"challenge dns-01\""),
        ("dns_hook true;", "\"dns_hook\" needs an absolute path, not \"true\""),
        ("dns_timeout 0;", "\"dns_timeout\" directive invalid value"),
        ("dns_check unix:/a;", "unix domain socket in \"unix:/a\""),
        ("dns_update zone=a ttl=1 key=data:k:AA==;", "\"dns_update\" must have a name server"),
        ("dns_update ::1 zone=a key=data:k:AA==;", "invalid port in \"::1\""),
        ("dns_update 127.0.0.1 zone=a ttl=1;", "\"dns_update\" must have \"key\" parameter"),
        ("dns_update 127.0.0.1 zone=a..b x=y;", "invalid name of a zone in \"zone=a..b\""),
        ("dns_update 127.0.0.1 zone=a tll=1;", "unknown parameter in \"tll=1\""),
        ("dns_update 127.0.0.1 zone=a ttl=x;", "invalid TTL in \"ttl=x\""),
        (
            "dns_update 127.0.0.1 zone=a key=data:k:?;",
            "invalid key: the secret of the key is not base64",
        ),
    ] {
        assert_eq!(refused(lines), why, "{lines}");
    }
    let update = format!("dns_update 127.0.0.1 zone=a.test {key};");
    let both = refused(&format!("challenge dns-01; {update} dns_hook /bin/true;"));
    assert_eq!(both, "\"dns_hook\" and \"dns_update\" exclude each other");
    let twice = refused(&format!("challenge dns-01; {update} {update}"));
    assert_eq!(twice, "duplicate zone \"a.test\" in \"dns_update\"");
    let with = |names: &str| {
        let issuer = issuer(&format!("challenge dns-01; {update}"));
        format!("{issuer} server {{ listen 443 ssl; acme_certificate a {names}; }}")
    };
    assert_eq!(
        message(&with("10.0.0.1")),
        "issuer \"a\" cannot obtain a certificate for address \"10.0.0.1\""
    );
    site(&with("*.a.test a.test"));
}

#[test]
fn a_shared_zone_is_checked() {
    assert_eq!(refused("acme_shared_zone a;"), "\"acme_shared_zone\" must have \"zone\" parameter");
    assert_eq!(refused("acme_shared_zone zone=a:x;"), "invalid zone size \"a:x\"");
}

/// Another process, or another machine, has published the token.
#[test]
fn a_stored_token_is_answered_before_a_redirect() {
    let folder = Folder::new();
    folder.write("state/http-01.stored-token", "stored-token.thumbprint");
    let path = folder.join("state");
    ::acme::testing::look_in(&path);
    let site = site(&format!(
        "{ISSUER} server {{ listen 80; server_name a.test; return 301 https://a.test$request_uri; }}
        server {{ listen 443 ssl; acme_certificate a a.test; }}"
    ));
    let reply = site.get("/.well-known/acme-challenge/stored-token");
    assert_eq!((reply.status(), reply.body()), (200, "stored-token.thumbprint".into()));
    assert_eq!(site.get("/.well-known/acme-challenge/other").status(), 301);
    assert_eq!(site.get("/").status(), 301);
}
