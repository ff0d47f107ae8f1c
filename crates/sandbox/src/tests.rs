use std::path::Path;

use super::*;
use crate::testing::tree;

fn places() -> SandboxPlaces<'static> {
    SandboxPlaces {
        folder: Path::new("/tmp/s"),
        prefix: None,
        default_port: 80,
        logs_by_default: true,
        keeps_ports: false,
        temporary_folders: &["proxy_temp_path"],
    }
}

/// The copy, with ports from 9001 on in the order of the addresses.
fn copy(text: &str) -> Result<Sandbox, String> {
    let tree = tree(text);
    Sandbox::new(&tree, places(), &ports(&tree)?)
}

fn ports(tree: &EditableTree) -> Result<BTreeMap<ListenAddress, SocketAddr>, String> {
    let new = (9001..).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    Ok(addresses(tree, 80)?.into_iter().zip(new).collect())
}

/// The lines of the copy, without indentation.
fn lines(text: &str) -> Vec<String> {
    let written = String::from_utf8(copy(text).unwrap().tree.write()).unwrap();
    written.lines().map(|line| line.trim().to_owned()).collect()
}

#[track_caller]
fn assert_has(text: &str, expected: &[&str]) {
    let lines = lines(text);
    for expected in expected {
        assert!(lines.iter().any(|line| line == expected), "{expected}\n{}", lines.join("\n"));
    }
}

#[test]
fn each_address_moves_once_and_keeps_its_parameters() {
    assert_has(
        "http { server { listen 80 default_server reuseport backlog=9; listen [::]:80 ipv6only=on; }
         server { listen *:80; listen 443 ssl; listen 443 quic; listen unix:/run/a.sock ssl; } }
         stream { server { listen 127.0.0.1:53 udp; } }",
        &[
            "listen 127.0.0.1:9001 default_server reuseport backlog=9;",
            "listen 127.0.0.1:9002;",
            "listen 127.0.0.1:9001;",
            "listen 127.0.0.1:9003 ssl;",
            "listen 127.0.0.1:9004 quic;",
            "listen unix:/tmp/s/4.sock ssl;",
            "listen 127.0.0.1:9005 udp;",
        ],
    );
}

#[test]
fn a_server_without_listen_gets_a_line() {
    let text = "http { server { location / { return 200; } } server { listen 8080; } }";
    assert_has(text, &["listen 127.0.0.1:9001;", "listen 127.0.0.1:9002;"]);
    assert_eq!(
        copy(text).unwrap().target("http://localhost/").unwrap().url,
        "http://127.0.0.1:9001/"
    );
}

#[test]
fn each_port_of_a_range_gets_a_line() {
    assert_has(
        "http { server { listen 8000-8001 ssl; listen 80; } }
         stream { server { listen [::1]:53-54 udp ipv6only=on; } }",
        &[
            "listen 127.0.0.1:9001 ssl;",
            "listen 127.0.0.1:9002 ssl;",
            "listen 127.0.0.1:9003;",
            "listen 127.0.0.1:9004 udp;",
            "listen 127.0.0.1:9005 udp;",
        ],
    );
}

#[test]
fn new_addresses_may_be_of_any_kind() {
    let tree = tree("http { server { listen [::]:80 ipv6only=on; } }");
    let ports = addresses(&tree, 80).unwrap().into_iter().map(|from| (from, "[::1]:81".parse()));
    let ports = ports.map(|(from, to)| (from, to.unwrap())).collect();
    let copy = Sandbox::new(&tree, places(), &ports).unwrap();
    assert!(String::from_utf8_lossy(&copy.tree.write()).contains("listen [::1]:81;"));
    assert_eq!(copy.moved[0].to, "[::1]:81");
}

