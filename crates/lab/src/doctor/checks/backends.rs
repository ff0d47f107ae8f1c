//! Connections to backends: whether they are kept open, and how many can be opened.

use std::collections::BTreeSet;

use super::{ConfigScope, ExaminedConfig, FindingList, MachineLimits};

/// How long the kernel keeps a local port after a connection has ended (TIME_WAIT).
const PORT_SECONDS: u64 = 60;
/// The size of Linux' default range.
const LOCAL_PORTS_DEFAULT: u64 = 28_232;

/// A group without kept connections opens one for each request.
pub(super) fn keepalive(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    for group in conf.groups().iter().filter(|group| group.number("keepalive") == Some(0)) {
        findings.add_at(
            group.own("keepalive").as_slice(),
            format!("the upstream {} keeps no connections", group.title()),
            "each request opens a connection to the backend, which costs about twice the CPU time \
             of a request on a kept one, a local port for a minute, and a round trip",
            "keepalive 32;".to_owned(),
        );
    }
    let direct = direct_targets(conf);
    if let Some(first) = direct.first() {
        let directives: Vec<_> = direct.iter().map(|(directive, _)| *directive).collect();
        findings.add_at(
            &directives,
            format!("{} names a backend without an upstream block", first.1),
            "such a backend keeps no connections: each request opens one",
            "upstream NAME { server ADDRESS; keepalive 32; } and proxy_pass http://NAME;".into(),
        );
    }
}

/// `proxy_pass` lines with an address, or a name that is not a group's.
fn direct_targets(conf: &ExaminedConfig) -> Vec<(&conf::Directive, String)> {
    let groups: BTreeSet<String> = conf.groups().iter().map(ConfigScope::title).collect();
    let places = conf.http_places();
    let passes = places.iter().filter_map(|place| place.own("proxy_pass"));
    let target = |pass: &'_ conf::Directive| {
        let url = pass.args.first()?.to_string();
        let (_, rest) = url.split_once("://")?;
        let host = rest.split(['/', '?']).next().unwrap_or(rest).to_owned();
        (!host.contains('$') && !host.starts_with("unix:") && !groups.contains(&host))
            .then(|| format!("proxy_pass {url}"))
    };
    passes.filter_map(|pass| Some((pass, target(pass)?))).collect()
}

/// Without `fastcgi_keep_conn on`, a FastCGI server closes its connection after each request.
pub(super) fn fastcgi(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let is_local = |name: &str| name.starts_with("unix:") || name.contains('$');
    let groups = conf.groups();
    let is_tcp = |target: &str| match groups.iter().find(|group| group.title() == target) {
        Some(group) => group.own_all("server").any(|server| {
            server.args.first().is_some_and(|address| !is_local(&address.to_string()))
        }),
        None => !is_local(target),
    };
    let places = conf.http_places();
    let closing = places.iter().filter_map(|place| {
        let pass = place.own("fastcgi_pass")?;
        let is_kept = place.word("fastcgi_keep_conn").as_deref() == Some("on");
        (!is_kept && is_tcp(&pass.args.first()?.to_string())).then_some(pass)
    });
    let closing: Vec<_> = closing.collect();
    if !closing.is_empty() {
        findings.add_at(
            &closing,
            "connections to the FastCGI server are not kept".to_owned(),
            "each request opens a TCP connection, which costs CPU time, a round trip, and a local \
             port for a minute",
            "upstream NAME { server ADDRESS; keepalive 8; } with fastcgi_keep_conn on; each kept \
             connection occupies a process of php-fpm, so keep fewer than pm.max_children"
                .to_owned(),
        );
    }
}

/// A backend keeps a connection open only if the request allows it.
pub(super) fn version(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    const WHY: &str = "the backend closes the connection after each reply, so keepalive has no \
                       effect";
    let places = conf.http_places();
    let passing: Vec<_> = places.iter().filter(|place| place.own("proxy_pass").is_some()).collect();
    let old =
        passing.iter().filter(|place| place.word("proxy_http_version").as_deref() == Some("1.0"));
    let old: Vec<_> = old.filter_map(|place| place.setting("proxy_http_version")).collect();
    if !old.is_empty() {
        let what = "proxy_http_version is 1.0".to_owned();
        findings.add_at(&old, what, WHY, "proxy_http_version 1.1;".to_owned());
    }
    let closes = |field: &&conf::Directive| {
        let words: Vec<_> = field.args.iter().map(|word| word.to_string().to_lowercase()).collect();
        matches!(&words[..], [name, value] if name == "connection" && value == "close")
    };
    let fields = passing.iter().flat_map(|place| place.inherited("proxy_set_header"));
    let closing: Vec<_> = fields.filter(closes).collect();
    if !closing.is_empty() {
        let what = "requests to the backend say \"Connection: close\"".to_owned();
        findings.add_at(&closing, what, WHY, "proxy_set_header Connection \"\";".to_owned());
    }
}

/// Without buffers, a slow client keeps its backend busy.
pub(super) fn buffering(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let places = conf.http_places();
    let passing = places.iter().filter(|place| place.own("proxy_pass").is_some());
    let off = passing.filter(|place| place.word("proxy_buffering").as_deref() == Some("off"));
    let off: Vec<_> = off.filter_map(|place| place.setting("proxy_buffering")).collect();
    if !off.is_empty() {
        findings.add_at(
            &off,
            "proxy_buffering is off".to_owned(),
            "a backend and its connection are busy until the client has read the reply, however \
             slowly; only replies that are streamed need that",
            "proxy_buffering on; and off only in the locations that stream".to_owned(),
        );
    }
}

/// New connections to one address use up local ports.
pub(super) fn local_ports(
    machine: &MachineLimits,
    conf: &ExaminedConfig,
    findings: &mut FindingList<'_>,
) {
    let Some(ports) = machine.local_ports else { return };
    let is_unkept = |group: &ConfigScope<'_>| group.number("keepalive") == Some(0);
    let opens_often = conf.groups().iter().any(is_unkept) || !direct_targets(conf).is_empty();
    if ports > LOCAL_PORTS_DEFAULT || !opens_often {
        return;
    }
    findings.add(
        format!(
            "net.ipv4.ip_local_port_range has {ports} ports: {} new connections a second to one \
             backend address",
            ports / PORT_SECONDS
        ),
        "a port stays in use for a minute after its connection; without a free one, connecting \
         fails with \"Cannot assign requested address\"",
        "sysctl -w net.ipv4.ip_local_port_range='1024 65535', and keep connections".to_owned(),
    );
}
