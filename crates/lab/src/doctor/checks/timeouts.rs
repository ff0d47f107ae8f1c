//! Timeouts of proxies whose defaults are too long under load.

use super::{ConfigScope, ExaminedConfig, FindingList, MachineLimits};

/// A server that does not even refuse connections is given up after a minute by default.
pub(super) fn connect(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let (http, stream) = (conf.groups(), conf.stream_groups());
    let in_http = conf.http_places().into_iter().map(|place| (place, &http));
    let in_stream = conf.stream_servers().into_iter().map(|place| (place, &stream));
    let waiting = in_http.chain(in_stream).filter_map(|(place, groups)| {
        let pass = place.own("proxy_pass")?;
        let target = pass.args.first()?.to_string();
        let name = target.split_once("://").map_or(&*target, |(_, rest)| rest);
        let name = name.split('/').next().unwrap_or(name);
        let group = groups.iter().find(|group| group.title() == name)?;
        let has_others = group.own_all("server").count() > 1;
        (has_others && place.setting("proxy_connect_timeout").is_none()).then_some(pass)
    });
    let waiting: Vec<_> = waiting.collect();
    if !waiting.is_empty() {
        findings.add_at(
            &waiting,
            "proxy_connect_timeout is 60s, its default, before a group of several servers"
                .to_owned(),
            "while one of them is unreachable, each request that is sent there waits a minute \
             before another server is tried, and holds its connection",
            "proxy_connect_timeout 3s;".to_owned(),
        );
    }
}

/// A proxy for TCP or UDP keeps silent connections for ten minutes by default.
pub(super) fn stream(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let servers = conf.stream_servers();
    let endless = |server: &&ConfigScope<'_>| {
        let is_answered = server.setting("proxy_responses").is_some();
        server.own("proxy_pass").is_some()
            && server.setting("proxy_timeout").is_none()
            && !is_answered
    };
    let passes: Vec<_> =
        servers.iter().filter(endless).filter_map(|server| server.own("proxy_pass")).collect();
    if !passes.is_empty() {
        findings.add_at(
            &passes,
            "proxy_timeout is 10m, its default".to_owned(),
            "a client that has vanished without a word occupies two connections for ten minutes, \
             and so does each sender of UDP datagrams",
            "proxy_timeout 1m; or as long as healthy connections are silent".to_owned(),
        );
    }
}
