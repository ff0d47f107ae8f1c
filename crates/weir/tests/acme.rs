//! Certificates by ACME: what the real program does when no authority answers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::Write as _;
use std::process::Command;

use net::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY, TlsClient, der};
use testing::{Folder, Server, eventually, free_address};
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

/// What `weir acme` prints, and whether it succeeded.
fn acme(conf: &str, words: &str) -> (String, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["acme", "-c", conf]).args(words.split(' '));
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.success())
}

#[test]
fn certificates_are_shown_renewed_and_forgotten_on_request() {
    let main = "control_socket unix:DIR/control.sock;";
    let server = Server::start(main, &site(""));
    let conf = server.folder.name("nginx.conf");
    stored(&server, ".failures");
    let (status, is_good) = acme(&conf, "status");
    assert!(is_good && status.contains("last error") && status.contains("blocked"), "{status}");
    let (refused, is_good) = acme(&conf, "renew a.test");
    assert!(!is_good && refused.contains("--force does not wait"), "{refused}");
    let (failed, is_good) = acme(&conf, "renew a.test --force");
    assert!(!is_good && failed.contains("failures     2 in a row"), "{failed}");
    let (refused, is_good) = acme(&conf, "forget a.test");
    assert!(!is_good && refused.contains("the configuration has the name"), "{refused}");
    server
        .folder
        .write("state/old.test-0123456789abcdef.json", "{\"number\": 1, \"directory\": \"x\"}");
    server.folder.write("state/old.test-0123456789abcdef.1.key", ECDSA_KEY);
    let (forgotten, is_good) = acme(&conf, "forget old.test");
    assert!(is_good && forgotten.contains("old.test-0123456789abcdef.*"), "{forgotten}");
    let left = fs::read_dir(server.folder.join("state")).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with("old.test")), "{left:?}");
    let (unknown, is_good) = acme(&conf, "renew b.test");
    assert!(!is_good && unknown.contains("there is no certificate for \"b.test\""), "{unknown}");
}

#[test]
fn without_a_server_the_state_folder_says_how_certificates_are_doing() {
    let folder = Folder::new();
    let site = site("").replace("DIR", &folder.name("")).replace("ADDRESS", "127.0.0.1:1");
    folder.write("nginx.conf", format!("events {{}} http {{ {site} }}"));
    let conf = folder.name("nginx.conf");
    let (status, is_good) = acme(&conf, "status --json");
    let stem = status.split("\"file\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let stem = stem.filter(|_| is_good).expect(&status);
    fs::create_dir(folder.join("state")).unwrap();
    folder.write(&format!("state/{stem}.1.key"), ECDSA_KEY);
    folder.write(&format!("state/{stem}.1.crt"), ECDSA_CERTIFICATE);
    folder.write(&format!("state/{stem}.json"), "{\"number\": 1, \"directory\": \"x\"}");
    let (status, is_good) = acme(&conf, "status a.test");
    assert!(is_good && status.contains("this is what is stored"), "{status}");
    assert!(status.contains("certificate  of an issuer that is not configured"), "{status}");
    let (refused, is_good) = acme(&conf, "renew a.test");
    assert!(!is_good && refused.contains("has no \"control_socket\""), "{refused}");
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
