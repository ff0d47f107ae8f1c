use crate::testing::{TestSite, site};

fn files(settings: &str) -> TestSite {
    let site = site(&format!("server {{ {settings} }}"));
    site.file("both.html", "plain");
    site.file("both.html.gz", "zipped");
    site.file("plain.html", "plain");
    site.file("zipped.html.gz", "zipped");
    site.file("folder.html", "plain");
    site.file("folder.html.gz/a", "");
    site
}

const ACCEPTS: &str = "Accept-Encoding: gzip\n";

#[test]
fn the_compressed_file_is_sent_to_clients_that_accept_gzip() {
    let site = files("gzip_static on;");
    let answer = site.get_with("/both.html", ACCEPTS);
    assert_eq!((answer.status(), answer.body().as_str()), (200, "zipped"));
    assert_eq!(answer.field("content-encoding").unwrap(), "gzip");
    assert_eq!(answer.field("content-type").unwrap(), "text/html");
    assert_eq!(answer.field("content-length").unwrap(), "6");
    let etag = answer.field("etag").unwrap();
    assert!(etag.ends_with("-6\""), "{etag}");
    assert_eq!(answer.field("accept-ranges").unwrap(), "bytes");
    let answer = site.get("/both.html");
    assert_eq!((answer.body().as_str(), answer.field("content-encoding")), ("plain", None));
    assert_eq!(site.get_with("/plain.html", ACCEPTS).body(), "plain");
    assert_eq!(site.get_with("/folder.html", ACCEPTS).body(), "plain");
    assert_eq!(site.get("/zipped.html").status(), 404);
    assert_eq!(site.get_with("/zipped.html", ACCEPTS).body(), "zipped");
}

#[test]
fn always_ignores_what_clients_accept() {
    let site = files("gzip_static always;");
    let answer = site.get("/both.html");
    assert_eq!(answer.body(), "zipped");
    assert!(!answer.x.varies);
}

#[test]
fn vary_is_sent_only_if_a_compressed_file_exists() {
    let site = files("gzip_static on; gzip_vary on;");
    for (target, fields, varies) in [
        ("/both.html", "", true),
        ("/both.html", ACCEPTS, true),
        ("/plain.html", "", false),
        ("/plain.html", ACCEPTS, false),
    ] {
        assert_eq!(site.get_with(target, fields).x.varies, varies, "{target} {fields}");
    }
}

#[test]
fn ranges_apply_to_the_compressed_file() {
    let fields = "Accept-Encoding: gzip\nRange: bytes=1-2\n";
    let answer = files("gzip_static on;").get_with("/both.html", fields);
    assert_eq!((answer.status(), answer.body().as_str()), (206, "ip"));
}

#[test]
fn post_requests_are_left_to_other_handlers() {
    let post = "POST /both.html HTTP/1.1\nHost: localhost\nAccept-Encoding: gzip\n\n";
    assert_eq!(files("gzip_static on;").send(post).status(), 405);
}
