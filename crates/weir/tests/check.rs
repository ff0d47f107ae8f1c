//! `weir check`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Output};

use testing::{Folder, complaint, output};

fn check(folder: &Folder, words: &[&str]) -> Output {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.arg("check").args(words).current_dir(folder);
    output(weir)
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The code and the text for a configuration whose `http {}` holds this.
fn of(http: &str) -> (i32, String) {
    let folder = Folder::new();
    folder.write("a.conf", format!("events {{}}\nhttp {{\n{http}\n}}\n"));
    let before = std::fs::read_dir(&folder).unwrap().count();
    let output = check(&folder, &["a.conf"]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), before, "nothing is made");
    assert!(complaint(&output).is_empty(), "{}", complaint(&output));
    let dir = folder.to_string_lossy().into_owned();
    (output.status.code().unwrap(), said(&output).replace(&dir, "DIR"))
}

#[test]
fn a_configuration_that_is_supported_is_worth_one_line() {
    let (code, text) = of("server { listen 127.0.0.1:1; root /srv; }");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text, format!("DIR/a.conf: weir {version} supports everything in it\n"));
    assert_eq!(code, 0);
}

/// It panicked when it looked for the certificates of a server that the error had left out.
#[test]
fn a_server_with_a_broken_certificate_is_an_error() {
    for servers in [
        "server { listen 1 ssl; ssl_certificate a.conf; ssl_certificate_key a.conf; }",
        "server { listen 1 ssl; ssl_certificate a.conf; ssl_certificate_key a.conf; }
         server { listen 2 ssl; ssl_reject_handshake on; }",
    ] {
        let (code, text) = of(servers);
        assert!(text.contains("cannot load certificate \"DIR/a.conf\""), "{text}");
        assert_eq!(code, 1);
    }
}

#[test]
fn findings_are_grouped_by_what_follows_from_them() {
    let (code, text) = of("brotli on;
        sub_filter a b;
        server {
            listen 127.0.0.1:1 quic;
            location / { tunnel_pass a; xslt_param A b; xslt_param B c; }
            location /j { auth_jwt on; }
        }");
    let expected = [
        "Security:\n  DIR/a.conf:8: auth_jwt, of ngx_http_auth_jwt_module (NGINX Plus)\n      \
         requests it would protect are answered with 403\n",
        "Content:\n  DIR/a.conf:6: listen\n      Weir refuses to start, even with --lenient",
        "  DIR/a.conf:7: tunnel_pass, of ngx_http_tunnel_module\n      \
         requests to its location are answered with 503\n",
        "Behavior:\n  DIR/a.conf:4: sub_filter, of ngx_http_sub_filter_module\n      ignored\n",
        "Performance:\n  DIR/a.conf:3: brotli, of ngx_brotli\n      ignored\n",
        "Settings of unsupported or unused directives: xslt_param (2 lines)\n",
    ];
    let mut rest = &text[..];
    for part in expected {
        let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{part}\nnot in\n{rest}"));
        rest = after;
    }
    assert_eq!(code, 2);
}

#[test]
fn warnings_are_shown_once_for_each_cause() {
    let (code, text) = of("server { ssl_dhparam a; }\nserver { ssl_dhparam a; }");
    assert_eq!(text.matches("\"ssl_dhparam\" is ignored").count(), 1, "{text}");
    assert!(text.contains("in DIR/a.conf:3 (the first of 2 places)\n"), "{text}");
    assert_eq!(code, 0);
}

#[test]
fn the_exit_code_is_that_of_the_worst_finding() {
    let cases = [
        ("", 0),
        ("ssl_protocols TLSv1.3; ssi off;", 0),
        ("server { location / { proxy_pass https://127.0.0.1; } }", 0),
        ("server { location / { tunnel_pass 127.0.0.1; } }", 2),
        ("modsecurity on;", 2),
        ("js_set $a f; add_header X $a;", 2),
        ("log_format f $ssl_client_verify;", 0),
        ("sub_filter a b;", 3),
        ("zstd on;", 3),
        ("zstd on; lisen 80;", 1),
        ("server { root a b; } server { listen 80 81; ", 1),
    ];
    for (http, code) in cases {
        assert_eq!(of(http).0, code, "{http}");
    }
}

/// A configuration for another machine, and the remarks that it causes here.
const ELSEWHERE: [(&str, &str); 9] = [
    ("server { listen 1 ssl; ssl_certificate a.pem; ssl_certificate_key b.pem; }", "\"DIR/a.pem\""),
    ("server { listen 1 ssl; ssl_certificate a.pem; ssl_certificate_key b.pem; }", "\"DIR/b.pem\""),
    (
        "server { listen 1 ssl; ssl_certificate a.pem; ssl_certificate_key b.pem;
         ssl_verify_client on; ssl_client_certificate ca.pem; ssl_crl crl.pem;
         ssl_password_file pass; ssl_session_ticket_key ticket; }",
        "\"DIR/ca.pem\"",
    ),
    (
        "server { location / { proxy_pass https://127.0.0.1; proxy_ssl_verify on;
         proxy_ssl_certificate a.pem; proxy_ssl_certificate_key b.pem;
         proxy_ssl_trusted_certificate ca.pem; } }",
        "\"DIR/ca.pem\"",
    ),
    ("upstream u { server nowhere.invalid; }", "host not found in upstream \"nowhere.invalid\""),
    (
        "upstream_host_not_found refuse; upstream u { server nowhere.invalid; }",
        "host not found in upstream \"nowhere.invalid\"",
    ),
    (
        "server { location / { proxy_pass http://nowhere.invalid; } }",
        "host not found in upstream \"nowhere.invalid\"",
    ),
    ("resolver nowhere.invalid valid=1m;", "host not found in resolver \"nowhere.invalid\""),
    ("set_real_ip_from nowhere.invalid;", "host not found in set_real_ip_from"),
];