/// Except for addresses to which the copy itself connects: `proxy_redirect` finds them by the new
/// port.
#[test]
fn addresses_keep_the_port_that_clients_know() {
    let tree = tree(
        "http { server { listen 80; listen unix:/a; location / { proxy_pass http://127.0.0.1:81; } }
         server { listen 81; } } stream { server { listen 53 udp; } }",
    );
    let places = SandboxPlaces { keeps_ports: true, ..places() };
    let copy = Sandbox::new(&tree, places, &ports(&tree).unwrap()).unwrap();
    let written = String::from_utf8(copy.tree.write()).unwrap();
    let listens: Vec<_> = written.lines().map(str::trim).filter(|l| l.contains("listen")).collect();
    assert_eq!(
        listens,
        [
            "listen 127.0.0.1:9001 server_port=80;",
            "listen unix:/tmp/s/1.sock;",
            "listen 127.0.0.1:9002;",
            "listen 127.0.0.1:9003 udp server_port=53;",
        ]
    );
}

#[test]
fn files_to_be_read_are_listed_with_their_lines() {
    let tree = tree(
        "http {\nssl_certificate a.crt; ssl_certificate_key $name.key;\nserver {\n
         auth_basic_user_file /etc/users; ssl_password_file off; ssl_certificate data:$x;
         ssl_trusted_certificate tls/$name.crt; root files; } }",
    );
    let shown: Vec<_> = named_files(&tree)
        .iter()
        .map(|file| format!("{} {} {}", file.place, file.directive, file.path.display()))
        .collect();
    assert_eq!(
        shown,
        [
            "/etc/nginx/nginx.conf:2 ssl_certificate /etc/nginx/a.crt",
            "/etc/nginx/nginx.conf:5 auth_basic_user_file /etc/users",
        ]
    );
}

#[test]
fn addresses_that_cannot_be_moved_are_refused() {
    let error = copy("http {\nserver {\nlisten 1-65535;\n}\n}").unwrap_err();
    assert_eq!(
        error,
        "/etc/nginx/nginx.conf:3: \"listen 1-65535;\": a copy can have ranges of at most 1000 ports"
    );
    let tree = tree("http { server { listen 80; } }");
    let error = Sandbox::new(&tree, places(), &BTreeMap::new()).unwrap_err();
    assert_eq!(error, "there is no port for *:80");
}

#[test]
fn process_settings_are_the_sandboxes_own() {
    let text = "user www-data; pid /run/nginx.pid; daemon on; error_log /var/log/error.log warn;
        working_directory /var/cores; worker_processes 4; http { server { listen 80; } }";
    assert_has(
        text,
        &[
            "daemon off;",
            "pid /tmp/s/pid;",
            "error_log /tmp/s/0--var-log-error.log warn;",
            "worker_processes 4;",
            "access_log /tmp/s/access.log;",
            "proxy_temp_path /tmp/s/proxy_temp_path;",
        ],
    );
    let lines = lines(text);
    let gone = ["working_directory", "pid /run", "daemon on", "fastcgi_temp_path"];
    let is_gone = |line: &&String| gone.iter().any(|gone| line.starts_with(gone));
    assert_eq!(lines.iter().find(is_gone), None);
    assert_has("events {}", &["error_log /tmp/s/error.log;"]);
    let places = SandboxPlaces { logs_by_default: false, ..places() };
    let copy = Sandbox::new(&tree("http {}"), places, &BTreeMap::new()).unwrap();
    assert!(copy.tree.block(&["http"]).unwrap().own("access_log").is_none());
}

#[test]
fn directives_that_write_elsewhere_are_refused() {
    for (text, told) in [
        (
            "rtmp { server { listen 1935; } }",
            "/etc/nginx/nginx.conf:1: a copy of the server cannot have rtmp",
        ),
        (
            "http {\n upstream a { zone a 1m; state /var/a; } }",
            "/etc/nginx/nginx.conf:2: a copy of the server cannot have state",
        ),
        (
            "http { keyval_zone zone=a:1m state=/var/a; }",
            "/etc/nginx/nginx.conf:1: a copy of the server cannot have keyval_zone",
        ),
    ] {
        assert_eq!(refuse_unknown(&tree(text)).err().as_deref(), Some(told));
    }
}

