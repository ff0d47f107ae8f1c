use crate::testing::{refusal, site};

#[test]
fn small_files_and_heads_are_not_read_by_threads() {
    let site = site("server { aio threads; directio 1m; }");
    site.file("a", "content");
    assert_eq!(site.get("/a").body(), "content");
    assert_eq!(site.send("HEAD /a HTTP/1.1\nHost: h\n\n").status(), 200);
}

#[test]
fn cached_files_are_sent_by_the_kernel() {
    let site = site("server { aio threads; }");
    let content = "0123456789".repeat(100_000);
    site.file("a", &content);
    let answer = site.get("/a");
    assert!(answer.from_file && answer.body() == content);
    let answer = site.get_with("/a", "Range: bytes=600000-600009,3-5\n");
    assert_eq!(answer.status(), 206);
    assert!(answer.body().contains("\r\n\r\n0123456789\r\n"));
    assert!(answer.body().contains("\r\n\r\n345\r\n"));
}

#[test]
fn invalid_directives_are_refused() {
    for (text, message) in [
        ("aio yes;", "\"aio\" directive invalid value"),
        ("aio threadsx;", "\"aio\" directive invalid value"),
        ("aio threads=$;", "invalid variable name"),
        ("aio threads=none; server { }", "unknown thread pool \"none\""),
        ("directio x;", "\"directio\" directive invalid value"),
    ] {
        assert_eq!(refusal(text), format!("{message}:1"));
    }
    site("aio threads=default; directio 4g; directio_alignment 1000; server { }");
    site("aio threads=$host; server { aio on; directio off; }");
}
