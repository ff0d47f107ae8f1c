use crate::testing::{TestSite, site};

fn pages(settings: &str) -> TestSite {
    let site = site(&format!(
        "server {{
            add_before_body /before;
            add_after_body /after;
            location /before {{ return 200 <$uri>; }}
            location /after {{ add_before_body ''; return 404; }}
            {settings}
        }}"
    ));
    site.file("a.html", "page");
    site.file("a.txt", "text");
    site.file("empty.html", "");
    site
}

const NOT_FOUND: &str = "404 Not Found";

#[test]
fn text_is_added_before_and_after_a_page() {
    let answer = pages("").get("/a.html");
    let body = answer.body();
    assert!(body.starts_with("</before>page<html>") && body.contains(NOT_FOUND), "{body}");
    assert_eq!((answer.field("Content-Length"), answer.field("Accept-Ranges")), (None, None));
    assert!(answer.field("ETag").unwrap().starts_with("W/"));
}

#[test]
fn text_is_added_to_an_empty_page() {
    assert!(pages("").get("/empty.html").body().starts_with("</before><html>"));
}

#[test]
fn other_types_and_statuses_are_left_alone() {
    let site = pages("location /status { default_type text/html; return 202 x; }");
    for (target, body) in [("/a.txt", "text"), ("/status", "x")] {
        assert_eq!(site.get(target).body(), body);
    }
    let site = pages("addition_types text/plain;");
    assert!(site.get("/a.txt").body().starts_with("</before>text<html>"));
}

#[test]
fn an_empty_string_adds_nothing() {
    let site = pages("location /a.html { add_after_body ''; }");
    assert_eq!(site.get("/a.html").body(), "</before>page");
    let site = pages("location /a.html { add_after_body ''; add_before_body ''; }");
    let answer = site.get("/a.html");
    assert_eq!(
        (answer.body().as_str(), answer.field("Content-Length")),
        ("page", Some("4".into()))
    );
}

#[test]
fn nothing_is_added_to_subrequests() {
    let site = pages("location /a.html { add_after_body /a.html; }");
    assert_eq!(site.get("/a.html").body(), "</before>pagepage");
}

#[test]
fn added_text_is_compressed_with_the_page() {
    let site = pages("gzip on; gzip_min_length 0;");
    let answer = site.get_with("/a.html", "Accept-Encoding: gzip\n");
    assert_eq!(answer.field("Content-Encoding").unwrap(), "gzip");
    assert!(answer.bytes().starts_with(b"\x1f\x8b"));
}
