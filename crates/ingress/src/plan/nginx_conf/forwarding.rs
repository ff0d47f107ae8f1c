//! The fields that a backend is sent.

use super::ConfText;

/// What `http {}` sets, once more: the lines of a location replace those of `http {}`, so a
/// location with a line of its own repeats all of them. `host` is a word of nginx.conf.
pub(crate) fn forwarded_fields(family: &str, host: &str, out: &mut ConfText) {
    let set = format!("{family}_set_header");
    out.line(format!("{set} Host {host}"));
    client_fields(family, out);
    if family == "proxy" {
        out.line(format!("{set} Upgrade $http_upgrade"));
        out.line(format!("{set} Connection $connection_upgrade"));
    }
}

/// The fields that say who the client is. They replace the client's own, by which it could claim
/// any address; of a trusted proxy, `$remote_addr` and `$client_scheme` are the client's.
pub(crate) fn client_fields(family: &str, out: &mut ConfText) {
    let set = format!("{family}_set_header");
    out.line(format!("{set} X-Real-IP $remote_addr"));
    out.line(format!("{set} X-Forwarded-For $remote_addr"));
    out.line(format!("{set} X-Forwarded-Host $client_host"));
    out.line(format!("{set} X-Forwarded-Port $server_port"));
    out.line(format!("{set} X-Forwarded-Proto $client_scheme"));
}