#[test]
fn only_known_directives_that_write_elsewhere_matter_where_others_are_ignored() {
    let tree = tree("http { upstream a { state /var/a; } pagespeed on; }");
    assert!(refuse_writers(&tree, |name| name == "state").unwrap_err().ends_with("state"));
    assert_eq!(refuse_writers(&tree, |name| name == "upstream"), Ok(()));
}

#[test]
fn logs_move_into_the_folder() {
    assert_has(
        "http { access_log /var/log/a.log main buffer=4k if=$x;
         server { listen 80; access_log off; error_log syslog:server=unix:/dev/log warn;
           location /a { access_log /var/log/a.log main; access_log logs/$host/b.log; }
           location /b { error_log /dev/null; access_log /dev/stdout; error_log memory:1m debug; }
           if ($x) { access_log syslog:server=127.0.0.1; } } }
         error_log off;",
        &[
            "access_log /tmp/s/0--var-log-a.log main buffer=4k if=$x;",
            "access_log off;",
            "error_log /tmp/s/1-syslog-server-unix--dev-log warn;",
            "access_log /tmp/s/0--var-log-a.log main;",
            "access_log /tmp/s/2-logs-$host-b.log;",
            "error_log /dev/null;",
            "access_log /tmp/s/3--dev-stdout;",
            "error_log memory:1m debug;",
            "access_log /tmp/s/4-syslog-server-127.0.0.1;",
            "error_log /tmp/s/5-off;",
        ],
    );
}

#[test]
fn written_files_move_and_read_files_stay() {
    assert_has(
        "load_module modules/x.so;
         http { proxy_cache_path /var/cache/a levels=1:2 keys_zone=a:1m; proxy_temp_path tmp 1 2;
         ssl_certificate tls/a.crt; ssl_certificate_key data:$key; proxy_ssl_certificate b.crt;
         server { listen 80; root www; auth_basic_user_file users; ssl_dhparam /etc/dh.pem;
           ssl_certificate $ssl_server_name.crt; ssl_trusted_certificate a/$name.crt;
           location / { alias files/; proxy_store on; } } }",
        &[
            "proxy_cache_path /tmp/s/0--var-cache-a levels=1:2 keys_zone=a:1m;",
            "proxy_temp_path /tmp/s/1-tmp 1 2;",
            "ssl_certificate /etc/nginx/tls/a.crt;",
            "ssl_certificate_key data:$key;",
            "proxy_ssl_certificate /etc/nginx/b.crt;",
            "root www;",
            "auth_basic_user_file /etc/nginx/users;",
            "ssl_dhparam /etc/dh.pem;",
            "ssl_certificate $ssl_server_name.crt;",
            "ssl_trusted_certificate /etc/nginx/a/$name.crt;",
            "alias files/;",
            "proxy_store off;",
            "load_module modules/x.so;",
        ],
    );
    let tree = tree("load_module modules/x.so;");
    let places = SandboxPlaces { prefix: Some(Path::new("/usr/share/nginx")), ..places() };
    let copy = Sandbox::new(&tree, places, &BTreeMap::new()).unwrap();
    assert!(copy.tree.root.iter().any(|l| l.argument() == "/usr/share/nginx/modules/x.so"));
}

#[test]
fn notes_describe_the_differences() {
    let copy = copy(
        "http {\naccess_log syslog:server=127.0.0.1;\nserver {\nlisten 80;\ndav_methods PUT;\n}\n}",
    );
    assert_eq!(
        copy.unwrap().notes,
        [
            "/etc/nginx/nginx.conf:2: access_log writes to a file in the copy, not to syslog",
            "/etc/nginx/nginx.conf:5: dav_methods is off in the copy",
        ]
    );
}

