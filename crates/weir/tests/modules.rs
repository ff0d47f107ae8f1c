//! `load_module`: what is built in, what Weir does without, and what nobody knows.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Output};

use testing::{Folder, complaint, output};

/// Every module that a package of Debian 12 puts into modules-enabled (`libnginx-mod-*`), and a
/// line that needs it and that Weir does not have, in the block `main`, `http`, `stream` or
/// `location`; `*` marks the name to complain about. A module without a line is built in, or has no
/// directives.
const DEBIAN: [(&str, &str, &str); 30] = [
    ("ndk_http_module", "", ""),
    ("ngx_http_auth_pam_module", "location", "*auth_pam \"a\";"),
    ("ngx_http_brotli_filter_module", "http", "*brotli on;"),
    ("ngx_http_brotli_static_module", "http", "*brotli_static on;"),
    ("ngx_http_cache_purge_module", "http", "*cache_purge_legacy_status off;"),
    ("ngx_http_dav_ext_module", "location", "*dav_ext_methods PROPFIND;"),
    ("ngx_http_echo_module", "location", "*echo a;"),
    ("ngx_http_fancyindex_module", "location", "*fancyindex on;"),
    ("ngx_http_geoip2_module", "http", "*geoip2 a.mmdb { $a country iso_code; }"),
    ("ngx_http_geoip_module", "location", "add_header A $*geoip_country_code;"),
    ("ngx_http_headers_more_filter_module", "", ""),
    ("ngx_http_image_filter_module", "location", "*image_filter test;"),
    ("ngx_http_js_module", "location", "*js_content a;"),
    ("ngx_http_lua_module", "location", "*content_by_lua_block { ngx.say(1) }"),
    ("ngx_http_memc_module", "location", "*memc_pass 127.0.0.1:1;"),
    ("ngx_http_modsecurity_module", "http", "*modsecurity on;"),
    ("ngx_http_perl_module", "location", "*perl A::b;"),
    ("ngx_http_set_misc_module", "location", "*set_md5 $a b;"),
    ("ngx_http_srcache_filter_module", "location", "*srcache_fetch GET /a;"),
    ("ngx_http_subs_filter_module", "location", "*subs_filter a b;"),
    ("ngx_http_uploadprogress_module", "location", "*track_uploads a 1s;"),
    ("ngx_http_upstream_fair_module", "http", "upstream u { server 127.0.0.1:1; *fair; }"),
    ("ngx_http_xslt_filter_module", "location", "*xslt_stylesheet a.xslt;"),
    ("ngx_mail_module", "main", "*mail { }"),
    ("ngx_nchan_module", "location", "*nchan_pubsub;"),
    ("ngx_rtmp_module", "main", "*rtmp { }"),
    ("ngx_stream_geoip2_module", "stream", "*geoip2 a.mmdb { $a country iso_code; }"),
    ("ngx_stream_geoip_module", "stream", "log_format a $*geoip_country_code;"),
    ("ngx_stream_js_module", "stream", "*js_set $a b;"),
    ("ngx_stream_module", "", ""),
];

/// A configuration with these lines at its beginning, and one in a block further below.
fn conf(modules: &str, block: &str, line: &str) -> String {
    let within = |name: &str| if name == block { line } else { "" };
    let [main, http, location, stream] = ["main", "http", "location", "stream"].map(within);
    format!(
        "pid nginx.pid; error_log error.log notice;\n{modules}events {{}}\n{main}
        stream {{ {stream}\nserver {{ listen 127.0.0.1:2; return a; }} }}
        http {{ access_log off; {http}\n
        server {{ listen 127.0.0.1:1; location / {{ {location}\n }} }} }}\n"
    )
}

fn loading(modules: &[&str]) -> String {
    modules.iter().map(|module| format!("load_module modules/{module}.so;\n")).collect()
}

/// Runs `-t` called `nginx`.
fn tested(conf: &str) -> (Folder, Output) {
    let folder = Folder::new();
    folder.write("nginx.conf", conf);
    folder.write("error.log", "");
    let output = folder.run(&["-t", "-q", "-c", "nginx.conf"]);
    (folder, output)
}

#[test]
fn a_debian_with_every_module_enabled_starts() {
    let (folder, output) = tested(&conf(&loading(&DEBIAN.map(|(module, ..)| module)), "", ""));
    assert_eq!(complaint(&output), "");
    assert!(output.status.success());
    let log = folder.read("error.log");
    assert!(log.contains("[notice] "), "{log}");
    assert!(!log.contains("ngx_stream_module"), "{log}");
}

#[test]
fn a_module_that_is_missing_is_an_error_only_where_it_is_used() {
    for (module, block, line) in DEBIAN.iter().filter(|(.., line)| !line.is_empty()) {
        let load = loading(&[*module]);
        let (_, output) = tested(&conf(&load, "", ""));
        assert!(output.status.success(), "{module}: {}", complaint(&output));
        let (_, marked) = line.split_once('*').unwrap();
        let (name, _) = marked.split_once([' ', ';']).unwrap();
        let (folder, output) = tested(&conf(&load, block, &line.replacen('*', "", 1)));
        let said = complaint(&output);
        let first = said.lines().next().unwrap_or_default();
        assert!(first.starts_with("nginx: [emerg] ") && first.contains(name), "{module}: {said}");
        let at = format!("{}:", folder.join("nginx.conf").display());
        assert!(said.contains(&at), "{module}: {said}");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_module_that_nobody_knows_is_looked_for_where_nginx_looks() {
    let folder = Folder::new();
    let text = "load_module modules/ngx_nobodys_module.so; events {}";
    std::fs::create_dir(folder.join("conf")).unwrap();
    folder.write("conf/nginx.conf", text);
    let said = complaint(&folder.run(&["-t", "-q", "-c", "conf/nginx.conf"]));
    let file = folder.join("modules/ngx_nobodys_module.so");
    let dlopen = format!("nginx: [emerg] dlopen() \"{0}\" failed ({0}: cannot", file.display());
    assert!(said.starts_with(&dlopen), "{said}");
}

#[test]
fn a_module_is_loaded_once() {
    let (_, output) = tested(&conf(&loading(&["ngx_mail_module", "ngx_mail_module"]), "", ""));
    let said = complaint(&output);
    assert!(said.contains("module \"ngx_mail_module\" is already loaded in "), "{said}");
}

#[test]
fn check_names_the_files_of_modules() {
    let folder = Folder::new();
    let names = ["ngx_stream_module", "ngx_mail_module", "ngx_nobodys_module"];
    folder.write("nginx.conf", conf(&loading(&names), "", ""));
    let check = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("check").arg(folder.join("nginx.conf")).args(words);
        let output = output(command);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, report) = check(&[]);
    let file = folder.join("nginx.conf").display().to_string();
    let missing = "module \"modules/ngx_mail_module.so\" is not part of this version of weir";
    let remark = format!("Remarks:\n  {missing}, ignored in {file}:3\n");
    assert!(report.contains(&remark), "{report}");
    let unknown = format!("{file}:4: load_module modules/ngx_nobodys_module.so\n      ignored\n");
    assert!(report.contains(&unknown), "{report}");
    assert!(!report.contains("ngx_stream_module"), "{report}");
    assert_eq!(code, Some(3));
    let (_, json) = check(&["--json"]);
    assert!(json.contains("\"directive\":\"load_module modules/ngx_nobodys_module.so\""), "{json}");
    assert!(json.contains("\"remarks\":[{\"message\":\"module "), "{json}");
    folder.write("nginx.conf", conf(&loading(&names[..2]), "", ""));
    assert_eq!(check(&[]).0, Some(0));
}
