//! `pass` between sockets of `stream {}`.

use testing::Folder;

use super::{answer, refusal};

/// The bytes that a client of the first socket receives, the access log and the error log.
fn passed(line: &str, others: &str) -> (String, String, String) {
    let folder = Folder::new();
    let text = format!(
        "error_log e.log error; log_format l $status; access_log a.log l;
         server {{ listen 127.0.0.1:1; {line} }} {others}"
    );
    let answer = String::from_utf8(answer(&text, &folder, b"")).unwrap();
    let read = |name| std::fs::read_to_string(folder.join(name)).unwrap();
    (answer, read("a.log"), read("e.log"))
}

const WHERE: &str = "return '$server_addr:$server_port';";

#[test]
fn the_socket_of_the_address_serves_and_logs_the_connection() {
    let others = format!("server {{ listen 127.0.0.1:2; {WHERE} }}");
    let (answer, lines, errors) = passed("pass 127.0.0.1:2;", &others);
    assert_eq!((&*answer, &*lines, &*errors), ("127.0.0.1:2", "200\n", ""));
    let computed = "set $to 127.0.0.1:2; pass $to;";
    assert_eq!(passed(computed, &others).0, "127.0.0.1:2");
}

#[test]
fn a_socket_of_the_address_comes_before_one_of_all_addresses() {
    let all = format!("server {{ listen 2; {WHERE} }}");
    assert_eq!(passed("pass 127.0.0.7:2;", &all).0, "127.0.0.7:2");
    let both = format!("{all} server {{ listen 127.0.0.7:2; return own; }}");
    assert_eq!(passed("pass 127.0.0.7:2;", &both).0, "own");
    let (answer, lines, errors) = passed("pass [::1]:2;", &all);
    assert_eq!((&*answer, &*lines), ("", "200\n"));
    assert!(errors.contains("port not found for \"[::1]:2\" while passing connection to port"));
}

#[test]
fn a_udp_socket_is_not_a_target() {
    let (answer, lines, _) = passed("pass 127.0.0.1:2;", "server { listen 2 udp; return a; }");
    assert_eq!((&*answer, &*lines), ("", "200\n"));
}

#[test]
fn a_cycle_ends() {
    let (answer, lines, errors) = passed("pass 127.0.0.1:1;", "");
    assert_eq!((&*answer, &*lines), ("", "500\n"));
    assert!(errors.contains("stream pass cycle while passing connection to port"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn an_invalid_address_is_an_error() {
    for (to, error) in [
        ("127.0.0.1", "no port in pass \"127.0.0.1\""),
        ("localhost:1", "no addresses in pass \"localhost:1\""),
        ("127.0.0.1:x", "invalid port in pass \"127.0.0.1:x\""),
    ] {
        let (answer, lines, errors) = passed(&format!("set $to {to}; pass $to;"), "");
        assert_eq!((&*answer, &*lines), ("", "500\n"));
        assert!(errors.contains(error), "{errors}");
    }
    let refused = |line: &str| refusal(&format!("server {{ listen 127.0.0.1:1; {line} }}"));
    assert_eq!(refused("pass 127.0.0.1;"), "\"pass\" directive has no port:1");
    assert_eq!(refused("pass localhost:1;"), "\"pass\" directive has no addresses:1");
    let invalid = "invalid port in \"127.0.0.1:x\" of the \"pass\" directive:1";
    assert_eq!(refused("pass 127.0.0.1:x;"), invalid);
    assert_eq!(refused("pass 127.0.0.1:1; pass 127.0.0.1:2;"), "\"pass\" directive is duplicate:1");
}
