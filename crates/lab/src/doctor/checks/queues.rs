//! The kernel's queues between a client and `accept()`, and how often clients connect anew.

use super::{ExaminedConfig, FindingList, MachineLimits, parameter};

/// The default backlog of nginx and Weir.
const BACKLOG: u64 = 511;
/// Below this number of requests per connection, new connections cost visibly.
const KEEPALIVE_REQUESTS_MIN: u64 = 100;

/// The kernel silently limits a backlog to `somaxconn`.
pub(super) fn accept_queue(
    machine: &MachineLimits,
    conf: &ExaminedConfig,
    findings: &mut FindingList<'_>,
) {
    let Some(somaxconn) = machine.somaxconn else { return };
    let servers = conf.main().servers();
    let listens = servers.iter().flat_map(|server| server.own_all("listen"));
    let tcp = listens.filter(|listen| listen.args.iter().all(|word| *word.text != *b"udp"));
    let too_long: Vec<_> = tcp.filter(|listen| backlog(listen) > somaxconn).collect();
    let Some(longest) = too_long.iter().map(|listen| backlog(listen)).max() else { return };
    findings.add_at(
        &too_long,
        format!("backlog is {longest}, but net.core.somaxconn is {somaxconn}"),
        "the kernel shortens the queue of new connections to that; when many come at once, the \
         rest are dropped and try again after a second",
        format!("sysctl -w net.core.somaxconn={}", longest.next_power_of_two()),
    );
}

fn backlog(listen: &conf::Directive) -> u64 {
    parameter(listen, "backlog").and_then(|text| text.parse().ok()).unwrap_or(BACKLOG)
}

/// Without SYN cookies, unfinished handshakes wait in a queue of limited length.
pub(super) fn syn_backlog(
    machine: &MachineLimits,
    conf: &ExaminedConfig,
    findings: &mut FindingList<'_>,
) {
    let (Some(queue), Some(false)) = (machine.syn_backlog, machine.has_syn_cookies) else { return };
    let servers = conf.main().servers();
    let listens = servers.iter().flat_map(|server| server.own_all("listen"));
    let Some(longest) = listens.map(backlog).max().filter(|longest| *longest > queue) else {
        return;
    };
    findings.add(
        format!(
            "net.ipv4.tcp_max_syn_backlog is {queue}, a backlog is {longest}, and \
             net.ipv4.tcp_syncookies is 0"
        ),
        "when handshakes under way fill that queue, further ones are dropped",
        format!("sysctl -w net.ipv4.tcp_max_syn_backlog={longest} net.ipv4.tcp_syncookies=1"),
    );
}

/// A firewall that tracks connections has a table of limited size.
pub(super) fn conntrack(
    machine: &MachineLimits,
    conf: &ExaminedConfig,
    findings: &mut FindingList<'_>,
) {
    let Some(tracked) = machine.tracked_connections else { return };
    let main = conf.main();
    let workers = match main.word("worker_processes").as_deref() {
        Some("auto") => machine.processors.unwrap_or(1),
        number => number.and_then(|number| number.parse().ok()).unwrap_or(1),
    };
    let events = conf.events();
    let setting = events.as_ref().and_then(|events| events.setting("worker_connections"));
    let connections = events.and_then(|events| events.number("worker_connections")).unwrap_or(512);
    let all = workers.saturating_mul(connections);
    if all <= tracked {
        return;
    }
    findings.add_at(
        setting.as_slice(),
        format!("{all} connections are allowed, but the firewall tracks {tracked} at most"),
        "when its table is full, packets of new connections are dropped",
        format!("sysctl -w net.netfilter.nf_conntrack_max={}", all.next_power_of_two()),
    );
}

/// A client that connects anew pays for another handshake.
pub(super) fn client_keepalive(
    _: &MachineLimits,
    conf: &ExaminedConfig,
    findings: &mut FindingList<'_>,
) {
    const WHY: &str = "each new connection costs a handshake, several times a request's CPU time, \
                       and with TLS many times that";
    let places = conf.http_places();
    let own = |name: &'static str| {
        let around = conf.main().within("http");
        let all = around.iter().chain(&places).filter_map(move |place| place.own(name));
        all.collect::<Vec<_>>()
    };
    let first = |directive: &&conf::Directive| directive.args.first().map(ToString::to_string);
    let off: Vec<_> = own("keepalive_timeout")
        .into_iter()
        .filter(|timeout| matches!(first(timeout).as_deref(), Some("0" | "0s")))
        .collect();
    if !off.is_empty() {
        let what = "keepalive_timeout is 0: connections serve a single request".to_owned();
        findings.add_at(&off, what, WHY, "keepalive_timeout 75s;".to_owned());
    }
    let few: Vec<_> = own("keepalive_requests")
        .into_iter()
        .filter(|requests| {
            let number = first(requests).and_then(|text| text.parse::<u64>().ok());
            number.is_some_and(|number| number < KEEPALIVE_REQUESTS_MIN)
        })
        .collect();
    if let Some(requests) = few.iter().filter_map(first).next() {
        let what = format!("keepalive_requests is {requests}");
        findings.add_at(&few, what, WHY, "keepalive_requests 1000;".to_owned());
    }
}
