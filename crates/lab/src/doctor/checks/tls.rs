//! TLS sessions.

use super::{ConfigScope, ExaminedConfig, FindingList, MachineLimits};

/// Without a cache and without tickets, no client can resume a session.
pub(super) fn sessions(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let servers = conf.main().servers();
    let speaks_tls = |server: &&ConfigScope<'_>| {
        let is_tls = |line: &conf::Directive| line.args.iter().any(|word| *word.text == *b"ssl");
        server.own_all("listen").any(is_tls)
    };
    let has_no_cache = |server: &&ConfigScope<'_>| {
        server.word("ssl_session_cache").is_none_or(|word| ["none", "off"].contains(&&*word))
    };
    let has_no_tickets =
        |server: &&ConfigScope<'_>| server.word("ssl_session_tickets").as_deref() == Some("off");
    let lines = servers.iter().filter(speaks_tls).filter(has_no_cache).filter(has_no_tickets);
    let mut lines: Vec<_> =
        lines.filter_map(|server| server.setting("ssl_session_tickets")).collect();
    lines.dedup_by(|a, b| std::ptr::eq(*a, *b));
    if !lines.is_empty() {
        findings.add_at(
            &lines,
            "clients cannot resume TLS sessions: no tickets, and no cache of sessions".to_owned(),
            "each connection makes a full handshake, which costs several times the CPU time of a \
             resumed one and, before TLS 1.3, a round trip more",
            "ssl_session_cache shared:tls:10m;".to_owned(),
        );
    }
}
