use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::testing::{TestAnswer, TestSite, refusal, site};

fn set_time(path: &Path) {
    let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::open(path).unwrap().set_modified(time).unwrap();
}

/// A site with the list on, and a directory `d` with two files, a directory and a hidden file.
fn directory(settings: &str) -> TestSite {
    let site = site(&format!("server {{ autoindex on; {settings} }}"));
    for (name, size) in [("b", 3), ("A", 10_240), (".hidden", 0), ("sub/x", 0)] {
        set_time(&site.file(&format!("d/{name}"), "x".repeat(size)));
    }
    set_time(site.file("d/sub/x", "").parent().unwrap());
    site
}

/// The line of a name.
fn line(answer: &TestAnswer, name: &str) -> String {
    let body = answer.body();
    let line = body.lines().find(|line| line.contains(name));
    line.unwrap_or_else(|| panic!("{name} is not in {body}")).to_owned()
}

#[test]
fn a_page() {
    let site = directory("");
    let answer = site.get("/d/");
    assert_eq!(answer.head(), ["Content-Type: text/html"]);
    let rows = [
        ("sub/", "sub/</a>                                              ", "-"),
        ("A", "A</a>                                                 ", "10240"),
        ("b", "b</a>                                                 ", "3"),
    ];
    let rows: String = rows
        .iter()
        .map(|(href, name, size)| {
            format!("<a href=\"{href}\">{name} 09-Sep-2001 01:46 {size:>19}\r\n")
        })
        .collect();
    let page = format!(
        "<html>\r\n<head><title>Index of /d/</title></head>\r\n<body>\r\n\
         <h1>Index of /d/</h1><hr><pre><a href=\"../\">../</a>\r\n{rows}</pre><hr></body>\r\n\
         </html>\r\n"
    );
    assert_eq!(answer.body(), page);
}

#[test]
fn sizes_are_rounded() {
    let site = directory("autoindex_exact_size off;");
    let answer = site.get("/d/");
    assert!(line(&answer, "sub/").ends_with("01:46       -"));
    assert!(line(&answer, "\"A\"").ends_with("01:46     10K"));
    assert!(line(&answer, "\"b\"").ends_with("01:46       3"));
    for (size, expected) in [
        (9_999, "   9999"),
        (10_751, "    10K"),
        (10_752, "    11K"),
        (1 << 20, "     1M"),
        ((1 << 20) + (1 << 19), "     2M"),
        ((1 << 30) - 1, "  1024M"),
        (3 << 30, "     3G"),
    ] {
        let file = File::create(site.file("d/b", "")).unwrap();
        file.set_len(size).unwrap();
        let line = line(&site.get("/d/"), "\"b\"");
        assert!(line.ends_with(expected), "{size}: {line}");
    }
}

#[test]
fn names_are_escaped_and_cut() {
    let site = directory("");
    let fifty = "x".repeat(50);
    let long = format!("{}&{}", "x".repeat(46), "y".repeat(10));
    for name in ["<&>", "a b%?#\"", "caf\u{e9}", &fifty, &long] {
        site.file(&format!("d/{name}"), "");
    }
    site.file(&format!("d/{}/x", "z".repeat(50)), "");
    let answer = site.get("/d/");
    let starts = |name: &str, start: &str| {
        let line = line(&answer, name);
        assert!(line.starts_with(start), "{line}");
    };
    starts("%3C", &format!("<a href=\"%3C%26%3E\">&lt;&amp;&gt;</a>{}", " ".repeat(48)));
    starts("a%20b", "<a href=\"a%20b%25%3F%23%22\">a b%?#&quot;</a> ");
    // One character of two bytes: lengths are counted in bytes unless the page is UTF-8.
    starts("caf", &format!("<a href=\"caf%C3%A9\">caf\u{e9}</a>{}", " ".repeat(46)));
    starts(
        "yyy",
        &format!(
            "<a href=\"{}%26{}\">{}&amp;..&gt;</a> ",
            "x".repeat(46),
            "y".repeat(10),
            "x".repeat(46)
        ),
    );
    starts(&format!("\"{fifty}\""), &format!("<a href=\"{fifty}\">{fifty}</a> "));
    let z = "z".repeat(50);
    starts(&z, &format!("<a href=\"{z}/\">{z}</a> "));
}

