use std::path::Path;

use conf::MemoryFiles;

use super::machine::MachineLimits;
use super::*;

/// A machine without problems.
fn good_machine() -> MachineLimits {
    MachineLimits {
        processors: Some(4),
        somaxconn: Some(4096),
        syn_backlog: Some(4096),
        has_syn_cookies: Some(true),
        local_ports: Some(64_512),
        files: Some(1_048_576),
        files_max: Some(1_048_576),
        files_of_all: Some(10_000_000),
        tracked_connections: None,
        governor: Some("performance".to_owned()),
        seconds_since_1970: Some(0),
    }
}

/// A configuration without problems.
const GOOD: &str = "worker_processes auto;
    events { worker_connections 4096; }
    http {
        access_log /var/log/access.log combined buffer=64k;
        open_file_cache max=1000;
        upstream app { server 127.0.0.1:8001; }
        server {
            listen 80;
            root /srv;
            location /api { proxy_pass http://app; }
        }
    }";

fn found(machine: &MachineLimits, text: &str) -> Vec<DoctorFinding> {
    let mut files = MemoryFiles::default().with("/nginx.conf", text);
    let configuration = ExaminedConfig::read(Path::new("/nginx.conf"), &mut files);
    find(machine, &configuration.unwrap_or_else(|error| panic!("{error}: {text}")))
}

fn checks(findings: &[DoctorFinding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.check).collect()
}

/// The findings for the good configuration with one text replaced.
fn with(from: &str, to: &str) -> Vec<DoctorFinding> {
    assert!(GOOD.contains(from), "{from}");
    found(&good_machine(), &GOOD.replace(from, to))
}

#[test]
fn a_good_machine_and_configuration_have_no_findings() {
    assert_eq!(found(&good_machine(), GOOD), []);
    assert_eq!(found(&MachineLimits::default(), GOOD), []);
}

#[test]
fn mistakes_in_configurations_are_found() {
    let http = |line: &str| format!("{line} server {{");
    for (check, from, to) in [
        ("includes", "events {", "include none.conf; events {".to_owned()),
        ("workers", "worker_processes auto;", "".to_owned()),
        ("workers", "worker_processes auto;", "worker_processes 8;".to_owned()),
        ("accept-queue", "listen 80;", "listen 80 backlog=65535;".to_owned()),
        ("backend-keepalive", "server 127.0.0.1:8001;", "server a; keepalive 0;".to_owned()),
        ("backend-keepalive", "http://app;", "http://127.0.0.1:8001/x;".to_owned()),
        ("backend-version", "server {", http("proxy_http_version 1.0;")),
        ("backend-version", "server {", http("proxy_set_header Connection Close;")),
        ("backend-buffering", "server {", http("proxy_buffering off;")),
        ("client-keepalive", "server {", http("keepalive_timeout 0;")),
        ("client-keepalive", "root /srv;", "root /srv; keepalive_requests 10;".to_owned()),
        ("access-log", " buffer=64k", String::new()),
        ("access-log", "root /srv;", "root /srv; access_log a.log;".to_owned()),
        ("error-log", "events {", "error_log e.log debug; events {".to_owned()),
        ("open-file-cache", "open_file_cache max=1000;", String::new()),
        ("open-file-cache", "listen 80;", "listen 80; open_file_cache off;".to_owned()),
        ("sendfile", "server {", http("sendfile on;")),
        ("gzip-level", "server {", http("gzip_comp_level 9;")),
        ("fastcgi-keepalive", "proxy_pass http://app;", "fastcgi_pass app;".to_owned()),
        ("fastcgi-keepalive", "proxy_pass http://app;", "fastcgi_pass 127.0.0.1:9;".to_owned()),
        ("tls-sessions", "listen 80;", "listen 443 ssl; ssl_session_tickets off;".to_owned()),
        ("descriptors", "worker_connections 4096;", "worker_connections 600000;".to_owned()),
        (
            "proxy-connect-timeout",
            "server 127.0.0.1:8001;",
            "server 127.0.0.1:8001; server 127.0.0.1:8002;".to_owned(),
        ),
        (
            "proxy-connect-timeout",
            "http {",
            "stream { proxy_timeout 1m; upstream s { server a:1; server b:1; }
                      server { listen 81; proxy_pass s; } } http {"
                .to_owned(),
        ),
        (
            "stream-timeout",
            "http {",
            "stream { server { listen 53 udp; proxy_pass 127.0.0.1:54; } } http {".to_owned(),
        ),
        ("sendfile", "root /srv;", "root /srv; sendfile on; location / { }".to_owned()),
    ] {
        assert_eq!(checks(&with(from, &to)), [check], "{to}");
    }
}

#[test]
fn configurations_without_mistakes_have_no_findings() {
    for (from, to) in [
        ("listen 80;", "listen unix:/run/a.sock; listen 81 backlog=100;"),
        (" buffer=64k", " gzip=1"),
        ("listen 80;", "sendfile on; tcp_nopush on; listen 80;"),
        ("root /srv;", "sendfile on; location /a { return 204; }"),
        ("/var/log/access.log combined buffer=64k", "off"),
        ("http://app;", "http://unix:/run/app.sock;"),
        ("http://app;", "http://$host;"),
        ("server {", "gzip_comp_level 5; keepalive_timeout 65 60; server {"),
        ("server {", "proxy_set_header Connection $connection; server {"),
        ("server {", "proxy_buffering on; server {"),
        ("listen 80;", "listen 80; location /f { root /f; proxy_buffering off; }"),
        ("worker_processes auto;", "worker_processes 4;"),
        ("proxy_pass http://app;", "fastcgi_pass unix:/run/php.sock;"),
        ("proxy_pass http://app;", "fastcgi_pass app; fastcgi_keep_conn on;"),
        ("listen 80;", "listen 443 ssl; ssl_session_tickets off; ssl_session_cache shared:a:1m;"),
        ("listen 80;", "listen 443 ssl; ssl_session_cache off;"),
        ("upstream app {", "proxy_connect_timeout 3s; upstream app { server a:1;"),
        ("http {", "stream { proxy_timeout 1m; server { listen 81; proxy_pass a:1; } } http {"),
        ("http {", "stream { server { listen 5 udp; proxy_responses 1; proxy_pass a:1; } } http {"),
        // Nothing but the application is reached.
        ("listen 80;", "open_file_cache off; location / { uwsgi_pass app; }"),
    ] {
        assert_eq!(with(from, to), [], "{to}");
    }
}

#[test]
fn certificates_that_clients_refuse_are_found() {
    let server = "listen 443 ssl; ssl_certificate /a.pem; server_name c.test;";
    let text = GOOD.replace("listen 80;", server);
    let ended = include_str!("testdata/ended.pem");
    let mut files = MemoryFiles::default().with("/a.pem", ended).with("/nginx.conf", &text);
    let configuration = ExaminedConfig::read(Path::new("/nginx.conf"), &mut files).unwrap();
    let machine = MachineLimits { seconds_since_1970: Some(2_000_000_000), ..good_machine() };
    let found = find(&machine, &configuration);
    assert_eq!(checks(&found), ["certificates", "certificates"]);
    assert!(found.iter().all(|finding| finding.places == ["/nginx.conf:8"]), "{found:?}");
    assert_eq!(find(&MachineLimits::default(), &configuration), []);
}

#[test]
fn mistakes_in_machines_are_found() {
    type Change = fn(&mut MachineLimits);
    let cases: [(&str, Change); 6] = [
        ("file-max", |machine| machine.files_of_all = Some(4 * 4096 - 1)),
        ("descriptors", |machine| machine.files = Some(1024)),
        ("accept-queue", |machine| machine.somaxconn = Some(128)),
        ("syn-backlog", |machine| {
            (machine.syn_backlog, machine.has_syn_cookies) = (Some(128), Some(false));
        }),
        ("conntrack", |machine| machine.tracked_connections = Some(1000)),
        ("governor", |machine| machine.governor = Some("powersave".to_owned())),
    ];
    for (check, change) in cases {
        let mut machine = good_machine();
        change(&mut machine);
        assert_eq!(checks(&found(&machine, GOOD)), [check]);
    }
}

#[test]
fn few_ports_matter_only_without_keepalive() {
    let machine = MachineLimits { local_ports: Some(1000), ..good_machine() };
    assert_eq!(found(&machine, GOOD), []);
    let direct = GOOD.replace("http://app;", "http://10.0.0.1;");
    assert_eq!(checks(&found(&machine, &direct)), ["backend-keepalive", "local-ports"]);
}

#[test]
fn a_finding_has_numbers_a_fix_and_a_place() {
    let machine = MachineLimits { files: Some(1024), files_max: Some(2048), ..good_machine() };
    let [finding] = &found(&machine, GOOD)[..] else { panic!("one") };
    let what = "worker_connections is 4096, but a worker may open 1024 descriptors (ulimit -n)";
    assert_eq!(finding.what, what);
    let fix = "worker_rlimit_nofile 8192; (the hard limit is 2048: raise it as well)";
    assert_eq!((finding.fix.as_str(), finding.places.join(" ")), (fix, "/nginx.conf:2".to_owned()));
}

#[test]
fn settings_are_inherited_as_in_nginx() {
    // The location's own line replaces the outer ones.
    let text =
        GOOD.replace("location /api {", "proxy_set_header Connection close; location /api {");
    assert_eq!(checks(&found(&good_machine(), &text)), ["backend-version"]);
    let own =
        text.replace("proxy_pass http://app;", "proxy_set_header A b; proxy_pass http://app;");
    assert_eq!(found(&good_machine(), &own), []);
    let nested = GOOD.replace(
        "location /api {",
        "location / { alias /x/; open_file_cache off; location /api { proxy_http_version 1.0;",
    );
    let nested = nested.replace("http://app; }", "http://app; } }");
    assert_eq!(checks(&found(&good_machine(), &nested)), ["backend-version", "open-file-cache"]);
}

#[test]
fn reports_have_the_check_the_reason_the_fix_and_the_place() {
    let mut files = MemoryFiles::default().with("/nginx.conf", "worker_processes 9;");
    let machine = good_machine();
    let path = Path::new("/nginx.conf");
    let diagnosis = examine_with(path, &mut files, &machine, false).unwrap();
    assert!(!diagnosis.is_healthy);
    assert_eq!(
        diagnosis.text,
        "workers: worker_processes is 9; 4 processors can be used\n  \
         why: workers that share a processor take turns on it, which costs context switches and \
         time\n  fix: worker_processes auto;\n  at:  /nginx.conf:1\n\n\
         /nginx.conf on 4 processors with 1048576 descriptors: 1 finding\n"
    );
    let json = examine_with(path, &mut files, &machine, true).unwrap().text;
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read[0]["check"], "workers");
    assert_eq!(read[0]["places"][0], "/nginx.conf:1");
}

