//! Logs: each line is one write unless lines are buffered.

use super::{ConfigScope, ExaminedConfig, FindingList, MachineLimits, parameter};

/// An access log without a buffer is written once per request.
pub(super) fn unbuffered(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let mut scopes: Vec<ConfigScope<'_>> = conf.main().within("http");
    scopes.extend(conf.main().within("stream"));
    scopes.extend(conf.main().servers());
    scopes.extend(conf.http_places().into_iter().filter(|place| place.title() != ""));
    let logs = scopes.iter().flat_map(|scope| scope.own_all("access_log"));
    let is_direct = |log: &&conf::Directive| {
        let Some(target) = log.args.first().map(ToString::to_string) else { return false };
        target != "off"
            && !target.starts_with("syslog:")
            && !target.starts_with("/dev/")
            && parameter(log, "buffer").is_none()
            && !log.args.iter().any(|word| word.text.starts_with(b"gzip"))
    };
    let direct: Vec<_> = logs.filter(is_direct).collect();
    if direct.is_empty() {
        return;
    }
    findings.add_at(
        &direct,
        "the access log is written without a buffer".to_owned(),
        "each request makes a system call for its line, and workers wait for each other in the \
         file system",
        "access_log PATH FORMAT buffer=64k flush=1s;".to_owned(),
    );
}

/// Error logs at a `debug` level, which log every request.
pub(super) fn verbose(_: &MachineLimits, conf: &ExaminedConfig, findings: &mut FindingList<'_>) {
    let mut scopes = vec![conf.main()];
    scopes.extend(conf.main().within("http"));
    scopes.extend(conf.main().servers());
    let logs = scopes.iter().flat_map(|scope| scope.own_all("error_log"));
    let is_verbose = |log: &&conf::Directive| {
        log.args.iter().skip(1).any(|word| word.text.starts_with(b"debug"))
    };
    let verbose: Vec<_> = logs.filter(is_verbose).collect();
    if !verbose.is_empty() {
        findings.add_at(
            &verbose,
            "the error log is at the level debug".to_owned(),
            "dozens of lines are written for each request",
            "error_log PATH warn;".to_owned(),
        );
    }
}
