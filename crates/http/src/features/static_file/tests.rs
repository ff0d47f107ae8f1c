use std::fs;
use std::os::unix::net::UnixListener;

use crate::testing::site;

#[test]
fn methods() {
    let site = site("server { }");
    site.file("a", "content");
    fs::create_dir(site.file("d/x", "").parent().unwrap().join("d")).unwrap();
    let send = |method: &str, target: &str| {
        let answer = site.send(&format!("{method} {target} HTTP/1.1\nHost: h\n\n"));
        (answer.status(), answer.body().len())
    };
    assert_eq!(send("GET", "/a"), (200, 7));
    assert_eq!(send("HEAD", "/a").0, 200);
    assert_eq!(send("POST", "/a").0, 405);
    assert_eq!(send("PUT", "/a").0, 405);
    assert_eq!(send("DELETE", "/d/").0, 405);
    assert_eq!(send("POST", "/none").0, 404);
    assert_eq!(send("POST", "/d").0, 301);
}

#[test]
fn the_head_of_a_file() {
    let site = site("server { }");
    let path = site.file("a.html", "content");
    let file = fs::File::options().write(true).open(path).unwrap();
    let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(0x1234_5678);
    file.set_modified(modified).unwrap();
    let answer = site.get("/a.html");
    assert_eq!(
        answer.head(),
        [
            "Content-Type: text/html",
            "Content-Length: 7",
            "Last-Modified: Wed, 05 Sep 1979 22:51:36 GMT",
            "ETag: \"12345678-7\"",
            "Accept-Ranges: bytes",
        ]
    );
}

#[test]
fn an_empty_file() {
    let site = site("server { }");
    site.file("a", "");
    for _ in 0..3 {
        let answer = site.get("/a");
        assert_eq!((answer.status(), answer.body().as_str()), (200, ""));
        assert_eq!(answer.field("Content-Length").unwrap(), "0");
    }
}

#[test]
fn directories_are_redirected_to_a_slash() {
    let site = site(
        "absolute_redirect off;
         server { location /x/ { alias html/; } location ~ ^/r/(.*) { alias html/$1; } }",
    );
    site.file("d e/a", "");
    for (target, location) in [
        ("/d%20e", "/d%20e/"),
        ("/d%20e?a=b%20c", "/d%20e/?a=b%20c"),
        ("/x/d%20e", "/x/d%20e/"),
        ("/r/d%20e?", "/r/d%20e/"),
    ] {
        let answer = site.get(target);
        assert_eq!((answer.status(), answer.field("Location")), (301, Some(location.into())));
    }
}

#[test]
fn files_that_cannot_be_sent_are_errors() {
    let site = site(
        "error_log log; server { location / { } location /q { log_not_found off; }
         location = /w { root html/none; error_page 404 =200 /a; } location /e/ { index no; } }",
    );
    let path = site.file("a", "content");
    let html = path.parent().unwrap();
    site.file("e/x", "");
    let _socket = UnixListener::bind(html.join("s")).unwrap();
    std::os::unix::fs::symlink("l", html.join("l")).unwrap();
    let long = format!("/{}", "x".repeat(300));
    for (target, status) in [
        ("/none", 404),
        ("/q", 404),
        ("/a/b", 404),
        (long.as_str(), 404),
        ("/l", 403),
        ("/s", 500),
        ("/dev", 404),
        ("/w", 200),
        ("/e/", 403),
    ] {
        assert_eq!(site.get(target).status(), status, "{target}");
    }
    let html = html.display();
    assert_eq!(
        site.messages("log"),
        [
            format!("[error] open() \"{html}/none\" failed (2: No such file or directory)"),
            format!("[error] open() \"{html}/a/b\" failed (20: Not a directory)"),
            format!("[error] open() \"{html}{long}\" failed (36: File name too long)"),
            format!("[error] open() \"{html}/l\" failed (40: Too many levels of symbolic links)"),
            format!("[crit] open() \"{html}/s\" failed (6: No such device or address)"),
            format!("[error] open() \"{html}/dev\" failed (2: No such file or directory)"),
            format!("[error] open() \"{html}/none/w\" failed (2: No such file or directory)"),
            format!("[error] directory index of \"{html}/e/\" is forbidden"),
        ]
    );
}

#[test]
fn a_device_is_not_served() {
    let site = site("error_log log; server { root /dev; }");
    assert_eq!(site.get("/null").status(), 404);
    assert_eq!(site.messages("log"), ["[crit] \"/dev/null\" is not a regular file"]);
}
