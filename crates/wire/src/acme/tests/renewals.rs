//! When to renew.

use super::*;

fn ask(server: &mut FakeServer) -> Result<Option<RenewalInfo>, AcmeFailure> {
    let run = renewal_info(DIRECTORY.to_string(), "aki.serial".to_string());
    drive(run, server, &mut Journal::default())
}

#[test]
fn the_server_suggests_a_window() {
    let mut server = FakeServer::new();
    server.retry_after = Some("21600");
    server.renewal = Some(
        "{\"suggestedWindow\":{\"start\":\"1970-01-02T00:00:00Z\",\
         \"end\":\"1970-01-03T01:00:00.5+01:00\"},\"explanationURL\":\"https://ca.test/why\"}",
    );
    let expected = RenewalInfo {
        start_s: 86_400,
        end_s: 2 * 86_400,
        retry_after_s: Some(21_600),
        explanation_url: Some("https://ca.test/why".to_string()),
    };
    assert_eq!(ask(&mut server), Ok(Some(expected)));
    assert_eq!(server.requests, ["/directory", "/renewal/aki.serial"]);
}

#[test]
fn a_server_may_suggest_nothing_or_nonsense() {
    let mut server = FakeServer::new();
    assert_eq!(ask(&mut server), Ok(None));
    for text in [
        "{}",
        "{\"suggestedWindow\":{\"start\":\"1970-01-02T00:00:00Z\"}}",
        "{\"suggestedWindow\":{\"start\":\"1970-01-02T00:00:00Z\",\
         \"end\":\"1970-01-02T00:00:00Z\"}}",
        "{\"suggestedWindow\":{\"start\":\"1970-13-02T00:00:00Z\",\
         \"end\":\"1970-01-02T00:00:00Z\"}}",
    ] {
        server.renewal = Some(text);
        assert_eq!(kind(ask(&mut server)), AcmeFailureKind::InvalidReply, "{text}");
    }
}

/// RFC 9773, section 4.1.
#[test]
fn the_id_is_that_of_the_rfc() {
    let key_id = [
        0x69, 0x88, 0x5b, 0x6b, 0x87, 0x46, 0x40, 0x41, 0xe1, 0xb3, 0x7b, 0x84, 0x7b, 0xa0, 0xae,
        0x2c, 0xde, 0x01, 0xc8, 0xd4,
    ];
    let serial = [0x00, 0x87, 0x65, 0x43, 0x21];
    let id = format!("{}.{}", jws::base64url(&key_id), jws::base64url(&serial));
    assert_eq!(id, "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE");
}

/// Key identifier and serial number as OpenSSL shows them, in base64url.
#[test]
fn the_id_of_a_certificate_names_its_issuers_key() {
    let first = include_bytes!("../../../../../fuzz/seeds/x509/first");
    let expected = "_40GAFhaVj3D8cl4y7vfet3fqOg.S8xplKnTNxYLF0gkxouIUgr3EsQ";
    assert_eq!(renewal_id(first).as_deref(), Some(expected));
    let without = include_bytes!("../../../../../fuzz/seeds/x509/listed");
    assert_eq!(renewal_id(without), None);
}
