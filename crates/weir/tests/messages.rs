//! What is said of mistakes that people make: nginx's line, the place, and what to do.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use net::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY, RSA_CERTIFICATE};
use testing::{Folder, Server, complaint};

/// What `-t` says of a configuration, with the directory's name as `DIR`.
fn said(arguments: &[&str], conf: &str) -> String {
    let folder = Folder::new();
    folder.write("nginx.conf", format!("pid nginx.pid; error_log error.log;\n{conf}"));
    let said = complaint(&folder.run(&[&["-t", "-q", "-c", "nginx.conf"], arguments].concat()));
    said.replace(&*folder.to_string_lossy(), "DIR")
}

/// The same inside a server that listens nowhere else, in line 3.
fn said_in_server(text: &str) -> String {
    said(
        &[],
        &format!("events {{}} http {{ access_log off; server {{ listen 127.0.0.1:1;\n{text}}} }}"),
    )
}

/// Lines of a server, what nginx's line says, and what follows below it.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("listen 127.0.0.1:2 defualt_server;", "invalid parameter", "\"default_server\"?"),
    ("rewrite a b lasst;", "invalid parameter \"lasst\"", "did you mean \"last\"?"),
    ("sendfile onn;", "invalid value \"onn\"", "did you mean \"on\"?"),
    ("sendfile yes;", "invalid value \"yes\"", "did you mean \"on\"?"),
    ("satisfy al;", "invalid value \"al\"", "did you mean \"all\"?"),
    ("client_max_body_size 10mb;", "directive invalid value", "did you mean \"10m\"?"),
    ("keepalive_timeout 65sec;", "directive invalid value", "did you mean \"65s\"?"),
    ("send_timeout 2min;", "directive invalid value", "did you mean \"2m\"?"),
    ("add_header X $remote_adr;", "unknown \"remote_adr\" variable", "\"$remote_addr\"?"),
    ("root /srv\nindex x;", "invalid number of arguments", "line 3 is probably missing its \";\""),
    ("return 200 “a b”;", "invalid number of arguments", "“ is not a quote"),
    ("location ~ ^/a{2}$ { }", "unknown directive \"2}$\"", "outside quotes, \"{\" starts"),
    (
        "location / { proxy_pass 127.0.0.1:3000; }",
        "invalid URL prefix",
        "did you mean \"http://127.0.0.1:3000\"?",
    ),
    ("limit_req zone=a;", "zero size shared memory zone \"a\"", "it is not declared with a size"),
    ("listen :2;", "no host in \":2\" of the \"listen\" directive", "did you mean \"2\"?"),
    (
        "add_header A max-age=1; includeSubDomains;",
        "unknown directive \"includeSubDomains\"",
        "if it belongs to \"add_header\", quote the value: it contains \";\"",
    ),
    ("if ($host = a.test { }", "invalid condition \"a.test\"", "\")\" is missing before the"),
    ("map $a $b { }", "\"map\" directive is not allowed here", "allowed in http; stream"),
    (
        "health_check;",
        "\"health_check\" directive is not allowed here",
        "\"weir reference health_check\" says where",
    ),
    (
        "location / { fastcgi_pass http://127.0.0.1:9000; }",
        "invalid host in upstream \"http://127.0.0.1:9000\"",
        "did you mean \"127.0.0.1:9000\"?",
    ),
    (
        "location / { fastcgi_pass unix/run/php.sock; }",
        "invalid host in upstream \"unix/run/php.sock\"",
        "did you mean \"unix:/run/php.sock\"?",
    ),
    (
        "} upstream u { server http://a.test:1;",
        "invalid host in upstream \"http://a.test:1\"",
        "did you mean \"a.test:1\"?",
    ),
    (
        "listen 127.0.0.1:2 default_server; } server { listen 127.0.0.1:2 default_server;",
        "a duplicate default server for 127.0.0.1:2",
        "the first one is in DIR/nginx.conf:3",
    ),
    (
        "listen 127.0.0.1:2; listen 127.0.0.1:2;",
        "a duplicate listen 127.0.0.1:2",
        "the first one is in DIR/nginx.conf:3",
    ),
    (
        "ssl_session_cache shared:SSL;",
        "invalid session cache \"shared:SSL\"",
        "a size is missing: shared:SSL:10m",
    ),
    ("ssl_ciphers ECDHE-RSA-AES256-GCM-SHA38;", "no cipher match", "-AES256-GCM-SHA384\"?"),
    ("ssl_ecdh_curve X25591;", "unknown group", "did you mean \"X25519\"?"),
    ("access_log none/a.log;", "open() \"DIR/none/a.log\" failed", "no directory \"DIR/none\""),
];

