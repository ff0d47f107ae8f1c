use conf::known;
use conf::lacking::{self, Class};

use crate::testing::{TestSite, lenient_site, refusal_of_lenient};

const LOG: &str = "error_log e.log;";

/// The statuses of the paths, with a file behind each.
fn statuses(site: &TestSite, paths: &[&str]) -> Vec<u16> {
    for path in paths {
        let name = path.trim_start_matches('/');
        let name = if name.is_empty() || name.ends_with('/') {
            &format!("{name}index.html")
        } else {
            name
        };
        site.file(name, "secret");
    }
    let status = |path: &&str| {
        let reply = site.get(path);
        let status = reply.status();
        assert_eq!(reply.body().contains("secret"), status == 200, "{path}");
        status
    };
    paths.iter().map(status).collect()
}

#[test]
fn source_files_are_not_served_without_their_handler() {
    let site = lenient_site(&format!(
        "{LOG}
         server {{
             index index.php index.html;
             location / {{ try_files $uri $uri/ /index.php?$args; }}
             location ~ \\.php$ {{
                 try_files $uri =404;
                 xslt_param Script $document_root$uri;
                 tunnel_pass unix:/run/php.sock;
             }}
         }}"
    ));
    assert_eq!(statuses(&site, &["/wp-config.php", "/a.css", "/none/x.css"]), [503, 200, 200]);
    site.file("index.php", "secret");
    assert_eq!(site.get("/").status(), 503);
    assert_eq!(site.get("/no/such/page").status(), 503);
}

#[test]
fn a_request_writes_one_line() {
    let site = lenient_site(&format!(
        "{LOG} server {{ location / {{ tunnel_pass a; }} location /p {{ auth_jwt x; }} }}"
    ));
    site.open_logs();
    assert_eq!(statuses(&site, &["/settings.py", "/p"]), [503, 403]);
    let missing = "is not supported by this version of weir and was ignored";
    assert_eq!(
        site.messages("e.log"),
        [
            format!("[error] not served: directive \"tunnel_pass\" in /nginx.conf:1 {missing}"),
            format!("[error] access denied: directive \"auth_jwt\" in /nginx.conf:1 {missing}"),
        ]
    );
}

#[test]
fn a_missing_handler_affects_nameless_inner_blocks_only() {
    let site = lenient_site(
        "server {
             location /a {
                 tunnel_pass b;
                 limit_except GET { deny all; }
                 if ($arg_x) { set $y 1; }
                 location /a/files { }
             }
             location /b { if ($arg_x) { tunnel_pass b; } }
             location /c { limit_except POST { perl handler; } }
         }",
    );
    let paths = ["/a", "/a?x=1", "/a/files", "/b", "/b?x=1", "/c"];
    for name in ["a/files", "b", "c"] {
        site.file(name, "secret");
    }
    let statuses: Vec<_> = paths.iter().map(|path| site.get(path).status()).collect();
    assert_eq!(statuses, [503, 503, 200, 200, 503, 503]);
}

#[test]
fn a_missing_check_denies_all_blocks_inside() {
    let site = lenient_site(
        "modsecurity on;
         server {
             location / { }
             location /open/ { modsecurity off; location /open/in { auth_ldap here; } }
             location /any { satisfy any; allow all; }
             location = /said { return 200 said; }
         }
         server { listen 81; server_name other; location / { return 200 said; } }",
    );
    let paths = ["/a", "/open/a", "/open/in", "/any"];
    assert_eq!(statuses(&site, &paths), [403, 200, 403, 403]);
    assert_eq!(site.get("/said").status(), 200, "as in nginx, access is checked later");
}

#[test]
fn a_missing_check_in_an_if_denies_that_branch() {
    let site = lenient_site("server { location / { if ($arg_x) { access_by_lua 'x'; } } }");
    site.file("a", "secret");
    assert_eq!(site.get("/a").status(), 200);
    assert_eq!(site.get("/a?x=1").status(), 403);
}

#[test]
fn unprocessed_pages_are_not_served() {
    let site = lenient_site(
        "ssi on; server { location / { } location /off { ssi off; location /off/in { } } }",
    );
    assert_eq!(statuses(&site, &["/a.html", "/off/in/a"]), [503, 200]);
}

