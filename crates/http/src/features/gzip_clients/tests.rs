use crate::testing::{refused, site};

const ACCEPTS: &str = "Accept-Encoding: gzip\n";

/// Whether a reply with these settings is compressed for a client with these fields.
fn compresses(settings: &str, fields: &str) -> bool {
    let site = site(&format!(
        "gzip on; gzip_min_length 0; default_type text/html; {settings} \
         server {{ location / {{ return 200 text; }} }}"
    ));
    let answer = site.get_with("/", &format!("{ACCEPTS}{fields}"));
    answer.field("content-encoding").is_some()
}

#[test]
fn versions() {
    let site = site(
        "gzip on; gzip_min_length 0; gzip_http_version 1.0; default_type text/html; \
         server { location / { return 200 text; } }",
    );
    let answer = site.send("GET / HTTP/1.0\nAccept-Encoding: gzip\n\n");
    assert!(answer.field("content-encoding").is_some());
}

#[test]
fn browsers() {
    let ie = "User-Agent: Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)\n";
    let other = "User-Agent: Robot/1.0\n";
    for (settings, fields, compressed) in [
        ("", ie, true),
        ("gzip_disable msie6;", ie, false),
        ("gzip_disable msie6;", other, true),
        ("gzip_disable msie6;", "", true),
        ("gzip_disable robot;", other, false),
        ("gzip_disable robot;", "", true),
        ("gzip_disable x ^robot; gzip_disable y;", other, false),
    ] {
        assert_eq!(compresses(settings, fields), compressed, "{settings} {fields}");
    }
}

#[test]
fn gzip_disable_inherits_msie6_but_not_expressions() {
    let site = site(
        "gzip on; gzip_min_length 0; gzip_disable msie6 one; default_type text/html; \
         server { gzip_disable two; location / { return 200 text; } }",
    );
    for (agent, compressed) in [("one", true), ("two", false), ("MSIE 5.01", false)] {
        let answer = site.get_with("/", &format!("{ACCEPTS}User-Agent: {agent}\n"));
        assert_eq!(answer.field("content-encoding").is_some(), compressed, "{agent}");
    }
}

#[test]
fn gzip_proxied_decides_for_proxied_requests() {
    let via = "Via: 1.1 proxy\n";
    let late = "expires max;";
    let early = "expires epoch;";
    let header = |value: &str| format!("add_header Cache-Control '{value}';");
    let (no_cache, no_store) = (header("a=b, no-cache"), header("No-Store"));
    let (private, private_field) = (header("private , x"), header("private=\"x\""));
    for (proxied, settings, compressed) in [
        ("off", "", false),
        ("any", "", true),
        ("any off", "", false),
        ("any", late, true),
        ("expired", "", true),
        ("expired", early, true),
        ("expired", late, false),
        ("expired", "add_header Expires never;", true),
        ("no-cache", early, false),
        ("no-cache", &no_cache, true),
        ("no-store private", &no_cache, false),
        ("no-store", &no_store, true),
        ("private", &private, true),
        ("private", &private_field, false),
        ("auth", &no_cache, false),
        ("no_etag", "", true),
        ("no_etag", "add_header ETag '\"1\"';", false),
        ("no_last_modified", "add_header Last-Modified \"Thu, 01 Jan 1970 00:00:01 GMT\";", false),
    ] {
        let all = format!("gzip_proxied {proxied}; {settings}");
        assert_eq!(compresses(&all, via), compressed, "{all}");
    }
    assert!(compresses("gzip_proxied auth;", "Via: x\nAuthorization: Basic eDp4\n"));
    assert!(compresses("", "Authorization: Basic eDp4\n"));
}

#[test]
fn invalid_directives_are_refused() {
    refused("gzip_proxied always;", "invalid value \"always\":1");
    refused("gzip_http_version 2;", "invalid value \"2\":1");
    refused(
        "gzip_disable [;",
        "pcre2_compile() failed: missing terminating ] for character class in \"[\":1",
    );
    let site = site("gzip_proxied any any;");
    assert_eq!(site.warnings, ["duplicate value \"any\":1"]);
}
