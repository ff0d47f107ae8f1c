//! Logs in JSON.

use serde_json::Value;

use super::{answer, logged};
use testing::{Folder, free_address};

fn objects(folder: &Folder, name: &str) -> Vec<Value> {
    let log = logged(folder, name);
    log.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn sessions_and_errors_are_logged_in_json() {
    let (folder, dead) = (Folder::new(), free_address());
    let text = format!(
        "access_log a.log json; error_log e.log error json; error_log_tag who $remote_addr;
         error_log_tag what session;
         server {{ listen 127.0.0.1:1; proxy_pass {dead}; }}"
    );
    answer(&text, &folder, b"hello");
    let access = &objects(&folder, "a.log")[0];
    for (name, text) in [("client", "127.0.0.1"), ("protocol", "TCP")] {
        assert_eq!(access[name], text, "{access}");
    }
    assert_eq!(access["upstream_addr"], dead.to_string(), "{access}");
    assert_eq!((&access["status"], &access["bytes_sent"]), (&502.into(), &0.into()), "{access}");
    assert!(access["session_time"].is_f64() && access.get("tls_protocol").is_none(), "{access}");
    let error = &objects(&folder, "e.log")[0];
    for (name, text) in [
        ("msg", "connect() failed"),
        ("action", "connecting to upstream"),
        ("client", "127.0.0.1"),
        ("server", "127.0.0.1:1"),
        ("errtext", "Connection refused"),
        ("who", "127.0.0.1"),
        ("what", "session"),
    ] {
        assert_eq!(error[name], text, "{error}");
    }
    assert_eq!(error["upstream"], dead.to_string(), "{error}");
    let counts = (&error["upstream_bytes_sent"], &error["bytes_sent"]);
    assert_eq!(counts, (&0.into(), &0.into()), "{error}");
}

#[test]
fn a_format_json_of_the_configuration_wins_wherever_it_stands() {
    let folder = Folder::new();
    let text = "access_log a.log json; log_format json own;
                server { listen 127.0.0.1:1; return hello; }";
    answer(text, &folder, b"");
    assert_eq!(logged(&folder, "a.log"), "own\n");
}