#[test]
fn an_unsupported_backend_does_not_serve_files() {
    let site = lenient_site("server { location / { tunnel_pass 127.0.0.1:1; xslt_param a b; } }");
    assert_eq!(statuses(&site, &["/a"]), [503]);
}

#[test]
fn variables_of_unsupported_modules_are_refused() {
    let set = |name: &str, by: &str| {
        let why = "which is ignored; its value cannot be trusted";
        format!("variable \"{name}\" is set by \"{by}\", {why}:1")
    };
    let cases = [
        ("js_set $ok f; server { if ($ok) { return 403; } }", set("ok", "js_set")),
        (
            "server { set $no 0; location / { set_by_lua $no 'x'; if ($no) { return 403; } } }",
            set("no", "set_by_lua"),
        ),
        (
            "geoip2 a { $land country; } map $land $no { } server { if ($no) { return 403; } }",
            set("land", "geoip2"),
        ),
        (
            "auth_jwt_claim_set $sub sub; server { return 200 $sub; }",
            set("sub", "auth_jwt_claim_set"),
        ),
        ("perl_set $p 'x'; map a $p { } server { return 200 $p; }", set("p", "perl_set")),
        (
            "geoip_country a; server { return 200 $geoip_country_code; }",
            "unknown \"geoip_country_code\" variable".into(),
        ),
    ];
    for (http, expected) in cases {
        assert_eq!(refusal_of_lenient(http), expected, "{http}");
    }
    lenient_site("js_set $ok f; geoip_country a; server { }");
}

/// Lines of a directive that nginx would accept, in one of its blocks within `http {}`.
fn example(known: &known::KnownDirective) -> (&'static str, String) {
    let context = known.contexts.split(',').next_back().unwrap();
    let first = known.values.split(' ').find(|word| !word.is_empty() && !word.ends_with('='));
    let value = match known.setter {
        "ngx_conf_set_flag_slot" => "on",
        "ngx_conf_set_enum_slot" | "ngx_conf_set_bitmask_slot" => known
            .values
            .split(' ')
            .find(|word| !matches!(*word, "off" | ""))
            .or(first)
            .unwrap_or("on"),
        _ => "1",
    };
    let count =
        known.args.trim_start_matches("block(").trim_end_matches(')').split('|').next().unwrap();
    let count = count.trim_end_matches('+').parse().unwrap_or(1);
    let args = vec![value; count].join(" ");
    let end = if known.args.starts_with("block") { "{ }" } else { ";" };
    (context, format!("{} {args}{end}", known.name))
}

fn is_supported(name: &str) -> bool {
    crate::features::TABLES.iter().any(|(_, prefix, rows)| {
        let local = name.strip_prefix(prefix);
        local.is_some_and(|local| rows.iter().any(|row| row.name == local))
    })
}

#[test]
fn ignored_access_directives_refuse_access() {
    let mut seen = [0; 2];
    for known in known::all() {
        let Some(row) = lacking::of(known) else { continue };
        if !known.module.starts_with("ngx_http_") {
            continue;
        }
        if is_supported(known.name) {
            continue;
        }
        let (context, line) = example(known);
        let http = match context {
            "http" => format!("{line} server {{ location / {{ }} }}"),
            "server" => format!("server {{ {line} location / {{ }} }}"),
            "location" => format!("server {{ location / {{ {line} }} }}"),
            "if-in-location" => format!("server {{ location / {{ if ($uri) {{ {line} }} }} }}"),
            "limit_except" => {
                format!("server {{ location / {{ limit_except PUT {{ {line} }} }} }}")
            }
            other => panic!("{other}"),
        };
        let site = lenient_site(&http);
        if site.lacks == 0 {
            // Supported as a parameter, or in another context.
            continue;
        }
        let expected = match row.class {
            Class::Protection => 403,
            Class::Handler | Class::Source => 503,
            _ => 200,
        };
        assert_eq!(statuses(&site, &["/wp-config.php"]), [expected], "{http}");
        seen[usize::from(expected == 200)] += 1;
    }
    assert!(seen[0] >= 6 && seen[1] >= 60, "{seen:?}");
}
