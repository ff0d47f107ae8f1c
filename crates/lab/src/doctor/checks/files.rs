//! Static files and compression.

use super::{ConfigScope, ExaminedConfig, FindingList, MachineLimits};

/// Above this level, gzip takes much more time and saves few bytes.
const GZIP_LEVEL_MAX: u64 = 6;

/// Files that the configuration includes and that are not here.
pub(super) fn includes(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    for file in &conf.missing {
        findings.add(
            format!("the included file {file} does not exist"),
            "nginx does not start without it, and its settings could not be examined here",
            "--root DIR, if the configuration belongs to a container or another machine".to_owned(),
        );
    }
}

/// Without a cache of open files, each request looks the file up in the file system.
pub(super) fn cache(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let is_uncached =
        |place: &&ConfigScope<'_>| place.word("open_file_cache").is_none_or(|word| word == "off");
    let places = conf.file_places();
    let uncached = places.iter().filter(is_uncached);
    let mut files: Vec<_> = uncached
        .filter_map(|place| place.setting("alias").or_else(|| place.setting("root")))
        .collect();
    files.dedup_by(|a, b| std::ptr::eq(*a, *b));
    if !files.is_empty() {
        findings.add_at(
            &files,
            "files are served without open_file_cache".to_owned(),
            "each request makes system calls to find the file, and to open and close it",
            "open_file_cache max=10000 inactive=60s; open_file_cache_valid 30s; (a file that is \
             replaced is served as it was for up to 30 seconds)"
                .to_owned(),
        );
    }
}

/// Without `tcp_nopush`, the head and a small file are sent as two packets.
pub(super) fn sendfile(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let places = conf.file_places();
    let is_on = |place: &ConfigScope<'_>, name: &str| place.word(name).as_deref() == Some("on");
    let serves = |place: &&ConfigScope<'_>| {
        ["root", "alias"].iter().any(|name| place.setting(name).is_some())
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