#[test]
fn a_configuration_that_cannot_be_read_is_an_error() {
    let mut files = MemoryFiles::default().with("/nginx.conf", "http {");
    let machine = good_machine();
    let refused = |path: &str, files: &mut MemoryFiles| {
        examine_with(Path::new(path), files, &machine, false).err().unwrap_or_default()
    };
    assert!(refused("/nginx.conf", &mut files).contains("unexpected end of file"));
    assert!(refused("/none.conf", &mut files).contains("open() \"/none.conf\" failed"));
}

#[test]
fn arguments_are_parsed() {
    let parse = |words: &str| {
        DoctorArguments::parse(&words.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    };
    let file = DoctorArguments {
        json: true,
        file: Some("a.conf".into()),
        help: false,
        ..DoctorArguments::default()
    };
    assert_eq!(parse("-c a.conf --json"), parse("--json a.conf"));
    assert_eq!(parse("--json a.conf"), Ok(file));
    assert_eq!(parse("-c"), Err("-c requires a FILE".to_owned()));
    assert_eq!(parse("--yaml"), Err("unknown option --yaml".to_owned()));
    assert!(parse("a b").is_err());
    assert!(parse("-h").is_ok_and(|arguments| arguments.help));
}

#[test]
fn the_manual_has_every_check() {
    let manual = include_str!("../../../../docs/lab.md");
    for check in checks::CHECKS {
        assert!(manual.contains(&format!("\n| `{}` | ", check.name)), "{}", check.name);
    }
}
