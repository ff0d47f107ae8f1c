//! What is counted by key is counted by all workers together, and outlives a reload.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use testing::Server;

/// A site that lets two requests in a minute through.
fn limited(zone: &str) -> String {
    format!(
        "limit_req_zone {zone} rate=1r/m;
         server {{
             listen ADDRESS;
             location / {{ limit_req zone=a burst=1 nodelay; stub_status; }}
         }}"
    )
}

/// How many of ten requests are let through.
fn passed(server: &Server) -> usize {
    (0..10).filter(|_| server.get("/").starts_with("Active connections")).count()
}

#[test]
fn a_zone_is_shared_by_workers_and_kept_over_reloads() {
    for globals in ["worker_processes 2;", "worker_processes 2; master_process off;"] {
        let server = Server::start_any(
            &format!("events {{}} {globals}"),
            &limited("$request_method zone=a:1m"),
        );
        assert_eq!(passed(&server), 2, "{globals}");
        server.configure(globals, &limited("$request_method zone=a:1m"));
        server.reload();
        assert_eq!(passed(&server), 0, "{globals}");
        // Another size is another zone.
        server.configure(globals, &limited("$request_method zone=a:2m"));
        server.reload();
        assert_eq!(passed(&server), 2, "{globals}");
    }
}

#[test]
fn a_reload_that_changes_the_key_of_a_zone_is_refused() {
    let server = Server::start("", &limited("$request_method zone=a:1m"));
    assert_eq!(passed(&server), 2);
    server.configure("", &limited("$remote_addr zone=a:1m"));
    server.signal("HUP");
    let message = "limit_req \"a\" uses the \"$remote_addr\" key while previously it used the \
                   \"$request_method\" key";
    server.await_log(message, 1);
    assert_eq!(passed(&server), 0);
}