#[test]
fn a_mistake_is_reported_with_a_suggestion() {
    for (text, message, hint) in MISTAKES {
        let said = said_in_server(text);
        let (line, below) = said.split_once('\n').unwrap();
        assert!(line.starts_with("nginx: [emerg] ") && line.contains(message), "{text}: {said}");
        let place = [line, below].iter().any(|part| part.contains("DIR/nginx.conf:"));
        assert!(place && below.contains(hint) && below.contains("^"), "{text}: {said}");
    }
}

/// The same for a server with TLS whose certificate and key are in these files, in line 3.
fn said_of_tls(certificate: &str, key: &str, text: &str) -> String {
    let folder = Folder::new();
    let short = include_str!("../../net/src/tls/testdata/rsa1024_pkcs8.key");
    for (name, contents) in [
        ("a.pem", ECDSA_CERTIFICATE),
        ("a.key", ECDSA_KEY),
        ("rsa.pem", RSA_CERTIFICATE),
        ("short.key", short),
    ] {
        folder.write(name, contents);
    }
    let files = format!("ssl_certificate {certificate}; ssl_certificate_key {key};");
    let server = format!("listen 127.0.0.1:1 ssl; {files}\n{text}");
    let conf = format!("events {{}}\nhttp {{ access_log off; server {{\n{server} }} }}");
    folder.write("nginx.conf", format!("pid nginx.pid; {conf}"));
    let said = complaint(&folder.run(&["-t", "-q", "-c", "nginx.conf"]));
    said.replace(&*folder.to_string_lossy(), "DIR")
}

#[test]
fn a_mistake_with_certificates_is_reported_with_advice() {
    let exchanged = "are certificate and key exchanged?";
    let cases = [
        ("a.key", "a.pem", "", "no start line", &*format!("a.key has a private key; {exchanged}")),
        (
            "a.pem",
            "rsa.pem",
            "",
            "no start line",
            &format!("rsa.pem has a certificate; {exchanged}"),
        ),
        ("rsa.pem", "short.key", "", "RSA key of 1024 bits; at least 2048 are needed in ", ""),
        ("rsa.pem", "a.key", "", "key values mismatch", ""),
        (
            "a.pem",
            "a.key",
            "ssl_verify_client on;",
            "for ssl_verify_client in DIR/nginx.conf:4",
            "",
        ),
    ];
    for (certificate, key, text, message, hint) in cases {
        let said = said_of_tls(certificate, key, text);
        let (line, below) = said.split_once('\n').unwrap();
        assert!(line.contains(message) && below.contains(hint), "{certificate} {key}: {said}");
    }
    assert_eq!(said_of_tls("a.pem", "a.key", ""), "");
}

#[test]
fn a_mistake_in_stream_is_reported_with_a_suggestion() {
    let stream = |text: &str| said(&[], &format!("events {{}} stream {{\n{text}\n}}"));
    let cases = [
        (
            "log_format a $ssl_preread_servername;",
            "unknown \"ssl_preread_servername\" variable",
            "did you mean \"$ssl_preread_server_name\"?",
        ),
        (
            "server { listen 127.0.0.1:1; proxy_pass http://127.0.0.1:2; }",
            "invalid host in upstream \"http://127.0.0.1:2\"",
            "did you mean \"127.0.0.1:2\"?",
        ),
        (
            "server { location / { } }",
            "\"location\" directive is not allowed here",
            "it is allowed in server, location of http",
        ),
        (
            "server { listen 127.0.0.1:1 udp; listen 127.0.0.1:1 udp; return a; }",
            "a duplicate listen 127.0.0.1:1",
            "the first one is in DIR/nginx.conf:3",
        ),
    ];
    for (text, message, hint) in cases {
        let said = stream(text);
        assert!(said.contains(message) && said.contains(hint), "{text}: {said}");
        assert!(!said.contains("does not support"), "{text}: {said}");
    }
}

