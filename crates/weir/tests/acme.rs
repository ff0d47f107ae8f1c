//! Certificates by ACME: what the real program does when no authority answers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::Write as _;

use net::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY, TlsClient, der};
use testing::{Server, eventually, free_address};
use wire::x509::{SubjectName, X509};

/// A site whose issuer is not there.
fn site(issuer: &str) -> String {
    format!(
        "acme_issuer a {{ uri http://{}/dir; state_path DIR/state; {issuer} }}
         server {{ listen ADDRESS ssl; server_name a.test; acme_certificate a; return 200 ok; }}",
        free_address()
    )
}

/// The certificate that a handshake shows.
fn shown(server: &Server) -> Vec<u8> {
    let mut stream = TlsClient::new().connect("a.test", server.connect());
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    stream.certificate()
}

/// The contents of the file in the state folder whose name ends so, and the rest of its name.
fn stored(server: &Server, kind: &str) -> (String, String) {
    eventually(kind, || {
        let files = fs::read_dir(server.folder.join("state")).ok()?;
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let name = names.into_iter().find(|name| name.ends_with(kind))?;
        let text = server.folder.read(&format!("state/{name}"));
        Some((text, name.strip_suffix(kind)?.to_owned()))
    })
}

#[test]
fn without_an_authority_handshakes_succeed_and_failures_outlive_a_reload() {
    let site = site("");
    let server = Server::start("", &site);
    let certificate = shown(&server);
    let leaf = X509::parse(&certificate).unwrap();
    assert!(leaf.has_subject_name(&SubjectName::of("a.test")) && leaf.is_self_issued());
    server.await_log("one that signs itself is shown", 1);
    server.await_log("was not obtained from \"a\": no reply while reading the directory", 1);
    let (failures, _) = stored(&server, ".failures");
    assert!(failures.contains("\"count\": 1"), "{failures}");
    // Another configuration, so that all begins anew but what is stored.
    server.configure("", &site.replace("state_path", "contact b@a.test; state_path"));
    server.reload();
    assert_eq!(shown(&server), certificate, "a stand-in is made once in a process");
    assert_eq!(stored(&server, ".failures").0, failures);
    assert_eq!(server.log().matches("was not obtained").count(), 1, "{}", server.log());
}

#[test]
fn the_stored_certificate_is_shown() {
    let server = Server::start("", &site(""));
    let (_, stem) = stored(&server, ".failures");
    server.folder.write(&format!("state/{stem}.1.key"), ECDSA_KEY);
    server.folder.write(&format!("state/{stem}.1.crt"), ECDSA_CERTIFICATE);
    server.folder.write(&format!("state/{stem}.json"), "{\"number\": 1, \"directory\": \"x\"}");
    server.configure("", &site("contact b@a.test;"));
    server.reload();
    assert_eq!(shown(&server), der(ECDSA_CERTIFICATE));
}
