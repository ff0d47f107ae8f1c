//! `weir check`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod server;

use std::process::{Command, Output};

use server::{Folder, complaint, output};

fn check(folder: &Folder, words: &[&str]) -> Output {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.arg("check").args(words).current_dir(folder.path());
    output(weir)
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The code and the text for a configuration whose `http {}` holds this.
fn of(http: &str) -> (i32, String) {
    let folder = Folder::new();
    folder.write("a.conf", &format!("events {{}}\nhttp {{\n{http}\n}}\n"));
    let before = std::fs::read_dir(folder.path()).unwrap().count();
    let output = check(&folder, &["a.conf"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), before, "nothing is made");
    assert!(complaint(&output).is_empty(), "{}", complaint(&output));
    let dir = folder.path().to_string_lossy().into_owned();
    (output.status.code().unwrap(), said(&output).replace(&dir, "DIR"))
}

#[test]
fn a_configuration_that_is_supported_is_worth_one_line() {
    let (code, text) = of("server { listen 127.0.0.1:1; root /srv; }");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text, format!("DIR/a.conf: weir {version} supports everything in it\n"));
    assert_eq!(code, 0);
}

#[test]
fn findings_are_grouped_by_what_follows_from_them() {
    let (code, text) = of("brotli on;
        sub_filter a b;
        server {
            listen 127.0.0.1:1 quic;
            location / { grpc_pass a; grpc_set_header A b; grpc_set_header B c; }
            location /j { auth_jwt on; }
        }");
    let expected = [
        "Security:\n  DIR/a.conf:8: auth_jwt, of ngx_http_auth_jwt_module (NGINX Plus)\n      \
         requests it would protect are answered with 403\n",
        "Content:\n  DIR/a.conf:6: listen\n      Weir refuses to start, even with --lenient",
        "  DIR/a.conf:7: grpc_pass, of ngx_http_grpc_module\n      \
         requests to its location are answered with 503\n",
        "Behavior:\n  DIR/a.conf:4: sub_filter, of ngx_http_sub_filter_module\n      ignored\n",
        "Performance:\n  DIR/a.conf:3: brotli, of ngx_brotli\n      ignored\n",
        "Settings of unsupported or unused directives: grpc_set_header (2 lines)\n",
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
fn the_code_says_what_matters() {
    let cases = [
        ("", 0),
        ("ssl_protocols TLSv1.3; proxy_cache off;", 0),
        ("server { location / { proxy_pass https://127.0.0.1; } }", 0),
        ("server { location / { grpc_pass grpcs://127.0.0.1; } }", 2),
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

#[test]
fn it_goes_on_after_errors() {
    let (code, text) = of("lisen 80;
        server { root; location / { grpc_pass a; proxy_pass ftp://a; } }
        upstream u { sever a; }
        server { location ( { } } zstd on");
    for part in [
        "unknown directive \"lisen\" in DIR/a.conf:3\n",
        "invalid number of arguments in \"root\" directive in DIR/a.conf:4\n",
        "invalid URL prefix in DIR/a.conf:4\n",
        "unknown directive \"sever\" in DIR/a.conf:5\n",
        "did you mean \"server\"?",
        "unexpected \"}\" in DIR/a.conf:7\n",
        "  DIR/a.conf:4: grpc_pass",
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
fn what_cannot_be_read_is_said() {
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
