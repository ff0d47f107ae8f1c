use crate::testing::{TestAnswer, TestSite, refusal, site};

fn added(answer: &TestAnswer) -> Vec<String> {
    let own = ["Content-Type", "Content-Length", "Last-Modified", "ETag", "Accept-Ranges"];
    let is_own = |line: &String| own.contains(&line.split_once(':').unwrap().0);
    answer.head().into_iter().filter(|line| !is_own(line)).collect()
}

fn file(settings: &str) -> TestSite {
    let site = site(&format!("server {{ {settings} }}"));
    site.file("a.html", "text");
    site
}

#[test]
fn fields_are_added() {
    let site =
        file("add_header X-One 1; add_header X-Uri '$uri $arg_x'; add_header X-None $arg_y;");
    assert_eq!(added(&site.get("/a.html?x=y")), ["X-One: 1", "X-Uri: /a.html y"]);
}

#[test]
fn always_adds_fields_to_errors() {
    let site = file("add_header X-One 1; add_header X-Two 2 always; expires 1h;");
    assert_eq!(added(&site.get("/nothing")), ["X-Two: 2"]);
    for status in [200, 201, 204, 206, 301, 302, 303, 304, 307, 308] {
        assert!(super::is_success(status));
    }
    assert!(![202, 203, 205, 300, 400, 404, 500].into_iter().any(super::is_success));
}

#[test]
fn some_fields_are_replaced_and_others_repeated() {
    let site = file(
        "add_header Cache-Control a; add_header cache-control b; add_header Link c; \
         add_header Link d; add_header X e; add_header X f;",
    );
    let lines = ["Cache-Control: a", "cache-control: b", "Link: c", "Link: d", "X: e", "X: f"];
    assert_eq!(added(&site.get("/a.html")), lines);
}

#[test]
fn etag_and_last_modified_are_replaced() {
    let site = file(
        "add_header etag '\"own\"'; add_header Last-Modified 'Sun, 06 Nov 1994 08:49:37 GMT';",
    );
    let answer = site.get("/a.html");
    assert_eq!(answer.field("etag").unwrap(), "\"own\"");
    assert_eq!(answer.field("last-modified").unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(answer.x.reply.last_modified, Some(784_111_777));
    let answer = file("add_header ETag ''; add_header Last-Modified '';").get("/a.html");
    assert_eq!((answer.field("etag"), answer.field("last-modified")), (None, None));
}

#[test]
fn if_range_is_checked_against_replaced_fields() {
    let site = file("add_header ETag '\"own\"';");
    let status = |tag| site.get_with("/a.html", &format!("Range: bytes=0-0\nIf-Range: {tag}\n"));
    assert_eq!((status("\"own\"").status(), status("\"other\"").status()), (206, 200));
}

#[test]
fn expires_sets_cache_control() {
    let answer = file("expires epoch; add_header Cache-Control public;").get("/a.html");
    let lines = [
        "Expires: Thu, 01 Jan 1970 00:00:01 GMT",
        "Cache-Control: no-cache",
        "Cache-Control: public",
    ];
    assert_eq!(added(&answer), lines);
    let answer = file("expires max;").get("/a.html");
    assert_eq!(answer.field("cache-control").unwrap(), "max-age=315360000");
}

#[test]
fn expires_may_be_computed() {
    let site = file("expires $arg_e; location /m { expires modified $arg_e; empty_gif; }");
    let caching = |uri| site.get(uri).field("cache-control");
    assert_eq!(caching("/a.html?e=1h").unwrap(), "max-age=3600");
    assert_eq!(caching("/a.html?e=epoch").unwrap(), "no-cache");
    assert_eq!(caching("/m?e=1h").unwrap(), "no-cache");
    for uri in ["/a.html?e=off", "/a.html?e=nonsense", "/a.html", "/m?e=epoch", "/m?e=@1h"] {
        assert_eq!(caching(uri), None, "{uri}");
    }
}

#[test]
fn outer_lines_are_inherited_without_own_lines() {
    let site = file(
        "add_header A 1; \
         location /a.html { } \
         location /own { add_header B 2; empty_gif; } \
         location /merged { add_header_inherit merge; add_header B 2; empty_gif; \
            location /merged/in { add_header C 3; empty_gif; } } \
         location /off { add_header_inherit off; add_header B 2; empty_gif; \
            location /off/silent { empty_gif; } \
            location /off/on { add_header_inherit on; empty_gif; } } ",
    );
    assert_eq!(added(&site.get("/a.html")), ["A: 1"]);
    assert_eq!(added(&site.get("/own")), ["B: 2"]);
    assert_eq!(added(&site.get("/merged")), ["B: 2", "A: 1"]);
    assert_eq!(added(&site.get("/merged/in")), ["C: 3", "B: 2", "A: 1"]);
    assert_eq!(added(&site.get("/off")), ["B: 2"]);
    assert_eq!(added(&site.get("/off/silent")), [""; 0]);
    assert_eq!(added(&site.get("/off/on")), ["B: 2"]);
}

#[test]
fn trailers() {
    let site = file(
        "add_trailer X-T $arg_x; add_trailer X-Sent $body_bytes_sent always; \
         location /none { add_trailer X 1; return 404; }",
    );
    let answer = site.get("/a.html?x=1");
    assert!(answer.x.reply.expect_trailers);
    assert_eq!(answer.trailers(), ["X-T: 1", "X-Sent: 0"]);
    assert_eq!(added(&answer), [""; 0]);
    assert_eq!(site.get("/nothing?x=1").trailers(), ["X-Sent: 0"]);
    let answer = site.get("/none");
    assert!(!answer.x.reply.expect_trailers && answer.trailers().is_empty());
}

#[test]
fn invalid_directives_are_refused() {
    let refused = |line: &str| refusal(&format!("server {{ {line} }}"));
    assert_eq!(refused("add_header X 1 sometimes;"), "invalid parameter \"sometimes\":1");
    let count = "invalid number of arguments in \"add_header\" directive:1";
    assert_eq!(refused("add_header X;"), count);
    assert_eq!(refused("add_header_inherit maybe;"), "invalid value \"maybe\":1");
    let duplicate = "\"add_trailer_inherit\" directive is duplicate:1";
    assert_eq!(refused("add_trailer_inherit on; add_trailer_inherit on;"), duplicate);
    assert_eq!(refused("expires created 1h;"), "\"expires\" directive invalid value:1");
    assert_eq!(refused("expires x;"), "\"expires\" directive invalid value:1");
    assert_eq!(refused("expires 1h; expires 1h;"), "\"expires\" directive is duplicate:1");
}