#[test]
fn columns_are_characters_where_the_page_is_utf8() {
    let long = format!("<{}", "\u{444}".repeat(60));
    for charset in ["utf-8", "$arg_c"] {
        let site = directory(&format!("charset {charset};"));
        site.file("d/\u{444}\u{444}", "");
        site.file(&format!("d/{long}"), "");
        let answer = site.get("/d/?c=UTF-8");
        let line = line(&answer, "\u{444}\u{444}</a>");
        let columns = line.split_once("</a>").unwrap().1;
        assert_eq!(columns.len() - columns.trim_start().len(), 48 + 1);
        let cut = format!(">&lt;{}..&gt;</a> ", "\u{444}".repeat(46));
        assert!(answer.body().contains(&cut), "{}", answer.body());
        assert!(!site.get("/d/?c=koi8-r").body().contains(&cut) || charset == "utf-8");
    }
}

#[test]
fn json() {
    let site = directory("autoindex_format json;");
    site.file("d/q\"\\\n\u{1}", "");
    set_time(&site.file("d/q\"\\\n\u{1}", ""));
    let answer = site.get("/d/?callback=f");
    let mtime = "\"mtime\":\"Sun, 09 Sep 2001 01:46:40 GMT\"";
    let expected = format!(
        "[\r\n{{ \"name\":\"sub\", \"type\":\"directory\", {mtime} }},\r\n\
         {{ \"name\":\"A\", \"type\":\"file\", {mtime}, \"size\":10240 }},\r\n\
         {{ \"name\":\"b\", \"type\":\"file\", {mtime}, \"size\":3 }},\r\n\
         {{ \"name\":\"q\\\"\\\\\\n\\u0001\", \"type\":\"file\", {mtime}, \"size\":0 }}\r\n]"
    );
    assert_eq!(answer.body(), expected);
    assert_eq!(answer.head(), ["Content-Type: application/json"]);
}

#[test]
fn jsonp() {
    let site = directory("autoindex_format jsonp;");
    fs::create_dir(site.file("a", "").with_file_name("empty")).unwrap();
    let answer = site.get("/empty/?x=1&CallBack=a.b_9&callback=c");
    assert_eq!(answer.body(), "/* callback */\r\na.b_9([\r\n]);");
    assert_eq!(answer.head(), ["Content-Type: application/javascript"]);
    for target in ["/empty/", "/empty/?callback=", "/empty/?xcallback=f", "/empty/?callback"] {
        let answer = site.get(target);
        assert_eq!(answer.body(), "[\r\n]", "{target}");
        assert_eq!(answer.head(), ["Content-Type: application/json"]);
    }
    assert_eq!(site.get("/empty/?callback=a-b").status(), 400);
    assert_eq!(site.get(&format!("/empty/?callback={}", "a".repeat(128))).status(), 200);
    assert_eq!(site.get(&format!("/empty/?callback={}", "a".repeat(129))).status(), 400);
}

#[test]
fn xml() {
    let site = directory("autoindex_format xml;");
    symlink("none", site.file("d/b", "xyz").with_file_name("<o>")).unwrap();
    set_time(&site.file("d/b", "xyz"));
    let body = site.get("/d/").body();
    let mtime = "mtime=\"2001-09-09T01:46:40Z\"";
    let expected = format!(
        "<?xml version=\"1.0\"?>\r\n<list>\r\n<directory {mtime}>sub</directory>\r\n\
         <other LINK>&lt;o&gt;</other>\r\n<file {mtime} size=\"10240\">A</file>\r\n\
         <file {mtime} size=\"3\">b</file>\r\n</list>\r\n"
    );
    let (before, after) = expected.split_once("LINK").unwrap();
    assert!(body.starts_with(before) && body.ends_with(after), "{body}");
    assert_eq!(site.get("/d/").head(), ["Content-Type: text/xml; charset=utf-8"]);
}

#[test]
fn other_requests_are_left_to_other_handlers() {
    let site = directory("error_log log; location /off/ { autoindex off; }");
    let html = site.file("off/x", "").parent().unwrap().parent().unwrap().to_owned();
    let status = |head: &str| site.send(&format!("{head} HTTP/1.1\nHost: h\n\n")).status();
    assert_eq!(status("GET /off/"), 403);
    assert_eq!(status("HEAD /d/"), 200);
    assert_eq!(status("POST /d/"), 403);
    site.file("d/index.html", "index");
    assert_eq!(site.get("/d/").body(), "index");
    let index_is_asked_first = format!(
        "[error] \"{}/none/index.html\" is not found (2: No such file or directory)",
        html.display()
    );
    assert_eq!(site.get("/none/").status(), 404);
    assert_eq!(site.messages("log").last(), Some(&index_is_asked_first));
}

#[test]
fn invalid_directives_are_refused() {
    assert_eq!(refusal("autoindex_format text;"), "invalid value \"text\":1");
}