#[test]
fn files_and_names_missing_on_this_machine_are_remarks() {
    for (http, remark) in ELSEWHERE {
        let (code, text) = of(http);
        assert!(text.starts_with("Remarks:\n  ") && text.contains(remark), "{http}: {text}");
        assert!(text.ends_with("supports everything in it\n"), "{text}");
        assert_eq!(code, 0, "{http}");
    }
    let tls = "ssl_certificate a.pem; ssl_certificate_key b.pem;";
    let (_, text) = of(&format!("server {{ listen 1 ssl; {tls} }}\nserver {{ {tls} }}"));
    assert!(text.contains("\"DIR/b.pem\" failed (2: No such file or directory) in "), "{text}");
    assert_eq!(text.matches("DIR/a.conf:3 (the first of 2 places)\n").count(), 2, "{text}");
    let (code, text) = of("server { location / { proxy_pass http://nowhere.invalid; lisen 80; } }");
    assert!(text.starts_with("Not valid:\n") && code == 1, "{text}");
}

#[test]
fn a_user_of_another_machine_is_a_remark() {
    let folder = Folder::new();
    for line in ["user nobody-here;", "user root nogroup-here;"] {
        folder.write("a.conf", format!("{line} events {{}}\n"));
        let output = check(&folder, &["a.conf"]);
        let text = said(&output);
        assert!(
            text.starts_with("Remarks:\n  get") && text.contains("-here\") failed in "),
            "{text}"
        );
        assert_eq!(output.status.code(), Some(0));
        let json = said(&check(&folder, &["a.conf", "--json"]));
        assert!(json.contains("\"errors\":[],") && json.contains("\"warnings\":[],"), "{json}");
        assert!(json.contains("\"remarks\":[{\"message\":\"get"), "{json}");
        assert!(json.contains("\"exit_code\":0"), "{json}");
    }
    // A start needs the user; only root can change to another.
    if testing::is_root() {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.args(["-t", "-c", "a.conf"]).current_dir(&folder);
        let output = output(weir);
        assert!(complaint(&output).contains("[emerg] getgrnam("), "{}", complaint(&output));
    }
}

