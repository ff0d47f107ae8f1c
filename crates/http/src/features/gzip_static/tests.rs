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
fn the_other_file_is_sent_to_who_accepts_it() {
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
fn always_is_for_everybody() {
    let site = files("gzip_static always;");
    let answer = site.get("/both.html");
    assert_eq!(answer.body(), "zipped");
    assert!(!answer.x.varies);
}

#[test]
fn a_reply_varies_only_where_there_is_another_file() {
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
fn a_part_of_the_other_file() {
    let fields = "Accept-Encoding: gzip\nRange: bytes=1-2\n";
    let answer = files("gzip_static on;").get_with("/both.html", fields);
    assert_eq!((answer.status(), answer.body().as_str()), (206, "ip"));
}

#[test]
fn a_post_is_for_others() {
    let post = "POST /both.html HTTP/1.1\nHost: localhost\nAccept-Encoding: gzip\n\n";
    assert_eq!(files("gzip_static on;").send(post).status(), 405);
}
