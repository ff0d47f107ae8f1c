//! What is said of mistakes that people make: nginx's line, the place, and what to do.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use server::{Folder, Server, complaint};

/// What `-t` says of a configuration, with the directory's name as `DIR`.
fn said(arguments: &[&str], conf: &str) -> String {
    let folder = Folder::new();
    folder.write("nginx.conf", &format!("pid nginx.pid; error_log error.log;\n{conf}"));
    let said = complaint(&folder.run(&[&["-t", "-q", "-c", "nginx.conf"], arguments].concat()));
    said.replace(&*folder.path().to_string_lossy(), "DIR")
}

/// The same inside a server that listens nowhere else, in line 3.
fn said_in_server(text: &str) -> String {
    said(
        &[],
        &format!("events {{}} http {{ access_log off; server {{ listen 127.0.0.1:1;\n{text}}} }}"),
    )
}

#[test]
fn a_mistake_is_told_with_what_was_meant() {
    let cases = [
        ("listen 127.0.0.1:2 defualt_server;", "invalid parameter", "\"default_server\"?"),
        ("rewrite a b lasst;", "invalid parameter \"lasst\"", "did you mean \"last\"?"),
        ("sendfile onn;", "invalid value \"onn\"", "did you mean \"on\"?"),
        ("sendfile yes;", "invalid value \"yes\"", "did you mean \"on\"?"),
        ("satisfy al;", "invalid value \"al\"", "did you mean \"all\"?"),
        ("client_max_body_size 10mb;", "directive invalid value", "did you mean \"10m\"?"),
        ("keepalive_timeout 65sec;", "directive invalid value", "did you mean \"65s\"?"),
        ("send_timeout 2min;", "directive invalid value", "did you mean \"2m\"?"),
        ("add_header X $remote_adr;", "unknown \"remote_adr\" variable", "\"$remote_addr\"?"),
        (
            "root /srv\nindex x;",
            "invalid number of arguments",
            "line 3 is probably missing its \";\"",
        ),
        ("return 200 “a b”;", "invalid number of arguments", "“ is not a quote"),
        ("location ~ ^/a{2}$ { }", "unknown directive \"2}$\"", "outside quotes, \"{\" starts"),
        (
            "location / { proxy_pass 127.0.0.1:3000; }",
            "invalid URL prefix",
            "did you mean \"http://127.0.0.1:3000\"?",
        ),
        (
            "limit_req zone=a;",
            "zero size shared memory zone \"a\"",
            "it is not declared with a size",
        ),
        ("listen :2;", "no host in \":2\" of the \"listen\" directive", "did you mean \"2\"?"),
        ("access_log none/a.log;", "open() \"DIR/none/a.log\" failed", "no directory \"DIR/none\""),
    ];
    for (text, message, hint) in cases {
        let said = said_in_server(text);
        let (line, below) = said.split_once('\n').unwrap();
        assert!(line.starts_with("nginx: [emerg] ") && line.contains(message), "{text}: {said}");
        let place = [line, below].iter().any(|part| part.contains("DIR/nginx.conf:"));
        assert!(place && below.contains(hint) && below.contains("^"), "{text}: {said}");
    }
}

#[test]
fn a_file_that_no_terminal_shows_right_is_explained() {
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
fn what_has_no_place_in_nginx_has_one_here() {
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
fn what_nginx_refuses_is_refused() {
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
    folder.write("nginx.conf", &many_sites());
    let said = complaint(&folder.run(&["-t", "-q", "-c", "nginx.conf"]));
    let said = said.replace(&*folder.path().to_string_lossy(), "DIR");
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
fn who_sends_a_signal_is_not_warned() {
    let folder = Folder::new();
    folder.write("nginx.conf", &many_sites());
    let said = complaint(&folder.run(&["-s", "reload", "-c", "nginx.conf"]));
    assert!(!said.contains("[warn]") && said.contains("nginx.pid\" failed (2: "), "{said}");
}

#[test]
fn a_reload_that_is_refused_says_where_in_the_log() {
    let server = Server::start("", "server { listen ADDRESS; }");
    server.configure("", "server { listen ADDRESS; add_header X $remote_adr; }");
    server.signal("HUP");
    server.await_log("unknown \"remote_adr\" variable", 1);
    server.await_log(": did you mean \"$remote_addr\"?", 1);
    let log = server.log();
    let remark = log.lines().find(|line| line.contains("did you mean")).unwrap();
    let path = server.folder.join("nginx.conf");
    assert!(remark.contains(&format!(": in {}:", path.display())), "{remark}");
}