/// Otherwise the real server would get the load.
#[test]
fn backends_within_the_configuration_follow() {
    assert_has(
        "http { upstream a { server 127.0.0.1:8081 weight=2; server 10.0.0.1:8081; }
         upstream localhost:8082 { server unix:/run/b.sock; }
         server { listen 80; location /a { proxy_pass http://a; }
           location /b { proxy_pass http://localhost:8081/x/; }
           location /c { proxy_pass http://unix:/run/b.sock:/y; }
           location /d { proxy_pass http://localhost:8082; }
           location /e { proxy_pass http://127.0.0.1:$port; }
           location /f { proxy_pass http://127.0.0.1; }
           location /g { fastcgi_pass 127.0.0.1:9000; } }
         server { listen 8081; } server { listen unix:/run/b.sock; } }
         stream { server { listen 443; proxy_pass 127.0.0.1:8081; } }",
        &[
            "server 127.0.0.1:9002 weight=2;",
            "server 10.0.0.1:8081;",
            "server unix:/tmp/s/2.sock;",
            "proxy_pass http://a;",
            "proxy_pass http://127.0.0.1:9002/x/;",
            "proxy_pass http://unix:/tmp/s/2.sock:/y;",
            "proxy_pass http://localhost:8082;",
            "proxy_pass http://127.0.0.1:$port;",
            "proxy_pass http://127.0.0.1:9001;",
            "fastcgi_pass 127.0.0.1:9000;",
            "proxy_pass 127.0.0.1:9002;",
        ],
    );
}

const SITES: &str = "http {
    server { listen 80; listen 443 ssl; server_name www.example.org; }
    server { listen 10.0.0.1:80; }
    server { listen [::]:8080; server_name six; }
    server { listen 10.0.0.2:81; server_name two; }
    server { listen 10.0.0.3:81; server_name three; }
    server { listen 82 proxy_protocol; }
}
stream { server { listen 9000; } }";

#[test]
fn a_url_is_mapped_to_the_address_a_client_would_reach() {
    let copy = copy(SITES).unwrap();
    for (url, expected) in [
        ("http://www.example.org/a?b", "http://127.0.0.1:9001/a?b"),
        ("https://www.example.org?b", "https://127.0.0.1:9002/?b"),
        ("http://localhost", "http://127.0.0.1:9001/"),
        ("http://10.0.0.1:80/", "http://127.0.0.1:9003/"),
        ("http://192.168.0.1/", "http://127.0.0.1:9001/"),
        ("http://[::1]:8080/", "http://127.0.0.1:9004/"),
        ("http://any.example:8080/", "http://127.0.0.1:9004/"),
        ("http://two:81/", "http://127.0.0.1:9005/"),
        ("http://THREE:81/", "http://127.0.0.1:9006/"),
    ] {
        assert_eq!(copy.target(url).map(|target| target.url).as_deref(), Ok(expected), "{url}");
    }
    let target = copy.target("https://www.example.org:443/").unwrap();
    assert_eq!(
        (target.host.as_str(), target.name.as_str()),
        ("www.example.org:443", "www.example.org")
    );
    assert_eq!(target.from.to_string(), "*:443");
}

#[test]
fn a_url_without_a_server_is_refused() {
    let copy = copy(SITES).unwrap();
    for (url, expected) in [
        ("ftp://a/", "does not begin with"),
        ("http:///", "names no host"),
        ("http://localhost:9000/", "no server listens on 127.0.0.1:9000; there is *:80, *:443"),
        ("http://four:81/", "no server listens on four:81"),
        ("http://127.0.0.1:8080/", "no server listens on 127.0.0.1:8080"),
        ("http://localhost:443/", "*:443 expects TLS"),
        ("https://localhost:80/", "*:80 expects no TLS"),
        ("http://localhost:82/", "PROXY protocol"),
    ] {
        let error = copy.target(url).unwrap_err();
        assert!(error.contains(expected), "{url}: {error}");
    }
}