#[test]
fn certificates_that_clients_refuse_are_warned_of() {
    let folder = Folder::new();
    folder.write("a.pem", include_str!("../../lab/src/doctor/testdata/ended.pem"));
    let certificate = "ssl_certificate a.pem; ssl_certificate_key none.key;";
    let server = format!("server {{ listen 1 ssl; server_name c.test;\n{certificate} }}");
    folder.write("a.conf", format!("events {{}} http {{\n{server} }}"));
    let output = check(&folder, &["a.conf"]);
    let (text, dir) = (said(&output), folder.display().to_string());
    assert!(text.starts_with("Warnings:\n"), "{text}");
    for warning in [
        &format!("  certificate \"{dir}/a.pem\" expired "),
        &format!(" days ago, on Jan  1 00:00:00 2021 GMT in {dir}/a.conf:3\n    3 | ssl_cert"),
        &format!(
            "  certificate \"{dir}/a.pem\", of a.test, *.b.test, has no name of its server: c."
        ),
    ] {
        assert!(text.contains(warning), "{warning}\nnot in\n{text}");
    }
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_others_can_read_of_a_store_is_warned_of() {
    let of_store =
        |store: &str| of(&format!("limit_req_zone $uri zone=a:1m rate=1r/s sync={store};"));
    let (code, text) = of_store("redis://:geheim@203.0.113.5");
    for warning in [
        "the store's password is in the configuration",
        "connections to the store 203.0.113.5:6379 are not encrypted",
    ] {
        assert!(text.starts_with("Warnings:\n") && text.contains(warning), "{text}");
    }
    assert_eq!(code, 0);
    for store in ["rediss://203.0.113.5?verify=off", "redis://10.0.0.9", "redis://a.test"] {
        let (_, text) = of_store(store);
        assert!(!text.contains("Warnings:"), "{store}: {text}");
    }
}

#[test]
fn all_errors_are_reported() {
    let (code, text) = of("lisen 80;
        server { root; location / { tunnel_pass a; proxy_pass ftp://a; } }
        upstream u { sever a; }
        server { location ( { } } zstd on");
    for part in [
        "unknown directive \"lisen\" in DIR/a.conf:3\n",
        "invalid number of arguments in \"root\" directive in DIR/a.conf:4\n",
        "invalid URL prefix in DIR/a.conf:4\n",
        "unknown directive \"sever\" in DIR/a.conf:5\n",
        "did you mean \"server\"?",
        "unexpected \"}\" in DIR/a.conf:7\n",
        "  DIR/a.conf:4: tunnel_pass",
        "\nDIR/a.conf: not valid\n",
    ] {
        assert!(text.contains(part), "{part}\nnot in\n{text}");
    }
    assert_eq!(code, 1);
}

#[test]
fn includes_are_followed_and_lua_is_passed_over() {
    let folder = Folder::new();
    let text = "events {} http { include site.conf; } stream { geoip_country a.dat; }";
    folder.write("a.conf", text);
    folder.write("site.conf", "\nserver { location / { content_by_lua_block { say('}') } } }");
    let output = check(&folder, &["./a.conf", "--json"]);
    let json = said(&output);
    let site = folder.join("site.conf");
    let place = format!("\"file\":\"{}\",\"line\":2}}", site.display());
    assert!(
        json.contains(&format!(
            "{{\"consequence\":\"content\",\"directive\":\"content_by_lua_block\",\
         \"module\":\"lua-nginx-module\",\
         \"instead\":\"requests to its location are answered with 503\",\"starts\":true,{place}"
        )),
        "{json}"
    );
    assert!(json.contains("\"directive\":\"geoip_country\""), "{json}");
    assert!(json.contains("\"exit_code\":2,\"errors\":[],"), "{json}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_missing_file_is_reported() {
    let folder = Folder::new();
    let output = check(&folder, &["none.conf"]);
    assert_eq!(output.status.code(), Some(1));
    let file = folder.join("none.conf");
    let missing = format!("open() \"{}\" failed (2: No such file or directory)", file.display());
    assert!(said(&output).contains(&missing), "{}", said(&output));
    assert_eq!(check(&folder, &["--yaml"]).status.code(), Some(1));
    let help = check(&folder, &["--help"]);
    assert!(said(&help).starts_with("Usage: weir check "));
    assert_eq!(help.status.code(), Some(0));
}

#[test]
fn an_api_that_writes_needs_access_rules_unless_it_is_on_a_unix_socket() {
    let says = |listen: &str, lines: &str| {
        let server = format!("server {{ listen {listen}; location /api {{ api {lines} }} }}");
        of(&server).1.contains("\"api write=on\" without access rules: whoever reaches this server")
    };
    assert!(says("127.0.0.1:1", "write=on;"));
    for (listen, lines) in [
        ("127.0.0.1:1", "write=off;"),
        ("127.0.0.1:1", "write=on; allow 127.0.0.1; deny all;"),
        ("127.0.0.1:1", "write=on; auth_basic api; auth_basic_user_file users;"),
        ("127.0.0.1:1", "write=on; limit_except GET { deny all; }"),
        ("unix:api.sock", "write=on;"),
    ] {
        assert!(!says(listen, lines), "{listen} {lines}");
    }
}

#[test]
fn a_location_that_purges_needs_access_rules() {
    let says = |cache: &str, lines: &str| {
        let text = format!(
            "proxy_cache_path cache keys_zone=one:1m tags=Surrogate-Key;
             server {{ listen 127.0.0.1:1;
                 location / {{ proxy_pass http://127.0.0.1:2; proxy_cache one; {cache} }}
                 location /purge {{ {lines} }} }}"
        );
        of(&text).1.contains("without access rules: whoever reaches this server over TCP")
    };
    for (cache, lines) in [
        ("proxy_cache_purge on;", "return 404;"),
        ("", "proxy_cache_purge one $arg_key;"),
        ("", "proxy_cache_purge_tags one $arg_tags;"),
    ] {
        assert!(says(cache, lines), "{cache} {lines}");
    }
    for (cache, lines) in [
        ("proxy_cache_purge PURGE from 127.0.0.1;", "return 404;"),
        ("proxy_cache_purge $http_x_purge;", "return 404;"),
        ("", "proxy_cache_purge one $arg_key; allow 127.0.0.1; deny all;"),
    ] {
        assert!(!says(cache, lines), "{cache} {lines}");
    }
}
