//! The fields that a backend is sent.

use super::ConfText;

/// What `http {}` sets, once more: the lines of a location replace those of `http {}`, so a
/// location with a line of its own repeats all of them. `host` is a word of nginx.conf.
pub(crate) fn forwarded_fields(family: &str, host: &str, out: &mut ConfText) {
    let set = format!("{family}_set_header");
    out.line(format!("{set} Host {host}"));
    out.line(format!("{set} X-Real-IP $remote_addr"));
    out.line(format!("{set} X-Forwarded-For $proxy_add_x_forwarded_for"));
    out.line(format!("{set} X-Forwarded-Host $client_host"));
    out.line(format!("{set} X-Forwarded-Port $server_port"));
    out.line(format!("{set} X-Forwarded-Proto $scheme"));
    if family == "proxy" {
        out.line(format!("{set} Upgrade $http_upgrade"));
        out.line(format!("{set} Connection $connection_upgrade"));
    }
}