#[test]
fn a_conflict_about_a_zone_names_both_directives() {
    let zone = "limit_conn_zone $remote_addr zone=app:1m;\nlimit_upstream_zone app 1m;";
    let said = said(&[], &format!("events {{}} http {{\n{zone} }}"));
    let message = "the shared memory zone \"app\" is already declared for a different use in ";
    assert!(said.contains(&format!("{message}DIR/nginx.conf:4\n")), "{said}");
    assert!(said.contains("it is named by \"limit_conn_zone\" in DIR/nginx.conf:3\n"), "{said}");
}

#[test]
fn a_byte_order_mark_is_explained() {
    let said = said(&["-g", "daemon on;"], "");
    assert!(!said.contains("byte order mark"), "{said}");
    let folder = Folder::new();
    folder.write("nginx.conf", "\u{feff}events {}");
    let said = complaint(&folder.run(&["-t", "-c", "nginx.conf"]));
    assert!(
        said.contains("unknown directive \"\u{feff}events\"") && said.contains("mark"),
        "{said}"
    );
}

#[test]
fn a_conflicting_server_name_is_reported_with_its_place() {
    let both = "server_name a; } server { listen 127.0.0.1:1;\nserver_name a;";
    let expected = "nginx: [warn] conflicting server name \"a\" on 127.0.0.1:1, ignored\n      \
                    --> DIR/nginx.conf:4\n    4 | server_name a;} }\n      |             ^\n";
    assert!(said_in_server(both).starts_with(expected), "{}", said_in_server(both));
}

