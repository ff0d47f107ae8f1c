//! Static files and compression.

use super::{ConfigScope, ExaminedConfig, FindingList, MachineLimits};

/// Above this level, gzip takes much more time and saves few bytes.
const GZIP_LEVEL_MAX: u64 = 6;

/// Without a cache of open files, each request looks the file up in the file system.
pub(super) fn cache(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let places = conf.http_places();
    let serves_files = |name: &'static str| {
        let own = places.iter().filter(move |place| {
            let is_cached = place.word("open_file_cache").is_some_and(|word| word != "off");
            !is_cached && place.own("proxy_pass").is_none() && place.own("return").is_none()
        });
        own.filter_map(move |place| place.own(name)).collect::<Vec<_>>()
    };
    let files: Vec<_> = ["root", "alias"].into_iter().flat_map(serves_files).collect();
    if !files.is_empty() {
        findings.add_at(
            &files,
            "files are served without open_file_cache".to_owned(),
            "each request makes system calls to find the file, and to open and close it",
            "open_file_cache max=10000 inactive=60s; open_file_cache_valid 30s;".to_owned(),
        );
    }
}

/// Without `tcp_nopush`, the head and a small file are sent as two packets.
pub(super) fn sendfile(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let places = conf.http_places();
    let is_on = |place: &ConfigScope<'_>, name: &str| place.word(name).as_deref() == Some("on");
    let serves = |place: &&ConfigScope<'_>| {
        ["root", "alias"].iter().any(|name| place.own(name).is_some())
            && is_on(place, "sendfile")
            && !is_on(place, "tcp_nopush")
    };
    let split: Vec<_> =
        places.iter().filter(serves).filter_map(|place| place.setting("sendfile")).collect();
    if !split.is_empty() {
        findings.add_at(
            &split,
            "sendfile is on without tcp_nopush".to_owned(),
            "nginx sends a small file as two packets, its head and its content, and the client \
             receives twice; weir does so only with files above 48 KB",
            "tcp_nopush on;".to_owned(),
        );
    }
}

/// The highest levels of gzip cost more than they save.
pub(super) fn gzip_level(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let mut scopes = conf.main().within("http");
    scopes.extend(conf.http_places());
    let levels = scopes.iter().filter_map(|scope| scope.own("gzip_comp_level"));
    let level = |directive: &&conf::Directive| {
        directive.args.first().and_then(|word| word.to_string().parse::<u64>().ok())
    };
    let high: Vec<_> = levels.filter(|line| level(line) > Some(GZIP_LEVEL_MAX)).collect();
    if let Some(highest) = high.iter().filter_map(level).max() {
        findings.add_at(
            &high,
            format!("gzip_comp_level is {highest}"),
            "levels above 6 take up to several times the CPU time, for a few per cent fewer bytes",
            "gzip_comp_level 5;".to_owned(),
        );
    }
}