#[test]
fn an_upstream_that_is_not_there_is_marked_where_it_is_named() {
    let text = "location / {\n  proxy_pass http://backned;\n} } upstream backend { server a.b;";
    let said = said_in_server(text);
    let expected = "nginx: [warn] host not found in upstream \"backned\" in DIR/nginx.conf:4\n    \
                    4 |   proxy_pass http://backned;\n      |              ^^^^^^^^^^^^^^\n      \
                    did you mean upstream \"backend\"?\n";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn values_that_nginx_refuses_are_refused() {
    let cases = [
        ("events { use kqueue; }", "invalid event type \"kqueue\" in "),
        ("load_module nope.so; events {}", "dlopen() \"DIR/nope.so\" failed (DIR/nope.so: cannot "),
        ("events {} http { types_hash_max_size 0; server { listen 127.0.0.1:1; } }", "could not "),
    ];
    for (conf, message) in cases {
        let said = said(&[], conf);
        assert!(said.starts_with(&format!("nginx: [emerg] {message}")), "{conf}: {said}");
    }
    for listen in ["localhost:", "*:", "[::1]:"] {
        let expected = format!("invalid port in \"{listen}\" of the \"listen\" directive in ");
        let said = said_in_server(&format!("listen {listen};"));
        assert!(said.contains(&expected), "{listen}: {said}");
    }
}

/// Fifty sites with the same lines, and one that names a group which is not there.
fn many_sites() -> String {
    let site = |number| {
        let name = format!("server_name s{number}.test; listen 127.0.0.1:1");
        format!("server {{ {name} http2; ssl_dhparam a;\nssl_protocols TLSv1 TLSv1.1 TLSv1.2; }}\n")
    };
    let sites: String = (0..50).map(site).collect();
    let http = format!("access_log off;\n{sites} ssl_ecdh_curve X448:X25519;");
    format!("pid nginx.pid;\nevents {{}} http {{ {http} }}")
}

#[test]
fn a_warning_is_given_once_for_each_cause() {
    let folder = Folder::new();
    folder.write("nginx.conf", many_sites());
    let said = complaint(&folder.run(&["-t", "-q", "-c", "nginx.conf"]));
    let said = said.replace(&*folder.to_string_lossy(), "DIR");
    let warnings: Vec<_> = said.lines().filter(|line| line.contains("[warn]")).collect();
    let expected = [
        ("directive is deprecated", " in DIR/nginx.conf:3 (the first of 50 places)"),
        ("\"ssl_dhparam\" is ignored", " in DIR/nginx.conf:3 (the first of 50 places)"),
        ("TLSv1 and TLSv1.1 are ignored", " in DIR/nginx.conf:4 (the first of 50 places)"),
        ("the group \"X448\" is ignored", " in DIR/nginx.conf:103"),
    ];
    assert_eq!(warnings.len(), expected.len(), "{said}");
    for (message, place) in expected {
        let is_it = |line: &&&str| line.contains(message) && line.ends_with(place);
        assert_eq!(warnings.iter().filter(is_it).count(), 1, "{message}: {said}");
    }
}

#[test]
fn a_strict_test_refuses_what_is_only_a_warning() {
    let folder = Folder::new();
    let pass = "server { listen 127.0.0.1:1; location / { proxy_pass http://backnd; } }";
    folder.write(
        "nginx.conf",
        format!("pid nginx.pid; events {{}} http {{ access_log off; {pass} }}"),
    );
    let test = |option: &str| {
        let output = folder.run(&["-t", option, "-c", "nginx.conf"]);
        (output.status.code(), complaint(&output))
    };
    let (code, said) = test("--lenient");
    assert!(code == Some(0) && said.contains("test is successful"), "{said}");
    let (code, said) = test("--strict");
    assert!(said.contains("[warn] host not found in upstream \"backnd\" in "), "{said}");
    assert!(said.contains("\nnginx: 1 warning counts as an error with --strict\n"), "{said}");
    assert!(said.ends_with("nginx.conf test failed\n") && code == Some(1), "{said}");
    folder.write("nginx.conf", "pid nginx.pid; events {} http { access_log off; }");
    assert_eq!(test("--strict").0, Some(0));
    let (code, said) = {
        let output = folder.run(&["--strict", "-c", "nginx.conf"]);
        (output.status.code(), complaint(&output))
    };
    assert!(said.contains("option \"--strict\" requires -t") && code == Some(1), "{said}");
}

#[test]
fn a_command_that_lacks_its_words_fails_and_says_what_it_needs() {
    let folder = Folder::new();
    let weir = |words: &[&str]| {
        let mut weir = std::process::Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.args(words).current_dir(&folder);
        let output = testing::output(weir);
        (output.status.code(), output.stdout.len(), complaint(&output))
    };
    for (words, needs) in [
        (&["load"][..], "weir load: a URL is required\n"),
        (&["lab"], "weir: lab: a command is required\nUsage: weir lab "),
        (&["fmt"], "weir: fmt: a file is required "),
        (&["load", "--latncy"], "unknown option --latncy\n      did you mean \"--latency\"?\n"),
        (&["backend", "--lsten"], "unknown option --lsten\n      did you mean \"--listen\"?\n"),
        (&["doctor"], "unknown command \"doctor\"\n      did you mean \"weir lab doctor\"?\n"),
    ] {
        let (code, printed, said) = weir(words);
        assert!(said.contains(needs), "{words:?}: {said}");
        assert_eq!((code, printed), (Some(1), 0), "{words:?}");
    }
}

#[test]
fn sending_a_signal_prints_no_warnings() {
    let folder = Folder::new();
    folder.write("nginx.conf", many_sites());
    let said = complaint(&folder.run(&["-s", "reload", "-c", "nginx.conf"]));
    assert!(!said.contains("[warn]") && said.contains("nginx.pid\" failed (2: "), "{said}");
}

#[test]
fn a_reload_that_is_refused_says_where_in_the_log() {
    let server = Server::start("", "server { listen ADDRESS; }");
    server.configure("", "server { listen ADDRESS; add_header X $remote_adr; }");
    server.signal("HUP");
    server.await_log("unknown \"remote_adr\" variable", 1);
    server.configure("", "server { listen ADDRESS; retrun 200; }");
    server.signal("HUP");
    server.await_log("unknown directive \"retrun\"", 1);
    let conf = server.folder.read("nginx.conf");
    let line = 1 + conf.lines().position(|line| line.contains("retrun")).unwrap();
    let at = format!("{}:{line}", server.folder.join("nginx.conf").display());
    for expected in [
        format!("unknown \"remote_adr\" variable (in {at}: did you mean \"$remote_addr\"?)"),
        format!("unknown directive \"retrun\" in {at} (did you mean \"return\"?)"),
    ] {
        let log = server.log();
        let lines: Vec<_> = log.lines().filter(|line| line.contains("did you mean")).collect();
        assert_eq!(lines.len(), 2, "{log}");
        assert!(lines.iter().any(|line| line.ends_with(&expected)), "{expected}: {lines:?}");
    }
}
